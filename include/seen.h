/*
 * seen.h - has this key been seen before?
 *
 * A filter remembers keys in a few bits each. Asked about a key, it answers
 * "never" or "maybe". "Never" is always true. "Maybe" is wrong, for a key that
 * was not added, with the probability you chose: the false-positive rate.
 *
 *     key bytes -> hash -> positions -> bits
 *
 * Names      A call named ..._maybe is approximate; one named ..._has is exact.
 * Errors     A call that can fail returns seen_status: 0 on success, negative
 *            on error, and says why in the seen_error of the caller, where it
 *            takes one. Out-parameters are written only on success, unless
 *            their comment says otherwise. Nothing here prints or exits.
 * Ownership  What a _new, _copy, _load, _view or _open call hands out, the
 *            matching _free or _close takes back; both accept NULL. Memory
 *            passed in is read during the call and never kept, except by
 *            the _view calls, which borrow their buffer until _free. A view
 *            answers questions; calls that would change its bits do nothing
 *            and say SEEN_UNSUPPORTED.
 * Threads    No locks, and no globals but which CPU kernels to use: chosen once,
 *            atomically.
 *            On one filter, any number of calls taking `const seen_filter *`
 *            may run at once; a call taking `seen_filter *` must run alone,
 *            except that keys may be hashed (seen_hash_key, seen_hash_many)
 *            beside anything but seen_free().
 *            Filters made with SEEN_CONCURRENT also allow the seen_add and
 *            seen_visit families beside any other call but seen_clear(),
 *            seen_merge(), seen_allow() and seen_free().
 * Bytes      The _load, _view and _import calls accept hostile input: any bytes
 *            give a working object or an error, in bounded memory: at most eight
 *            times the bytes given, and 64 KiB. Where the bytes of a dialect do
 *            not say how many bits there are, what the caller's spec says counts
 *            as given; its limit bounds it. Rates that are read are numbers, 0
 *            to 1.
 * C++        The headers are C++ as well. Compound literals are not: write
 *            seen_spec spec{}; spec.items = ...; seen_new(&f, &spec, &error).
 * Keys       A key is `len` bytes; NUL is a byte like any other, and the empty
 *            key (NULL, 0) is a key. An integer key is its 8 bytes
 *            little-endian: seen_add_u64() and friends.
 * ABI        Numbers below are permanent: new ones are added, none reused. A struct
 *            that you fill (spec, options, policy, keys) ends in `reserved`, which
 *            must be zero, so that zero in a field to come means the default:
 *            SEEN_INVALID otherwise. A struct that a call fills begins with `size`,
 *            which you set to its sizeof: the call writes so many bytes and no
 *            more, so an old program and a new library, or the other way round,
 *            agree. SEEN_INVALID, and nothing is written: a size below 16 or above
 *            65,536. (seen_error is of one size for good, and needs no `size`.)
 */
#ifndef SEEN_H
#define SEEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifndef SEEN_API
#if defined(__GNUC__)
#define SEEN_API __attribute__((visibility("default")))
#else
#define SEEN_API
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define SEEN_VERSION_MAJOR 0
#define SEEN_VERSION_MINOR 1
#define SEEN_VERSION_PATCH 0
#define SEEN_VERSION       "0.1.0"

/* To compare: 0.1.0 is 100, 1.2.3 is 10203. */
#define SEEN_VERSION_NUMBER                                                    \
    (SEEN_VERSION_MAJOR * 10000 + SEEN_VERSION_MINOR * 100 + SEEN_VERSION_PATCH)

/* The version of the library that is running, as SEEN_VERSION is that of the
 * header it was compiled with. */
SEEN_API const char *seen_version(void);
SEEN_API uint32_t seen_version_number(void);

/* ---- Status ------------------------------------------------------------- */

typedef enum seen_status {
    SEEN_OK = 0,
    SEEN_NOMEM = -1,       /* the allocator gave NULL */
    SEEN_INVALID = -2,     /* an argument is outside its documented range */
    SEEN_FULL = -3,        /* this kind can take no more (Bloom kinds never say
                              it: they overfill and report their rate) */
    SEEN_UNSUPPORTED = -4, /* this kind or dialect cannot do that */
    SEEN_ABSENT = -5,      /* no such key, user, file or dialect */
    SEEN_CORRUPT = -6,     /* the bytes are not what they claim to be */
    SEEN_NEWER = -7,       /* well formed, but written by a later version */
    SEEN_SHORT = -8,       /* your buffer is too small; *len says what fits */
    SEEN_IO = -9,          /* a system call failed; errno is as it left it */
    SEEN_BUSY = -10,       /* another writer holds it */
    SEEN_MISMATCH = -11,   /* parameters, hash or key of two objects differ */
    SEEN_NO_SECRET = -12   /* its secret is kept apart and was not given */
} seen_status;

