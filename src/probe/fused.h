/*
 * fused.h - a scheme's `maybe`: all of it for one key and one array of bits. A
 * template without a guard, for the file of a scheme, which says before
 *
 *     ORDER      of its bits, as in scheme.h
 *     DIGEST     its functions; digest and positions, if it does not say
 *     POSITIONS
 *     TOGETHER   bits looked at without a branch between them; 8
 *
 * and gets `static bool maybe()`, in which the compiler has fused the three.
 *
 * Whether the first bit of a key is set is a coin toss, and a processor that
 * guesses wrong throws away what it has begun of the next key: hence TOGETHER. It
 * is less where a position costs more than a wrong guess.
 */
#ifndef DIGEST
#define DIGEST digest
#endif
#ifndef POSITIONS
#define POSITIONS positions
#endif
#ifndef TOGETHER
#define TOGETHER 8
#endif

static bool maybe(const uint8_t seed[32], const struct seen_place *p,
                  const uint8_t *bits, const void *key, size_t len)
{
    struct seen_digest d;
    uint32_t all = 1;
    DIGEST(seed, key, len, &d);
    for (uint32_t from = 0; from < p->hashes && all; from += TOGETHER) {
        uint32_t to = from + TOGETHER < p->hashes ? from + TOGETHER : p->hashes;
        for (uint32_t i = from; i < to; i++) {
            uint64_t pos;
            POSITIONS(p, &d, i, i + 1, &pos);
            pos ^= ORDER;
            all &= (uint32_t)bits[pos / 8] >> (pos % 8);
        }
    }
    return all;
}
