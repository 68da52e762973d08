/* test_file_place.c - filter files and what lies beside them, on the real disk:
 * links, permissions, owners, holes, what a dead program has left. */
#define _GNU_SOURCE /* fallocate and its flags, setresuid */

#include "seen_file.h"

#include "helpers/keys.h"
#include "helpers/scratch.h"
#include "store/io.h"

#include <errno.h>
#include <glob.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY 65534

/* Changed in place, beside, and beside with a secret. */
static const seen_spec specs[] = {
    {.kind = SEEN_BLOCKED, .items = 3000, .fpp = 0.01},
    {.kind = SEEN_CUCKOO, .items = 3000, .fpp = 0.01},
    {.kind = SEEN_SET, .flags = SEEN_KEYED, .secret = test_secret},
};

#define SPECS (sizeof specs / sizeof *specs)

/* A name in the scratch directory, good until eight others were asked for. */
static const char *in(const char *name)
{
    static char names[8][600];
    static unsigned at;
    char *to = names[at++ % 8];
    snprintf(to, sizeof names[0], "%s/%s", test_scratch(), name);
    return to;
}

static unsigned mode_of(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 07777;
}

/* The only one that matches: segments are named by numbers. */
static struct stat only(const char *pattern)
{
    glob_t found;
    struct stat st;
    assert_int_equal(glob(in(pattern), 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 1);
    assert_int_equal(lstat(found.gl_pathv[0], &st), 0);
    globfree(&found);
    return st;
}

static seen_file *open_at(const char *path, const seen_spec *create)
{
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    seen_file *s = NULL;
    seen_file_options o = {.mode = SEEN_DURABLE, .create = create};
    if (seen_file_open(&s, path, &o, &outcome, &error) != SEEN_OK)
        fail_msg("%s: %s", path, error.text);
    return s;
}

static void add(seen_file *s, uint64_t first, size_t n)
{
    struct test_batch b = test_batch_new(first, n);
    assert_int_equal(seen_file_add_many(s, seen_keys_of(b.keys, n), NULL, NULL),
                     SEEN_OK);
    test_batch_free(&b);
}

static void make(const char *path, const seen_spec *spec)
{
    seen_file *s = open_at(path, spec);
    add(s, 0, 100);
    assert_int_equal(seen_file_close(s, NULL), SEEN_OK);
}

static void assert_holds(const char *path, uint64_t n)
{
    seen_file *s = NULL;
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    if (seen_file_open(&s, path, NULL, &outcome, &error) != SEEN_OK)
        fail_msg("%s: %s", path, error.text);
    assert_int_equal(test_count_maybe(seen_file_filter(s), 0, n), n);
    seen_file_close(s, NULL);
    assert_int_equal(seen_file_verify(path, &outcome, &error), SEEN_OK);
}

static bool is_link(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

static bool is_there(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

static void clear(void)
{
    assert_int_equal(test_scratch_remove(), 0);
    assert_non_null(test_scratch());
}

/* ---- Links -------------------------------------------------------------- */

static void a_link_stays_and_its_file_changes(void **state)
{
    (void)state;
    for (size_t i = 0; i < SPECS; i++) {
        assert_int_equal(mkdir(in("real"), 0777), 0);
        assert_int_equal(mkdir(in("links"), 0777), 0);
        make(in("real/f"), &specs[i]);
        assert_int_equal(symlink("../real/f", in("links/one")), 0);
        assert_int_equal(symlink("links/one", in("two")), 0);
        assert_int_equal(symlink("real", in("directory")), 0);

        seen_file *s = open_at(in("two"), NULL), *other;
        add(s, 100, 100);
        /* Two names, one writer, and readers who see the journal. */
        seen_file_options o = {.mode = SEEN_WRITE};
        assert_int_equal(seen_file_open(&other, in("real/f"), &o, NULL, NULL),
                         SEEN_BUSY);
        only("real/f.journal-*");
        assert_holds(in("directory/f"), 200);
        assert_int_equal(seen_file_sync(s, NULL), SEEN_OK);
        add(s, 200, 100);
        assert_int_equal(seen_file_close(s, NULL), SEEN_OK);
        assert_true(is_link(in("two")) && is_link(in("links/one")));
        assert_holds(in("real/f"), 300);
        assert_holds(in("two"), 300);

        s = open_at(in("directory/f"), NULL);
        add(s, 300, 100);
        assert_int_equal(seen_file_close(s, NULL), SEEN_OK);
        assert_holds(in("links/one"), 400);
        clear();
    }
}

static void a_link_to_nothing_yet_leads_to_what_is_made(void **state)
{
    (void)state;
    for (size_t i = 0; i < SPECS; i++) {
        assert_int_equal(mkdir(in("real"), 0777), 0);
        assert_int_equal(symlink("real/f", in("link")), 0);
        make(in("link"), &specs[i]);
        assert_true(is_link(in("link")) && !is_link(in("real/f")));
        assert_holds(in("real/f"), 100);
        clear();
    }
    assert_int_equal(symlink("loop", in("loop")), 0);
    seen_file *s;
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    seen_file_options o = {.mode = SEEN_WRITE, .create = specs};
    assert_int_equal(seen_file_open(&s, in("loop"), &o, &outcome, &error),
                     SEEN_IO);
    assert_non_null(strstr(error.text, strerror(ELOOP)));
    clear();
}

static void saving_through_a_link_keeps_it(void **state)
{
    (void)state;
    seen_filter *f;
    assert_int_equal(seen_new(&f, &specs[1], NULL), SEEN_OK);
    assert_int_equal(symlink("real", in("link")), 0);
    assert_int_equal(seen_file_save(in("link"), f, 0, NULL, NULL), SEEN_OK);
    assert_int_equal(seen_file_save(in("link"), f, 0, NULL, NULL), SEEN_OK);
    assert_true(is_link(in("link")) && !is_link(in("real")));
    assert_int_equal(seen_file_write(in("link"), "bytes", 5, NULL, NULL),
                     SEEN_OK);
    assert_true(is_link(in("link")) && !is_link(in("real")));
    struct stat st;
    assert_int_equal(stat(in("real"), &st), 0);
    assert_int_equal(st.st_size, 5);
    seen_free(f);
    clear();
}

/* A daemon goes to / when it has opened its files. */
static void another_directory_does_not_matter(void **state)
{
    (void)state;
    char before[4096];
    assert_non_null(getcwd(before, sizeof before));
    for (size_t i = 0; i < SPECS; i++) {
        assert_int_equal(mkdir(in("a"), 0777), 0);
        assert_int_equal(mkdir(in("b"), 0777), 0);
        assert_int_equal(chdir(in("a")), 0);
        seen_file *s = open_at("f", &specs[i]);
        add(s, 0, 100);
        assert_int_equal(chdir(in("b")), 0);
        assert_int_equal(seen_file_sync(s, NULL), SEEN_OK);
        add(s, 100, 100);
        assert_int_equal(seen_file_close(s, NULL), SEEN_OK);
        assert_holds(in("a/f"), 200);
        assert_int_equal(rmdir(in("b")), 0); /* nothing is in it */
        assert_int_equal(chdir(before), 0);
        clear();
    }
}

static void a_file_of_two_names_is_not_changed(void **state)
{
    (void)state;
    for (size_t i = 0; i < SPECS; i++) {
        make(in("f"), &specs[i]);
        assert_int_equal(link(in("f"), in("g")), 0);
        seen_file *s;
        seen_outcome outcome = {.size = sizeof outcome};
        seen_error error = {0};
        seen_file_options o = {.mode = SEEN_WRITE};
        assert_int_equal(seen_file_open(&s, in("g"), &o, &outcome, &error),
                         SEEN_INVALID);
        assert_non_null(strstr(error.text, "2 names"));
        assert_holds(in("f"), 100);
        assert_holds(in("g"), 100);
        assert_int_equal(unlink(in("g")), 0);
        s = open_at(in("f"), NULL);
        add(s, 100, 100);
        assert_int_equal(seen_file_close(s, NULL), SEEN_OK);
        clear();
    }
}

/* ---- Permissions -------------------------------------------------------- */

/* An empty file that a stranger may read and write, and keeps open. */
static int plant(const char *name)
{
    int fd = open(in(name), O_RDWR | O_CREAT | O_EXCL, 0666);
    assert_true(fd >= 0);
    assert_int_equal(fchmod(fd, 0666), 0);
    return fd;
}

/* It has gone, and nothing was written to it. */
static void assert_untouched(int fd)
{
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_size, 0);
    assert_int_equal(st.st_nlink, 0);
    close(fd);
}

static void a_journal_is_as_open_as_its_file(void **state)
{
    (void)state;
    static const mode_t modes[] = {0600, 0640, 0664, 0666};
    for (size_t i = 0; i < SPECS; i++)
        for (size_t m = 0; m < 4; m++) {
            make(in("f"), &specs[i]);
            assert_int_equal(chmod(in("f"), modes[m]), 0);
            /* What is in the way of a segment is not adopted: of the first,
             * which is removed before, of the next, or of what becomes it. */
            int first = plant("f.journal-0000000000000002");
            mode_t before = umask(m % 2 ? 077 : 0);
            seen_file *s = open_at(in("f"), NULL);
            add(s, 100, 100);
            assert_int_equal(only("f.journal-*").st_mode & 07777, modes[m]);
            int next = plant("f.journal-0000000000000003");
            int beside = plant("f.journal-0000000000000003.seen-new");
            assert_int_equal(seen_file_sync(s, NULL), SEEN_OK);
            add(s, 200, 100);
            assert_int_equal(only("f.journal-*").st_mode & 07777, modes[m]);
            assert_int_equal(mode_of(in("f")), modes[m]);
            assert_int_equal(seen_file_close(s, NULL), SEEN_OK);
            assert_int_equal(mode_of(in("f")), modes[m]);
            umask(before);
            assert_untouched(first);
            assert_untouched(next);
            assert_untouched(beside);
            clear();
        }
}

static void a_new_file_with_a_secret_is_its_makers(void **state)
{
    (void)state;
    mode_t before = umask(0);
    seen_file *s = open_at(in("f"), &specs[2]);
    assert_int_equal(mode_of(in("f")), 0600);
    assert_int_equal(only("f.journal-*").st_mode & 07777, 0600);
    assert_int_equal(seen_file_close(s, NULL), SEEN_OK);
    make(in("g"), &specs[1]);
    assert_int_equal(mode_of(in("g")), 0666); /* as the umask has it */
    umask(before);
    clear();
}

/* Whoever has the old one open would read the secret. */
static void what_a_dead_program_left_is_not_written_to(void **state)
{
    (void)state;
    seen_filter *f;
    assert_int_equal(seen_new(&f, &specs[2], NULL), SEEN_OK);
    for (int there = 0; there < 2; there++) {
        int stale = open(in("f.seen-new"), O_RDWR | O_CREAT, 0666);
        assert_true(stale >= 0);
        assert_int_equal(fchmod(stale, 0666), 0);
        assert_int_equal(write(stale, "old", 3), 3);
        assert_int_equal(seen_file_save(in("f"), f, 0, NULL, NULL), SEEN_OK);
        assert_int_equal(mode_of(in("f")), 0600);
        assert_false(is_there(in("f.seen-new")));
        struct stat st;
        assert_int_equal(fstat(stale, &st), 0);
        assert_int_equal(st.st_size, 3);
        assert_int_equal(st.st_nlink, 0);
        close(stale);
    }
    seen_free(f);
    clear();
}

/* Whoever writes it has it locked. */
static void what_a_living_program_writes_is_left_to_it(void **state)
{
    (void)state;
    seen_filter *f;
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    assert_int_equal(seen_new(&f, &specs[1], NULL), SEEN_OK);
    for (int there = 0; there < 2; there++) {
        int writer = plant("f.seen-new");
        assert_int_equal(flock(writer, LOCK_EX | LOCK_NB), 0);
        assert_int_equal(write(writer, "half", 4), 4);
        assert_int_equal(seen_file_save(in("f"), f, 0, &outcome, &error),
                         SEEN_BUSY);
        assert_non_null(strstr(error.text, "another program is writing"));
        struct stat st;
        assert_int_equal(fstat(writer, &st), 0);
        assert_int_equal(st.st_size, 4);
        assert_int_equal(st.st_nlink, 1);
        assert_int_equal(is_there(in("f")), there);
        close(writer);
        assert_int_equal(seen_file_save(in("f"), f, 0, NULL, NULL), SEEN_OK);
        assert_false(is_there(in("f.seen-new")));
    }
    seen_free(f);
    clear();
}

static void what_is_no_file_of_ours_is_in_the_way(void **state)
{
    (void)state;
    seen_filter *f;
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    assert_int_equal(seen_new(&f, &specs[1], NULL), SEEN_OK);
    assert_int_equal(seen_file_write(in("precious"), "bytes", 5, NULL, NULL),
                     SEEN_OK);
    for (int what = 0; what < 3; what++) {
        const char *beside = in("f.seen-new");
        int made = what == 0   ? symlink("precious", beside)
                   : what == 1 ? mkfifo(beside, 0666)
                               : mkdir(beside, 0777);
        assert_int_equal(made, 0);
        assert_int_equal(seen_file_save(in("f"), f, 0, &outcome, &error),
                         SEEN_IO);
        assert_non_null(strstr(error.text, "f.seen-new is in the way"));
        assert_true(is_there(in("f.seen-new")) && !is_there(in("f")));
        assert_int_equal(remove(in("f.seen-new")), 0);
    }
    struct stat st;
    assert_int_equal(stat(in("precious"), &st), 0);
    assert_int_equal(st.st_size, 5);
    seen_free(f);
    clear();
}

/* ---- Owners ------------------------------------------------------------- */

static void root_leaves_a_file_to_its_owner(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        print_message("not root: owners are not tried\n");
        skip();
    }
    for (size_t i = 0; i < SPECS; i++) {
        make(in("f"), &specs[i]);
        assert_int_equal(chown(in("f"), NOBODY, 4711), 0);
        assert_int_equal(chmod(in("f"), 0640), 0);
        seen_file *s = open_at(in("f"), NULL);
        add(s, 100, 100);
        struct stat st = only("f.journal-*");
        assert_int_equal(st.st_uid, NOBODY);
        assert_int_equal(st.st_gid, 4711);
        assert_int_equal(st.st_mode & 07777, 0640);
        assert_int_equal(seen_file_close(s, NULL), SEEN_OK);
        seen_filter *f;
        for (int saved = 0; saved < 2; saved++) {
            st = only("f");
            assert_int_equal(st.st_uid, NOBODY);
            assert_int_equal(st.st_gid, 4711);
            assert_int_equal(st.st_mode & 07777, 0640);
            assert_int_equal(seen_new(&f, &specs[i], NULL), SEEN_OK);
            assert_int_equal(seen_file_save(in("f"), f, 0, NULL, NULL),
                             SEEN_OK);
            seen_free(f);
        }
        clear();
    }
}

/* In the child: as nobody, in one other group or in none. */
static int save_as_nobody(const seen_filter *f, const gid_t *group)
{
    if (setgroups(group != NULL, group) || setresgid(NOBODY, NOBODY, NOBODY) ||
        setresuid(NOBODY, NOBODY, NOBODY))
        return 10;
    return seen_file_save(in("f"), f, 0, NULL, NULL) == SEEN_OK ? 0 : 11;
}

/* The group of an ordinary user is not the one that was allowed to read; a
 * member of that group keeps it. */
static void who_cannot_keep_the_group_lets_none_in(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        print_message("not root: other users are not tried\n");
        skip();
    }
    seen_filter *f;
    const gid_t group = 4711;
    assert_int_equal(seen_new(&f, &specs[1], NULL), SEEN_OK);
    for (int member = 0; member < 2; member++) {
        assert_int_equal(chmod(test_scratch(), 0777), 0);
        make(in("f"), &specs[1]);
        assert_int_equal(chown(in("f"), 4711, group), 0);
        assert_int_equal(chmod(in("f"), 0664), 0);
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) _exit(save_as_nobody(f, member ? &group : NULL));
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        struct stat st = only("f");
        assert_int_equal(st.st_uid, NOBODY);
        assert_int_equal(st.st_gid, member ? group : NOBODY);
        assert_int_equal(st.st_mode & 07777, member ? 0664 : 0644);
        clear();
    }
    seen_free(f);
}

