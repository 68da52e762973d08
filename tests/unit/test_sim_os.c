/* test_sim_os.c - the simulated machine loses what it may lose, each way it
 * may, and nothing else. */
#define _GNU_SOURCE /* fork, waitpid */

#include "helpers/sim_os.h"

#include "helpers/harness.h"
#include "helpers/sim_file.h"
#include "store/os.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define STATES 400 /* drawn where both outcomes must be seen */

static struct sim *sim;
static struct test_rng rng;

static int start(void **state)
{
    (void)state;
    rng = test_rng(0x51);
    sim = sim_new(test_seed());
    sim_mkdir(sim, "/d");
    assert_null(sim_install(sim));
    return 0;
}

static int end(void **state)
{
    (void)state;
    sim_uninstall();
    sim_free(sim);
    return 0;
}

/* ---- Small talk --------------------------------------------------------- */

static int open_file(const char *path)
{
    int fd = seen_os->open(path, O_RDWR | O_CREAT, 0644);
    assert_true(fd >= 0);
    return fd;
}

static void sync_dir(const char *path)
{
    int fd = seen_os->open(path, O_RDONLY | O_DIRECTORY, 0);
    assert_true(fd >= 0);
    assert_int_equal(seen_os->sync(fd), 0);
    assert_int_equal(seen_os->close(fd), 0);
}

static void fill(int fd, uint8_t with, size_t len, uint64_t offset)
{
    uint8_t *buf = malloc(len);
    assert_non_null(buf);
    memset(buf, with, len);
    assert_int_equal(seen_os->pwrite(fd, buf, len, offset), len);
    free(buf);
}

/* A file of n sectors of ones, all durable, open. */
static int durable_file(const char *path, size_t n)
{
    int fd = open_file(path);
    fill(fd, 1, n * SIM_SECTOR, 0);
    assert_int_equal(seen_os->sync(fd), 0);
    sync_dir("/d");
    assert_true(sim_all_durable(sim));
    return fd;
}

/* The one byte that a sector consists of. */
static uint8_t uniform(const uint8_t *bytes, size_t sector)
{
    bytes += sector * SIM_SECTOR;
    for (size_t i = 1; i < SIM_SECTOR; i++)
        assert_int_equal(bytes[i], bytes[0]);
    return bytes[0];
}

static struct sim *draw(void)
{
    return sim_after_power_loss(sim, test_next(&rng));
}

/* How often do STATES power losses leave a file with this byte there? */
static unsigned count_byte(const char *path, uint64_t offset, uint8_t byte)
{
    unsigned n = 0;
    for (int i = 0; i < STATES; i++) {
        struct sim *disk = draw();
        size_t len = 0;
        const uint8_t *bytes = sim_get(disk, path, &len);
        n += bytes && len > offset && bytes[offset] == byte;
        sim_free(disk);
    }
    return n;
}

static void assert_sometimes(unsigned n)
{
    assert_between(n, 1, STATES - 1);
}

/* ---- Contents ----------------------------------------------------------- */

static void synced_contents_survive(void **state)
{
    (void)state;
    int fd = durable_file("/d/f", 3);
    fill(fd, 2, 700, 100);
    assert_false(sim_all_durable(sim));
    assert_int_equal(seen_os->datasync(fd), 0);
    assert_true(sim_all_durable(sim));
    for (int i = 0; i < STATES; i++) {
        struct sim *disk = draw();
        size_t len = 0;
        const uint8_t *bytes = sim_get(disk, "/d/f", &len);
        assert_int_equal(len, 3 * SIM_SECTOR);
        for (size_t j = 0; j < len; j++)
            assert_int_equal(bytes[j], j >= 100 && j < 800 ? 2 : 1);
        sim_free(disk);
    }
}

static void sectors_survive_independently_in_any_version(void **state)
{
    (void)state;
    int fd = durable_file("/d/f", 2);
    fill(fd, 2, 2 * SIM_SECTOR, 0);
    fill(fd, 3, 2 * SIM_SECTOR, 0);
    unsigned seen[4][4] = {0};
    for (int i = 0; i < STATES; i++) {
        struct sim *disk = draw();
        size_t len = 0;
        const uint8_t *bytes = sim_get(disk, "/d/f", &len);
        assert_int_equal(len, 2 * SIM_SECTOR);
        seen[uniform(bytes, 0)][uniform(bytes, 1)]++;
        sim_free(disk);
    }
    for (int a = 1; a <= 3; a++)
        for (int b = 1; b <= 3; b++)
            assert_true(seen[a][b] > 0);
}

