/* sorted.c - see sorted.h. */
#include "bits/sorted.h"

#include "base/bytes.h"

#include <string.h>

/* Where things are. */
struct view {
    const uint8_t *low, *high;
    uint64_t low_bytes, high_bits, high_bytes;
    uint32_t l;
};

uint32_t seen_sorted_low(uint64_t n, uint64_t below)
{
    uint32_t l = 0;
    while (below >> (l + 1) >= n)
        l++;
    return l;
}

static struct view view_of(const struct seen_sorted *s)
{
    struct view v = {.l = seen_sorted_low(s->n, s->below)};
    v.low_bytes = (s->n * v.l + 7) / 8;
    v.high_bits = s->n + ((s->below - 1) >> v.l) + 1;
    v.high_bytes = (v.high_bits + 7) / 8;
    v.low = s->bytes;
    v.high = s->bytes ? s->bytes + v.low_bytes : NULL;
    return v;
}

uint64_t seen_sorted_size(uint64_t n, uint64_t below)
{
    struct seen_sorted nowhere = {.n = n, .below = below};
    struct view v = view_of(&nowhere);
    return v.low_bytes + v.high_bytes;
}

/* Eight bytes, or as many as there are, lowest first. */
SEEN_INLINE uint64_t load(const uint8_t *p, uint64_t left)
{
    if (left >= 8) return seen_get_le64(p);
    uint64_t word = 0;
    for (uint64_t i = 0; i < left; i++)
        word |= (uint64_t)p[i] << (8 * i);
    return word;
}

SEEN_INLINE uint64_t low_at(const struct view *v, uint64_t i)
{
    uint64_t bit = i * v->l;
    uint64_t word = load(v->low + bit / 8, v->low_bytes - bit / 8);
    return word >> (bit % 8) & (((uint64_t)1 << v->l) - 1);
}

/* ---- Write and read ----------------------------------------------------- */

void seen_sorted_encode(const uint64_t *values, uint64_t n, uint64_t below,
                        uint8_t *out)
{
    struct seen_sorted s = {out, n, below};
    struct view v = view_of(&s);
    uint8_t *low = out, *high = out + v.low_bytes;
    memset(high, 0, v.high_bytes);

    const uint64_t mask = ((uint64_t)1 << v.l) - 1;
    uint64_t word = 0;
    uint32_t used = 0; /* bits of word, always less than 8 between numbers */
    for (uint64_t i = 0; i < n; i++) {
        uint64_t at = (values[i] >> v.l) + i;
        high[at / 8] |= (uint8_t)(1u << at % 8);
        word |= (values[i] & mask) << used;
        for (used += v.l; used >= 8; used -= 8) {
            *low++ = (uint8_t)word;
            word >>= 8;
        }
    }
    if (used) *low = (uint8_t)word;
}

/* Goes through the numbers in order. */
struct walk {
    struct view v;
    uint64_t i;    /* the next number */
    uint64_t at;   /* place of the first bit of word in the unary part */
    uint64_t word; /* what is left of 64 of its bits */
};

static struct walk begin(const struct seen_sorted *s)
{
    struct walk w = {.v = view_of(s)};
    w.word = load(w.v.high, w.v.high_bytes);
    return w;
}

#define NONE UINT64_MAX

/* The next place with a 1; NONE if there is no more, in bytes of strangers. */
SEEN_INLINE uint64_t next_place(struct walk *w)
{
    while (w->word == 0) {
        w->at += 64;
        if (w->at >= w->v.high_bits) return NONE;
        w->word = load(w->v.high + w->at / 8, w->v.high_bytes - w->at / 8);
    }
    uint64_t place = w->at + seen_ctz64(w->word);
    w->word &= w->word - 1;
    return place;
}

void seen_sorted_decode(const struct seen_sorted *s, uint64_t *out)
{
    struct walk w = begin(s);
    for (uint64_t i = 0; i < s->n; i++)
        out[i] = (next_place(&w) - i) << w.v.l | low_at(&w.v, i);
}