/* Nobody will ever write to it. */
static void a_pipe_is_refused_not_waited_for(void **state)
{
    (void)state;
    seen_info info = {.size = sizeof info};
    seen_file *s;
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    assert_int_equal(mkfifo(in("f"), 0600), 0);
    alarm(60);
    assert_int_equal(seen_file_look(in("f"), &info, NULL, &error),
                     SEEN_INVALID);
    assert_string_equal(error.text,
                        "is not a regular file: expected a filter file");
    assert_int_equal(seen_file_verify(in("f"), &outcome, &error), SEEN_INVALID);
    for (int mode = SEEN_READ; mode <= SEEN_DURABLE; mode++)
        assert_int_equal(
            seen_file_open(&s, in("f"),
                           &(seen_file_options){.mode = (seen_mode)mode},
                           &outcome, &error),
            SEEN_INVALID);
    alarm(0);
    clear();
    for (int mode = SEEN_READ; mode <= SEEN_DURABLE; mode++) { /* a directory */
        seen_file_options o = {.mode = (seen_mode)mode};
        assert_int_equal(seen_file_open(&s, in("."), &o, &outcome, &error),
                         SEEN_INVALID);
        assert_string_equal(error.field, "path");
        assert_non_null(strstr(error.text, "expected a filter file"));
    }
}

