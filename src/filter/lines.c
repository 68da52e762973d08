/* filter/lines.c - see lines.h. */
#include "filter/lines.h"

#include <math.h>

/* A random key takes a random line of each region and a random bit of each
 * group, or meets a key with the same 32 bits there (plan/sizing.c). */
double seen_lines_survey(const struct seen_lines *b, uint32_t apart,
                         uint64_t *bits_set)
{
    const uint64_t skipped = (uint64_t)(apart - 1) * SEEN_LINE_WORDS;
    const uint32_t words_per_group = SEEN_LINE_WORDS >> b->log_w;
    const uint64_t *word = b->words;
    double fpp = 1;
    *bits_set = 0;
    for (uint32_t r = 0; r < b->regions; r++) {
        double sum = 0;
        uint64_t set_before = *bits_set;
        for (uint64_t line = 0; line < b->count; line++) {
            double wrong = 1;
            for (uint32_t g = 0; g < 1u << b->log_w; g++) {
                uint64_t set = 0;
                for (uint32_t i = 0; i < words_per_group; i++)
                    set += seen_popcount64(seen_atomic_load(word++));
                wrong *= (double)set / (words_per_group * 64);
                *bits_set += set;
            }
            sum += wrong;
            word += skipped;
        }
        double mean = seen_items_from_fill((double)(*bits_set - set_before),
                                           (double)b->count * SEEN_LINE_BITS,
                                           1u << b->log_w) /
                      (double)b->count;
        fpp *= fmin(1, sum / (double)b->count + mean * 0x1p-32);
    }
    return fpp;
}