/* A short English sentence; static storage, never NULL. */
SEEN_API const char *seen_strerror(seen_status status);

/*
 * What went wrong, for people and for programs. Every call that takes one
 * writes it, whatever its status, and no other call touches it: it belongs to
 * the caller, so any number of threads may fail at once. It needs no
 * preparation; NULL: not wanted. Calls without one say all with their status.
 */
typedef struct seen_error {
    seen_status status; /* what the call returned */
    int os_errno;       /* of the system call that failed; 0: none did */
    const char *field;  /* the field or argument at fault: "fpp", "path";
                           static storage; NULL: no single one */
    char text[464];     /* a sentence without a full stop: what was wrong and
                           what is expected. Where a field of a spec or a
                           policy is at fault it begins with its name; where
                           bytes, a path or a store are ("buf", "path",
                           "where", "file"), put their name in front of it.
                           "" on SEEN_OK, or a warning where the call says
                           so */
    uint64_t reserved[4];
} seen_error;

/* ---- Plan: from what you want to what it costs -------------------------- */

typedef enum seen_kind {
    SEEN_ANY = 0,     /* let the planner choose: SEEN_BLOCKED, or SEEN_WINDOW
                          where `last` or `window_ms` is given */
    SEEN_BLOOM = 1,   /* classic: k bits anywhere; small, and never full */
    SEEN_BLOCKED = 2, /* k bits in one cache line or a few; the fastest */
    SEEN_CUCKOO = 3,  /* fingerprints; keys of any sort can be removed; the
                          smallest that can add, until it is full */
    /* 4 was SEEN_FUSE, which SEEN_RIBBON has replaced; no kind gets it again */
    SEEN_SCALABLE = 5, /* grows, and keeps `fpp` however many keys come */
    SEEN_WINDOW = 6,   /* forgets: keeps the last so many adds, or what came in
                          the last so many milliseconds; see seen_advance() */
    SEEN_SET = 7,      /* growing set of 64-bit fingerprints; practically exact,
                         needs to know neither `items` nor `fpp` */
    SEEN_BITMAP = 8,   /* exact set of integers below `bits`, one bit each: the
                         keys of seen_add_u64(), see "Integers" below */
    SEEN_FOREIGN = 9,  /* a filter of another system: see "Dialects" below. Made
                         by naming a dialect, not by naming this */
    SEEN_SORTED = 10,  /* built once from all keys; the smallest of up to some
                         80 keys, at as many bits a key as many */
    SEEN_RIBBON = 11   /* built once from all keys; the smallest of all */
} seen_kind;

/* seen_spec.flags */
#define SEEN_CONCURRENT 1u /* lock-free adds from many threads */
#define SEEN_KEYED      2u /* SipHash with a secret: safe against chosen keys */
#define SEEN_GUESS      4u /* SEEN_SCALABLE: many more than `items` may come */

/*
 * How the program that made a filter turned text into keys. The filter carries
 * it, in memory and in its bytes, so that whoever asks in another way can be
 * warned: to the library a key is bytes, and nothing here changes them.
 */
typedef enum seen_key_form {
    SEEN_KEYS_UNKNOWN = 0, /* not said */
    SEEN_KEYS_TEXT = 1,    /* the text as it is */
    SEEN_KEYS_LOWER = 2,   /* ASCII letters in lower case */
    SEEN_KEYS_HEX = 3,     /* the bytes that hex digits spell */
    SEEN_KEYS_U64 = 4,     /* decimal integers as 8 bytes little-endian */
    SEEN_KEYS_I32 = 5,     /* decimal integers as 4 bytes little-endian */
    SEEN_KEYS_UTF16 = 6    /* the text in UTF-16, little-endian */
} seen_key_form;

typedef struct seen_allocator {
    void *(*alloc)(void *ctx, size_t size); /* NULL on failure */
    void (*release)(void *ctx, void *ptr, size_t size);
    void *ctx;
} seen_allocator;

/*
 * Zero every field you do not care about: zero means "the default".
 *
 * Set any two of items, fpp and bits; the third is derived. With all three, the
 * bits must be enough, and all of them are used: SEEN_CUCKOO adds twice as fast
 * with a twentieth more than it needs. Set hashes as well to insist on k.
 * SEEN_SCALABLE needs fpp alone. With items it is about as small as SEEN_BLOCKED up
 * to that number, and grows beyond it; without, or with SEEN_GUESS, it is larger at
 * first (items is then where it begins) and smaller once it has grown a lot.
 * SEEN_BITMAP needs bits, the bound of its integers, and none of the others.
 */