/* ---- Holes -------------------------------------------------------------- */

static uint64_t allocated(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return (uint64_t)st.st_blocks * 512;
}

static bool punch(const char *path, uint64_t from, uint64_t len)
{
    int fd = open(path, O_RDWR);
    int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    bool done = fallocate(fd, mode, (off_t)from, (off_t)len) == 0;
    close(fd);
    return done;
}

static const struct seen_os *real_os;

static int cannot_promise(int fd, uint64_t len)
{
    (void)fd, (void)len;
    errno = EOPNOTSUPP;
    return -1;
}

/* As `cp --sparse=always` makes them. */
static void holes_are_filled_before_they_are_written_to(void **state)
{
    (void)state;
    const seen_spec large = {
        .kind = SEEN_BLOCKED, .items = 3000000, .fpp = 0.01};
    struct seen_os without = *seen_os;
    without.allocate = cannot_promise;
    real_os = seen_os;
    for (int i = 0; i < 2; i++) {
        make(in("f"), &large);
        struct stat st;
        assert_int_equal(stat(in("f"), &st), 0);
        uint64_t size = (uint64_t)st.st_size;
        seen_filter *empty;
        assert_int_equal(seen_new(&empty, &large, NULL), SEEN_OK);
        assert_int_equal(seen_file_save(in("f"), empty, 0, NULL, NULL),
                         SEEN_OK);
        seen_free(empty);
        if (!punch(in("f"), 65536, size - 65536 - 4096) ||
            allocated(in("f")) > size / 2) {
            print_message("no holes can be made here: not tried\n");
            clear();
            return;
        }
        if (i) seen_os = &without;
        seen_file *s = open_at(in("f"), NULL);
        seen_os = real_os;
        assert_true(allocated(in("f")) >= size);
        add(s, 0, 1000);
        assert_int_equal(seen_file_close(s, NULL), SEEN_OK);
        assert_holds(in("f"), 1000);
        clear();
    }
}