bool seen_sorted_ok(const struct seen_sorted *s)
{
    if (s->n == 0 || s->below > SEEN_SORTED_MOST || s->n > s->below)
        return false;
    struct view v = view_of(s);
    uint64_t ones = 0;
    for (uint64_t at = 0; at < v.high_bytes; at += 8)
        ones += seen_popcount64(load(v.high + at, v.high_bytes - at));
    uint64_t low_bits = s->n * v.l;
    if (ones != s->n ||
        (low_bits % 8 && v.low[v.low_bytes - 1] >> (low_bits % 8)) ||
        (v.high_bits % 8 && v.high[v.high_bytes - 1] >> (v.high_bits % 8)))
        return false;

    struct walk w = begin(s);
    uint64_t before = 0;
    for (uint64_t i = 0; i < s->n; i++) {
        uint64_t value = (next_place(&w) - i) << v.l | low_at(&v, i);
        if (value >= s->below || (i > 0 && value <= before)) return false;
        before = value;
    }
    /* The last bit ends the last step. */
    return !(v.high[(v.high_bits - 1) / 8] >> ((v.high_bits - 1) % 8) & 1);
}

/* ---- Ask ---------------------------------------------------------------- */

/* Place of the zero number n (from 0) of the unary part, or NONE. */
static uint64_t find_zero(const struct view *v, uint64_t n)
{
    for (uint64_t at = 0; at < v->high_bits; at += 64) {
        uint64_t word = ~load(v->high + at / 8, v->high_bytes - at / 8);
        uint64_t zeros = seen_popcount64(word);
        if (n >= zeros) {
            n -= zeros;
            continue;
        }
        while (n-- > 0)
            word &= word - 1;
        return at + seen_ctz64(word);
    }
    return NONE;
}

bool seen_sorted_has(const struct seen_sorted *s, uint64_t value)
{
    if (value >= s->below) return false;
    struct view v = view_of(s);
    uint64_t high = value >> v.l, low = value & (((uint64_t)1 << v.l) - 1);
    uint64_t place = high ? find_zero(&v, high - 1) + 1 : 0; /* NONE + 1 = 0 */
    for (; place >= high && place - high < s->n && place < v.high_bits &&
           v.high[place / 8] >> (place % 8) & 1;
         place++)
        if (low_at(&v, place - high) == low) return true;
    return false;
}

/* How many numbers have eight bytes to load from where their low part begins;
 * the unary part lies behind, so all but the last few. */
static uint64_t easy(const struct seen_sorted *s, const struct view *v)
{
    uint64_t bytes = v->low_bytes + v->high_bytes;
    if (bytes < 8) return 0;
    return v->l ? seen_min64(s->n, (bytes - 8) * 8 / v->l) : s->n;
}

/*
 * Twice through: which numbers get through the sieve, from the low parts alone
 * and without a branch; then the high parts of those, from one 1 to the next.
 */
#define PIECE 1024

static uint32_t sift(const struct seen_sorted *s, const struct view *v,
                     const uint8_t *sieve, uint64_t from, uint16_t *through)
{
    const uint64_t mask =
        seen_min64(((uint64_t)1 << v->l) - 1, SEEN_SIEVE_SIZE - 1);
    const uint64_t end = seen_min64(s->n, from + PIECE);
    const uint64_t most = seen_min64(end, easy(s, v));
    uint32_t n = 0;
    uint64_t i = from;
    for (; i < most; i++) {
        uint64_t bit = i * v->l;
        uint64_t low = seen_get_le64(v->low + bit / 8) >> bit % 8 & mask;
        through[n] = (uint16_t)(i - from);
        n += sieve[low];
    }
    for (; i < end; i++) {
        uint64_t low = low_at(v, i) & mask;
        through[n] = (uint16_t)(i - from);
        n += sieve[low];
    }
    return n;
}

/* Move on to number `to`, which is not behind; its place. */
SEEN_INLINE uint64_t skip_to(struct walk *w, uint64_t to)
{
    for (;;) {
        uint64_t ones = seen_popcount64(w->word);
        if (w->i + ones > to) break;
        w->i += ones;
        w->at += 64;
        if (w->at >= w->v.high_bits) return NONE;
        w->word = load(w->v.high + w->at / 8, w->v.high_bytes - w->at / 8);
    }
    for (; w->i < to; w->i++)
        w->word &= w->word - 1;
    return w->at + seen_ctz64(w->word);
}

void seen_sorted_each(const struct seen_sorted *s, const uint8_t *sieve,
                      void (*hit)(void *ctx, uint64_t value), void *ctx)
{
    uint16_t through[PIECE + 1];
    struct walk w = begin(s);
    for (uint64_t from = 0; from < s->n; from += PIECE) {
        uint32_t n = sift(s, &w.v, sieve, from, through);
        for (uint32_t k = 0; k < n; k++) {
            uint64_t i = from + through[k], place = skip_to(&w, i);
            if (place == NONE) return;
            hit(ctx, (place - i) << w.v.l | low_at(&w.v, i));
        }
    }
}
