/*
 * object.h - what a BF or a CF key holds: one filter, or a chain of them.
 *
 *     BF   one filter: scalable, or blocked (NONSCALING), or a window
 *     CF   a chain of equal cuckoo filters, the newest last
 *     both one filter of another system (import.c), asked by the bytes of
 *          its items, because its hashes are its own
 *
 * Everything that concerns the whole (RDB, AOF, DUMP, COPY, digests) is the same
 * for both: object_type.c; chunks are in chunks.h, commands in bf.c and cf.c. An
 * object is saved in one form only, its bytes:
 *
 *     offset  size  field
 *     0       8     magic: 89 53 45 45 4e 42 46 1a (BF), ... 43 46 1a (CF)
 *     8       4     version: 2; in 1, bytes 88 to 95 were 0
 *     12      4     flags: 1 NONSCALING, 2 keyed, 4 of another system: then what
 *                   was asked for is 0, but for the buckets of CF
 *     16      8     length of all this
 *     24      8     capacity asked for
 *     32      8     error asked for: IEEE 754 double
 *     40      8     window in milliseconds, 0: none
 *     48      4     generations of it
 *     52      4     expansion
 *     56      16    secret, 0 if not keyed
 *     72      8     items deleted (CF)
 *     80      2     bucket size asked for (CF)
 *     82      2     iterations asked for (CF)
 *     84      4     n: filters
 *     88      8     FNV-1a, 64 bits, of the first 256 bytes of each filter, which
 *                   have its checksums: filters of two moments do not go together
 *     96            n times: length as 8 bytes, then the filter in the format
 *                   of docs/FORMAT.md, without its secret
 *
 * The same bytes go into RDB files and DUMP payloads, into digests, and cut into
 * chunks, into SCANDUMP replies and rewritten AOF files. So there is one reader
 * of our bytes from outside, object_read(); those of other systems are read by
 * the library, object_import().
 */
#ifndef SEEN_MODULE_OBJECT_H
#define SEEN_MODULE_OBJECT_H

#include "seen.h"

#include "family.h"
#include "memory.h"
#include "redis_api.h"

#define FILTERS_MAX 16
#define BYTES_MAX   ((uint64_t)1 << 46)

/* What was asked for when it was made. */
struct params {
    uint64_t capacity;
    double error;
    uint32_t expansion;
    bool fixed; /* NONSCALING */
    uint64_t window_ms;
    uint32_t generations;
    uint16_t bucket_size, iterations; /* CF: told again, not obeyed */
    bool keyed;
    uint8_t secret[16];
    bool foreign; /* the filter is one of another system */
};

struct object {
    struct family *family;
    struct memory memory; /* without this struct */
    struct params params;
    uint64_t deleted;
    uint32_t n; /* 0: pending */
    seen_filter *filter[FILTERS_MAX];
    bool refreshes; /* of another system, and every add may change it */
    /* What has come of it in chunks; `head`: see chunks.h. */
    uint8_t *pending;
    size_t pending_len, pending_room, pending_head;
};

/* Data types of all families; REDISMODULE_ERR: the log says why. */
int object_types(RedisModuleCtx *ctx);

/* An object without filters; NULL: no memory. */
struct object *object_new(struct family *family, const struct params *params);
void object_free(struct object *o);
seen_status object_copy(struct object **copy, const struct object *o);

/* Another filter at the end of the chain, like the first. */
seen_status object_grow(struct object *o);

/* An object with its first filter, of this spec, and a random secret unless one
 * was given. NULL: the error has been replied. */
struct object *object_make(RedisModuleCtx *ctx, struct family *family,
                           struct params *params, bool has_secret,
                           seen_spec (*spec_of)(const struct params *));

/* A filter of another system. The spec has what its bytes do not say. If this
 * fails, *error says why. */
seen_status object_import(struct family *family, const char *dialect,
                          const seen_spec *spec, seen_key bytes,
                          struct object **o, seen_error *error);

/* A filter of another system is in its place. */
void object_note_foreign(struct object *o);

/* Room for `len` pending bytes, of `most` that will come. */
seen_status object_pending_room(struct object *o, size_t len, uint64_t most);

/* Bytes of this object and everything in it. */
size_t object_bytes(const struct object *o);

/* ---- Bytes -------------------------------------------------------------- */

/*
 * An object on its way out: `len` bytes, of which saving_piece() gives some, to
 * be read before the next call; NULL: no memory. A filter of gigabytes goes out
 * through a buffer of one piece. Bytes that are there as a whole (pending ones) or
 * cannot be made piece by piece (those of another system) are `whole`.
 *
 *     saving_begin(&s, o)      costs nothing
 *     saving_piece(&s, at, n)  n at most SAVED_PIECE
 *     saving_end(&s)
 */
struct saving {
    const struct object *o;
    size_t len;
    const uint8_t *whole; /* or NULL */
    uint8_t *mine;        /* the whole or the buffer, to be freed; or NULL */
};

#define SAVED_PIECE ((size_t)16 << 20)

void saving_begin(struct saving *s, const struct object *o);
const uint8_t *saving_piece(struct saving *s, size_t at, size_t n);
void saving_end(struct saving *s);

seen_status object_read(struct family *family, const uint8_t *bytes, size_t len,
                        struct object **o);

/* How long the whole will be, by its first bytes; 0: they do not say. */
uint64_t object_promised(const struct family *family, const uint8_t *bytes,
                         size_t len);

#endif
