/*
 * layers.c - asking several arrays of lines about many keys.
 *
 * One or two layers after the other, always about many keys: a branch per key and
 * layer would be mispredicted once for every key that is there. When a good part
 * has been found, the others close ranks and go on alone; before that it costs
 * less to ask about all. Tried, ns a key for absent and present keys, 100,000 keys
 * at 1 % in the cache (a presized filter takes 1.7):
 *
 *     six layers   one list of keys, shortened as it goes       18     7
 *                  masks made once for all layers, and kept     14     9.5
 *     five         hashes copied together for each layer         9     5.2
 *                  answers as bits, lists of indices             8.8   4.8
 *                  the same, two layers at once: this one        7.4   4.0
 */
#include "filter/layers.h"

#include "base/bytes.h"

#include <string.h>

#define NEAR_BYTES ((uint64_t)4 << 20) /* in a cache, if a shared one */

static size_t count_bits(const uint64_t *bits, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i += 64)
        count += seen_popcount64(bits[i / 64]);
    return count;
}

/* The entries of a list (NULL: 0, 1, 2, ...) of n that `bits` says, or those
 * that it does not, in order; how many. `to` may be the list. */
static size_t pick(const uint16_t *list, const uint64_t *bits, size_t n,
                   bool wanted, uint16_t *to)
{
    size_t picked = 0;
    for (size_t i = 0; i < n; i += 64) {
        uint64_t word = wanted ? bits[i / 64] : ~bits[i / 64];
        if (n - i < 64) word &= ((uint64_t)1 << (n - i)) - 1;
        for (; word; word &= word - 1) {
            size_t at = i + seen_ctz64(word);
            to[picked++] = list ? list[at] : (uint16_t)at;
        }
    }
    return picked;
}

/* Set the answers of a list of n that `bits` says; others stay. */
static void tell(const uint16_t *list, const uint64_t *bits, size_t n,
                 bool *answers)
{
    for (size_t i = 0; i < n; i += 64)
        for (uint64_t word = bits[i / 64]; word; word &= word - 1) {
            size_t at = i + seen_ctz64(word);
            answers[list ? list[at] : at] = true;
        }
}

/* The first answers of all: eight at a time, bit j of a byte becomes byte j. */
static void tell_all(const uint64_t *bits, size_t n, bool *answers)
{
    for (size_t i = 0; i < n; i += 8) {
        uint64_t byte = bits[i / 64] >> (i % 64) & 0xff;
        uint64_t bools =
            ((byte & 0x7f) * 0x0002040810204081u & 0x0101010101010101u) |
            byte >> 7 << 56;
        uint8_t bytes[8];
        seen_put_le64(bytes, bools);
        memcpy(answers + i, bytes, n - i < 8 ? n - i : 8);
    }
}

/* Which keys of a list a layer has. Where a key has several lines in it, only
 * the first is read unless that has the key's bits. */
static void ask_layer(const struct seen_kernel *k, const struct seen_lines *b,
                      const seen_hash *h, const uint16_t *list, size_t n,
                      uint64_t *bits)
{
    k->ask_region(b, 0, h, list, n, bits);
    for (uint32_t r = 1; r < b->regions; r++) {
        uint16_t at[SEEN_LAYERS_PIECE], key[SEEN_LAYERS_PIECE];
        uint64_t also[SEEN_LAYERS_PIECE / 64];
        size_t found = pick(NULL, bits, n, true, at);
        pick(list, bits, n, true, key);
        k->ask_region(b, r, h, key, found, also);
        for (size_t j = 0; j < found; j++) {
            uint64_t lost = ~(also[j / 64] >> (j % 64)) & 1;
            bits[at[j] / 64] &= ~(lost << (at[j] % 64));
        }
    }
}

/* May the first two be asked together? Not if the answer of the first spares
 * the other a trip to memory. */
static bool go_together(const struct seen_lines *a, const struct seen_lines *b)
{
    return a->regions == 1 && b->regions == 1 &&
           b->count * SEEN_LINE_SIZE <= NEAR_BYTES;
}

void seen_layers_ask(const struct seen_kernel *k,
                     const struct seen_lines *chain, uint32_t layers,
                     const seen_hash *h, size_t n, bool *answers)
{
    uint16_t room[SEEN_LAYERS_PIECE], *list = NULL;
    uint64_t bits[SEEN_LAYERS_PIECE / 64];
    size_t waiting = n;
    bool first = true;
    if (layers == 0) memset(answers, 0, n);
    while (layers > 0 && waiting > 0) {
        const struct seen_lines *b = &chain[layers - 1];
        if (layers > 1 && go_together(b, b - 1)) {
            k->ask_two(b, b - 1, h, list, waiting, bits);
            layers -= 2;
        } else {
            ask_layer(k, b, h, list, waiting, bits);
            layers--;
        }
        if (first)
            tell_all(bits, n, answers);
        else
            tell(list, bits, waiting, answers);
        first = false;
        if (layers > 0 && count_bits(bits, waiting) > waiting / 8) {
            waiting = pick(list, bits, waiting, false, room);
            list = room;
        }
    }
}
