/*
 * set.c - a growing set of 64-bit fingerprints: practically exact, no n needed.
 *
 * The fingerprint is the whole hash. Two of n keys share one with probability
 * about n^2 / 2^65: 5 in a million for 14 million keys, 3 % for a billion. So
 * "maybe" here means "yes, unless a billion keys had bad luck".
 *
 * Fingerprints lie in an open-addressing table of cache lines, eight each. A
 * fingerprint's home line is its value scaled to the number of lines; if that
 * is full, the next one with room, wrapping at the end. A line fills from the left and nothing is
 * ever removed, so the first zero ends the search:
 *
 *     line i    | a b c d 0 0 0 0 |      4 keys, room for more
 *     line i+1  | e f g h i j k l |      full: look on in line i+2
 *
 * (The fingerprint 0 means "empty"; a key that hashes to it is stored as 1.)
 *
 * The table doubles when 4/5 of it is used: 10 to 20 bytes a key. Scaling keeps
 * order, so old lines feed new lines from front to back, and the memory of the
 * old table goes piece by piece into the new one while that fills: the peak is
 * the new table alone. Growing by half instead (10 to 15 bytes) moves every key
 * twice as often. Who knows how many keys will come says so with
 * seen_reserve(): 10 bytes a key, and none is moved.
 *
 * Worked example: 13 million keys. The table has grown to 16.8 million slots,
 * 134 MB or 10.3 bytes a key; the key number 13,421,773 doubles it.
 *
 * Choose a Bloom kind instead when that is too much: 8 bits a key at 2 %.
 */
#include "base/alloc.h"
#include "base/cpu.h"
#include "bits/slots.h"
#include "filter/filter.h"
#include "plan/sizing.h"
#include "probe/reduce.h"

#include <string.h>

#define SLOTS       SEEN_SLOTS
#define FIRST_LINES 16
#define RING        32
#define ITEMS_MAX   ((uint64_t)1 << 42) /* 40 TB of them */

struct set {
    seen_filter common; /* .items: slots in use */
    uint64_t *slots;
    uint64_t lines;
    uint64_t room; /* grow when this many are used */
    uint64_t *(*find)(const struct set *s, uint64_t print); /* as the CPU can */
};

static struct set *self(seen_filter *f)
{
    return (struct set *)f;
}

static const struct set *peek(const seen_filter *f)
{
    return (const struct set *)f;
}

static uint64_t bytes_of(uint64_t lines)
{
    return lines * SEEN_LINE_SIZE;
}

static uint64_t room_of(uint64_t lines)
{
    return lines * SLOTS / 5 * 4;
}

/* The fewest lines with room for n. */
static uint64_t lines_with_room(uint64_t n)
{
    uint64_t lines = n / 4 * 5 / SLOTS;
    while (room_of(lines) < n)
        lines++;
    return lines < FIRST_LINES ? FIRST_LINES : lines;
}

static uint64_t fingerprint(seen_hash h)
{
    return h.lo ? h.lo : 1;
}

/* ---- Plan --------------------------------------------------------------- */

static double set_plan_fpp(const seen_plan *plan, uint64_t items)
{
    (void)plan;
    return (double)items * 0x1p-64;
}

static void cost(seen_plan *plan, uint64_t lines)
{
    plan->lines = 1;
    plan->bits = bytes_of(lines) * 8;
    plan->bytes = bytes_of(lines) + sizeof(struct set);
}

static seen_status set_plan(const seen_spec *spec, seen_plan *plan,
                            seen_error *e)
{
    if (spec->bits || spec->hashes)
        return seen_fail(
            e, SEEN_INVALID, spec->bits ? "bits" : "hashes",
            "%s: not for a set, which grows with its keys: leave it out",
            spec->bits ? "bits" : "hashes");
    if (spec->items > ITEMS_MAX)
        return seen_fail(e, SEEN_INVALID, "items",
                         "items %" PRIu64 ": expected at most 2^42 in a set",
                         spec->items);
    if (spec->fpp > 0 && (double)spec->items * 0x1p-64 > spec->fpp)
        return seen_fail(e, SEEN_INVALID, "fpp",
                         "fpp %g: below what 64-bit fingerprints can keep: "
                         "expected at least %.2g for %" PRIu64 " keys",
                         spec->fpp, (double)spec->items * 0x1p-64, spec->items);
    plan->hashes = 1;
    plan->items = spec->items;
    plan->fpp = set_plan_fpp(plan, spec->items);
    plan->hash_bits = spec->flags & SEEN_KEYED ? 128 : 64;
    cost(plan, lines_with_room(spec->items));
    return SEEN_OK;
}

