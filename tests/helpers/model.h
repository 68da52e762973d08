/*
 * model.h - what the structures should do, in the plainest way there is: one
 * byte per bit, and a set that stores its members.
 */
#ifndef SEEN_TEST_MODEL_H
#define SEEN_TEST_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- A bitmap ----------------------------------------------------------- */

struct model_bits {
    bool *bit;
    uint64_t n;
};

struct model_bits model_bits_new(uint64_t n);
void model_bits_free(struct model_bits *m);
void model_fill(struct model_bits *m, uint64_t from, uint64_t to, bool value);
uint64_t model_count(const struct model_bits *m, uint64_t from, uint64_t to);
/* UINT64_MAX: there is none. */
uint64_t model_find(const struct model_bits *m, uint64_t from, bool value);

/* ---- An exact set of 64-bit numbers ------------------------------------- */

struct model_set {
    uint64_t *slots; /* open addressing; 0 is kept apart */
    size_t cap, used;
    bool has_zero;
};

struct model_set model_set_new(void);
void model_set_free(struct model_set *s);
bool model_set_has(const struct model_set *s, uint64_t x);
bool model_set_add(struct model_set *s, uint64_t x); /* was it there? */
uint64_t model_set_count(const struct model_set *s);

#endif
