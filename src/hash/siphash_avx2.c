/*
 * siphash_avx2.c - four keys at once on x86-64 since 2013.
 *
 *     v0 of key 0 | v0 of key 1 | v0 of key 2 | v0 of key 3     and v1, v2, v3
 *
 * A lane is a key: the rounds are those of siphash.c, with four 64-bit lanes in
 * place of a word. All four go through the same number of blocks, so keys are
 * taken four by four as they come if they have as many; ids of one length always
 * do. The others are hashed one by one.
 *
 * us for 200 ids of 14 bytes, gcc 12 on Zen 3: both halves 1.2, one by one 2.5;
 * `lo` alone 0.67, one by one 1.65.
 */
#include "hash/siphash.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))

struct lanes {
    __m256i v0, v1, v2, v3;
};

AVX2 SEEN_INLINE __m256i rotl(__m256i x, int by)
{
    return _mm256_or_si256(_mm256_slli_epi64(x, by),
                           _mm256_srli_epi64(x, 64 - by));
}

/* By whole bytes: one shuffle. */
AVX2 SEEN_INLINE __m256i rotl16(__m256i x)
{
    const __m256i from =
        _mm256_setr_epi8(6, 7, 0, 1, 2, 3, 4, 5, 14, 15, 8, 9, 10, 11, 12, 13,
                         6, 7, 0, 1, 2, 3, 4, 5, 14, 15, 8, 9, 10, 11, 12, 13);
    return _mm256_shuffle_epi8(x, from);
}

AVX2 SEEN_INLINE __m256i rotl32(__m256i x)
{
    return _mm256_shuffle_epi32(x, _MM_SHUFFLE(2, 3, 0, 1));
}

AVX2 SEEN_INLINE void rounds(struct lanes *s, int n)
{
    while (n-- > 0) {
        s->v0 = _mm256_add_epi64(s->v0, s->v1);
        s->v2 = _mm256_add_epi64(s->v2, s->v3);
        s->v1 = _mm256_xor_si256(rotl(s->v1, 13), s->v0);
        s->v3 = _mm256_xor_si256(rotl16(s->v3), s->v2);
        s->v0 = rotl32(s->v0);
        s->v2 = _mm256_add_epi64(s->v2, s->v1);
        s->v0 = _mm256_add_epi64(s->v0, s->v3);
        s->v1 = _mm256_xor_si256(rotl(s->v1, 17), s->v2);
        s->v3 = _mm256_xor_si256(rotl(s->v3, 21), s->v0);
        s->v2 = rotl32(s->v2);
    }
}

AVX2 SEEN_INLINE struct lanes begin(const uint8_t secret[16])
{
    const uint64_t k0 = seen_get_le64(secret), k1 = seen_get_le64(secret + 8);
    return (struct lanes){
        _mm256_set1_epi64x((long long)(k0 ^ 0x736f6d6570736575u)),
        _mm256_set1_epi64x((long long)(k1 ^ 0x646f72616e646f6du ^ 0xee)),
        _mm256_set1_epi64x((long long)(k0 ^ 0x6c7967656e657261u)),
        _mm256_set1_epi64x((long long)(k1 ^ 0x7465646279746573u))};
}

AVX2 SEEN_INLINE void absorb_block(struct lanes *s, __m256i block)
{
    s->v3 = _mm256_xor_si256(s->v3, block);
    rounds(s, 1);
    s->v0 = _mm256_xor_si256(s->v0, block);
}

AVX2 SEEN_INLINE void absorb(struct lanes *s, uint64_t a, uint64_t b,
                             uint64_t c, uint64_t d)
{
    absorb_block(s, _mm256_set_epi64x((long long)d, (long long)c, (long long)b,
                                      (long long)a));
}

AVX2 SEEN_INLINE __m256i squeeze(struct lanes *s)
{
    rounds(s, 3);
    return _mm256_xor_si256(_mm256_xor_si256(s->v0, s->v1),
                            _mm256_xor_si256(s->v2, s->v3));
}