static bool set_plan_read(seen_plan *plan)
{
    uint64_t lines = plan->bits / 8 / SEEN_LINE_SIZE;
    if (lines < FIRST_LINES || plan->bits > SEEN_MAX_BITS ||
        plan->bits != bytes_of(lines) * 8 || plan->hashes != 1 ||
        plan->width != 0)
        return false;
    cost(plan, lines);
    return true;
}

/* ---- The table ---------------------------------------------------------- */

static uint64_t *home(const struct set *s, uint64_t print)
{
    return s->slots + seen_reduce(print, s->lines) * SLOTS;
}

/* Where the fingerprint is, or the empty slot where it belongs. Our own tables
 * are never full, so the search ends; one that somebody else filled to the
 * brim ends it after a second time around. */
SEEN_INLINE uint64_t *search(const struct set *s, uint64_t print,
                             uint32_t (*look)(const uint64_t *, uint64_t))
{
    static uint64_t nowhere; /* stays 0: such a table is never changed */
    uint64_t *line = home(s, print);
    const uint64_t *end = s->slots + s->lines * SLOTS;
    for (int rounds = 0; rounds < 2;) {
        uint32_t i = look(line, print);
        if (i < SLOTS) return line + i;
        line += SLOTS;
        if (line == end) {
            line = s->slots;
            rounds++;
        }
    }
    return &nowhere;
}

static uint64_t *find(const struct set *s, uint64_t print)
{
    return search(s, print, seen_slot_find);
}

#if defined(__x86_64__)
SEEN_SLOTS_AVX2 static uint64_t *find_avx2(const struct set *s, uint64_t print)
{
    return search(s, print, seen_slot_find_avx2);
}
#endif

/*
 * Fills an empty table with fingerprints that come nearly in order. How full
 * the last few lines are is kept aside, so nothing is read back from the table:
 * a vector load right behind the store of one slot would wait for it.
 */
#define WINDOW 64

struct filler {
    struct set *to;
    uint64_t top;         /* lines below are open: their fill is known */
    uint64_t far;         /* no line from top to here holds anything */
    uint8_t used[WINDOW]; /* of lines top - WINDOW .. top - 1 */
};

static uint8_t count_used(const uint64_t *line)
{
    uint8_t used = 0;
    for (uint32_t i = 0; i < SLOTS; i++)
        used += line[i] != 0;
    return used;
}

/* Lines below `far` are known to be empty: not looking at them spares fresh
 * memory a page fault. */
static void open_line(struct filler *w, uint64_t line)
{
    for (; w->top <= line; w->top++)
        w->used[w->top % WINDOW] =
            w->top < w->far ? 0 : count_used(w->to->slots + w->top * SLOTS);
}

static bool within(const struct filler *w, uint64_t line)
{
    return line < w->to->lines && line + WINDOW >= w->top &&
           line < w->top + WINDOW;
}

static void put(struct filler *w, uint64_t print)
{
    struct set *to = w->to;
    for (uint64_t line = seen_reduce(print, to->lines); within(w, line);
         line++) {
        open_line(w, line);
        uint8_t *used = &w->used[line % WINDOW];
        if (*used == SLOTS) continue;
        to->slots[line * SLOTS + (*used)++] = print;
        return;
    }
    /* Far from the others, or around the end: rare, so search. */
    uint64_t *slot = to->find(to, print);
    *slot = print;
    uint64_t line = (uint64_t)(slot - to->slots) / SLOTS;
    if (line >= w->top)
        w->far = seen_min64(w->far, line);
    else if (line + WINDOW >= w->top)
        w->used[line % WINDOW]++;
}

/* The old table is done with a piece of its memory: let it serve as the next
 * untouched piece of the new one, if there is one. */
static void pass_on(struct filler *w, uint64_t *piece, uint64_t old_bytes,
                    const seen_allocator *a)
{
    const uint64_t lines = SEEN_PIECE / SEEN_LINE_SIZE;
    uint64_t next = (w->top + lines - 1) / lines * lines;
    if (next + lines <= w->far)
        seen_recycle_piece(a, piece, old_bytes, w->to->slots + next * SLOTS);
    else
        seen_release_piece(a, piece, old_bytes);
}

/* Put each fingerprint of a table into an empty larger one. */
static void move(struct set *to, struct set *from, const seen_allocator *a)
{
    const uint64_t piece = SEEN_PIECE / SEEN_LINE_SIZE;
    struct filler filler = {.to = to, .far = to->lines};
    for (uint64_t line = 0; line < from->lines; line++) {
        const uint64_t *slot = from->slots + line * SLOTS;
        for (uint32_t i = 0; i < SLOTS && slot[i]; i++)
            put(&filler, slot[i]);
        if ((line + 1) % piece == 0)
            pass_on(&filler, from->slots + (line + 1 - piece) * SLOTS,
                    bytes_of(from->lines), a);
    }
}

