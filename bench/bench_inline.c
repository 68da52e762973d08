/* bench_inline.c - see bench_inline.h. */
#include "bench_inline.h"

#include "bench.h"

#include "seen_inline.h"

bool bench_inline_usable(void)
{
#if defined(__AVX2__)
    return __builtin_cpu_supports("avx2");
#else
    return false;
#endif
}

void bench_inline_ask(const seen_filter *f, const seen_hash *h, size_t n,
                      bool *answers)
{
    seen_inline in;
    if (seen_inline_of(&in, f) != SEEN_OK) bench_die("no snapshot");
    for (size_t i = 0; i < n; i++)
        answers[i] = seen_inline_maybe_hashed(&in, h[i]);
}
