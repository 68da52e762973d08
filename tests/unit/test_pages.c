/*
 * test_pages.c - a data.mdb that was cut short: an error or the right answers,
 * never a signal, and never a store that has forgotten.
 */
#define _POSIX_C_SOURCE 200809L

#include "users/pages.h"

#include "seen_users.h"

#include "helpers/keys.h"
#include "helpers/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE  4096 /* no system that tests run on has smaller ones */
#define USERS 400

static const char *in(const char *dir, const char *name)
{
    static char names[4][600];
    static unsigned at;
    char *to = names[at++ % 4];
    snprintf(to, sizeof names[0], "%s/%s%s%s", test_scratch(), dir,
             *name ? "/" : "", name);
    return to;
}

/* ---- A store ------------------------------------------------------------ */

static seen_key name_of(uint64_t i, char buf[16])
{
    snprintf(buf, 16, "user%06llu", (unsigned long long)i);
    return (seen_key){buf, strlen(buf)};
}

static void mark_user(seen_users *u, uint64_t i, size_t n)
{
    char buf[16];
    struct test_batch b = test_batch_new(i << 32, n);
    assert_int_equal(seen_users_mark(u, name_of(i, buf), 1000,
                                     seen_keys_of(b.keys, n), NULL, NULL),
                     SEEN_OK);
    test_batch_free(&b);
}

/* Trees of several levels, large records in between, and at the end of the file
 * pages that are free. */
static void make_store(const char *dir)
{
    seen_users *u;
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    seen_policy policy = {
        .items = 5000, .generations = 4, .fpp = 0.001, .ttl_ms = 1000000};
    seen_users_options o = {
        .mode = SEEN_WRITE, .create = true, .policy = &policy};
    if (seen_users_open(&u, dir, &o, &outcome, &error) != SEEN_OK)
        fail_msg("%s", error.text);
    for (uint64_t i = 0; i < USERS; i++) {
        mark_user(u, i, i % 100 == 50 ? 5000 : 40);
        if (i % 100 == 99) assert_int_equal(seen_users_sync(u, NULL), SEEN_OK);
    }
    for (uint64_t i = USERS; i < USERS + 20; i++)
        mark_user(u, i, 3000);
    assert_int_equal(seen_users_sync(u, NULL), SEEN_OK);
    for (uint64_t i = USERS; i < USERS + 20; i++) {
        char buf[16];
        assert_int_equal(
            seen_users_forget_user(u, name_of(i, buf), 1000, NULL, NULL),
            SEEN_OK);
    }
    for (int i = 0; i < 3; i++)
        assert_int_equal(seen_users_sync(u, NULL), SEEN_OK);
    assert_int_equal(seen_users_close(u, NULL), SEEN_OK);
}

static uint8_t *read_whole(const char *path, size_t *len)
{
    struct stat st;
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0 && fstat(fd, &st) == 0);
    *len = (size_t)st.st_size;
    uint8_t *bytes = malloc(*len);
    assert_int_equal(read(fd, bytes, *len), *len);
    close(fd);
    return bytes;
}

static void write_whole(const char *path, const uint8_t *bytes, size_t len)
{
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len), len);
    close(fd);
}

/* ---- In a child, which a signal may end --------------------------------- */

enum outcome {
    RIGHT = 0,
    REFUSED = 1,
    WRONG = 2
};

static enum outcome ask_everybody(seen_users *u)
{
    for (uint64_t i = 0; i < USERS; i++) {
        char buf[16];
        bool answer[2] = {false, false};
        struct test_batch b = test_batch_new(i << 32, 2);
        seen_status status = seen_users_maybe_many(
            u, name_of(i, buf), 1000, seen_keys_of(b.keys, 2), answer, NULL);
        test_batch_free(&b);
        if (status != SEEN_OK) return REFUSED;
        if (!answer[0] || !answer[1]) return WRONG;
    }
    return RIGHT;
}

static enum outcome use_store(seen_mode mode)
{
    seen_users *u;
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    seen_users_options o = {.mode = mode, .create = mode != SEEN_READ};
    if (seen_users_open(&u, in("cut", ""), &o, &outcome, &error) != SEEN_OK)
        return error.text[0] ? REFUSED : WRONG;
    if (outcome.created) return WRONG;
    enum outcome what = ask_everybody(u);
    if (what == RIGHT && mode == SEEN_READ &&
        seen_users_backup(u, in("copy", ""), &error) != SEEN_OK)
        what = WRONG;
    if (what == RIGHT && mode != SEEN_READ) {
        char buf[16];
        seen_key item = {"more", 4};
        for (uint64_t i = 0; i < 50; i++)
            if (seen_users_mark(u, name_of(i, buf), 1000,
                                seen_keys_of(&item, 1), NULL, NULL))
                what = WRONG;
        if (seen_users_sync(u, NULL) != SEEN_OK) what = WRONG;
        if (what == RIGHT) what = ask_everybody(u);
    }
    return seen_users_close(u, NULL) == SEEN_OK ? what : WRONG;
}

