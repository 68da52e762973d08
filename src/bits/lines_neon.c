/*
 * lines_neon.c - the same eight bits on arm64, where NEON is always there.
 * Two registers of four products, four registers of two masks; see
 * lines_avx2.c for the picture.
 */
#include "bits/lines.h"

#if defined(__aarch64__)

#include <arm_neon.h>

struct mask {
    uint64x2_t pair[4];
};

static bool always(void)
{
    return true;
}

SEEN_INLINE struct mask mask_of(uint32_t x)
{
    const uint64x2_t one = vdupq_n_u64(1);
    struct mask m;
    for (int half = 0; half < 2; half++) {
        uint32x4_t odd = vld1q_u32(seen_line_odd + 4 * half);
        uint32x4_t bit = vshrq_n_u32(vmulq_n_u32(odd, x), 26);
        uint64x2_t low = vmovl_u32(vget_low_u32(bit));
        uint64x2_t high = vmovl_u32(vget_high_u32(bit));
        m.pair[2 * half] = vshlq_u64(one, vreinterpretq_s64_u64(low));
        m.pair[2 * half + 1] = vshlq_u64(one, vreinterpretq_s64_u64(high));
    }
    return m;
}

SEEN_INLINE bool is_zero(uint64x2_t v)
{
    return vmaxvq_u32(vreinterpretq_u32_u64(v)) == 0;
}

SEEN_INLINE bool covers(const uint64_t *line, struct mask m)
{
    uint64x2_t missing = vdupq_n_u64(0);
    for (int i = 0; i < 4; i++)
        missing =
            vorrq_u64(missing, vbicq_u64(m.pair[i], vld1q_u64(line + 2 * i)));
    return is_zero(missing);
}

SEEN_INLINE bool neon_line_maybe(const uint64_t *line, uint32_t x,
                                 uint32_t log_w)
{
    if (log_w != 3) return seen_line_maybe(line, x, log_w);
    return covers(line, mask_of(x));
}

SEEN_INLINE uint64_t neon_run_maybe(const uint64_t *run, uint32_t n, uint32_t x,
                                    uint32_t log_w)
{
    if (log_w != 3) return seen_run_maybe(run, n, x, log_w);
    struct mask m = mask_of(x);
    uint64_t found = 0;
    while (n-- > 0)
        found = found * 2 + covers(run + n * SEEN_LINE_WORDS, m);
    return found;
}

SEEN_INLINE bool neon_line_visit(uint64_t *line, uint32_t x, uint32_t log_w)
{
    if (log_w != 3) return seen_line_visit(line, x, log_w);
    struct mask m = mask_of(x);
    uint64x2_t missing = vdupq_n_u64(0);
    for (int i = 0; i < 4; i++) {
        uint64x2_t words = vld1q_u64(line + 2 * i);
        missing = vorrq_u64(missing, vbicq_u64(m.pair[i], words));
        vst1q_u64(line + 2 * i, vorrq_u64(words, m.pair[i]));
    }
    return is_zero(missing);
}

#define KERNEL seen_kernel_neon
#define NAME   "neon"
#define USABLE always
#define TARGET
#define TEST     neon_line_maybe
#define CHANGE   neon_line_visit
#define RUN_TEST neon_run_maybe
#include "bits/lines_kernel.h"

#else
typedef int seen_no_neon; /* ISO C wants something in every file */
#endif
