/*
 * sim_dir.h - one directory of sim_os.h: the names that programs see, the names
 * on the disk, and the changes in between, in order. Journaling file systems
 * keep that order, so that a prefix of the changes survives a power loss; POSIX
 * does not ask it, so that others may survive without those of other names before
 * them. A rename is one change: both of its names, or neither.
 */
#ifndef SEEN_TEST_SIM_DIR_H
#define SEEN_TEST_SIM_DIR_H

#include "helpers/sim_file.h"

#define SIM_NAME_MAX 255

struct sim_entry {
    char name[SIM_NAME_MAX + 1];
    struct sim_file *file;
};

struct sim_names {
    struct sim_entry *at;
    size_t n;
};

/* First `from` goes away, then `to` is this file; either may be "". */
struct sim_change {
    char from[SIM_NAME_MAX + 1], to[SIM_NAME_MAX + 1];
    struct sim_file *file; /* NULL: `to` is "" */
};

struct sim_dir {
    char *path;
    uint64_t ino;
    struct sim_names now, disk;
    struct sim_change *changes; /* what leads from `disk` to `now` */
    size_t n_changes;
    bool dirty; /* will be written by the next sync */
};

struct sim_dir *sim_dir_new(const char *path, uint64_t ino);
void sim_dir_free(struct sim_dir *d);

/* NULL: no such file. */
struct sim_file *sim_dir_find(const struct sim_dir *d, const char *name);

void sim_dir_create(struct sim_dir *d, const char *name, struct sim_file *file);
void sim_dir_rename(struct sim_dir *d, const char *from, const char *to);
void sim_dir_unlink(struct sim_dir *d, const char *name);

/* All changes become durable; or, if that failed, are given up until there is
 * another one. */
void sim_dir_sync(struct sim_dir *d, bool failed);

/* Copies; `copy` makes the twin of each file that is left. */
struct sim_dir *
sim_dir_copy(const struct sim_dir *d,
             struct sim_file *(*copy)(void *ctx, struct sim_file *), void *ctx);
struct sim_dir *
sim_dir_after_power_loss(const struct sim_dir *d, struct test_rng *r,
                         struct sim_file *(*copy)(void *ctx, struct sim_file *),
                         void *ctx);

#endif