/* Four keys of so many whole blocks; up to the first squeeze. */
AVX2 SEEN_INLINE struct lanes absorb_four(struct lanes s, const seen_key *keys,
                                          size_t blocks)
{
    const uint8_t *a = keys[0].data, *b = keys[1].data, *c = keys[2].data,
                  *d = keys[3].data;
    for (size_t at = 0; at < 8 * blocks; at += 8)
        absorb(&s, seen_get_le64(a + at), seen_get_le64(b + at),
               seen_get_le64(c + at), seen_get_le64(d + at));
    absorb(&s, seen_siphash_last(a, keys[0].len),
           seen_siphash_last(b, keys[1].len), seen_siphash_last(c, keys[2].len),
           seen_siphash_last(d, keys[3].len));
    s.v2 = _mm256_xor_si256(s.v2, _mm256_set1_epi64x(0xee));
    return s;
}

/* Are there four of one number of blocks? */
SEEN_INLINE bool alike(const seen_key *keys, size_t left)
{
    if (left < 4) return false;
    const size_t blocks = keys[0].len / 8;
    return ((keys[1].len / 8 ^ blocks) | (keys[2].len / 8 ^ blocks) |
            (keys[3].len / 8 ^ blocks)) == 0;
}

/* Both halves of four hashes. */
AVX2 SEEN_INLINE void finish_four(struct lanes *s, seen_hash *out)
{
    const __m256i lo = squeeze(s);
    s->v1 = _mm256_xor_si256(s->v1, _mm256_set1_epi64x(0xdd));
    const __m256i hi = squeeze(s);
    /* lo and hi of keys 0 and 2, of 1 and 3 */
    const __m256i even = _mm256_unpacklo_epi64(lo, hi),
                  odd = _mm256_unpackhi_epi64(lo, hi);
    _mm256_storeu_si256((__m256i *)out,
                        _mm256_permute2x128_si256(even, odd, 0x20));
    _mm256_storeu_si256((__m256i *)(out + 2),
                        _mm256_permute2x128_si256(even, odd, 0x31));
}

AVX2 static void avx2_many(const uint8_t secret[16], const seen_key *keys,
                           size_t n, seen_hash *out)
{
    const struct lanes start = begin(secret);
    for (size_t i = 0; i < n;) {
        if (!alike(keys + i, n - i)) {
            out[i] = seen_hash_siphash13.one(secret, keys[i].data, keys[i].len);
            i++;
            continue;
        }
        struct lanes s = absorb_four(start, keys + i, keys[i].len / 8);
        finish_four(&s, out + i);
        i += 4;
    }
}

AVX2 static void avx2_low(const uint8_t secret[16], const seen_key *keys,
                          size_t n, uint64_t *out)
{
    const struct lanes start = begin(secret);
    for (size_t i = 0; i < n;) {
        if (!alike(keys + i, n - i)) {
            out[i] =
                seen_hash_siphash13.one(secret, keys[i].data, keys[i].len).lo;
            i++;
            continue;
        }
        struct lanes s = absorb_four(start, keys + i, keys[i].len / 8);
        _mm256_storeu_si256((__m256i *)(out + i), squeeze(&s));
        i += 4;
    }
}

/* A key of 8 bytes is its block and one that says "8 bytes". */
AVX2 static void avx2_integers(const uint8_t secret[16], const void *integers,
                               size_t n, seen_hash *out)
{
    const struct lanes start = begin(secret);
    const __m256i length = _mm256_set1_epi64x((long long)8 << 56);
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        struct lanes s = start;
        absorb_block(&s, _mm256_loadu_si256((
                             const __m256i *)((const char *)integers + 8 * i)));
        absorb_block(&s, length);
        s.v2 = _mm256_xor_si256(s.v2, _mm256_set1_epi64x(0xee));
        finish_four(&s, out + i);
    }
    for (; i < n; i++) {
        const uint64_t key = seen_integer_at(integers, i);
        out[i] = seen_hash_siphash13.one(secret, &key, 8);
    }
}

const struct seen_siphash13 seen_siphash13_avx2 = {avx2_many, avx2_low,
                                                   avx2_integers};

#endif
