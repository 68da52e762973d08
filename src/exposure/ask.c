/*
 * ask.c - which of these hashes are in a record?
 *
 * A fingerprint is a scaled hash: the order of the hashes is that of their
 * fingerprints in every universe. Few questions are sorted, and each generation
 * walked through once, from one to the next. Many are asked in any order, of an
 * index that is made of each generation first. bits/sorted.c has both.
 *
 * Which of the questions come twice, a hash table tells.
 */
#include "exposure/exposure.h"
#include "probe/reduce.h"

#include <string.h>

#define FEW 16 /* where an index of 1000 fingerprints pays */

uint64_t seen_print_of(uint64_t h, uint32_t universe)
{
    return seen_reduce(h, seen_universe_of(universe));
}

/* ---- Many --------------------------------------------------------------- */

uint64_t seen_places_for(uint64_t n)
{
    uint64_t places = 64;
    while (places < 4 * n)
        places *= 2;
    return places;
}

/* By their whole hashes: two candidates whose fingerprints meet are still two. */
static void find_repeats(const seen_exposure *x, const uint64_t *h, size_t n,
                         uint32_t *table, bool *answers)
{
    const uint64_t mask = seen_places_for(n) - 1;
    memset(table, 0, (size_t)(mask + 1) * sizeof *table);
    for (size_t i = 0; i < n; i++) {
        uint64_t place = seen_place_of(x, h[i], mask);
        while (table[place] && h[table[place] - 1] != h[i])
            place = (place + 1) & mask;
        if (table[place])
            answers[i] = true;
        else
            table[place] = (uint32_t)i + 1;
    }
}

static void make_prints(const uint64_t *h, size_t n, uint32_t universe,
                        uint64_t *prints)
{
    const uint64_t below = seen_universe_of(universe);
    for (size_t i = 0; i < n; i++)
        prints[i] = seen_reduce(h[i], below);
}

static seen_status ask_many(seen_exposure *x, const struct seen_generations *g,
                            const uint64_t *h, size_t n, bool repeats,
                            bool *answers)
{
    uint64_t most = repeats ? seen_places_for(n) : 0; /* of table and indexes */
    for (uint32_t i = 0; i < g->count; i++) {
        struct seen_sorted run = seen_run_of(&g->at[i]);
        uint64_t size = seen_sorted_index_size(run.n, run.below);
        if (size > most) most = size;
    }
    uint64_t *prints = seen_room_for(
        x, &x->prints, n * sizeof *prints + most * sizeof(uint32_t));
    if (!prints) return SEEN_NOMEM;
    uint32_t *index = (uint32_t *)(prints + n);
    memset(answers, 0, n * sizeof *answers);

    uint32_t universe = x->universe;
    make_prints(h, n, universe, prints);
    if (repeats) find_repeats(x, h, n, index, answers);
    for (uint32_t i = 0; i < g->count; i++) {
        struct seen_sorted run = seen_run_of(&g->at[i]);
        if (g->at[i].universe != universe)
            make_prints(h, n, universe = g->at[i].universe, prints);
        seen_sorted_find_many(&run, prints, n, index, answers);
    }
    return SEEN_OK;
}

/* ---- Few ---------------------------------------------------------------- */

/* The order of some hashes: order[0] is the number of the smallest. */
static void sort_few(const uint64_t *h, size_t n, uint32_t *order)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = i;
        for (; k > 0 && h[order[k - 1]] > h[i]; k--)
            order[k] = order[k - 1];
        order[k] = i;
    }
}

static void find_few_repeats(const uint64_t *h, size_t n, bool *answers)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++)
            answers[i] |= h[k] == h[i];
}

static void ask_few(const struct seen_generations *g, const uint64_t *h,
                    size_t n, bool *answers)
{
    uint32_t order[FEW];
    uint64_t prints[FEW];
    bool there[FEW] = {0};
    sort_few(h, n, order);
    for (uint32_t i = 0; i < g->count; i++) {
        struct seen_sorted run = seen_run_of(&g->at[i]);
        for (size_t k = 0; k < n; k++)
            prints[k] = seen_reduce(h[order[k]], run.below);
        seen_sorted_find(&run, prints, n, there);
    }
    for (size_t k = 0; k < n; k++)
        answers[order[k]] = there[k];
}

seen_status seen_ask(seen_exposure *x, const struct seen_generations *g,
                     const uint64_t *h, size_t n, bool repeats, bool *answers)
{
    if (n > UINT32_MAX / 2) return SEEN_INVALID;
    if (n > FEW) return ask_many(x, g, h, n, repeats, answers);
    ask_few(g, h, n, answers);
    if (repeats) find_few_repeats(h, n, answers);
    return SEEN_OK;
}