static uint64_t most_lines(const seen_filter *f)
{
    if (!f->limit) return UINT64_MAX;
    return (f->limit - sizeof(struct set)) / SEEN_LINE_SIZE;
}

/* Move to a table of `lines` lines; the old one stays if there is no memory or
 * if that is more than the limit allows. */
static seen_status rebuild(seen_filter *f, uint64_t lines)
{
    struct set *s = self(f);
    if (lines > most_lines(f)) return SEEN_FULL;
    struct set next = *s;
    next.lines = lines;
    next.room = room_of(lines);
    next.slots = seen_alloc_zeroed(&f->allocator, bytes_of(lines));
    if (!next.slots) return SEEN_NOMEM;
    move(&next, s, &f->allocator);
    seen_release(&f->allocator, s->slots, bytes_of(s->lines));
    s->slots = next.slots; /* and not the common part: others may be hashing */
    s->lines = next.lines;
    s->room = next.room;
    cost(&f->plan, lines);
    return SEEN_OK;
}

/* Twice the size, or what the limit leaves. */
static seen_status grow(seen_filter *f)
{
    uint64_t lines = self(f)->lines;
    uint64_t wanted = seen_min64(2 * lines, most_lines(f));
    return wanted > lines ? rebuild(f, wanted) : SEEN_FULL;
}

SEEN_INLINE seen_status insert(seen_filter *f, uint64_t print, bool *before)
{
    struct set *s = self(f);
    uint64_t *slot = s->find(s, print);
    if (*slot == print) {
        *before = true;
        return SEEN_OK;
    }
    if (f->items >= s->room) {
        seen_status status = grow(f);
        if (status != SEEN_OK) return status;
        slot = s->find(s, print);
    }
    *slot = print;
    f->items++;
    *before = false;
    return SEEN_OK;
}

static seen_status set_reserve(seen_filter *f, uint64_t items)
{
    if (items > ITEMS_MAX) return SEEN_INVALID;
    if (items <= self(f)->room) return SEEN_OK;
    return rebuild(f, lines_with_room(items));
}

/* ---- Life --------------------------------------------------------------- */

static void set_shape(seen_filter *f)
{
    struct set *s = self(f);
    s->lines = f->plan.bits / 8 / SEEN_LINE_SIZE;
    s->room = room_of(s->lines);
    s->find = find;
#if defined(__x86_64__)
    if (seen_cpu_use_avx2()) s->find = find_avx2;
#endif
}

static bool set_part(const seen_filter *f, uint32_t index,
                     struct seen_part *part)
{
    const struct set *s = peek(f);
    *part = (struct seen_part){s->slots, bytes_of(s->lines), true};
    return index == 0;
}

static void set_place(seen_filter *f, uint32_t index, void *at)
{
    (void)index;
    self(f)->slots = at;
}

/* How many full lines lie right before the first one, around the end. */
static uint64_t full_before_first(const struct set *s)
{
    uint64_t full = 0;
    while (full < s->lines && s->slots[(s->lines - full) * SLOTS - 1])
        full++;
    return full;
}

/* Filled from the left, by fingerprints that a search from their home reaches:
 * so with full lines only on the way. */
static bool line_ok(const struct set *s, uint64_t line, uint64_t full_before)
{
    const uint64_t *slot = s->slots + line * SLOTS;
    uint32_t used = 0;
    for (; used < SLOTS && slot[used]; used++) {
        uint64_t home = seen_reduce(slot[used], s->lines);
        uint64_t way = line >= home ? line - home : line + s->lines - home;
        if (way > full_before) return false;
    }
    return used == count_used(slot);
}

/* As many fingerprints as it says, which leaves room to end a search, and where
 * a search finds them. (One that is there twice does no harm.) */
static bool set_parts_ok(const seen_filter *f)
{
    const struct set *s = peek(f);
    if (f->items > s->room) return false;
    uint64_t used = 0, full = full_before_first(s);
    for (uint64_t line = 0; line < s->lines; line++) {
        if (!line_ok(s, line, full)) return false;
        uint32_t now = count_used(s->slots + line * SLOTS);
        full = now == SLOTS ? full + 1 : 0;
        used += now;
    }
    return used == f->items;
}

/* ---- Keys --------------------------------------------------------------- */

static bool set_maybe(const seen_filter *f, seen_hash h)
{
    return *peek(f)->find(peek(f), fingerprint(h)) != 0;
}

static seen_status set_visit(seen_filter *f, seen_hash h, bool *before)
{
    return insert(f, fingerprint(h), before);
}

static bool ring(const struct set *s)
{
    return bytes_of(s->lines) > SEEN_RING_FROM_BYTES;
}