typedef struct seen_spec {
    uint64_t items; /* n: keys you expect to add */
    double fpp;     /* p: false-positive rate, 0 < fpp < 1 */
    uint64_t limit; /* refuse to use more bytes than this; 0 = no limit. A
                       kind that cannot grow within it is SEEN_FULL */
    seen_kind kind;
    uint32_t flags;
    uint64_t bits;         /* m, where the caller insists; SEEN_BLOCKED uses as
                             many whole lines of 512 as fit into it */
    uint32_t hashes;       /* k, where the caller insists */
    uint32_t generations;  /* SEEN_WINDOW, see below */
    const uint8_t *secret; /* SEEN_KEYED: 16 bytes, required; see
                              seen_random_secret() of seen_file.h. Not read
                              otherwise */
    uint64_t seed;         /* of the hash, where there is no secret */
    const seen_allocator *allocator; /* NULL = the C library and the kernel */

    /* SEEN_WINDOW needs one of these two, and fpp, the rate of the whole
     * answer. A key stays while it is among the `last` adds and at most
     * `window_ms` old; it leaves a generation later at most, which is one of
     * `generations` equal parts of either (2 to 63 of them, or to 31 with
     * both; 0 = 4). With `last`, items is not looked at. Without, it is how
     * many keys a window brings, about as many in each generation: where they
     * come in bursts, give both, and a `last` above what a window brings. */
    uint64_t last;
    uint64_t window_ms;

    /* A filter of another system, sized by its own formulas: its name, and what
     * those formulas want instead of fpp or bits, where they want it. */
    const char *dialect;
    double bits_per_key;
    seen_key_form key_form; /* a note; SEEN_BITMAP, whose keys are integers, and
                               filters of other systems have none */
    uint64_t reserved[3];
} seen_spec;

typedef struct seen_plan {
    size_t size;        /* sizeof, set by the caller */
    seen_kind kind;     /* what seen_new() would make */
    uint32_t hashes;    /* k: bits, or slots, probed per key */
    uint64_t items;     /* n: how many keys keep the rate at or below fpp */
    uint64_t bits;      /* m: bits of payload */
    uint64_t bytes;     /* everything, headers included */
    double fpp;         /* expected rate once `items` keys are in; the rate
                           promised at every size for SEEN_SCALABLE */
    uint32_t lines;     /* cache lines read to find a key that is there */
    uint32_t hash_bits; /* 64, or 128 where 64 could not keep the rate */
    uint32_t width;     /* bits of a fingerprint; 0: the kind has none */
    /* SEEN_WINDOW, as in the spec; fpp is the rate of the worst moment, when
     * one generation more than `items` keys is still there. */
    uint32_t generations;
    uint64_t last;
    uint64_t window_ms;
    uint32_t line; /* SEEN_FOREIGN: bits of a line, where a key keeps to one */
    uint32_t
        sized; /* SEEN_SCALABLE: 1: `items` was given and was no guess: most
                       of the rate is for those; 0: it is where growing begins */
} seen_plan;

/* Pure arithmetic, no allocation. SEEN_INVALID: the wish is impossible. */
SEEN_API seen_status seen_plan_for(const seen_spec *spec, seen_plan *plan,
                                   seen_error *error);

/* The expected rate of a planned filter once it holds `items` keys, also far
 * beyond what it was planned for. NaN: it would be full before that. */
SEEN_API double seen_plan_fpp(const seen_plan *plan, uint64_t items);

/* The kinds of this build, in the order of their constants: index 0, 1, ...
 * until SEEN_ANY comes back. Names are those of the command line. */
SEEN_API seen_kind seen_kind_at(size_t index);
SEEN_API const char *seen_kind_name(seen_kind kind);  /* NULL: no such kind */
SEEN_API seen_kind seen_kind_named(const char *name); /* SEEN_ANY: none */

/* Is it made from all its keys at once and takes none afterwards? Then it has a
 * builder (see below) and no seen_new(). */
SEEN_API bool seen_kind_built(seen_kind kind);

/* ---- Arithmetic: the formulas, for those who want to see them ----------- */

/* Classic filter, n keys, m bits, k hashes: (1 - e^(-kn/m))^k, the textbook's
 * approximation, and the exact probability, which it underestimates where m is
 * small. NaN if m or k is 0. docs/MATH.md derives all of these. */
SEEN_API double seen_fpp_bloom(double n, double m, double k);
SEEN_API double seen_fpp_exact(uint64_t n, uint64_t m, uint32_t k);

/* Blocked filter: `regions` regions of lines / regions 512-bit lines; a key
 * sets bits_per_line bits (1, 2, 4 or 8) in one line of each region. */
SEEN_API double seen_fpp_blocked(uint64_t n, uint64_t lines, uint32_t regions,
                                 uint32_t bits_per_line);

/* A question put to several filters is wrong if one of them is wrong. */
SEEN_API double seen_fpp_combined(const double *fpp, size_t n);

/* How many keys leave `set` of m bits set, k per key. Infinite if set >= m. */
SEEN_API double seen_items_from_fill(double set, double m, double k);

