/*
 * ask.c - which of these hashes are in a record?
 *
 * Few questions: each is looked for in each generation (bits/sorted.c finds a
 * number without decoding the others). Many: the fingerprints of the questions
 * make holes in a sieve by their low 12 bits, and all fingerprints of the record
 * run past it; one in twenty gets through (200 questions) and is looked up in a
 * hash table of the questions.
 *
 *     record  ──►  low bits in the sieve?  ──►  in the table?  ──►  answer
 *     5000         250                          the true ones, and 0.1 %
 */
#include "exposure/exposure.h"
#include "probe/reduce.h"

#include <string.h>

#define FEW 20

uint64_t seen_print_of(uint64_t h, uint32_t universe)
{
    return seen_reduce(h, seen_universe_of(universe));
}

/* ---- Many --------------------------------------------------------------- */

struct questions {
    size_t n;
    bool *answers;
    uint32_t universe; /* what the prints are for */
    uint64_t *prints;
    uint32_t *table; /* 1 + index of the first question in this place */
    uint32_t *next;  /* 1 + index of the next one with the same place */
    uint64_t mask;   /* of the table */
    uint32_t sieved; /* low bits that the sieve is for */
    uint8_t sieve[SEEN_SIEVE_SIZE];
};

static uint64_t place_of(const struct questions *q, uint64_t print)
{
    return print * 0x9e3779b97f4a7c15 >> 32 & q->mask;
}

static bool make_questions(seen_exposure *x, size_t n, struct questions *q)
{
    uint64_t places = 64;
    while (places < 2 * n)
        places *= 2;
    uint64_t size =
        n * (sizeof *q->prints + sizeof *q->next) + places * sizeof *q->table;
    q->prints = seen_room_for(x, &x->prints, size);
    if (!q->prints) return false;
    q->next = (uint32_t *)(q->prints + n);
    q->table = q->next + n;
    q->mask = places - 1;
    return true;
}

/* Fingerprints for a universe, and the table of them. */
static void fill_table(struct questions *q, const uint64_t *h,
                       uint32_t universe)
{
    q->universe = universe;
    q->sieved = 0;
    memset(q->table, 0, (size_t)(q->mask + 1) * sizeof *q->table);
    for (size_t i = 0; i < q->n; i++) {
        q->prints[i] = seen_print_of(h[i], universe);
        uint32_t *place = &q->table[place_of(q, q->prints[i])];
        q->next[i] = *place;
        *place = (uint32_t)i + 1;
    }
}

static void fill_sieve(struct questions *q, uint32_t low)
{
    uint64_t mask = ((uint64_t)1 << low) - 1;
    memset(q->sieve, 0, sizeof q->sieve);
    for (size_t i = 0; i < q->n; i++)
        q->sieve[q->prints[i] & mask] = 1;
    q->sieved = low + 1; /* 0 means: none yet */
}

static void found(void *ctx, uint64_t print)
{
    struct questions *q = ctx;
    for (uint32_t i = q->table[place_of(q, print)]; i; i = q->next[i - 1])
        if (q->prints[i - 1] == print) q->answers[i - 1] = true;
}

static seen_status ask_many(seen_exposure *x, const struct seen_generations *g,
                            const uint64_t *h, size_t n, bool *answers)
{
    struct questions q;
    q.n = n;
    q.answers = answers;
    q.universe = UINT32_MAX;
    if (!make_questions(x, n, &q)) return SEEN_NOMEM;
    for (uint32_t i = 0; i < g->count; i++) {
        struct seen_sorted run = seen_run_of(&g->at[i]);
        uint32_t low = seen_sorted_low(run.n, run.below);
        if (low > SEEN_SIEVE_LOG) low = SEEN_SIEVE_LOG;
        if (g->at[i].universe != q.universe)
            fill_table(&q, h, g->at[i].universe);
        if (low + 1 != q.sieved) fill_sieve(&q, low);
        seen_sorted_each(&run, q.sieve, found, &q);
    }
    return SEEN_OK;
}

/* ---- Few ---------------------------------------------------------------- */

seen_status seen_ask(seen_exposure *x, const struct seen_generations *g,
                     const uint64_t *h, size_t n, bool *answers)
{
    memset(answers, 0, n * sizeof *answers);
    if (n > UINT32_MAX / 2) return SEEN_INVALID;
    if (n > FEW) return ask_many(x, g, h, n, answers);
    for (uint32_t i = 0; i < g->count; i++) {
        struct seen_sorted run = seen_run_of(&g->at[i]);
        for (size_t k = 0; k < n; k++)
            if (!answers[k])
                answers[k] = seen_sorted_has(
                    &run, seen_print_of(h[k], g->at[i].universe));
    }
    return SEEN_OK;
}

/* ---- Among themselves --------------------------------------------------- */

seen_status seen_ask_repeats(seen_exposure *x, const uint64_t *h, size_t n,
                             bool *answers)
{
    struct questions q;
    q.n = n;
    if (!make_questions(x, n, &q)) return SEEN_NOMEM;
    fill_table(&q, h, x->universe);
    for (size_t k = 0; k < n; k++)
        for (uint32_t i = q.next[k]; i && !answers[k]; i = q.next[i - 1])
            answers[k] = q.prints[i - 1] == q.prints[k];
    return SEEN_OK;
}
