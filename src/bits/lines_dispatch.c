/*
 * lines_dispatch.c - which kernel runs, decided once.
 *
 * The table goes from best to plainest; the first that can run here is taken,
 * unless SEEN_CPU=portable|avx2|neon names another that can. Two threads that
 * decide at the same moment decide alike, so a relaxed store is enough.
 */
#include "bits/lines.h"

#include "base/cpu.h"

#include <stdatomic.h>

static const struct seen_kernel *const table[] = {
#if defined(__x86_64__)
    &seen_kernel_avx2,
#endif
#if defined(__aarch64__)
    &seen_kernel_neon,
#endif
    &seen_kernel_portable,
};

#define KERNELS (sizeof table / sizeof *table)

static const struct seen_kernel *choose(void)
{
    for (size_t i = 0; i < KERNELS; i++)
        if (seen_cpu_wanted(table[i]->name) && table[i]->usable())
            return table[i];
    for (size_t i = 0; i < KERNELS; i++)
        if (table[i]->usable()) return table[i];
    return &seen_kernel_portable;
}

const struct seen_kernel *seen_kernel_best(void)
{
    static _Atomic(const struct seen_kernel *) chosen;
    const struct seen_kernel *k =
        atomic_load_explicit(&chosen, memory_order_relaxed);
    if (!k) {
        k = choose();
        atomic_store_explicit(&chosen, k, memory_order_relaxed);
    }
    return k;
}

const struct seen_kernel *seen_kernel_at(size_t index)
{
    return index < KERNELS ? table[index] : NULL;
}
