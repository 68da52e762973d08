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

/* floor(log2(below / n)), 0 if n is larger. */
SEEN_INLINE uint32_t low_bits(uint64_t n, uint64_t below)
{
    if (below < 2 * n) return 0;
    const uint32_t l = seen_clz64(n) - seen_clz64(below);
    return below >> l >= n ? l : l - 1;
}

SEEN_INLINE struct view view_of(const struct seen_sorted *s)
{
    struct view v = {.l = low_bits(s->n, s->below)};
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

/* With l low bits, what the bytes have beside them and a 1 for each number is for
 * steps, fewer than 2n of them, or l would be larger. */
uint64_t seen_sorted_below(uint64_t n, uint64_t bytes)
{
    if (n == 0 || n > SEEN_SORTED_LONGEST || bytes < n / 4) return 0;
    bytes = seen_min64(bytes, 7 * n + 8); /* enough for the largest */
    const uint64_t each = 8 * bytes / n;
    if (each < 2) return 0;
    uint64_t l = seen_min64(each - 2, low_bits(n, SEEN_SORTED_MAX)) + 1;
    while (l-- > 0) {
        const uint64_t low = (n * l + 7) / 8, high_bits = 8 * (bytes - low);
        if (high_bits < 2 * n) continue;
        return seen_min64(seen_min64((high_bits - n) << l, (n << (l + 1)) - 1),
                          SEEN_SORTED_MAX);
    }
    return 0;
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

/* The low part of number i, and what follows. In eight bytes, also of the unary
 * part behind, if there are so many: from where it begins, or the last eight. */
SEEN_INLINE uint64_t low_from(const struct view *v, uint64_t i)
{
    const uint64_t bit = i * v->l, bytes = v->low_bytes + v->high_bytes;
    if (bytes < 8) return load(v->low, bytes) >> bit;
    const uint64_t from = seen_min64(bit / 8, bytes - 8);
    return seen_get_le64(v->low + from) >> (bit - 8 * from);
}

SEEN_INLINE uint64_t low_at(const struct view *v, uint64_t i)
{
    return low_from(v, i) & (((uint64_t)1 << v->l) - 1);
}

/* How many numbers have eight bytes to load from where their low part begins: the
 * unary part lies behind, so all but the last few. */
static uint64_t easy(const struct view *v, uint64_t n)
{
    uint64_t bytes = v->low_bytes + v->high_bytes;
    if (bytes < 8) return 0;
    return v->l ? seen_min64(n, (bytes - 8) * 8 / v->l) : n;
}

SEEN_INLINE uint64_t easy_low_at(const struct view *v, uint64_t i)
{
    const uint64_t bit = i * v->l;
    return seen_get_le64(v->low + bit / 8) >> bit % 8 &
           (((uint64_t)1 << v->l) - 1);
}

/* ---- Write -------------------------------------------------------------- */

/* As many of the eight as there are. */
SEEN_INLINE void store(uint8_t *p, uint64_t left, uint64_t word)
{
    if (left >= 8) {
        seen_put_le64(p, word);
        return;
    }
    for (uint64_t i = 0; i < left; i++)
        p[i] = (uint8_t)(word >> (8 * i));
}

/* Bits one behind the other, four bytes at a time. */
struct packer {
    uint8_t *to;
    uint64_t word;
    uint32_t used; /* bits of word, less than 32 */
};

SEEN_INLINE void pack(struct packer *p, uint64_t value, uint32_t width)
{
    p->word |= value << p->used;
    p->used += width;
    if (p->used < 32) return;
    seen_put_le32(p->to, (uint32_t)p->word);
    p->to += 4;
    p->word >>= 32;
    p->used -= 32;
}

static void put_low(const uint64_t *values, uint64_t n, const struct view *v,
                    uint8_t *low)
{
    const uint64_t mask = ((uint64_t)1 << v->l) - 1;
    const uint32_t half = v->l > 32 ? 16 : 0, rest = v->l - half;
    struct packer p = {.to = low};
    for (uint64_t i = 0; i < n; i++) {
        uint64_t value = values[i] & mask;
        if (half) pack(&p, value & 0xffff, half);
        pack(&p, value >> half, rest);
    }
    store(p.to, (p.used + 7) / 8, p.word);
}

static void put_high(const uint64_t *values, uint64_t n, const struct view *v,
                     uint8_t *high)
{
    uint64_t word = 0, at = 0; /* place of its first bit */
    for (uint64_t i = 0; i < n; i++) {
        uint64_t place = (values[i] >> v->l) + i;
        for (; place - at >= 64; at += 64) {
            seen_put_le64(high + at / 8, word);
            word = 0;
        }
        word |= (uint64_t)1 << (place - at);
    }
    for (; at < v->high_bits; at += 64) {
        store(high + at / 8, v->high_bytes - at / 8, word);
        word = 0;
    }
}

void seen_sorted_encode(const uint64_t *values, uint64_t n, uint64_t below,
                        uint8_t *out)
{
    struct seen_sorted s = {out, n, below};
    struct view v = view_of(&s);
    put_low(values, n, &v, out);
    put_high(values, n, &v, out + v.low_bytes);
}

/* ---- Read --------------------------------------------------------------- */

/*
 * The i-th 1 has as many 0s before it as its high part says, and the h-th 0 as
 * many 1s as there are numbers with a high part up to h: one routine gives both,
 * four bits at a time and without a branch. others[b]: for each 0 of b, lowest
 * first, how many 1s come before; there are 4 - ones[b] of them.
 */
typedef uint32_t four __attribute__((vector_size(16)));

/* clang-format off */
static const four others[16] = {
    {0, 0, 0, 0}, {1, 1, 1}, {0, 1, 1}, {2, 2}, {0, 0, 1}, {1, 2}, {0, 2}, {3},
    {0, 0, 0},    {1, 1},    {0, 1},    {2},    {0, 0},    {1},    {0},    {0}};
static const uint8_t ones[16] = {0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4};
/* clang-format on */

#define AHEAD 4 /* entries are written at a time */

/* For each 0 of a word; *sum is how many 1s have come before, and `out` ends
 * where the next word goes on. */
SEEN_INLINE uint32_t *expand(uint64_t word, uint32_t *sum, uint32_t *out)
{
    uint32_t before = *sum;
    for (int i = 0; i < 16; i++, word >>= 4) {
        const four entries = others[word % 16] + before;
        memcpy(out, &entries, sizeof entries);
        out += 4 - ones[word % 16];
        before += ones[word % 16];
    }
    *sum = before;
    return out;
}

/* 64 bits of the unary part from a whole byte on; 0s behind its end. The low
 * parts lie before, so that its end can be read in one load, too. */
SEEN_INLINE uint64_t high_word(const struct view *v, uint64_t at)
{
    const uint64_t left = v->high_bytes - at / 8;
    if (left < 8 && v->low_bytes + v->high_bytes >= 8)
        return seen_get_le64(v->high + v->high_bytes - 8) >> (64 - 8 * left);
    return load(v->high + at / 8, left);
}

/* No bit set beyond the last of either part. */
static bool spare_bits_clear(const struct seen_sorted *s, const struct view *v)
{
    const uint64_t low_bits = s->n * v->l;
    return !(low_bits % 8 && v->low[v->low_bytes - 1] >> (low_bits % 8)) &&
           !(v->high_bits % 8 &&
             v->high[v->high_bytes - 1] >> (v->high_bits % 8));
}

/* One more than the number before, whether none was below that one, and how many
 * were equal to it. */
struct check {
    uint64_t past, repeats;
    bool ascend;
};

SEEN_INLINE uint64_t checked(struct check *c, uint64_t value)
{
    c->ascend &= value + 1 >= c->past;
    c->repeats += value + 1 == c->past;
    c->past = value + 1;
    return value;
}

#define WORDS 8 /* of the unary part at a time */

/* All numbers, and how many of them differ; 0 if the encoder could not have
 * written them. `out` may be NULL. */
SEEN_INLINE uint64_t read_all(const struct seen_sorted *s, uint64_t *out)
{
    if (s->n == 0 || s->n > SEEN_SORTED_LONGEST || s->below > SEEN_SORTED_MAX ||
        s->n > s->below)
        return 0;
    const struct view v = view_of(s);
    const uint64_t most = easy(&v, s->n), scale = (uint64_t)1 << v.l;
    uint32_t high[64 * WORDS + AHEAD], zeros = 0;
    struct check c = {.ascend = true};
    uint64_t i = 0;
    for (uint64_t at = 0; at < v.high_bits;) {
        const uint32_t *p = high;
        uint32_t *end = high;
        for (int k = 0; k < WORDS && at < v.high_bits; k++, at += 64)
            end = expand(~high_word(&v, at), &zeros, end);
        const uint64_t all = i + (uint64_t)(end - high);
        if (all > s->n) return 0;
        for (const uint64_t quick = seen_min64(all, most); i < quick; i++) {
            uint64_t value = checked(&c, *p++ * scale + easy_low_at(&v, i));
            if (out) out[i] = value;
        }
        for (; i < all; i++) {
            uint64_t value = checked(&c, *p++ * scale + low_at(&v, i));
            if (out) out[i] = value;
        }
    }
    /* The last bit ends the last step. */
    bool ok = i == s->n && c.ascend && c.past <= s->below &&
              spare_bits_clear(s, &v) &&
              !(v.high[(v.high_bits - 1) / 8] >> ((v.high_bits - 1) % 8) & 1);
    return ok ? s->n - c.repeats : 0;
}

bool seen_sorted_ok(const struct seen_sorted *s)
{
    return read_all(s, NULL) == s->n && s->n > 0;
}

bool seen_sorted_decode(const struct seen_sorted *s, uint64_t *out)
{
    return read_all(s, out) == s->n && s->n > 0;
}

uint64_t seen_sorted_different(const struct seen_sorted *s)
{
    return read_all(s, NULL);
}

/* ---- Ask for few -------------------------------------------------------- */

#define EACH_BYTE 0x0101010101010101u
#define EACH_TOP  0x8080808080808080u

/* How many of the eight sums, which ascend and are at most 64, are at most n. */
SEEN_INLINE uint32_t up_to(uint64_t sums, uint64_t n)
{
    const uint64_t at_most = ((n * EACH_BYTE) | EACH_TOP) - sums;
    return (uint32_t)(((at_most & EACH_TOP) >> 7) * EACH_BYTE >> 56);
}

/* How many 1s there are up to the end of each byte; in the last, all of them. */
SEEN_INLINE uint64_t byte_sums(uint64_t word)
{
    word -= (word >> 1) & 0x5555555555555555u;
    word = (word & 0x3333333333333333u) + ((word >> 2) & 0x3333333333333333u);
    return ((word + (word >> 4)) & 0x0f0f0f0f0f0f0f0fu) * EACH_BYTE;
}

/*
 * The place of the n-th 1, from 0, of a word that has more: in which byte is it,
 * by the sums; then the bits of that byte become bytes, and the same again. No
 * branch, no table (Vigna 2008).
 */
SEEN_INLINE uint32_t nth_one(uint64_t word, uint64_t sums, uint64_t n)
{
    const uint32_t at = 8 * up_to(sums, n);
    n -= (sums << 8) >> at & 0xff;
    /* Bit i of the byte to byte i, as 0 or 1. */
    uint64_t bits = (word >> at & 0xff) * EACH_BYTE & 0x8040201008040201u;
    bits = ((bits | ((bits | EACH_TOP) - EACH_BYTE)) & EACH_TOP) >> 7;
    return at + up_to(bits * EACH_BYTE, n);
}

SEEN_INLINE uint32_t nth_zero(uint64_t word, uint64_t n)
{
    return nth_one(~word, byte_sums(~word), n);
}

/* Numbers with high part h lie from the place behind the h-th 0 to the next 0;
 * `at` and `zeros` go up with h. */
void seen_sorted_find(const struct seen_sorted *s, const uint64_t *values,
                      size_t n, bool *there)
{
    const struct view v = view_of(s);
    const uint64_t mask = ((uint64_t)1 << v.l) - 1;
    uint64_t at = 0, zeros = 0; /* before place `at` */
    uint64_t word = load(v.high, v.high_bytes),
             more = 64 - seen_popcount64(word);
    for (size_t i = 0; i < n; i++) {
        const uint64_t high = values[i] >> v.l;
        while (zeros + more < high) {
            at += 64;
            if (at >= v.high_bits) return;
            zeros += more;
            word = load(v.high + at / 8, v.high_bytes - at / 8);
            more = 64 - seen_popcount64(word);
        }
        uint64_t place = high ? at + nth_zero(word, high - 1 - zeros) + 1 : 0;
        for (; place >= high && place - high < s->n && place < v.high_bits &&
               v.high[place / 8] >> (place % 8) & 1;
             place++)
            there[i] |= low_at(&v, place - high) == (values[i] & mask);
    }
}

/* ---- Ask for one -------------------------------------------------------- */

#define STEP 1024 /* high parts from one sample to the next */

/* There are fewer than 2n high parts, or l would be larger. */
uint64_t seen_sorted_samples_size(uint64_t n)
{
    return 2 * n / STEP * 4;
}

/* Writes the samples, or compares them with those that are there. */
SEEN_INLINE bool samples(const struct seen_sorted *s, uint8_t *out,
                         const uint8_t *there)
{
    const struct view v = view_of(s);
    const uint64_t count = 2 * s->n / STEP;
    uint64_t zeros = 0, at = 0;
    for (uint64_t i = 1; i <= count; i++) {
        uint64_t before = s->n; /* past the last high part */
        for (; at < v.high_bits; at += 64) {
            const uint64_t word = high_word(&v, at),
                           more = 64 - seen_popcount64(word);
            if (zeros + more >= i * STEP) {
                before = at + nth_zero(word, i * STEP - 1 - zeros) + 1;
                before = seen_min64(before - i * STEP, s->n);
                break;
            }
            zeros += more;
        }
        if (out) seen_put_le32(out + 4 * (i - 1), (uint32_t)before);
        if (there && seen_get_le32(there + 4 * (i - 1)) != before) return false;
    }
    return true;
}

void seen_sorted_sample(const struct seen_sorted *s, uint8_t *out)
{
    samples(s, out, NULL);
}

bool seen_sorted_samples_ok(const struct seen_sorted *s, const uint8_t *there)
{
    return samples(s, NULL, there);
}

#define FEW 64 /* numbers: more are not all looked at */

/* Is h the high part of number i? Then its 1 stands at place h + i, behind i others
 * of its kind. */
SEEN_INLINE bool has_high(const struct view *v, uint64_t i, uint64_t high)
{
    const uint64_t place = high + i;
    if (place >= v->high_bits || !(v->high[place / 8] >> place % 8 & 1))
        return false;
    uint64_t ones_before = 0, at = 0;
    for (; at + 64 <= place; at += 64)
        ones_before += seen_popcount64(high_word(v, at));
    const uint64_t rest = ((uint64_t)1 << (place - at)) - 1;
    return ones_before + seen_popcount64(high_word(v, at) & rest) == i;
}

/* The same of any of the eight numbers from i on whose part has a bit set. */
static bool any_high(const struct seen_sorted *s, uint64_t i, uint64_t same,
                     uint64_t high)
{
    const struct view v = view_of(s);
    for (; same; same &= same - 1)
        if (has_high(&v, i + seen_ctz64(same) / v.l, high)) return true;
    return false;
}

/*
 * Among few numbers of up to 8 low bits there is mostly none with these low bits
 * at all, which can be seen eight numbers at a time: eight low parts are l bytes,
 * and one that is the same becomes 0 in their xor with eight copies of the value;
 * adding all bits but the highest to each sets the highest of all that are not 0.
 * The last eight may be some of those before; they begin within a byte then.
 */
SEEN_INLINE bool one_of_few(const struct seen_sorted *s, uint32_t l,
                            uint64_t value)
{
    /* A 1 in each of eight parts of l bits. */
    static const uint64_t units[] = {0,
                                     0xff,
                                     0x5555,
                                     0x249249,
                                     0x11111111,
                                     0x842108421,
                                     0x41041041041,
                                     0x2040810204081,
                                     0x101010101010101};
    const uint64_t each = units[l], tops = each << (l - 1), rest = tops - each;
    const uint64_t copies = each * (value & (((uint64_t)1 << l) - 1));
    const uint8_t *low = s->bytes;
    uint64_t i = 0, x, same;
    for (; i + 8 < s->n; i += 8, low += l) {
        x = seen_get_le64(low) ^ copies;
        same = ~(((x & rest) + rest) | x) & tops;
        if (same && any_high(s, i, same, value >> l)) return true;
    }
    i = s->n - 8;
    x = seen_get_le64(s->bytes + i * l / 8) >> i * l % 8 ^ copies;
    same = ~(((x & rest) + rest) | x) & tops;
    return same && any_high(s, i, same, value >> l);
}

/* Few enough, and enough for eight at a time: the unary part has two bits for each
 * number at least, so that there are eight bytes from where the last eight begin. */
SEEN_INLINE bool are_few(uint64_t n, uint32_t l)
{
    return n >= 8 && n <= FEW && l >= 1 && l <= 8 && n + 4 * l >= 32;
}

/* How many 1s there are from a place on; a stranger's may be many. */
static uint64_t ones_from(const struct view *v, uint64_t place)
{
    uint64_t n = 0;
    while (place < v->high_bits && v->high[place / 8] >> place % 8 & 1)
        place++, n++;
    return n;
}

/*
 * As seen_sorted_find(); from a sample, which may be a stranger's, on. Of the
 * numbers with this high part one or two are asked at once, without a branch for
 * each that nobody could foresee; there are rarely more.
 */
static bool one_of_many(const struct seen_sorted *s, const uint8_t *there,
                        uint64_t value)
{
    /* 1. Where to begin to count. */
    const struct view v = view_of(s);
    const uint64_t high = value >> v.l;
    uint64_t place = 0, zeros = high; /* still to pass */
    if (there && high >= STEP) {
        const uint64_t nth = high / STEP;
        place = nth * STEP + seen_get_le32(there + 4 * (nth - 1));
        zeros -= nth * STEP;
        if (place >= v.high_bits) return false;
    }

    /* 2. Past the 0s, here 1s; those before the place are not counted. */
    uint64_t at = place / 8 * 8;
    uint64_t steps = ~high_word(&v, at) >> place % 8;
    if (zeros > 0) {
        steps <<= place % 8;
        uint64_t sums = byte_sums(steps);
        while (sums >> 56 < zeros) {
            at += 64;
            if (at >= v.high_bits) return false;
            zeros -= sums >> 56;
            steps = ~high_word(&v, at);
            sums = byte_sums(steps);
        }
        const uint32_t last = nth_one(steps, sums, zeros - 1);
        place = at + last + 1;
        steps = steps >> last >> 1;
    }

    /* 3. How many numbers up to the next one. */
    const uint64_t i = place - high, mask = ((uint64_t)1 << v.l) - 1;
    if (place >= v.high_bits || i >= s->n) return false;
    const uint64_t many = steps ? seen_ctz64(steps) : ones_from(&v, place);
    const uint64_t run = seen_min64(many, s->n - i);
    const uint64_t bits = low_from(&v, i);
    bool found = (run > 0) & (((bits ^ value) & mask) == 0);
    const bool two = 2 * v.l + 7 <= 64;
    found |= two & (run > 1) & (((bits >> v.l ^ value) & mask) == 0);
    for (uint64_t more = 1 + two; more < run; more++)
        found |= low_at(&v, i + more) == (value & mask);
    return found;
}

bool seen_sorted_has(const struct seen_sorted *s, const uint8_t *there,
                     uint64_t value)
{
    const uint32_t l = low_bits(s->n, s->below);
    return are_few(s->n, l) ? one_of_few(s, l, value)
                            : one_of_many(s, there, value);
}

/* ---- Ask for many ------------------------------------------------------- */

uint64_t seen_sorted_index_size(uint64_t n, uint64_t below)
{
    struct seen_sorted nowhere = {.n = n, .below = below};
    return (view_of(&nowhere).high_bits + 63) / 64 * 64 + 1 + AHEAD;
}

/* ends[h]: the numbers up to high part h. In bytes of strangers there may be
 * fewer 0s than high parts, and more 1s than numbers. */
static uint32_t *make_index(const struct seen_sorted *s, const struct view *v,
                            uint32_t *index)
{
    const uint64_t highs = v->high_bits - s->n;
    uint32_t *ends = index + 1, *end = ends, sum = 0;
    for (uint64_t at = 0; at < v->high_bits; at += 64)
        end = expand(high_word(v, at), &sum, end);
    while ((uint64_t)(end - ends) < highs)
        *end++ = (uint32_t)s->n;
    index[0] = 0;
    return ends;
}

/* One load has the first two of a high part, if two of them fit into it; there
 * are rarely more. */
void seen_sorted_find_many(const struct seen_sorted *s, const uint64_t *values,
                           size_t n, uint32_t *index, bool *there)
{
    const struct view v = view_of(s);
    const uint64_t mask = ((uint64_t)1 << v.l) - 1;
    const bool two = 2 * v.l + 7 <= 64;
    const uint32_t *ends = make_index(s, &v, index);
    for (size_t k = 0; k < n; k++) {
        const uint32_t *end = ends + (values[k] >> v.l);
        const uint64_t i = end[-1], last = seen_min64(*end, s->n);
        const uint64_t bits = low_from(&v, seen_min64(i, s->n - 1));
        bool first = ((bits ^ values[k]) & mask) == 0;
        bool second = ((bits >> v.l ^ values[k]) & mask) == 0;
        there[k] |= (first & (i < last)) | (second & two & (i + 1 < last));
        for (uint64_t more = i + 1 + two; more < last; more++)
            there[k] |= low_at(&v, more) == (values[k] & mask);
    }
}