/* ---- Filter ------------------------------------------------------------- */

typedef struct seen_filter seen_filter;

/* An empty filter. SEEN_UNSUPPORTED: a kind that is built, SEEN_RIBBON or
 * SEEN_SORTED, see seen_builder_new(). */
SEEN_API seen_status seen_new(seen_filter **f, const seen_spec *spec,
                              seen_error *error);
SEEN_API void seen_free(seen_filter *f);

/* Can a key be in f?  false: never added.  true: maybe.  Cannot fail. (Keys
 * that must not be misjudged can be listed: see seen_allowlist.h.) */
SEEN_API bool seen_maybe(const seen_filter *f, const void *key, size_t len);

/* Remember a key. Adding it again is harmless, except to SEEN_CUCKOO, which
 * counts it twice, and keeps it longer in SEEN_WINDOW. On any error the filter
 * is exactly as it was. SEEN_FULL: SEEN_CUCKOO has no room. It has room for
 * `items` different keys, or 0.7 times as many adds where every key comes twice;
 * third and further copies are for few keys: 15 of a small filter, one in 3000 of
 * a large one, can have any number. SEEN_INVALID: SEEN_BITMAP, a key that is no
 * integer below its bound. */
SEEN_API seen_status seen_add(seen_filter *f, const void *key, size_t len);

/* Ask and add in one pass; *before is what seen_maybe() would have said. On a
 * SEEN_CONCURRENT filter two simultaneous visits of one new key may both be
 * told "new"; never both "seen". SEEN_CUCKOO adds only what is new. */
SEEN_API seen_status seen_visit(seen_filter *f, const void *key, size_t len,
                                bool *before);

/* Forget one earlier seen_add() of a key. SEEN_ABSENT: it is not there.
 * SEEN_BITMAP forgets exactly that key. Removing a key that was never added
 * from SEEN_CUCKOO may erase another one, which is then wrongly "never": only
 * the caller can know. SEEN_UNSUPPORTED: all other kinds. */
SEEN_API seen_status seen_remove(seen_filter *f, const void *key, size_t len);

/* The time is now_ms, of any clock that counts milliseconds; the filter's time
 * is the latest it was ever told, so a clock set back changes nothing. Adds
 * happen at that time (0 before the first call), and only this call and adds
 * make anything leave: questions never do. SEEN_UNSUPPORTED: all kinds but
 * SEEN_WINDOW, which never fails. */
SEEN_API seen_status seen_advance(seen_filter *f, uint64_t now_ms);

/* How many times a key is in f, as far as f can tell: an upper bound. Kinds
 * that do not count say 0 or 1. */
SEEN_API uint32_t seen_count(const seen_filter *f, const void *key, size_t len);

/* ---- Many keys at once: hashed ahead, prefetched, then probed ----------- */

typedef struct seen_key {
    const void *data;
    size_t len;
} seen_key;

/*
 * n keys, wherever they lie: one description for every call that takes many.
 * Nothing is copied; the memory is the caller's and is only read. Make
 * one with a function below and pass it by value:
 *
 *     seen_add_many(f, seen_keys_u64(ids, n), NULL);
 *
 * SEEN_INVALID, and nothing is changed: a stride of 0, offsets that run
 * backwards or beyond `len`, NULL where there are bytes, more bytes than memory
 * has, seen_key or seen_hash that are not aligned, a layout that this version does not
 * know. Where answers were asked for, all are then "maybe"; more than
 * SEEN_KEYS_MAX keys are SEEN_INVALID, too, and nothing is written. Of no keys
 * (n = 0) only layout and reserved are looked at.
 *
 * SEEN_UNSUPPORTED, and all answers are "maybe": hashes where a filter reads keys
 * (SEEN_FOREIGN), or where a call needs their bytes.
 */
#define SEEN_KEYS_MAX ((size_t)1 << 40)

typedef enum seen_layout {
    SEEN_PAIRS = 0, /* data: seen_key[n] */
    SEEN_ROWS = 1,  /* data: rows of `width` bytes, `stride` bytes apart */
    SEEN_OFFSETS32 =
        2, /* data: len bytes; offsets: uint32_t[n + 1], as Arrow */
    SEEN_OFFSETS64 = 3, /* the same with uint64_t[n + 1] */
    SEEN_INTEGERS = 4,  /* data: uint64_t[n], each as seen_add_u64() takes it */
    SEEN_HASHES = 5,    /* data: seen_hash[n], see seen_hash_many() */
    SEEN_HASHES64 = 6   /* data: uint64_t[n], the `lo` of hashes: for filters of
                           64 hash bits, SEEN_INVALID for others */
} seen_layout;

typedef struct seen_keys {
    const void *data;
    size_t n;
    const void *offsets;
    size_t len;
    size_t width;
    size_t stride;
    seen_layout layout;
    uint32_t reserved[3]; /* zero */
} seen_keys;

