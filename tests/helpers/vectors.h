/*
 * vectors.h - filters that other systems wrote: tests/vectors/README.md says
 * what is in the files.
 */
#ifndef SEEN_TEST_VECTORS_H
#define SEEN_TEST_VECTORS_H

#include "seen.h"

#include "helpers/harness.h"

struct test_keys {
    seen_key *keys;
    size_t n;
    uint8_t *store;
};

struct test_vector {
    char name[48], dialect[32], encoding[16];
    seen_spec spec; /* to make it; dialect included */
    bool cleared;   /* rebuilt from the imported one */
    struct test_keys keys, built_from, removed, strangers;
    bool *maybe; /* the original's answer for each stranger */
    uint8_t *bytes;
    size_t len;
};

/* The directory of that name; the test ends if it is not as it should be. */
struct test_vector test_vector_load(const char *name);
void test_vector_free(struct test_vector *v);

/* Any file below tests/vectors. To be freed. */
uint8_t *test_vector_file(const char *name, const char *file, size_t *len);

#endif