static int in_child(seen_mode mode)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGBUS, SIG_DFL); /* not the test harness's */
        signal(SIGSEGV, SIG_DFL);
        signal(SIGABRT, SIG_DFL);
        _exit(use_store(mode));
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void remove_dir(const char *dir)
{
    static const char *const names[] = {"data.mdb", "lock.mdb", "seen.lock",
                                        "seen.journal-0000000000000001"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(in(dir, names[i]));
    char command[700]; /* later segments */
    snprintf(command, sizeof command, "rm -rf '%s'", in(dir, ""));
    if (access(in(dir, ""), F_OK) == 0) assert_int_equal(system(command), 0);
}

/* What came of a file of so many bytes. */
static enum outcome cut_to(const uint8_t *bytes, size_t len)
{
    enum outcome what = RIGHT;
    for (int mode = SEEN_READ; mode <= SEEN_WRITE; mode++) {
        assert_int_equal(mkdir(in("cut", ""), 0700), 0);
        write_whole(in("cut", "data.mdb"), bytes, len);
        int came = in_child((seen_mode)mode);
        if (came != RIGHT && came != REFUSED)
            fail_msg("cut to %zu bytes, mode %d: %d", len, mode, came);
        if (mode == SEEN_READ) what = (enum outcome)came;
        assert_int_equal(came, what); /* readers and writers agree */
        remove_dir("cut");
        remove_dir("copy");
    }
    return what;
}

static void a_file_cut_anywhere_is_an_error_or_right(void **state)
{
    (void)state;
    size_t len, right = 0, refused = 0;
    make_store(in("whole", ""));
    uint8_t *bytes = read_whole(in("whole", "data.mdb"), &len);
    assert_int_equal(len % PAGE, 0);
    assert_int_equal(cut_to(bytes, len), RIGHT);
    static const size_t odd[] = {0, 1, 100, PAGE / 2 + 1, PAGE - 1};
    for (size_t at = 0; at < len; at += PAGE) {
        enum outcome whole = cut_to(bytes, at);
        right += whole == RIGHT;
        refused += whole == REFUSED;
        size_t more = odd[1 + at / PAGE % 4];
        if (cut_to(bytes, at + more) != whole) fail_msg("%zu + %zu", at, more);
    }
    print_message("%zu pages: %zu cuts are refused, %zu take nothing away\n",
                  len / PAGE, refused, right);
    assert_true(refused > 20 && right > 5);
    free(bytes);
}

static void the_error_says_how_much_is_missing(void **state)
{
    (void)state;
    size_t len;
    uint8_t *bytes = read_whole(in("whole", "data.mdb"), &len);
    static const size_t lens[] = {0, 1, PAGE, 2 * PAGE, 5 * PAGE + 1};
    for (size_t i = 0; i < sizeof lens / sizeof *lens; i++) {
        char expected[100];
        seen_users *u;
        seen_outcome outcome = {.size = sizeof outcome};
        seen_error error = {0};
        assert_int_equal(mkdir(in("cut", ""), 0700), 0);
        write_whole(in("cut", "data.mdb"), bytes, lens[i]);
        assert_int_equal(
            seen_users_open(&u, in("cut", ""), NULL, &outcome, &error),
            SEEN_CORRUPT);
        snprintf(expected, sizeof expected,
                 "data.mdb: %zu bytes, expected at least ", lens[i]);
        assert_non_null(strstr(error.text, expected));
        assert_non_null(strstr(error.text, ": the copy is incomplete"));
        remove_dir("cut");
    }
    free(bytes);
}

/* After a transaction the file is as long as it says, whatever LMDB has written:
 * opening it is quick. */
static void writers_keep_the_file_long_enough(void **state)
{
    (void)state;
    size_t len, now = 0;
    uint8_t *bytes = read_whole(in("whole", "data.mdb"), &len);
    size_t cut = len;
    while (cut_to(bytes, cut - PAGE) == RIGHT)
        cut -= PAGE;
    assert_true(cut < len);
    assert_int_equal(mkdir(in("cut", ""), 0700), 0);
    write_whole(in("cut", "data.mdb"), bytes, cut);
    assert_int_equal(in_child(SEEN_WRITE), RIGHT);
    free(bytes);
    bytes = read_whole(in("cut", "data.mdb"), &now);
    assert_true(now >= len);
    free(bytes);
    remove_dir("cut");
}

/* Whatever the bytes are, the check comes to an end. */
static void damaged_files_are_walked_safely(void **state)
{
    (void)state;
    size_t len;
    struct test_rng rng = test_rng(test_seed());
    uint8_t *bytes = read_whole(in("whole", "data.mdb"), &len);
    uint8_t *bad = malloc(len);
    size_t refused = 0;
    for (int i = 0; i < 3000; i++) {
        size_t cut = len - PAGE * (1 + test_below(&rng, 20));
        memcpy(bad, bytes, len);
        for (uint64_t k = test_below(&rng, 200); k > 0; k--) {
            size_t page = PAGE * test_below(&rng, cut / PAGE);
            size_t at = test_below(&rng, test_below(&rng, 2) ? 64 : PAGE);
            bad[page + at] = (uint8_t)test_next(&rng);
        }
        write_whole(in("bad", ""), bad, cut);
        int fd = open(in("bad", ""), O_RDONLY);
        seen_outcome outcome = {.size = sizeof outcome};
        seen_error error = {0};
        seen_status status = seen_pages_check(fd, &error);
        assert_true(status == SEEN_OK || status == SEEN_CORRUPT);
        if (status == SEEN_CORRUPT) assert_string_not_equal(error.text, "");
        refused += status == SEEN_CORRUPT;
        close(fd);
    }
    print_message("%zu of 3000 were refused\n", refused);
    assert_true(refused > 100);
    free(bytes);
    free(bad);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_cut_anywhere_is_an_error_or_right),
        cmocka_unit_test(the_error_says_how_much_is_missing),
        cmocka_unit_test(writers_keep_the_file_long_enough),
        cmocka_unit_test(damaged_files_are_walked_safely),
    };
    test_announce("pages");
    test_scratch_in_memory();
    return cmocka_run_group_tests(tests, test_scratch_begin, test_scratch_end);
}
