/*
 * sim_file.h - one file of sim_os.h: what the page cache holds, and what the
 * disk may hold instead.
 *
 *     page cache  now      | sector 0 | sector 1 | sector 2 |    size
 *                               |          |          |
 *     disk        sectors       |      versions      NULL       sizes
 *                               |      [durable,               [durable,
 *                              NULL     ..., now]               ..., now]
 *
 * A sector without a list is on the disk as it is in the page cache. One with a
 * list has been changed since it was last made durable, and the disk may hold
 * any version in it. The same goes for the size of the file.
 *
 * Stores through a mapping are not system calls, so nobody reports them: while
 * there is a writable mapping, a shadow copy of the file is compared with it at
 * every call. Between two calls a sector may change many times; the disk may
 * hold any part of that, so such versions may also be torn inside the sector,
 * at multiples of 8 bytes.
 */
#ifndef SEEN_TEST_SIM_FILE_H
#define SEEN_TEST_SIM_FILE_H

#include "helpers/harness.h"
#include "store/os.h"

#define SIM_SECTOR   512
#define SIM_FILE_MAX ((uint64_t)64 << 20) /* reserved for each mapped file */
#define SIM_VERSIONS 16 /* kept of a sector; then one in the middle goes */

struct sim_version {
    uint8_t bytes[SIM_SECTOR];
    bool stored; /* through a mapping */
};

struct sim_sector {
    struct sim_version *versions; /* the oldest is durable, the last is now */
    size_t n;
    bool dirty; /* will be written by the next sync */
};

struct sim_file {
    uint64_t ino;
    uint32_t mode;
    unsigned refs;
    int locked_by; /* file descriptor, or -1 */

    uint64_t size;
    uint8_t *now;
    size_t cap;        /* bytes of `now` on the heap */
    int shared;        /* memory file behind `now` once it was mapped, or -1 */
    uint64_t *counter; /* bytes used by all files of this disk */

    uint8_t *shadow;        /* NULL: not mapped for writing */
    unsigned writable_maps; /* how often mapped for writing */

    struct sim_sector **sectors;
    size_t n_sectors;
    uint64_t *sizes;
    size_t n_sizes;
    bool size_dirty;

    struct sim_file *twin; /* while a disk is being copied */
};

/* Empty, one reference. */
struct sim_file *sim_file_new(uint64_t ino, uint32_t mode, uint64_t *counter);
struct sim_file *sim_file_ref(struct sim_file *f);
void sim_file_unref(struct sim_file *f);

/* The range or size must be within SIM_FILE_MAX. */
void sim_file_write(struct sim_file *f, const void *buf, size_t len,
                    uint64_t offset);
void sim_file_resize(struct sim_file *f, uint64_t size);

/* As mmap of the whole file: pages behind its end raise SIGBUS. */
void *sim_file_map(struct sim_file *f, size_t len, enum seen_map_mode mode);
void sim_file_unmap(struct sim_file *f, void *at, size_t len,
                    enum seen_map_mode mode);

/* Note what was stored through mappings. */
void sim_file_observe(struct sim_file *f);

/* Dirty sectors of this range become durable; or, if that failed, clean
 * without being durable: no later sync will write them. */
void sim_file_sync_range(struct sim_file *f, uint64_t from, uint64_t to,
                         bool failed);
/* All of it, and the size. */
void sim_file_sync(struct sim_file *f, bool failed);

/* Is the disk certain to hold what the page cache holds? */
bool sim_file_durable(const struct sim_file *f);

/* The file with its page cache, without mappings and locks. */
struct sim_file *sim_file_copy(const struct sim_file *f, uint64_t *counter);

/* What the disk may hold. */
struct sim_file *sim_file_after_power_loss(const struct sim_file *f,
                                           struct test_rng *r,
                                           uint64_t *counter);

/* realloc() that does not fail. */
void *sim_grown(void *old, size_t bytes);

#endif
