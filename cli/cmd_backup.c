/* cmd_backup.c - seen backup: a copy of a store, while others work with it. */
#define _POSIX_C_SOURCE 200809L

#include "memory.h"
#include "options.h"
#include "output.h"
#include "progress.h"
#include "units.h"
#include "users.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

static struct {
    bool quiet, json;
} opt;

static const struct option options[] = {
    {0, "json", NULL, OPTION_FLAG, &opt.json, "what was done, as JSON"},
    QUIET_ROW(&opt.quiet),
    {0, NULL, NULL, OPTION_FLAG, NULL, NULL},
};

static void report(const char *from, const char *to)
{
    struct json j = {.to = stdout};
    if (opt.json) {
        json_open(&j, NULL, '{');
        json_text(&j, "store", from);
        json_text(&j, "backup", to);
        json_number(&j, "seconds", seconds_running());
        json_close(&j, '}');
    } else if (!opt.quiet) {
        note("%s: copied to %s", from, to);
    }
}

/* The copy grows beside its place, in DIR.seen-new. */
static char *copy;

static uint64_t bytes_copied(void)
{
    uint64_t sum = 0;
    DIR *dir = opendir(copy);
    if (!dir) return 0;
    for (struct dirent *e; (e = readdir(dir));) {
        struct stat st;
        if (fstatat(dirfd(dir), e->d_name, &st, 0) == 0 && S_ISREG(st.st_mode))
            sum += (uint64_t)st.st_blocks * 512; /* it may have holes */
    }
    closedir(dir);
    return sum;
}

static void watch_copy(struct users *users, const char *to)
{
    seen_users_stats stats = {.size = sizeof stats};
    size_t len = strlen(to) + sizeof ".seen-new";
    if (seen_users_stats_of(users->store, &stats, NULL) != SEEN_OK) return;
    copy = must_have(malloc(len));
    snprintf(copy, len, "%s.seen-new", to);
    work_seen_by(bytes_copied);
    work_total(stats.file_bytes + stats.journal_bytes, NULL);
}

/* ---- Signals ------------------------------------------------------------ */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t over = PTHREAD_COND_INITIALIZER;
static bool copying = true;

/*
 * A copy that is broken off is removed by the call that writes it, when a write
 * fails. So let the next one fail: as if the file were larger than this process may
 * make one. What comes too late finds a copy that is complete, and leaves it.
 */
static void break_off(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0) {
        limit.rlim_cur = 0;
        setrlimit(RLIMIT_FSIZE, &limit);
    }
    pthread_mutex_lock(&lock);
    while (copying)
        pthread_cond_wait(&over, &lock);
    pthread_mutex_unlock(&lock);
}

static seen_status copy_store(struct users *users, const char *to,
                              seen_error *error)
{
    signal(SIGXFSZ, SIG_IGN); /* an error is enough */
    heed_signals(break_off);
    seen_status status = seen_users_backup(users->store, to, error);
    pthread_mutex_lock(&lock);
    copying = false;
    pthread_cond_broadcast(&over);
    pthread_mutex_unlock(&lock);
    if (signal_came()) await_end();
    return status;
}

static int run(char **operands, size_t n)
{
    const char *store = store_operand(operands, n);
    if (n < 2) fail("DIR is missing: expected a directory to make");
    if (n > 2) fail("%s: expected one STORE and one DIR", operands[2]);
    struct users users;
    seen_error error = {0};
    start_work(opt.quiet);
    work_on(store);
    read_users(&users, store);
    watch_copy(&users, operands[1]);
    seen_status s = copy_store(&users, operands[1], &error);
    if (s != SEEN_OK) {
        end_progress();
        fail("%s: %s", operands[1],
             *error.text ? error.text : seen_strerror(s));
    }
    end_progress();
    close_users(&users);
    report(store, operands[1]);
    finish_output();
    return EXIT_DONE;
}

static const char *const examples[] = {
    "seen backup feed feed-monday",
    "a store of its own, as of now; writers need not stop",
    "seen backup lmdb:feed \"feed-$(date +%F)\"",
    "one for every day",
    "seen backup feed copy && seen fresh copy alice candidates.txt",
    "the copy answers as the original did",
    NULL,
};

static const struct option *const groups[] = {options, NULL};

const struct verb verb_backup = {
    .name = "backup",
    .summary = "copy a store while it is in use",
    .operands = "STORE DIR",
    .text = "DIR must not exist; it appears when it is complete, and holds "
            "everything\n"
            "acknowledged up to then. It is a store like any other. A signal "
            "that ends\n"
            "the program removes what was copied.",
    .examples = examples,
    .options = groups,
    .run = run,
};
