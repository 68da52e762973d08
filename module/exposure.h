/*
 * exposure.h - what a SEEN key holds: the record of one user.
 *
 * Most users have few items, so a key is one block of memory: the length of the
 * record as 4 bytes, then the record (seen_exposure.h), then the policy, if the
 * user has one of their own. Most follow the default of the server; a key that was
 * written with a POLICY keeps it, as 18 bytes, because without it the next
 * question would be answered, and the next mark would drop generations, under
 * another one:
 *
 *     offset  size  field
 *     0       3     items of a generation
 *     3       1     generations
 *     4       6     ttl in milliseconds
 *     10      8     fpp of a whole answer: IEEE 754 double
 *
 * RDB files and DUMP payloads hold two strings, the record and the policy, which
 * is empty for those who follow the default (encoding 1 had no second string).
 * EXPORT, IMPORT and rewritten AOF files hold the record in an envelope that also
 * says what it takes to read it:
 *
 *     offset  size  field
 *     0       8     magic: 89 53 45 45 4e 58 50 1a
 *     8       4     version: 1
 *     12      4     items of a generation
 *     16      4     generations
 *     20      4     1: this is the user's own policy; 0: the default, where the
 *                   envelope was written
 *     24      8     fpp of a whole answer: IEEE 754 double
 *     32      8     ttl in milliseconds
 *     40      8     which secret: SipHash-1-3-128 of the 18 bytes `seen: which
 *                   secret` under it, the first 8 bytes (as in docs/FORMAT.md)
 *     48            the record
 *
 * A client that wants to test locally reads the policy here.
 */
#ifndef SEEN_MODULE_EXPOSURE_H
#define SEEN_MODULE_EXPOSURE_H

#include "family.h"
#include "policy.h"
#include "redis_api.h"

#include <stdbool.h>

#define ENVELOPE 48

struct exposure {
    uint32_t own : 1; /* policy, behind the record */
    uint32_t len : 31;
    uint8_t record[];
};

int exposure_types(RedisModuleCtx *ctx);

/* `own`: the policy of this user, NULL: they follow the default. NULL: no memory,
 * or past the limit. */
struct exposure *exposure_new(seen_record record, const seen_policy *own);
void exposure_free(struct exposure *e);

/* false: it follows the default. */
bool exposure_own(const struct exposure *e, seen_policy *own);

static inline seen_record exposure_record(const struct exposure *e)
{
    return e ? (seen_record){e->record, e->len} : (seen_record){NULL, 0};
}

/* A record from outside: every byte as it must be, under our secret. */
seen_status exposure_check(seen_record record);

/* The bytes before the record in its envelope; and a look into one. */
void envelope_write(const seen_policy *policy, bool own, uint8_t to[ENVELOPE]);
seen_status envelope_read(const uint8_t *bytes, size_t len, seen_record *record,
                          seen_policy *policy, bool *own);

#endif
