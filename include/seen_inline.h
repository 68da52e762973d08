/*
 * seen_inline.h - one question without a call, for the usual filter.
 *
 * A program that asks a SEEN_BLOCKED filter about one key after the other spends
 * more time on the way to the bits than on the bits. A snapshot holds what the
 * question needs, and a program that is compiled for AVX2 (-mavx2,
 * -march=x86-64-v3) asks where it stands:
 *
 *     seen_inline in;
 *     seen_inline_of(&in, f);
 *     seen_hash hash = seen_hash_key(f, key, len);
 *     if (!seen_inline_maybe_hashed(&in, hash)) ...never
 *
 * Answers are those of seen_maybe_hashed(), bit for bit. Without AVX2, and for
 * filters that do not fit, the same code calls the library: it is right
 * everywhere, and faster here. In batches seen_maybe_many() is faster still.
 *
 * When a snapshot may be held: as long as its filter. Adds, seen_clear(),
 * seen_merge() and seen_reserve() do not matter to it, and a filter whose lines
 * have moved is noticed by every question, which then goes to the library. Only
 * seen_free(), and closing the file that a filter came from, end it: a question
 * after that reads freed memory. It is only read, so threads may share it, and the
 * rules for `const seen_filter *` are those of its questions. The keys of
 * seen_allow() are not looked up, as in all calls that take hashes.
 */
#ifndef SEEN_INLINE_H
#define SEEN_INLINE_H

#include "seen.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Where the bits of a key are: docs/FORMAT.md, one line, eight bits, `lo` of the
 * hash. What this header can read; other numbers may come. */
#define SEEN_INLINE_LINES 1u

typedef struct seen_inline {
    size_t size;
    const seen_filter *filter;
    uint64_t *const *at;   /* where the filter has the address of its lines, */
    const uint64_t *words; /* and which it was; NULL: the library is asked */
    uint64_t lines;
    uint64_t reserved[3];
} seen_inline;

/* to->size is set by the caller. SEEN_UNSUPPORTED: the filter has no such layout
 * (other kinds, SEEN_CONCURRENT, 128 hash bits, a rate above 2 % or below
 * 0.046 %); *to is written and asks the library. */
SEEN_API seen_status seen_inline_take(const seen_filter *f, uint32_t layout,
                                      seen_inline *to);

/* The status says whether it is faster; the snapshot is good in any case. */
static inline seen_status seen_inline_of(seen_inline *to, const seen_filter *f)
{
    to->size = sizeof *to;
    return seen_inline_take(f, SEEN_INLINE_LINES, to);
}

#if defined(__AVX2__)
/* Line floor(lo * lines / 2^64); in its word i, bit floor(x * odd[i] / 2^26) of
 * the 32-bit product, x being the low half of lo. */
static inline bool seen_inline_line(const uint64_t *words, uint64_t lines,
                                    uint64_t lo)
{
    __extension__ typedef unsigned __int128 u128;
    const uint64_t *line = words + 8 * (uint64_t)(((u128)lo * lines) >> 64);
    const __m256i odd = _mm256_setr_epi32(
        (int)0x9e3779b1u, 0x165667b5, (int)0x85ebca6bu, (int)0xd6e8feb9u,
        (int)0xc2b2ae35u, (int)0xa3b195edu, 0x27d4eb2f, 0x6c8e944b);
    const __m256i one = _mm256_set1_epi64x(1);
    const __m256i product =
        _mm256_mullo_epi32(_mm256_set1_epi32((int)(uint32_t)lo), odd);
    const __m256i low =
        _mm256_sllv_epi64(one, _mm256_and_si256(_mm256_srli_epi64(product, 26),
                                                _mm256_set1_epi64x(63)));
    const __m256i high = _mm256_sllv_epi64(one, _mm256_srli_epi64(product, 58));
    const __m256i missing = _mm256_or_si256(
        _mm256_andnot_si256(
            _mm256_load_si256((const __m256i *)(const void *)line), low),
        _mm256_andnot_si256(
            _mm256_load_si256((const __m256i *)(const void *)(line + 4)),
            high));
    return _mm256_testz_si256(missing, missing) != 0;
}
#endif

static inline bool seen_inline_maybe_hashed(const seen_inline *s,
                                            seen_hash hash)
{
#if defined(__AVX2__)
    if (*s->at == s->words)
        return seen_inline_line(s->words, s->lines, hash.lo);
#endif
    return seen_maybe_hashed(s->filter, hash);
}

#ifdef __cplusplus
}
#endif

#endif /* SEEN_INLINE_H */