static void drawing_does_not_disturb(void **state)
{
    (void)state;
    int fd = durable_file("/d/f", 4);
    fill(fd, 2, 3 * SIM_SECTOR, 0);
    struct sim *one = sim_after_power_loss(sim, 7);
    for (int i = 0; i < 10; i++)
        sim_free(draw());
    struct sim *two = sim_after_power_loss(sim, 7);
    size_t len[2];
    const uint8_t *a = sim_get(one, "/d/f", &len[0]);
    const uint8_t *b = sim_get(two, "/d/f", &len[1]);
    assert_int_equal(len[0], len[1]);
    assert_memory_equal(a, b, len[0]);
    assert_true(sim_all_durable(one));
    sim_free(one);
    sim_free(two);

    uint8_t byte;
    assert_int_equal(seen_os->pread(fd, &byte, 1, 0), 1);
    assert_int_equal(byte, 2);
    assert_int_equal(seen_os->sync(fd), 0);
    assert_int_equal(count_byte("/d/f", 0, 2), STATES);
}

static void sizes_survive_separately(void **state)
{
    (void)state;
    int fd = durable_file("/d/f", 1);
    fill(fd, 2, 2 * SIM_SECTOR + 10, SIM_SECTOR);
    unsigned whole = 0, between = 0, old = 0, zeros = 0;
    for (int i = 0; i < STATES; i++) {
        struct sim *disk = draw();
        size_t len = 0;
        const uint8_t *bytes = sim_get(disk, "/d/f", &len);
        assert_int_equal(uniform(bytes, 0), 1);
        for (size_t j = 1; j < len / SIM_SECTOR; j++)
            zeros += uniform(bytes, j) == 0;
        old += len == SIM_SECTOR;
        whole += len == 3 * SIM_SECTOR + 10;
        between += len == 2 * SIM_SECTOR || len == 3 * SIM_SECTOR;
        sim_free(disk);
    }
    assert_int_equal(old + whole + between, STATES);
    assert_sometimes(old);
    assert_sometimes(whole);
    assert_sometimes(between);
    assert_true(zeros > 0);
}

static void a_cut_file_may_come_back(void **state)
{
    (void)state;
    int fd = durable_file("/d/f", 2);
    assert_int_equal(seen_os->truncate(fd, 10), 0);
    assert_sometimes(count_byte("/d/f", SIM_SECTOR, 1));
    assert_int_equal(seen_os->truncate(fd, 2 * SIM_SECTOR), 0);
    uint8_t byte = 9;
    assert_int_equal(seen_os->pread(fd, &byte, 1, 10), 1);
    assert_int_equal(byte, 0);
    assert_sometimes(count_byte("/d/f", SIM_SECTOR, 1));
    assert_int_equal(seen_os->sync(fd), 0);
    assert_int_equal(count_byte("/d/f", SIM_SECTOR, 1), 0);
    assert_int_equal(count_byte("/d/f", 10, 0), STATES);
    assert_int_equal(count_byte("/d/f", 9, 1), STATES);
}

static void a_failed_sync_is_not_made_good_by_the_next(void **state)
{
    (void)state;
    int fd = durable_file("/d/f", 2);
    fill(fd, 2, SIM_SECTOR, 0);
    fill(fd, 3, SIM_SECTOR, 2 * SIM_SECTOR);
    fault_arm(sim_faults(sim), 1, EIO, false);
    assert_int_equal(seen_os->sync(fd), -1);
    assert_int_equal(errno, EIO);
    assert_int_equal(seen_os->sync(fd), 0);
    assert_sometimes(count_byte("/d/f", 0, 2));
    assert_sometimes(count_byte("/d/f", 2 * SIM_SECTOR, 3));

    /* Only writing it again helps. */
    fill(fd, 2, 1, 0);
    fill(fd, 4, 1, 3 * SIM_SECTOR);
    assert_int_equal(seen_os->sync(fd), 0);
    assert_int_equal(count_byte("/d/f", 0, 2), STATES);
    assert_sometimes(count_byte("/d/f", 2 * SIM_SECTOR, 3));
    assert_int_equal(count_byte("/d/f", 3 * SIM_SECTOR, 4), STATES);
}