/* Written by hand, where the file system promises nothing. */
static void space_is_claimed_by_writing(void **state)
{
    (void)state;
    struct seen_os without = *seen_os;
    without.allocate = cannot_promise;
    real_os = seen_os;
    seen_os = &without;
    int fd = open(in("f"), O_RDWR | O_CREAT, 0666);
    uint8_t bytes[300];
    memset(bytes, 7, sizeof bytes);
    assert_int_equal(pwrite(fd, bytes, 100, 0), 100);
    assert_int_equal(seen_io_allocate(fd, 300), SEEN_OK);
    assert_int_equal(seen_io_allocate(fd, 200000), SEEN_OK);
    seen_os = real_os;
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_size, 200000);
    assert_true(st.st_blocks * 512 >= 200000);
    assert_int_equal(pread(fd, bytes, 300, 0), 300);
    for (size_t i = 0; i < 300; i++)
        assert_int_equal(bytes[i], i < 100 ? 7 : 0);
    close(fd);
    clear();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_link_stays_and_its_file_changes),
        cmocka_unit_test(a_link_to_nothing_yet_leads_to_what_is_made),
        cmocka_unit_test(saving_through_a_link_keeps_it),
        cmocka_unit_test(another_directory_does_not_matter),
        cmocka_unit_test(a_pipe_is_refused_not_waited_for),
        cmocka_unit_test(a_file_of_two_names_is_not_changed),
        cmocka_unit_test(a_journal_is_as_open_as_its_file),
        cmocka_unit_test(a_new_file_with_a_secret_is_its_makers),
        cmocka_unit_test(what_a_dead_program_left_is_not_written_to),
        cmocka_unit_test(what_a_living_program_writes_is_left_to_it),
        cmocka_unit_test(what_is_no_file_of_ours_is_in_the_way),
        cmocka_unit_test(root_leaves_a_file_to_its_owner),
        cmocka_unit_test(who_cannot_keep_the_group_lets_none_in),
        cmocka_unit_test(holes_are_filled_before_they_are_written_to),
        cmocka_unit_test(space_is_claimed_by_writing),
    };
    test_announce("file_place");
    return cmocka_run_group_tests(tests, test_scratch_begin, test_scratch_end);
}
