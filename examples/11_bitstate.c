/*
 * 11_bitstate.c - all states of a system in a few bits each, as model checkers
 * search them.
 *
 * To prove that something can never happen, visit every state that can. A search
 * must know where it has been, and states are many and large, hundreds of bytes
 * each: the table of visited ones is what fills the memory. Holzmann's supertrace
 * (1987, the bitstate mode of Spin) keeps no states at all but a few bits of each
 * in one large array. That is a Bloom filter, and k = 3 is Spin's default.
 *
 * What a wrong "maybe" does here: a state is taken for visited, and the search turns
 * back. It reports no error that is not there, but may overlook one; the share of
 * the states that it has seen is its coverage. Nobody knows the true number of
 * states, that is the point, so the coverage must be estimated from what the search
 * knows. When i states are in, a new one is overlooked with probability p(i); for
 * each of the n states that were stored,
 *
 *     overlooked = sum of p(i) / (1 - p(i)), i = 0 .. n-1
 *     coverage   = n / (n + overlooked)
 *
 * States that could be reached through overlooked ones only are missing from that,
 * and there are few where most states have several ways in.
 *
 * The system is a puzzle, nine tiles and a hole in two rows of five. Half of all
 * 10! arrangements can be reached, 1,814,400, so here we can compare: with that, and
 * with an exact search, which is possible because arrangements can be numbered (a
 * bitmap of 10! bits). Numbering the states of a protocol is what nobody can do.
 */
#include <seen.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    WIDTH = 5,
    CELLS = 10,
    HASHES = 3,
    STATES = 1814400 /* 10! / 2 */
};

/* ---- The puzzle: four bits a cell, the hole is 0 --------------------------- */

static const uint64_t begin = 0x0987654321;

static uint64_t cell(uint64_t state, int at)
{
    return state >> 4 * at & 15;
}

static uint64_t slide(uint64_t state, int from, int hole)
{
    uint64_t tile = cell(state, from);
    return (state & ~(tile << 4 * from)) | tile << 4 * hole;
}

/* Where one can go from here: at most three states. */
static size_t successors(uint64_t state, uint64_t *to)
{
    int hole = 0;
    while (cell(state, hole) != 0)
        hole++;
    size_t n = 0;
    int other_row = (hole + WIDTH) % CELLS;
    to[n++] = slide(state, other_row, hole);
    if (hole % WIDTH > 0) to[n++] = slide(state, hole - 1, hole);
    if (hole % WIDTH < WIDTH - 1) to[n++] = slide(state, hole + 1, hole);
    return n;
}

/* 0 .. 10!-1: how many of the later cells are smaller, in factorial base. */
static uint64_t number_of(uint64_t state)
{
    uint64_t number = 0, left = (1 << CELLS) - 1;
    for (int at = 0; at < CELLS; at++) {
        uint64_t tile = cell(state, at), smaller = 0;
        left &= ~((uint64_t)1 << tile);
        for (uint64_t t = 0; t < tile; t++)
            smaller += left >> t & 1;
        number = number * (uint64_t)(CELLS - at) + smaller;
    }
    return number;
}

static uint64_t itself(uint64_t state)
{
    return state;
}

/* ---- The search ---------------------------------------------------------- */

/* How many states it has seen. `visited` is the only thing that it asks. */
static uint64_t search(seen_filter *visited, uint64_t (*name)(uint64_t state))
{
    static uint64_t stack[STATES + 1]; /* seen, not yet left */
    size_t depth = 0;
    uint64_t seen = 1, next[3];
    bool before;
    stack[depth++] = begin;
    seen_visit_u64(visited, name(begin), &before);
    while (depth > 0) {
        size_t n = successors(stack[--depth], next);
        for (size_t i = 0; i < n; i++) {
            if (seen_visit_u64(visited, name(next[i]), &before)) exit(2);
            if (before) continue;
            stack[depth++] = next[i];
            seen++;
        }
    }
    return seen;
}

static double estimate(const seen_plan *plan, uint64_t seen)
{
    const uint64_t steps = 1000;
    double overlooked = 0, width = (double)seen / (double)steps;
    for (uint64_t i = 0; i < steps; i++) {
        double p = seen_plan_fpp(plan, (2 * i + 1) * seen / (2 * steps));
        overlooked += width * p / (1 - p);
    }
    return (double)seen / ((double)seen + overlooked);
}

int main(void)
{
    seen_filter *f;
    if (seen_new(&f, &(seen_spec){.kind = SEEN_BITMAP, .bits = 3628800}, NULL))
        return 1;
    uint64_t all = search(f, number_of);
    seen_free(f);
    printf("exact: %" PRIu64 " states, 8 bytes each: %.1f MB\n", all,
           8e-6 * (double)all);
    int bad = all != STATES;

    printf("bits a state        MB     states  coverage  estimated\n");
    static const uint64_t sizes[] = {100, 32, 16, 8, 4};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        seen_spec spec = {.kind = SEEN_BLOOM,
                          .items = STATES,
                          .bits = sizes[i] * STATES,
                          .hashes = HASHES};
        seen_plan plan = {.size = sizeof plan};
        if (seen_plan_for(&spec, &plan, NULL) || seen_new(&f, &spec, NULL))
            return 1;
        uint64_t seen = search(f, itself);
        double coverage = (double)seen / STATES, guess = estimate(&plan, seen);
        printf("%12" PRIu64 " %9.1f %10" PRIu64 " %8.3f%% %9.3f%%\n", sizes[i],
               (double)plan.bytes / 1e6, seen, 100 * coverage, 100 * guess);
        /* Never a state that is none, and an estimate that one can rely on. */
        bad |= seen > STATES;
        bad |= sizes[i] >= 16 && fabs(guess - coverage) > 0.001;
        bad |= sizes[i] == 100 && coverage < 0.9999;
        seen_free(f);
    }
    return bad;
}