static void a_size_is_lost_by_a_failed_sync(void **state)
{
    (void)state;
    int fd = durable_file("/d/f", 1);
    assert_int_equal(seen_os->allocate(fd, 2 * SIM_SECTOR), 0);
    fault_arm(sim_faults(sim), 1, ENOSPC, false);
    assert_int_equal(seen_os->datasync(fd), -1);
    assert_int_equal(seen_os->datasync(fd), 0);
    assert_sometimes(count_byte("/d/f", SIM_SECTOR, 0));
    assert_int_equal(seen_os->allocate(fd, 3 * SIM_SECTOR), 0);
    assert_int_equal(seen_os->datasync(fd), 0);
    assert_int_equal(count_byte("/d/f", 2 * SIM_SECTOR, 0), STATES);
}

static void an_interrupted_sync_may_be_repeated(void **state)
{
    (void)state;
    int fd = durable_file("/d/f", 1);
    fill(fd, 2, SIM_SECTOR, 0);
    fault_arm(sim_faults(sim), 1, EINTR, false);
    assert_int_equal(seen_os->sync(fd), -1);
    assert_sometimes(count_byte("/d/f", 0, 2));
    assert_int_equal(seen_os->sync(fd), 0);
    assert_int_equal(count_byte("/d/f", 0, 2), STATES);
}

/* ---- Names -------------------------------------------------------------- */

static void a_synced_file_without_its_name_is_lost(void **state)
{
    (void)state;
    int fd = open_file("/d/f");
    fill(fd, 1, 10, 0);
    assert_int_equal(seen_os->sync(fd), 0);
    assert_sometimes(count_byte("/d/f", 0, 1));
    sync_dir("/");
    assert_sometimes(count_byte("/d/f", 0, 1));
    sync_dir("/d");
    assert_int_equal(count_byte("/d/f", 0, 1), STATES);
}

/* A prefix of the changes, or some of them: those of one name in order. */
static void names_survive_in_part(void **state)
{
    (void)state;
    assert_int_equal(seen_os->close(durable_file("/d/a", 1)), 0);
    assert_int_equal(seen_os->close(open_file("/d/b")), 0);
    assert_int_equal(seen_os->rename("/d/b", "/d/c"), 0);
    assert_int_equal(seen_os->unlink("/d/a"), 0);
    unsigned seen[6] = {0};
    for (int i = 0; i < STATES; i++) {
        struct sim *disk = draw();
        size_t len;
        bool a = sim_get(disk, "/d/a", &len), b = sim_get(disk, "/d/b", &len);
        bool c = sim_get(disk, "/d/c", &len);
        assert_false(b && c);
        seen[3 * !a + (c ? 2 : b ? 1 : 0)]++;
        sim_free(disk);
    }
    for (int i = 0; i < 6; i++)
        assert_true(seen[i] > 0);
}

static void replacing_needs_the_contents_first(void **state)
{
    (void)state;
    for (int synced = 0; synced < 2; synced++) {
        sim_put(sim, "/d/f", "old", 3);
        int fd = open_file("/d/new");
        fill(fd, 'n', 3, 0);
        if (synced) assert_int_equal(seen_os->sync(fd), 0);
        assert_int_equal(seen_os->close(fd), 0);
        assert_int_equal(seen_os->rename("/d/new", "/d/f"), 0);
        unsigned bad = 0;
        for (int i = 0; i < STATES; i++) {
            struct sim *disk = draw();
            size_t len = 0;
            const uint8_t *b = sim_get(disk, "/d/f", &len);
            assert_non_null(b);
            bad +=
                len != 3 || (memcmp(b, "old", 3) != 0 && memcmp(b, "nnn", 3));
            sim_free(disk);
        }
        if (synced)
            assert_int_equal(bad, 0);
        else
            assert_sometimes(bad);
    }
}

