/* bench_inline.h - the loop of bench_single.c that is compiled for AVX2. */
#ifndef SEEN_BENCH_INLINE_H
#define SEEN_BENCH_INLINE_H

#include "seen.h"

/* Compiled for AVX2, and this machine has it. */
bool bench_inline_usable(void);

void bench_inline_ask(const seen_filter *f, const seen_hash *h, size_t n,
                      bool *answers);

#endif