static inline seen_keys seen_keys_in(seen_layout layout, const void *data,
                                     size_t n)
{
    seen_keys keys;
    memset(&keys, 0, sizeof keys);
    keys.layout = layout;
    keys.data = data;
    keys.n = n;
    return keys;
}

/* Pointers and lengths. */
static inline seen_keys seen_keys_of(const seen_key *keys, size_t n)
{
    return seen_keys_in(SEEN_PAIRS, keys, n);
}

/* Rows of fixed width. They may overlap: a stride of 1 makes a key of every
 * `width` neighbouring bytes. */
static inline seen_keys seen_keys_rows(const void *rows, size_t n, size_t width,
                                       size_t stride)
{
    seen_keys keys = seen_keys_in(SEEN_ROWS, rows, n);
    keys.width = width;
    keys.stride = stride;
    return keys;
}

/* Key i is the bytes offsets[i] .. offsets[i + 1] - 1 of the `len` at data. */
static inline seen_keys seen_keys_offsets32(const void *data, size_t len,
                                            const uint32_t *offsets, size_t n)
{
    seen_keys keys = seen_keys_in(SEEN_OFFSETS32, data, n);
    keys.len = len;
    keys.offsets = offsets;
    return keys;
}

static inline seen_keys seen_keys_offsets64(const void *data, size_t len,
                                            const uint64_t *offsets, size_t n)
{
    seen_keys keys = seen_keys_in(SEEN_OFFSETS64, data, n);
    keys.len = len;
    keys.offsets = offsets;
    return keys;
}

/* Integers in the machine's byte order; they need not be aligned. */
static inline seen_keys seen_keys_u64(const void *integers, size_t n)
{
    return seen_keys_in(SEEN_INTEGERS, integers, n);
}

/* answers[i]: can key i be in f? As seen_maybe(); hashes are asked as
 * seen_maybe_hashed() does. */
SEEN_API seen_status seen_maybe_many(const seen_filter *f, seen_keys keys,
                                     bool *answers);

/* As they would be answered after seen_advance(f, now_ms), which does not
 * happen: nothing changes. The time means nothing to kinds that know none. */
SEEN_API seen_status seen_maybe_many_at(const seen_filter *f, uint64_t now_ms,
                                        seen_keys keys, bool *answers);

/* As n single calls in this order would do. *added (may be NULL) is always
 * written: how many leading keys went in. */
SEEN_API seen_status seen_add_many(seen_filter *f, seen_keys keys,
                                   size_t *added);

/* before[i] is written for the *visited leading keys; a key that repeats
 * within the batch is "new" the first time only. visited may be NULL, and
 * before: then it is seen_add_many(). */
SEEN_API seen_status seen_visit_many(seen_filter *f, seen_keys keys,
                                     bool *before, size_t *visited);

/* removed[i] is written for the *done leading keys; false: key i was not there,
 * which is no error here. Both may be NULL. See seen_remove(). */
SEEN_API seen_status seen_remove_many(seen_filter *f, seen_keys keys,
                                      bool *removed, size_t *done);

/* As seen_count(); "maybe" is 1. */
SEEN_API seen_status seen_count_many(const seen_filter *f, seen_keys keys,
                                     uint32_t *counts);

/* Answers as bits: that of key i is bit i % 64 of word i / 64, as Arrow has it on
 * little-endian machines. Whole words are written; bits behind the last answer are
 * 0. seen_visit_bits() writes the words of the *visited leading keys. */
SEEN_API seen_status seen_maybe_bits(const seen_filter *f, seen_keys keys,
                                     uint64_t *bits);
SEEN_API seen_status seen_visit_bits(seen_filter *f, seen_keys keys,
                                     uint64_t *before, size_t *visited);

/* A filter of exactly these keys, sized for them (spec->items is ignored;
 * SEEN_BITMAP still needs its bound). Duplicates are fine. */
SEEN_API seen_status seen_build(seen_filter **f, const seen_spec *spec,
                                seen_keys keys, seen_error *error);

/*
 * SEEN_RIBBON and SEEN_SORTED from keys that come one after the other
 * (SEEN_UNSUPPORTED: all other kinds, which need no builder). Such a filter takes
 * no more keys afterwards. Memory: 8 to 16 bytes a key while they come; while it
 * is built 8 bytes a different key more, and the filter.
 */
typedef struct seen_builder seen_builder;

SEEN_API seen_status seen_builder_new(seen_builder **b, const seen_spec *spec,
                                      seen_error *error);
SEEN_API seen_status seen_builder_add_many(seen_builder *b, seen_keys keys);
/* Sized for the keys there were (spec->items is ignored). More may be added and
 * a larger filter made afterwards. */