static void a_failed_sync_of_a_directory_needs_another_change(void **state)
{
    (void)state;
    assert_int_equal(seen_os->close(durable_file("/d/f", 1)), 0);
    assert_int_equal(seen_os->rename("/d/f", "/d/g"), 0);
    int fd = seen_os->open("/d", O_RDONLY, 0);
    fault_arm(sim_faults(sim), 1, EIO, false);
    assert_int_equal(seen_os->sync(fd), -1);
    assert_int_equal(seen_os->sync(fd), 0);
    assert_sometimes(count_byte("/d/g", 0, 1));
    assert_int_equal(seen_os->rename("/d/g", "/d/h"), 0);
    assert_int_equal(seen_os->sync(fd), 0);
    assert_int_equal(count_byte("/d/h", 0, 1), STATES);
}

static void killing_the_process_loses_nothing_yet(void **state)
{
    (void)state;
    int fd = durable_file("/d/f", 1);
    assert_int_equal(seen_os->lock(fd), 0);
    fill(fd, 2, 2 * SIM_SECTOR, 0);
    open_file("/d/g");
    struct sim *next = sim_after_kill(sim);
    assert_int_equal(sim_open_files(next), 0);
    assert_ptr_equal(sim_install(next), sim);
    fd = seen_os->open("/d/f", O_RDWR, 0);
    assert_true(fd >= 0);
    assert_int_equal(seen_os->lock(fd), 0);
    uint8_t buf[2 * SIM_SECTOR];
    assert_int_equal(seen_os->read(fd, buf, sizeof buf), sizeof buf);
    assert_int_equal(uniform(buf, 0), 2);
    assert_int_equal(uniform(buf, 1), 2);
    struct seen_stat st;
    assert_int_equal(seen_os->stat("/d/g", &st), 0);

    struct sim *old = sim;
    sim = next;
    assert_sometimes(count_byte("/d/f", 0, 2));
    assert_sometimes(count_byte("/d/f", SIM_SECTOR, 2));
    assert_int_equal(seen_os->sync(fd), 0);
    assert_int_equal(count_byte("/d/f", SIM_SECTOR, 2), STATES);
    sim = old;
    sim_install(sim);
    sim_free(next);
}

/* ---- Mappings ----------------------------------------------------------- */

static void mappings_and_calls_see_the_same_bytes(void **state)
{
    (void)state;
    int fd = durable_file("/d/f", 4);
    size_t len = 4 * SIM_SECTOR;
    uint8_t *w = seen_os->map(fd, len, SEEN_MAP_WRITE);
    const uint8_t *r = seen_os->map(fd, len, SEEN_MAP_READ);
    uint8_t *p = seen_os->map(fd, len, SEEN_MAP_PRIVATE);
    assert_non_null(w);
    assert_non_null(r);
    assert_non_null(p);
    assert_int_equal(sim_mappings(sim), 3);
    uint8_t byte;

    w[5] = 50;
    assert_int_equal(r[5], 50);
    assert_int_equal(seen_os->pread(fd, &byte, 1, 5), 1);
    assert_int_equal(byte, 50);

    fill(fd, 60, 1, 6);
    assert_int_equal(w[6], 60);
    assert_int_equal(r[6], 60);

    p[7] = 70;
    assert_int_equal(r[7], 1);

    /* The mapping outlives the file descriptor and the name. */
    assert_int_equal(seen_os->close(fd), 0);
    assert_int_equal(seen_os->unlink("/d/f"), 0);
    w[8] = 80;
    assert_int_equal(r[8], 80);
    assert_int_equal(seen_os->unmap(w, len), 0);
    assert_int_equal(seen_os->unmap((void *)r, len), 0);
    assert_int_equal(seen_os->unmap(p, len), 0);
    assert_int_equal(sim_mappings(sim), 0);
}

static void a_mapped_file_may_grow(void **state)
{
    (void)state;
    int fd = open_file("/d/f");
    fill(fd, 1, 10, 0);
    uint8_t *w = seen_os->map(fd, 8192, SEEN_MAP_WRITE);
    w[100] = 9; /* behind the end, so it never happened */
    assert_int_equal(seen_os->truncate(fd, 6000), 0);
    assert_int_equal(w[100], 0);
    w[5999] = 2;
    uint8_t byte;
    assert_int_equal(seen_os->pread(fd, &byte, 1, 5999), 1);
    assert_int_equal(byte, 2);
    assert_int_equal(seen_os->unmap(w, 8192), 0);
}

