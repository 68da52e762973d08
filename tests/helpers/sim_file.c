/* sim_file.c - see sim_file.h. */
#define _GNU_SOURCE /* memfd_create */

#include "helpers/sim_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static size_t sectors_for(uint64_t bytes)
{
    return (size_t)((bytes + SIM_SECTOR - 1) / SIM_SECTOR);
}

void *sim_grown(void *old, size_t bytes)
{
    void *new = realloc(old, bytes ? bytes : 1);
    assert_non_null(new);
    return new;
}

/* ---- Sizes -------------------------------------------------------------- */

static void push_size(struct sim_file *f)
{
    f->sizes = sim_grown(f->sizes, (f->n_sizes + 1) * sizeof *f->sizes);
    f->sizes[f->n_sizes++] = f->size;
    f->size_dirty = true;
}

static void settle_size(struct sim_file *f)
{
    f->sizes[0] = f->size;
    f->n_sizes = 1;
    f->size_dirty = false;
}

struct sim_file *sim_file_new(uint64_t ino, uint32_t mode, uint64_t *counter)
{
    struct sim_file *f = calloc(1, sizeof *f);
    assert_non_null(f);
    *f = (struct sim_file){.ino = ino,
                           .mode = mode,
                           .refs = 1,
                           .locked_by = -1,
                           .shared = -1,
                           .counter = counter};
    push_size(f);
    settle_size(f);
    return f;
}

/* ---- The page cache ----------------------------------------------------- */

static size_t page_tail(uint64_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (size_t)(-size & (page - 1));
}

/* On the heap everything behind the end is zero. In the last page of a mapping
 * there may be rubbish, which must not become part of the file. */
static void set_size(struct sim_file *f, uint64_t size)
{
    assert_true(size <= SIM_FILE_MAX);
    if (f->shared >= 0) {
        if (size > f->size) memset(f->now + f->size, 0, page_tail(f->size));
        assert_int_equal(ftruncate(f->shared, (off_t)size), 0);
    } else if (size > f->cap) {
        size_t cap = sectors_for(size + size / 2) * SIM_SECTOR;
        f->now = sim_grown(f->now, cap);
        memset(f->now + f->cap, 0, cap - f->cap);
        f->cap = cap;
    } else if (size < f->size) {
        memset(f->now + size, 0, f->size - size);
    }
    if (f->shadow) {
        f->shadow = sim_grown(f->shadow, size);
        if (size > f->size) memset(f->shadow + f->size, 0, size - f->size);
    }
    *f->counter += size - f->size;
    f->size = size;
}

/* Memory that can be mapped several times. What is given back is kept with its
 * pages for the next one: a test opens thousands of disks of the same size, and
 * getting zeroed pages for each was most of its time. */
static struct spare {
    int fd;
    uint8_t *view;
    uint64_t size;
} spares[8];
static size_t n_spares;

static struct spare new_memory(void)
{
    if (n_spares) return spares[--n_spares];
    struct spare m = {.fd = memfd_create("sim_file", MFD_CLOEXEC)};
    assert_true(m.fd >= 0);
    void *at =
        mmap(NULL, SIM_FILE_MAX, PROT_READ | PROT_WRITE, MAP_SHARED, m.fd, 0);
    assert_ptr_not_equal(at, MAP_FAILED);
    m.view = at;
    return m;
}

static void give_back(struct spare m)
{
    memset(m.view + m.size, 0, page_tail(m.size));
    if (n_spares < sizeof spares / sizeof *spares) {
        spares[n_spares++] = m;
        return;
    }
    munmap(m.view, SIM_FILE_MAX);
    close(m.fd);
}

/* From the heap to memory that can be mapped. */
static void share(struct sim_file *f)
{
    if (f->shared >= 0) return;
    struct spare m = new_memory();
    if (m.size != f->size) assert_int_equal(ftruncate(m.fd, (off_t)f->size), 0);
    /* Not by memcpy: this is one call instead of a fault for each page. */
    for (uint64_t done = 0; done < f->size;) {
        ssize_t n = pwrite(m.fd, f->now + done, f->size - done, (off_t)done);
        assert_true(n > 0);
        done += (uint64_t)n;
    }
    free(f->now);
    f->now = m.view;
    f->shared = m.fd;
    f->cap = 0;
}

static size_t bytes_in_sector(const struct sim_file *f, size_t sector)
{
    uint64_t start = (uint64_t)sector * SIM_SECTOR;
    uint64_t left = f->size > start ? f->size - start : 0;
    return left < SIM_SECTOR ? (size_t)left : SIM_SECTOR;
}

/* ---- Versions ----------------------------------------------------------- */

static void drop_sector(struct sim_file *f, size_t sector)
{
    if (!f->sectors[sector]) return;
    free(f->sectors[sector]->versions);
    free(f->sectors[sector]);
    f->sectors[sector] = NULL;
}

