/* sim_dir.c - see sim_dir.h. Every mention of a file counts as a reference. */
#include "helpers/sim_dir.h"

#include <stdlib.h>
#include <string.h>

/* ---- Names -------------------------------------------------------------- */

static struct sim_entry *find(const struct sim_names *names, const char *name)
{
    for (size_t i = 0; i < names->n; i++)
        if (strcmp(names->at[i].name, name) == 0) return &names->at[i];
    return NULL;
}

static void forget(struct sim_names *names, const char *name)
{
    struct sim_entry *e = find(names, name);
    if (!e) return;
    sim_file_unref(e->file);
    *e = names->at[--names->n];
}

static void add(struct sim_names *names, const char *name,
                struct sim_file *file)
{
    forget(names, name);
    names->at = sim_grown(names->at, (names->n + 1) * sizeof *names->at);
    struct sim_entry *e = &names->at[names->n++];
    strcpy(e->name, name);
    e->file = file;
}

static void apply(struct sim_names *names, const struct sim_change *change)
{
    if (*change->from) forget(names, change->from);
    if (*change->to) add(names, change->to, sim_file_ref(change->file));
}

static void clear_names(struct sim_names *names)
{
    for (size_t i = 0; i < names->n; i++)
        sim_file_unref(names->at[i].file);
    free(names->at);
    *names = (struct sim_names){0};
}

/* ---- Changes ------------------------------------------------------------ */

static void push_change(struct sim_dir *d, const char *from, const char *to,
                        struct sim_file *file)
{
    d->changes = sim_grown(d->changes, (d->n_changes + 1) * sizeof *d->changes);
    struct sim_change *change = &d->changes[d->n_changes++];
    strcpy(change->from, from);
    strcpy(change->to, to);
    change->file = file ? sim_file_ref(file) : NULL;
    apply(&d->now, change);
    d->dirty = true;
}

static void clear_changes(struct sim_dir *d)
{
    for (size_t i = 0; i < d->n_changes; i++)
        if (d->changes[i].file) sim_file_unref(d->changes[i].file);
    d->n_changes = 0;
    d->dirty = false;
}

struct sim_file *sim_dir_find(const struct sim_dir *d, const char *name)
{
    const struct sim_entry *e = find(&d->now, name);
    return e ? e->file : NULL;
}

void sim_dir_create(struct sim_dir *d, const char *name, struct sim_file *file)
{
    push_change(d, "", name, file);
}

void sim_dir_rename(struct sim_dir *d, const char *from, const char *to)
{
    push_change(d, from, to, sim_dir_find(d, from));
}

void sim_dir_unlink(struct sim_dir *d, const char *name)
{
    push_change(d, name, "", NULL);
}

void sim_dir_sync(struct sim_dir *d, bool failed)
{
    if (failed || !d->dirty) {
        d->dirty = false;
        return;
    }
    for (size_t i = 0; i < d->n_changes; i++)
        apply(&d->disk, &d->changes[i]);
    clear_changes(d);
}

/* ---- Life --------------------------------------------------------------- */

struct sim_dir *sim_dir_new(const char *path, uint64_t ino)
{
    struct sim_dir *d = calloc(1, sizeof *d);
    assert_non_null(d);
    d->path = sim_grown(NULL, strlen(path) + 1);
    strcpy(d->path, path);
    d->ino = ino;
    return d;
}

void sim_dir_free(struct sim_dir *d)
{
    clear_changes(d);
    clear_names(&d->now);
    clear_names(&d->disk);
    free(d->changes);
    free(d->path);
    free(d);
}

static void copy_names(const struct sim_names *from, struct sim_names *to,
                       struct sim_file *(*copy)(void *, struct sim_file *),
                       void *ctx)
{
    for (size_t i = 0; i < from->n; i++)
        add(to, from->at[i].name, copy(ctx, from->at[i].file));
}

struct sim_dir *
sim_dir_copy(const struct sim_dir *d,
             struct sim_file *(*copy)(void *, struct sim_file *), void *ctx)
{
    struct sim_dir *new = sim_dir_new(d->path, d->ino);
    copy_names(&d->disk, &new->disk, copy, ctx);
    copy_names(&d->disk, &new->now, copy, ctx);
    for (size_t i = 0; i < d->n_changes; i++) {
        const struct sim_change *change = &d->changes[i];
        struct sim_file *file = change->file ? copy(ctx, change->file) : NULL;
        push_change(new, change->from, change->to, file);
        if (file) sim_file_unref(file);
    }
    new->dirty = d->dirty;
    return new;
}

static bool touches(const struct sim_change *a, const struct sim_change *b)
{
    const char *names[] = {a->from, a->to};
    for (size_t i = 0; i < 2; i++)
        if (*names[i] &&
            (strcmp(names[i], b->from) == 0 || strcmp(names[i], b->to) == 0))
            return true;
    return false;
}

/* Some of the changes: with each that is lost, all later ones of its names. */
static void apply_some(struct sim_names *names, const struct sim_dir *d,
                       struct test_rng *r)
{
    bool *lost = sim_grown(NULL, (d->n_changes + 1) * sizeof *lost);
    for (size_t i = 0; i < d->n_changes; i++) {
        lost[i] = test_below(r, 2);
        for (size_t before = 0; before < i; before++)
            lost[i] |=
                lost[before] && touches(&d->changes[before], &d->changes[i]);
        if (!lost[i]) apply(names, &d->changes[i]);
    }
    free(lost);
}

static void apply_prefix(struct sim_names *names, const struct sim_dir *d,
                         struct test_rng *r)
{
    size_t survive = (size_t)test_below(r, d->n_changes + 1);
    for (size_t i = 0; i < survive; i++)
        apply(names, &d->changes[i]);
}

struct sim_dir *
sim_dir_after_power_loss(const struct sim_dir *d, struct test_rng *r,
                         struct sim_file *(*copy)(void *ctx, struct sim_file *),
                         void *ctx)
{
    /* 1. The old names and a part of the changes. */
    struct sim_names left = {0};
    for (size_t i = 0; i < d->disk.n; i++)
        add(&left, d->disk.at[i].name, sim_file_ref(d->disk.at[i].file));
    if (test_below(r, 2))
        apply_prefix(&left, d, r);
    else
        apply_some(&left, d, r);

    /* 2. Their files as the disk has them. */
    struct sim_dir *new = sim_dir_new(d->path, d->ino);
    copy_names(&left, &new->disk, copy, ctx);
    for (size_t i = 0; i < new->disk.n; i++)
        add(&new->now, new->disk.at[i].name,
            sim_file_ref(new->disk.at[i].file));
    clear_names(&left);
    return new;
}
