/*
 * meta.c - what a store knows about itself, as 128 bytes:
 *
 *     0    8   magic 89 53 45 55 53 0d 0a 1a
 *     8    4   version: 1
 *     12   4   flags: bit 0, a writer is at work or did not close
 *     16   8   id
 *     24   8   epoch
 *     32   8   sequence
 *     40   16  secret
 *     56   4   items of a generation
 *     60   4   generations
 *     64   8   fpp, an IEEE 754 double
 *     72   8   ttl, milliseconds
 *     80   8   what the machine's clock said at the last checkpoint (clock.h)
 *     88   8   how much of that was not believed
 *     96   8   what it said when it had leapt
 *     104  20  0
 *     124  4   CRC32C of bytes 0 .. 123
 */
#include "users/backend.h"

#include "base/bytes.h"
#include "base/crc32c.h"

#define VERSION   1
#define JOURNALED 1u

static const uint8_t magic[8] = {0x89, 'S', 'E', 'U', 'S', '\r', '\n', 0x1a};

void seen_meta_put(const struct seen_meta *m, uint8_t out[SEEN_META_SIZE])
{
    uint64_t fpp;
    memset(out, 0, SEEN_META_SIZE);
    memcpy(out, magic, sizeof magic);
    memcpy(&fpp, &m->policy.fpp, sizeof fpp);
    seen_put_le32(out + 8, VERSION);
    seen_put_le32(out + 12, m->journaled ? JOURNALED : 0);
    seen_put_le64(out + 16, m->id);
    seen_put_le64(out + 24, m->epoch);
    seen_put_le64(out + 32, m->sequence);
    memcpy(out + 40, m->secret, sizeof m->secret);
    seen_put_le32(out + 56, m->policy.items);
    seen_put_le32(out + 60, m->policy.generations);
    seen_put_le64(out + 64, fpp);
    seen_put_le64(out + 72, m->policy.ttl_ms);
    seen_put_le64(out + 80, m->clock.last);
    seen_put_le64(out + 88, m->clock.ahead);
    seen_put_le64(out + 96, m->clock.since);
    seen_put_le32(out + 124, seen_crc32c(0, out, 124));
}

seen_status seen_meta_get(const uint8_t *p, size_t len, struct seen_meta *m)
{
    if (len != SEEN_META_SIZE || memcmp(p, magic, sizeof magic) != 0 ||
        seen_get_le32(p + 124) != seen_crc32c(0, p, 124))
        return SEEN_CORRUPT;
    uint32_t flags = seen_get_le32(p + 12);
    if (seen_get_le32(p + 8) != VERSION || flags & ~JOURNALED)
        return SEEN_NEWER;
    *m = (struct seen_meta){.journaled = flags & JOURNALED,
                            .id = seen_get_le64(p + 16),
                            .epoch = seen_get_le64(p + 24),
                            .sequence = seen_get_le64(p + 32),
                            .policy = {.items = seen_get_le32(p + 56),
                                       .generations = seen_get_le32(p + 60),
                                       .ttl_ms = seen_get_le64(p + 72)},
                            .clock = {.last = seen_get_le64(p + 80),
                                      .ahead = seen_get_le64(p + 88),
                                      .since = seen_get_le64(p + 96)}};
    uint64_t fpp = seen_get_le64(p + 64);
    memcpy(&m->policy.fpp, &fpp, sizeof fpp);
    memcpy(m->secret, p + 40, sizeof m->secret);
    return seen_policy_check(&m->policy, NULL) == SEEN_OK ? SEEN_OK
                                                          : SEEN_CORRUPT;
}