static void prefetch_home(const struct set *s, seen_hash h)
{
    const uint64_t *line = home(s, fingerprint(h));
    seen_prefetch_read(line);
    seen_prefetch_read(line + SLOTS); /* one search in five goes on there */
}

static void set_prefetch(const seen_filter *f, const seen_hash *h, size_t n)
{
    for (size_t i = 0; i < n && i < RING; i++)
        prefetch_home(peek(f), h[i]);
}

static void set_maybe_many(const seen_filter *f, const seen_hash *h, size_t n,
                           size_t ahead, bool *answers)
{
    const struct set *s = peek(f);
    size_t known = ring(s) ? n + ahead : 0;
    for (size_t i = 0; i < n; i++) {
        if (i + RING < known) prefetch_home(s, h[i + RING]);
        answers[i] = *s->find(s, fingerprint(h[i])) != 0;
    }
}

static seen_status set_visit_many(seen_filter *f, const seen_hash *h, size_t n,
                                  size_t ahead, bool *before, size_t *done)
{
    const struct set *s = self(f);
    size_t known = ring(s) ? n + ahead : 0;
    seen_status status = SEEN_OK;
    size_t i = 0;
    for (; i < n; i++) {
        if (i + RING < known) prefetch_home(s, h[i + RING]);
        bool was;
        status = insert(f, fingerprint(h[i]), &was);
        if (status != SEEN_OK) break;
        if (before) before[i] = was;
    }
    *done = i;
    return status;
}

/* ---- Whole sets --------------------------------------------------------- */

/* Only fingerprints are compared and moved, so tables of different sizes
 * merge; what must agree, the hash and its key, the caller has checked. */
static seen_status set_merge(seen_filter *into, const seen_filter *from,
                             seen_merge_op op)
{
    struct set *a = self(into);
    const struct set *b = peek(from);
    if (op == SEEN_UNION) {
        /* Room first: nothing may fail halfway. A view's own count may lie. */
        uint64_t keys = 0;
        for (uint64_t i = 0; i < b->lines * SLOTS; i++)
            keys += b->slots[i] != 0;
        seen_status status = set_reserve(into, into->items + keys);
        if (status != SEEN_OK) return status;
        for (uint64_t i = 0; i < b->lines * SLOTS; i++) {
            bool was;
            if (b->slots[i]) insert(into, b->slots[i], &was);
        }
        return SEEN_OK;
    }

    uint64_t bytes = bytes_of(a->lines);
    uint64_t *slots = seen_alloc_zeroed(&into->allocator, bytes);
    if (!slots) return SEEN_NOMEM;
    struct set next = *a;
    next.slots = slots;
    uint64_t items = 0;
    for (uint64_t i = 0; i < a->lines * SLOTS; i++) {
        if (!a->slots[i] || !*b->find(b, a->slots[i])) continue;
        uint64_t *slot = next.find(&next, a->slots[i]);
        items += *slot == 0;
        *slot = a->slots[i];
    }
    seen_release(&into->allocator, a->slots, bytes);
    a->slots = slots;
    into->items = items;
    return SEEN_OK;
}

static bool set_equal(const seen_filter *a, const seen_filter *b)
{
    if (a->items != b->items) return false;
    const struct set *s = peek(a);
    for (uint64_t i = 0; i < s->lines * SLOTS; i++)
        if (s->slots[i] && !*peek(b)->find(peek(b), s->slots[i])) return false;
    return true;
}

static void set_info(const seen_filter *f, seen_info *info)
{
    uint64_t bytes = bytes_of(peek(f)->lines);
    info->grows = true;
    info->capacity = 0;
    info->bits = bytes * 8;
    info->bytes = bytes + sizeof(struct set);
    info->fpp = set_plan_fpp(&f->plan, f->items);
}

static void set_measure(const seen_filter *f, seen_info *info)
{
    info->bits_set = f->items * 64;
    info->fpp_now = set_plan_fpp(&f->plan, f->items);
}

const struct seen_filter_ops seen_set_ops = {
    .kind = SEEN_SET,
    .name = "set",
    .state_size = sizeof(struct set),
    .flags = SEEN_KEYED,
    .plan = set_plan,
    .plan_fpp = set_plan_fpp,
    .plan_read = set_plan_read,
    .shape = set_shape,
    .part = set_part,
    .place = set_place,
    .parts_ok = set_parts_ok,
    .maybe = set_maybe,
    .visit = set_visit,
    .prefetch = set_prefetch,
    .maybe_many = set_maybe_many,
    .visit_many = set_visit_many,
    .reserve = set_reserve,
    .merge = set_merge,
    .equal = set_equal,
    .info = set_info,
    .measure = set_measure,
};
