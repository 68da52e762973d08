/*
 * seen_store.h - what needs an operating system (libseen_store). The contract
 * of seen.h holds.
 */
#ifndef SEEN_STORE_H
#define SEEN_STORE_H

#include "seen.h"

#ifdef __cplusplus
extern "C" {
#endif

/* 16 bytes from the kernel's generator for seen_spec.key. SEEN_IO if it has
 * none; key is then unchanged, and nothing weaker is put in its place. */
SEEN_API seen_status seen_random_key(uint8_t key[16]);

#ifdef __cplusplus
}
#endif

#endif /* SEEN_STORE_H */
