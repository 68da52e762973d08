/*
 * exposure_input.h - what an input of fuzz_exposure.c means, for it and for
 * gen_exposure.c, which writes those to start from.
 *
 *     byte  1    which policy
 *           8    now, little-endian
 *           2    length of the first record, little-endian
 *           ..   two records of one user, one behind the other
 */
#ifndef SEEN_FUZZ_EXPOSURE_INPUT_H
#define SEEN_FUZZ_EXPOSURE_INPUT_H

#include "seen_exposure.h"

#include "base/bytes.h"

#define HEADER   11
#define POLICIES 6

static const seen_policy policies[POLICIES] = {
    {.items = 1000, .generations = 5},
    {.items = 20, .generations = 3},
    {.items = 3, .generations = 2, .fpp = 0.5, .ttl_ms = 10},
    {.items = 1, .generations = 1, .fpp = 0.5, .ttl_ms = 1},
    {.items = 50, .generations = 64, .ttl_ms = 1000},
    {.items = 100, .generations = 5, .fpp = 1e-9}};

static const uint8_t secret[16] = "no secret at all";

/* The items are the numbers from 0 on. */
#define ITEMS 1000

struct items {
    uint8_t bytes[ITEMS][8];
    seen_key key[ITEMS];
};

static inline void make_items(struct items *it)
{
    for (size_t i = 0; i < ITEMS; i++) {
        seen_put_le64(it->bytes[i], i);
        it->key[i] = (seen_key){it->bytes[i], 8};
    }
}

#endif