static void stores_are_durable_after_a_sync(void **state)
{
    (void)state;
    for (int way = 0; way < 3; way++) {
        int fd = durable_file("/d/f", 16);
        size_t len = 16 * SIM_SECTOR;
        uint8_t *w = seen_os->map(fd, len, SEEN_MAP_WRITE);
        memset(w, 2, len);
        assert_sometimes(count_byte("/d/f", 0, 2));
        if (way == 0)
            assert_int_equal(seen_os->msync(w, len), 0);
        else if (way == 1)
            assert_int_equal(seen_os->sync(fd), 0);
        else
            assert_int_equal(seen_os->msync(w, 4096), 0);
        assert_int_equal(count_byte("/d/f", 0, 2), STATES);
        unsigned rest = count_byte("/d/f", 4096, 2);
        if (way == 2)
            assert_sometimes(rest);
        else
            assert_int_equal(rest, STATES);
        assert_int_equal(seen_os->unmap(w, len), 0);
        assert_int_equal(seen_os->close(fd), 0);
    }
}

static void stores_are_remembered_after_the_unmapping(void **state)
{
    (void)state;
    int fd = durable_file("/d/f", 1);
    uint8_t *w = seen_os->map(fd, SIM_SECTOR, SEEN_MAP_WRITE);
    w[0] = 2;
    assert_int_equal(seen_os->unmap(w, SIM_SECTOR), 0);
    assert_sometimes(count_byte("/d/f", 0, 2));
    assert_int_equal(seen_os->sync(fd), 0);
    assert_int_equal(count_byte("/d/f", 0, 2), STATES);
}

/* 1, then 2 when a call looks, then 3: all three are possible, and 8 bytes of
 * one next to 8 bytes of the one before. */
static void stores_arrive_in_pieces(void **state)
{
    (void)state;
    int fd = durable_file("/d/f", 1);
    uint8_t *w = seen_os->map(fd, SIM_SECTOR, SEEN_MAP_WRITE);
    memset(w, 2, SIM_SECTOR);
    struct seen_stat st;
    assert_int_equal(seen_os->fstat(fd, &st), 0);
    memset(w, 3, SIM_SECTOR);
    unsigned seen[4] = {0}, torn = 0;
    for (int i = 0; i < STATES; i++) {
        struct sim *disk = draw();
        size_t len = 0;
        const uint8_t *bytes = sim_get(disk, "/d/f", &len);
        bool mixed = false;
        for (size_t j = 0; j < len; j++) {
            assert_between(bytes[j], 1, 3);
            assert_int_equal(bytes[j], bytes[j / 8 * 8]);
            mixed |= bytes[j] != bytes[0];
        }
        torn += mixed;
        if (!mixed) seen[bytes[0]]++;
        sim_free(disk);
    }
    assert_sometimes(torn);
    for (int i = 1; i <= 3; i++)
        assert_true(seen[i] > 0);
    assert_int_equal(seen_os->unmap(w, SIM_SECTOR), 0);
}

static void a_failed_msync_loses_its_range(void **state)
{
    (void)state;
    int fd = durable_file("/d/f", 16);
    size_t len = 16 * SIM_SECTOR;
    uint8_t *w = seen_os->map(fd, len, SEEN_MAP_WRITE);
    memset(w, 2, len);
    fault_arm(sim_faults(sim), 1, EIO, false);
    assert_int_equal(seen_os->msync(w, 4096), -1);
    assert_int_equal(seen_os->msync(w, len), 0);
    assert_int_equal(seen_os->sync(fd), 0);
    assert_sometimes(count_byte("/d/f", 0, 2));
    assert_int_equal(count_byte("/d/f", 4096, 2), STATES);
    assert_int_equal(seen_os->unmap(w, len), 0);
}

static void msync_does_not_keep_the_size(void **state)
{
    (void)state;
    int fd = durable_file("/d/f", 8);
    assert_int_equal(seen_os->allocate(fd, 8192), 0);
    uint8_t *w = seen_os->map(fd, 8192, SEEN_MAP_WRITE);
    w[8191] = 2;
    assert_int_equal(seen_os->msync(w, 8192), 0);
    assert_sometimes(count_byte("/d/f", 8191, 2));
    assert_int_equal(seen_os->datasync(fd), 0);
    assert_int_equal(count_byte("/d/f", 8191, 2), STATES);
    assert_int_equal(seen_os->unmap(w, 8192), 0);
}