/* A version as found in `from`, the page cache or its shadow. */
static void push_version(struct sim_file *f, size_t sector, const uint8_t *from,
                         bool stored)
{
    struct sim_sector *s = f->sectors[sector];
    struct sim_version v = {.stored = stored};
    size_t len = bytes_in_sector(f, sector);
    if (len) memcpy(v.bytes, from + sector * SIM_SECTOR, len);
    if (s->n && memcmp(s->versions[s->n - 1].bytes, v.bytes, SIM_SECTOR) == 0)
        return;
    if (s->n == SIM_VERSIONS) {
        size_t gone = 1 + test_mix(f->ino + sector + v.bytes[0]) % (s->n - 2);
        memmove(s->versions + gone, s->versions + gone + 1,
                (s->n - gone - 1) * sizeof v);
        s->n--;
    }
    s->versions = sim_grown(s->versions, (s->n + 1) * sizeof v);
    s->versions[s->n++] = v;
}

/* Start a list with what is there now, before it changes. */
static void before_change(struct sim_file *f, size_t sector,
                          const uint8_t *from)
{
    if (sector >= f->n_sectors) {
        size_t n = sector + sector / 2 + 8;
        f->sectors = sim_grown(f->sectors, n * sizeof *f->sectors);
        for (size_t i = f->n_sectors; i < n; i++)
            f->sectors[i] = NULL;
        f->n_sectors = n;
    }
    if (f->sectors[sector]) return;
    f->sectors[sector] = calloc(1, sizeof *f->sectors[sector]);
    assert_non_null(f->sectors[sector]);
    push_version(f, sector, from, false);
}

static void after_change(struct sim_file *f, size_t sector, bool stored)
{
    push_version(f, sector, f->now, stored);
    f->sectors[sector]->dirty = true;
    size_t len = bytes_in_sector(f, sector), at = sector * SIM_SECTOR;
    if (f->shadow && len) memcpy(f->shadow + at, f->now + at, len);
}

void sim_file_write(struct sim_file *f, const void *buf, size_t len,
                    uint64_t offset)
{
    if (len == 0) return;
    uint64_t end = offset + len;
    if (end > f->size) {
        set_size(f, end);
        push_size(f);
    }
    size_t first = (size_t)(offset / SIM_SECTOR), last = sectors_for(end);
    for (size_t i = first; i < last; i++)
        before_change(f, i, f->now);
    memcpy(f->now + offset, buf, len);
    for (size_t i = first; i < last; i++)
        after_change(f, i, false);
}

void sim_file_resize(struct sim_file *f, uint64_t size)
{
    if (size == f->size) return;
    size_t last = sectors_for(f->size);
    size_t first = size < f->size ? (size_t)(size / SIM_SECTOR) : last;
    for (size_t i = first; i < last; i++)
        before_change(f, i, f->now);
    set_size(f, size);
    for (size_t i = first; i < last; i++)
        after_change(f, i, false);
    push_size(f);
}

void sim_file_observe(struct sim_file *f)
{
    if (!f->shadow) return;
    for (size_t i = 0; i < sectors_for(f->size); i++) {
        size_t at = i * SIM_SECTOR;
        if (memcmp(f->now + at, f->shadow + at, bytes_in_sector(f, i)) == 0)
            continue;
        before_change(f, i, f->shadow);
        after_change(f, i, true);
    }
}

/* ---- Durable ------------------------------------------------------------ */

void sim_file_sync_range(struct sim_file *f, uint64_t from, uint64_t to,
                         bool failed)
{
    size_t end = sectors_for(to);
    if (end > f->n_sectors) end = f->n_sectors;
    for (size_t i = (size_t)(from / SIM_SECTOR); i < end; i++) {
        if (!f->sectors[i] || !f->sectors[i]->dirty) continue;
        if (failed)
            f->sectors[i]->dirty = false;
        else
            drop_sector(f, i);
    }
}

void sim_file_sync(struct sim_file *f, bool failed)
{
    sim_file_sync_range(f, 0, SIM_FILE_MAX, failed);
    if (failed)
        f->size_dirty = false;
    else if (f->size_dirty)
        settle_size(f);
}

bool sim_file_durable(const struct sim_file *f)
{
    for (size_t i = 0; i < f->n_sectors; i++)
        if (f->sectors[i]) return false;
    return f->n_sizes == 1;
}

/* ---- Mappings ----------------------------------------------------------- */

void *sim_file_map(struct sim_file *f, size_t len, enum seen_map_mode mode)
{
    share(f);
    int access = mode == SEEN_MAP_READ ? PROT_READ : PROT_READ | PROT_WRITE;
    int sharing = mode == SEEN_MAP_PRIVATE ? MAP_PRIVATE : MAP_SHARED;
    void *at = mmap(NULL, len, access, sharing, f->shared, 0);
    assert_ptr_not_equal(at, MAP_FAILED);
    if (mode == SEEN_MAP_WRITE && f->writable_maps++ == 0) {
        f->shadow = sim_grown(NULL, f->size);
        memcpy(f->shadow, f->now, f->size);
    }
    return at;
}