SEEN_API seen_status seen_builder_finish(seen_builder *b, seen_filter **f,
                                         seen_error *error);
SEEN_API void seen_builder_free(seen_builder *b);

/* ---- Hash once, ask often ----------------------------------------------- */

/*
 * The hash of a key, as the filter it came from computes it. Filters made with
 * the same flags, key and hash_bits agree. Or bring your own: all bits must be
 * uniform and independent. A filter of 64 hash bits reads `lo` only.
 */
typedef struct seen_hash {
    uint64_t lo;
    uint64_t hi;
} seen_hash;

static inline seen_keys seen_keys_hashes(const seen_hash *hashes, size_t n)
{
    return seen_keys_in(SEEN_HASHES, hashes, n);
}

static inline seen_keys seen_keys_hashes64(const uint64_t *hashes, size_t n)
{
    return seen_keys_in(SEEN_HASHES64, hashes, n);
}

SEEN_API seen_hash seen_hash_key(const seen_filter *f, const void *key,
                                 size_t len);
/* hashes[i] is that of key i; hashes stay what they are. For filters of 64 hash
 * bits, which read `lo` only, 8 bytes a key are enough (SEEN_INVALID: others);
 * seen_keys_hashes64() takes them. */
SEEN_API seen_status seen_hash_many(const seen_filter *f, seen_keys keys,
                                    seen_hash *hashes);
SEEN_API seen_status seen_hash64_many(const seen_filter *f, seen_keys keys,
                                      uint64_t *hashes);

SEEN_API bool seen_maybe_hashed(const seen_filter *f, seen_hash hash);
SEEN_API seen_status seen_add_hashed(seen_filter *f, seen_hash hash);
SEEN_API seen_status seen_visit_hashed(seen_filter *f, seen_hash hash,
                                       bool *before);
SEEN_API seen_status seen_remove_hashed(seen_filter *f, seen_hash hash);
SEEN_API uint32_t seen_count_hashed(const seen_filter *f, seen_hash hash);

/* ---- Whole filters ------------------------------------------------------ */

typedef enum seen_merge_op {
    SEEN_UNION = 0,       /* exactly the filter of all keys of both */
    SEEN_INTERSECTION = 1 /* holds every key that is in both; a Bloom kind
                             answers "maybe" somewhat more often than a filter
                             built from the common keys alone */
} seen_merge_op;

/* Merge `from` into `into`. SEEN_MISMATCH unless kind, parameters, hash and key
 * agree: anything else would be a silent wrong answer. So would be two key forms;
 * where one of them is unknown, that of the result is, too. SEEN_SCALABLE unites
 * layer by layer, which may take a layer, and the rate, beyond what was
 * promised (see seen_info.fpp_now), and has no intersection: SEEN_UNSUPPORTED.
 * Nobody looks at the checksums of a view: seen_verify() does. */
SEEN_API seen_status seen_merge(seen_filter *into, const seen_filter *from,
                                seen_merge_op op, seen_error *error);

/* Make room for `items` keys in all, so that a kind that grows need not do it
 * on the way. Kinds of fixed size are left as they are: SEEN_OK. To SEEN_BITMAP
 * `items` is a bound: 0 .. items-1 can be added from then on. It never falls;
 * it is a parameter, so seen_merge() and seen_equal() want it to agree. */
SEEN_API seen_status seen_reserve(seen_filter *f, uint64_t items);

/* Forget all keys; parameters and memory stay, but SEEN_SCALABLE gives back all
 * layers except its first. The time of a window stays, too, and so does all of
 * a view. */
SEEN_API void seen_clear(seen_filter *f);

/* SEEN_CORRUPT: a view of damaged bytes, which could not be changed safely. */
SEEN_API seen_status seen_copy(seen_filter **copy, const seen_filter *f,
                               const seen_allocator *allocator);

/* Same kind, parameters, hash and key, and the same keys as far as the filter
 * can tell. The order in which they came does not matter, except to SEEN_WINDOW
 * and unless SEEN_SCALABLE has grown: its layers hold what came when they were
 * the newest. (While it is empty its first capacity does not count.) */
SEEN_API bool seen_equal(const seen_filter *a, const seen_filter *b);

/*
 * What a filter is now, where its plan is what it was made to be. Three calls
 * fill it:
 *
 *     seen_info_of()   a filter, at once: looks at no bits
 *     seen_measure()   the same, and what only the bits can tell: reads them all
 *     seen_look()      saved bytes, without loading them: all that
 *                      seen_info_of() would tell, and how they were saved
 *
 * What a call does not know it sets to 0, false, NULL or, for fpp_now, NaN.
 */