/* ---- The calls themselves ----------------------------------------------- */

static int open_error(const char *path, int flags)
{
    errno = 0;
    assert_int_equal(seen_os->open(path, flags, 0600), -1);
    return errno;
}

static void open_follows_its_flags(void **state)
{
    (void)state;
    sim_put(sim, "/d/f", "abc", 3);
    assert_int_equal(open_error("/d/none", O_RDWR), ENOENT);
    assert_int_equal(open_error("/none/f", O_RDWR | O_CREAT), ENOENT);
    assert_int_equal(open_error("/d/f", O_RDWR | O_CREAT | O_EXCL), EEXIST);
    assert_int_equal(open_error("/d", O_RDWR), EISDIR);
    assert_int_equal(open_error("/d/f", O_RDONLY | O_DIRECTORY), ENOTDIR);

    int fd = seen_os->open("/d/f", O_RDONLY, 0);
    uint8_t buf[4];
    assert_int_equal(seen_os->write(fd, "x", 1), -1);
    assert_int_equal(errno, EBADF);
    assert_null(seen_os->map(fd, 3, SEEN_MAP_WRITE));
    assert_int_equal(errno, EACCES);
    assert_int_equal(seen_os->read(fd, buf, 2), 2);
    assert_int_equal(seen_os->read(fd, buf, 4), 1);
    assert_int_equal(seen_os->read(fd, buf, 4), 0);
    assert_int_equal(buf[0], 'c');

    int app = seen_os->open("/d/f", O_WRONLY | O_APPEND, 0);
    assert_int_equal(seen_os->write(app, "d", 1), 1);
    assert_int_equal(seen_os->read(fd, buf, 4), 1);
    assert_int_equal(buf[0], 'd');

    int cut = seen_os->open("/d/f", O_RDWR | O_TRUNC, 0);
    struct seen_stat one, two;
    assert_int_equal(seen_os->fstat(cut, &one), 0);
    assert_int_equal(seen_os->stat("/d/f", &two), 0);
    assert_int_equal(one.size, 0);
    assert_int_equal(one.inode, two.inode);
    assert_true(one.regular && !one.directory);
    assert_int_equal(seen_os->stat("/d", &two), 0);
    assert_true(two.directory && !two.regular);
    assert_int_equal(sim_open_files(sim), 3);
}

static void locks_belong_to_the_opening(void **state)
{
    (void)state;
    int a = open_file("/d/f"), b = open_file("/d/f");
    assert_int_equal(seen_os->lock(a), 0);
    assert_int_equal(seen_os->lock(a), 0);
    assert_int_equal(seen_os->lock(b), -1);
    assert_int_equal(errno, EWOULDBLOCK);
    assert_int_equal(seen_os->close(a), 0);
    assert_int_equal(seen_os->lock(b), 0);
    struct sim *disk = draw();
    sim_install(disk);
    assert_int_equal(seen_os->lock(open_file("/d/f")), 0);
    sim_install(sim);
    sim_free(disk);
}

struct found {
    unsigned n, f, sub, dots;
};

static bool find_names(void *ctx, const char *name)
{
    struct found *found = ctx;
    found->n++;
    found->f += name[0] == 'f';
    found->sub += strcmp(name, "sub") == 0;
    found->dots += name[0] == '.';
    return true;
}

static void list_gives_every_name(void **state)
{
    (void)state;
    sim_mkdir(sim, "/d/sub");
    for (char c = 'a'; c <= 'e'; c++) {
        char path[] = "/d/f?";
        path[4] = c;
        sim_put(sim, path, "", 0);
    }
    sim_put(sim, "/f", "", 0);
    assert_int_equal(seen_os->unlink("/d/fc"), 0);
    struct found found = {0};
    assert_int_equal(seen_os->list("/d/", find_names, &found), 0);
    assert_int_equal(found.f, 4);
    assert_int_equal(found.sub, 1);
    assert_int_equal(found.dots, 2);
    assert_int_equal(found.n, 7);
    assert_int_equal(seen_os->list("/none", find_names, &found), -1);
    assert_int_equal(errno, ENOENT);
}