void sim_file_unmap(struct sim_file *f, void *at, size_t len,
                    enum seen_map_mode mode)
{
    sim_file_observe(f);
    assert_int_equal(munmap(at, len), 0);
    if (mode == SEEN_MAP_WRITE && --f->writable_maps == 0) {
        free(f->shadow);
        f->shadow = NULL;
    }
}

/* ---- Copies and the end ------------------------------------------------- */

struct sim_file *sim_file_ref(struct sim_file *f)
{
    f->refs++;
    return f;
}

void sim_file_unref(struct sim_file *f)
{
    if (--f->refs > 0) return;
    *f->counter -= f->size;
    for (size_t i = 0; i < f->n_sectors; i++)
        drop_sector(f, i);
    free(f->sectors);
    free(f->sizes);
    free(f->shadow);
    if (f->shared >= 0)
        give_back((struct spare){f->shared, f->now, f->size});
    else
        free(f->now);
    free(f);
}

/* The same bytes up to `size`, all of them durable. */
static struct sim_file *durable_copy(const struct sim_file *f, uint64_t size,
                                     uint64_t *counter)
{
    struct sim_file *copy = sim_file_new(f->ino, f->mode, counter);
    set_size(copy, size);
    settle_size(copy);
    size_t len = (size_t)(size < f->size ? size : f->size);
    if (len) memcpy(copy->now, f->now, len);
    return copy;
}

static struct sim_sector *copy_sector(const struct sim_sector *s)
{
    struct sim_sector *copy = sim_grown(NULL, sizeof *copy);
    *copy = *s;
    copy->versions = sim_grown(NULL, s->n * sizeof *s->versions);
    memcpy(copy->versions, s->versions, s->n * sizeof *s->versions);
    return copy;
}

struct sim_file *sim_file_copy(const struct sim_file *f, uint64_t *counter)
{
    struct sim_file *copy = durable_copy(f, f->size, counter);
    copy->sectors = sim_grown(NULL, f->n_sectors * sizeof *f->sectors);
    copy->n_sectors = f->n_sectors;
    for (size_t i = 0; i < f->n_sectors; i++)
        copy->sectors[i] = f->sectors[i] ? copy_sector(f->sectors[i]) : NULL;
    copy->sizes = sim_grown(copy->sizes, f->n_sizes * sizeof *f->sizes);
    memcpy(copy->sizes, f->sizes, f->n_sizes * sizeof *f->sizes);
    copy->n_sizes = f->n_sizes;
    copy->size_dirty = f->size_dirty;
    return copy;
}

/* One of the sizes since the last sync, or on the way to it. */
static uint64_t draw_size(const struct sim_file *f, struct test_rng *r)
{
    size_t i = (size_t)test_below(r, f->n_sizes);
    uint64_t size = f->sizes[i], before = i ? f->sizes[i - 1] : size;
    if (size <= before || test_below(r, 2) == 0) return size;
    uint64_t part = before + test_below(r, size - before);
    part -= part % SIM_SECTOR;
    return part > before ? part : before;
}

/* Any version; one that was stored word by word may have arrived in part. */
static void draw_version(const struct sim_sector *s, struct test_rng *r,
                         uint8_t out[SIM_SECTOR])
{
    size_t i = (size_t)test_below(r, s->n);
    memcpy(out, s->versions[i].bytes, SIM_SECTOR);
    if (!s->versions[i].stored || test_below(r, 4) != 0) return;
    uint64_t older = test_next(r);
    for (size_t word = 0; word < SIM_SECTOR / 8; word++)
        if (older >> word & 1)
            memcpy(out + 8 * word, s->versions[i - 1].bytes + 8 * word, 8);
}

struct sim_file *sim_file_after_power_loss(const struct sim_file *f,
                                           struct test_rng *r,
                                           uint64_t *counter)
{
    /* All old and all new are as likely as all mixtures together: in a file
     * with many changes independent draws would never give them. */
    uint64_t style = test_below(r, 4);
    bool all_old = style == 0, all_new = style == 1;

    struct sim_file *disk = durable_copy(f, draw_size(f, r), counter);
    size_t n = all_new ? 0 : sectors_for(disk->size);
    for (size_t i = 0; i < n && i < f->n_sectors; i++) {
        const struct sim_sector *s = f->sectors[i];
        if (!s) continue;
        uint8_t bytes[SIM_SECTOR];
        if (all_old)
            memcpy(bytes, s->versions[0].bytes, SIM_SECTOR);
        else
            draw_version(s, r, bytes);
        memcpy(disk->now + i * SIM_SECTOR, bytes, bytes_in_sector(disk, i));
    }
    return disk;
}