typedef struct seen_info {
    size_t size; /* sizeof, set by the caller */
    seen_kind kind;
    uint32_t flags;         /* as in the spec; SEEN_CONCURRENT is not saved */
    const char *hash;       /* name: "xxh3-64", "xxh3-128", "siphash-1-3-128";
                               "u64": none, see SEEN_BITMAP */
    const char *dialect;    /* SEEN_FOREIGN: its name; NULL otherwise */
    seen_key_form key_form; /* as in the spec */
    uint32_t hashes;        /* k; of SEEN_SCALABLE, that of its newest layer */
    uint32_t lines;         /* cache lines read to find a key that is there */
    uint32_t layers;        /* of SEEN_SCALABLE, links of SEEN_FOREIGN;
                               otherwise 1 */
    uint32_t growth;        /* SEEN_FOREIGN: how many times as much the next
                               link will hold; 0: there will be none */
    bool grows;             /* takes as many keys as come: SEEN_SCALABLE,
                               SEEN_SET, and SEEN_FOREIGN with growth */
    bool counted;           /* items are counted as they come. false:
                               SEEN_CONCURRENT, and SEEN_FOREIGN where the
                               writer did not count */
    bool secret_apart;      /* seen_look(): the secret is not in the bytes */
    bool journaled;         /* seen_look(): a writer has the file, or died */
    uint64_t items;         /* adds that changed something: the distinct keys,
                               less those hidden by a false positive; estimated
                               from the fill after a merge; a window counts a
                               key in each generation that has it. Not counted:
                               seen_measure() estimates it, the others tell
                               what was added to SEEN_FOREIGN since it was
                               imported, and 0 for SEEN_CONCURRENT */
    uint64_t capacity;      /* items planned for, in all layers that there are;
                               0: SEEN_SET, and SEEN_FOREIGN that does not say
                               it */
    double fpp;             /* the rate promised up to the capacity, or at every
                               size if it grows; SEEN_SET: the rate now */
    uint64_t bits;          /* m, in all layers */
    uint64_t bytes;         /* memory, all of it; seen_look(): if it were
                               loaded */
    uint64_t bits_set;      /* seen_measure(): of the bits; slots in use x 64
                               for SEEN_SET */
    double fpp_now;         /* seen_measure(): the rate of the bits as they are;
                               for a window that holds a key twice, at most */
    uint64_t saved_bytes;   /* seen_look(): how many they are */
    uint64_t id;            /* seen_look(): of a filter file: which, */
    uint64_t epoch;         /* and since which change of its header */
} seen_info;

/* Both fail only for a wrong info->size. seen_measure() takes time in proportion
 * to the size of the filter. */
SEEN_API seen_status seen_info_of(const seen_filter *f, seen_info *info);
SEEN_API seen_status seen_measure(const seen_filter *f, seen_info *info);

/* The plan that a filter was made by. Fails only for a wrong plan->size. */
SEEN_API seen_status seen_plan_of(const seen_filter *f, seen_plan *plan);

/* ---- Bytes: the format of docs/FORMAT.md --------------------------------- */

#define SEEN_SECRET_APART 1u /* keep the secret of a SEEN_KEYED filter out */

/* *len is written on SEEN_OK and on SEEN_SHORT, so cap 0 measures. The bytes
 * hold the secret of a keyed filter unless flags say SEEN_SECRET_APART; whoever
 * has both can test guesses. Saving what was loaded gives the same bytes. */
SEEN_API seen_status seen_save(const seen_filter *f, uint32_t flags, void *buf,
                               size_t cap, size_t *len);

/* The n bytes from `from` on of what seen_save() writes, which must be there: a
 * large filter goes out in pieces, without a copy of the whole. The first bytes,
 * which have the checksums, cost a pass over the filter; the others what they copy
 * (SEEN_FOREIGN, SEEN_CONCURRENT: each piece a pass). The filter must not change
 * between the calls, nor meanwhile: seen_load() refuses pieces that do not belong
 * together. */
SEEN_API seen_status seen_save_range(const seen_filter *f, uint32_t flags,
                                     uint64_t from, void *buf, size_t n);

/* Copies, after checking every checksum. `secret` is NULL or 16 bytes: needed
 * where it was kept apart (SEEN_NO_SECRET), SEEN_MISMATCH if it is another.
 * SEEN_BUSY: a file that a writer is changing, or was when it died: only
 * seen_file_open() knows all of it. SEEN_CONCURRENT is not saved: to go on
 * with many threads, make such a filter of the same plan and merge this into it. */
SEEN_API seen_status seen_load(seen_filter **f, const void *buf, size_t len,
                               const uint8_t *secret,
                               const seen_allocator *allocator,
                               seen_error *error);

/* Borrows buf (64-byte aligned, SEEN_INVALID otherwise) until seen_free(), and
 * checks the header only, so it takes the same short time for any size. */
SEEN_API seen_status seen_view(seen_filter **f, const void *buf, size_t len,
                               const uint8_t *secret, seen_error *error);