static void shorts_and_full_disks(void **state)
{
    (void)state;
    int fd = open_file("f"); /* in "." */
    uint8_t buf[100] = {0};
    fault_arm_short(sim_faults(sim), 1, false);
    assert_between(seen_os->write(fd, buf, 100), 1, 99);
    assert_string_equal(sim_faults(sim)->call, "write");
    assert_int_equal(seen_os->pwrite(fd, buf, 100, 0), 100);

    sim_set_room(sim, 150);
    assert_int_equal(seen_os->pwrite(fd, buf, 100, 100), 50);
    assert_int_equal(seen_os->pwrite(fd, buf, 100, 150), -1);
    assert_int_equal(errno, ENOSPC);
    assert_int_equal(seen_os->allocate(fd, 151), -1);
    assert_int_equal(errno, ENOSPC);
    assert_int_equal(seen_os->pwrite(fd, buf, 100, 50), 100);
    assert_int_equal(seen_os->truncate(fd, 0), 0);
    assert_int_equal(seen_os->allocate(fd, 150), 0);
}

static void a_close_that_fails_has_closed(void **state)
{
    (void)state;
    int fd = open_file("/d/f");
    fault_arm(sim_faults(sim), 1, EIO, false);
    assert_int_equal(seen_os->close(fd), -1);
    assert_int_equal(sim_open_files(sim), 0);
}

struct watch {
    uint64_t calls;
    char last[16];
};

static void watch(void *ctx, const char *call)
{
    struct watch *w = ctx;
    w->calls++;
    snprintf(w->last, sizeof w->last, "%s", call);
    struct sim *disk = draw();
    assert_ptr_equal(sim_install(disk), sim);
    struct seen_stat st;
    (void)seen_os->stat("/d/f", &st); /* on the other one: not reported */
    sim_install(sim);
    (void)seen_os->stat("/d/f", &st);
    sim_free(disk);
}

static void the_hook_comes_before_each_call(void **state)
{
    (void)state;
    struct watch w = {0};
    sim_on_call(sim, watch, &w);
    int fd = open_file("/d/f");
    assert_string_equal(w.last, "open");
    fill(fd, 1, 10, 0);
    assert_string_equal(w.last, "pwrite");
    assert_int_equal(w.calls, 2);
    assert_int_equal(sim_calls(sim), 2);
    sim_on_call(sim, NULL, NULL);
    assert_int_equal(seen_os->close(fd), 0);
    assert_int_equal(w.calls, 2);
    assert_int_equal(sim_calls(sim), 3);
}

/* ---- Misuse ends the program -------------------------------------------- */

static void use_after_close(void)
{
    int fd = open_file("/d/f");
    seen_os->close(fd);
    seen_os->sync(fd);
}

static void close_a_real_file(void)
{
    seen_os->close(1);
}

static void unmap_twice(void)
{
    void *at = seen_os->map(durable_file("/d/f", 1), 100, SEEN_MAP_READ);
    seen_os->unmap(at, 100);
    seen_os->unmap(at, 100);
}

static void unmap_a_part(void)
{
    void *at = seen_os->map(durable_file("/d/f", 1), 100, SEEN_MAP_READ);
    seen_os->unmap(at, 50);
}

static void misuse_is_not_survived(void **state)
{
    (void)state;
    static void (*const misuses[])(void) = {use_after_close, close_a_real_file,
                                            unmap_twice, unmap_a_part};
    for (size_t i = 0; i < sizeof misuses / sizeof *misuses; i++) {
        fflush(NULL);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            signal(SIGABRT, SIG_DFL);
            fclose(stderr);
            misuses[i]();
            _exit(0);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    }
}

/* ---- Much at once ------------------------------------------------------- */

/* Random operations on one file next to a plain array; after each sync the
 * disk must hold the array, whatever happened before. */
