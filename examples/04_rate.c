/*
 * 04_rate.c - is the promise kept? Fill a filter, ask for a million keys that
 * were never added, count the wrong answers.
 */
#include <seen.h>

#include <math.h>
#include <stdio.h>

static int measure(seen_kind kind, double fpp)
{
    const uint64_t items = 1000000, questions = 1000000;
    seen_filter *f;
    seen_spec spec = {.items = items, .fpp = fpp, .kind = kind};
    if (seen_new(&f, &spec, NULL)) return 1;
    for (uint64_t key = 0; key < items; key++)
        if (seen_add_u64(f, key)) return 1;

    uint64_t wrong = 0;
    for (uint64_t key = items; key < items + questions; key++)
        wrong += seen_maybe_u64(f, key);

    seen_info info = {.size = sizeof info};
    seen_measure(f, &info);
    /* Chance alone moves the measured one by this, hardly ever by more. */
    double chance = 4 * sqrt(fpp * (1 - fpp) / (double)questions);
    printf("%-8s promised %6.3f %%   measured %6.3f +- %.3f %%   %5.2f bits a "
           "key\n",
           seen_kind_name(kind), 100 * fpp,
           100 * (double)wrong / (double)questions, 100 * chance,
           (double)info.bits / (double)items);
    seen_free(f);
    return 0;
}

int main(void)
{
    return measure(SEEN_BLOCKED, 0.01) || measure(SEEN_BLOCKED, 0.001) ||
           measure(SEEN_BLOOM, 0.01) || measure(SEEN_BLOOM, 0.001);
}