/* Compares saved bytes with their checksums. SEEN_BUSY as for seen_load(). */
SEEN_API seen_status seen_verify(const void *buf, size_t len,
                                 seen_error *error);

/* What saved bytes are, and the plan of what they hold; either may be NULL.
 * Reads what lies before the payload (of SEEN_FOREIGN, all), and needs no secret.
 * A writer may have added keys to a file since. */
SEEN_API seen_status seen_look(const void *buf, size_t len, seen_info *info,
                               seen_plan *plan, seen_error *error);

/* ---- Dialects: the filters of other systems, byte for byte --------------- */

/*
 * Go, Java, Rust, C++ and Redis systems have Bloom filters that only they can
 * read. Here they are ordinary filters: imported they answer as the original
 * does, false positives included; made with seen_spec.dialect they are, key for
 * key, what the original would have made; exported they are its bytes.
 *
 *     seen_import(&f, "gozero", &(seen_spec){.bits = 20000}, bytes, len, NULL);
 *
 * Keys are the bytes that the original hashes. Hashes are its own business: the
 * calls above that take hashes answer "maybe" to all, and add nothing. What
 * the original promises to nobody is not promised here: none of them is safe
 * against chosen keys. docs/DIALECTS.md has a section for each.
 */
#define SEEN_CAN_ADD    1u  /* keys can be added to what was imported */
#define SEEN_CAN_REMOVE 2u  /* and removed */
#define SEEN_CAN_SNIFF  4u  /* its bytes say what they are: seen_sniff() */
#define SEEN_CAN_VIEW   8u  /* it can be used where it lies */
#define SEEN_INT_BIG    16u /* integer keys are big-endian, not little-endian */
#define SEEN_REFRESHES                                                         \
    32u /* adding a key that is in may change it all the same */

typedef struct seen_dialect_facts {
    size_t size; /* sizeof, set by the caller */
    const char *name;
    const char *system;   /* what writes it */
    const char *hash;     /* that it reads keys with */
    const char *needs;    /* fields of the spec that its bytes do not carry, as
                             seen_import() needs them; NULL: none */
    const char *weakness; /* what to know about it */
    uint32_t can;
} seen_dialect_facts;

/* The dialects of this build: index 0, 1, ... until it says false. `facts` may
 * be NULL; false, too, for a wrong facts->size. */
SEEN_API bool seen_dialect_at(size_t index, seen_dialect_facts *facts);
SEEN_API bool seen_dialect_named(const char *name, seen_dialect_facts *facts);

/* Names of the dialects that these bytes fit, at most `cap` of them; how many
 * there are in all. Two or more: do not guess, ask. Dialects that write the same
 * bytes are one, under the name of the first. */
SEEN_API size_t seen_sniff(const void *buf, size_t len, const char **names,
                           size_t cap);

/* From its bytes. `spec` may be NULL; what is read of it is what facts.needs
 * says, and limit and allocator. SEEN_ABSENT: no such dialect. SEEN_INVALID:
 * the spec lacks something. seen_import_view() borrows `buf` until seen_free();
 * SEEN_UNSUPPORTED where the bytes must be decoded first. */
SEEN_API seen_status seen_import(seen_filter **f, const char *dialect,
                                 const seen_spec *spec, const void *buf,
                                 size_t len, seen_error *error);
SEEN_API seen_status seen_import_view(seen_filter **f, const char *dialect,
                                      const seen_spec *spec, const void *buf,
                                      size_t len, seen_error *error);

/* To bytes; `dialect` NULL: the filter's own. *len as for seen_save().
 * SEEN_MISMATCH: the dialect finds the bits of a key elsewhere, so that only the
 * keys themselves could make such a filter. */
SEEN_API seen_status seen_export(const seen_filter *f, const char *dialect,
                                 void *buf, size_t cap, size_t *len,
                                 seen_error *error);

/* ---- For string and integer keys ---------------------------------------- */

static inline seen_status seen_add_str(seen_filter *f, const char *key)
{
    return seen_add(f, key, strlen(key));
}

static inline bool seen_maybe_str(const seen_filter *f, const char *key)
{
    return seen_maybe(f, key, strlen(key));
}

/*
 * Integers. Every kind takes them, as 8 bytes. SEEN_BITMAP takes nothing else,
 * and only those below its bound; others cannot be added (SEEN_INVALID) and are
 * not there. Its "maybe" means "yes". seen_bitmap.h has the same bits with
 * ranges and walks instead of the calls above.
 */
SEEN_API seen_status seen_add_u64(seen_filter *f, uint64_t key);
SEEN_API bool seen_maybe_u64(const seen_filter *f, uint64_t key);
SEEN_API seen_status seen_visit_u64(seen_filter *f, uint64_t key, bool *before);

#ifdef __cplusplus
}
#endif

#endif /* SEEN_H */