static void random_work_is_durable_after_sync(void **state)
{
    (void)state;
    enum {
        MOST = 20000
    };
    static uint8_t model[MOST];
    memset(model, 0, sizeof model);
    size_t size = 0;
    int fd = open_file("/d/f");
    uint8_t *w = seen_os->map(fd, MOST, SEEN_MAP_WRITE);
    sync_dir("/d");
    uint64_t rounds = 3000 * test_scale();
    for (uint64_t i = 0; i < rounds; i++) {
        size_t at = (size_t)test_below(&rng, MOST - 1000);
        size_t len = 1 + (size_t)test_below(&rng, 1000);
        uint8_t with = (uint8_t)test_next(&rng);
        switch (test_below(&rng, 5)) {
        case 0:
            fill(fd, with, len, at);
            memset(model + at, with, len);
            if (at + len > size) size = at + len;
            break;
        case 1:
            if (at + len > size) break;
            memset(w + at, with, len);
            memset(model + at, with, len);
            break;
        case 2:
            if (test_below(&rng, 4) != 0) break;
            assert_int_equal(seen_os->truncate(fd, at), 0);
            if (at < size) memset(model + at, 0, size - at);
            size = at;
            break;
        case 3:
            assert_int_equal(seen_os->msync(w, MOST), 0);
            break;
        case 4: {
            assert_int_equal(seen_os->datasync(fd), 0);
            struct sim *disk = draw();
            size_t found = 0;
            const uint8_t *bytes = sim_get(disk, "/d/f", &found);
            assert_int_equal(found, size);
            assert_memory_equal(bytes, model, size);
            sim_free(disk);
            break;
        }
        }
        sim_free(draw());
    }
    assert_int_equal(seen_os->unmap(w, MOST), 0);
}

/* 20,000 states of a mapped file and a journal, opened and mapped again. */
static void states_are_cheap(void **state)
{
    (void)state;
    size_t len = 600 * SIM_SECTOR; /* 300 KiB */
    int fd = durable_file("/d/f", 600), journal = durable_file("/d/j", 100);
    uint8_t *w = seen_os->map(fd, len, SEEN_MAP_WRITE);
    for (int i = 0; i < 1000; i++)
        w[test_below(&rng, len)]++;
    fill(journal, 2, 5000, 100 * SIM_SECTOR);
    for (uint64_t i = 0; i < 2000 * test_scale(); i++) {
        struct sim *disk = draw();
        sim_install(disk);
        int again = seen_os->open("/d/f", O_RDWR, 0);
        const uint8_t *at = seen_os->map(again, len, SEEN_MAP_WRITE);
        assert_non_null(at);
        assert_int_equal(seen_os->unmap((void *)at, len), 0);
        sim_install(sim);
        sim_free(disk);
    }
    assert_int_equal(seen_os->unmap(w, len), 0);
}

#define simulated(test) cmocka_unit_test_setup_teardown(test, start, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        simulated(synced_contents_survive),
        simulated(sectors_survive_independently_in_any_version),
        simulated(drawing_does_not_disturb),
        simulated(sizes_survive_separately),
        simulated(a_cut_file_may_come_back),
        simulated(a_failed_sync_is_not_made_good_by_the_next),
        simulated(a_size_is_lost_by_a_failed_sync),
        simulated(an_interrupted_sync_may_be_repeated),
        simulated(a_synced_file_without_its_name_is_lost),
        simulated(names_survive_in_part),
        simulated(replacing_needs_the_contents_first),
        simulated(a_failed_sync_of_a_directory_needs_another_change),
        simulated(killing_the_process_loses_nothing_yet),
        simulated(mappings_and_calls_see_the_same_bytes),
        simulated(a_mapped_file_may_grow),
        simulated(stores_are_durable_after_a_sync),
        simulated(stores_are_remembered_after_the_unmapping),
        simulated(stores_arrive_in_pieces),
        simulated(a_failed_msync_loses_its_range),
        simulated(msync_does_not_keep_the_size),
        simulated(open_follows_its_flags),
        simulated(locks_belong_to_the_opening),
        simulated(list_gives_every_name),
        simulated(shorts_and_full_disks),
        simulated(a_close_that_fails_has_closed),
        simulated(the_hook_comes_before_each_call),
        simulated(misuse_is_not_survived),
        simulated(random_work_is_durable_after_sync),
        simulated(states_are_cheap),
    };
    test_announce("sim_os");
    return cmocka_run_group_tests_name("sim_os", tests, NULL, NULL);
}
