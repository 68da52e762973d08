/* cmd_verify.c - seen verify: is a filter file, or a store of users, what was
 * written? */
#define _POSIX_C_SOURCE 200809L

#include "options.h"
#include "output.h"
#include "progress.h"
#include "remote.h"
#include "store_name.h"
#include "target.h"
#include "units.h"
#include "users.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static struct {
    bool quiet, json;
} opt;

static const struct option options[] = {
    {0, "json", NULL, OPTION_FLAG, &opt.json, "the verdicts as JSON"},
    {'q', NULL, NULL, OPTION_FLAG, &opt.quiet,
     "print only the files that are bad"},
    {0, NULL, NULL, OPTION_FLAG, NULL, NULL},
};

struct verdict {
    const char *name;
    bool good;
    bool store;
    uint64_t users, damaged; /* of a store */
    seen_outcome outcome;
    seen_error error;
};

static bool judge_user(void *of, const seen_users_entry *e)
{
    struct verdict *v = of;
    char text[USER_TEXT];
    bool good = e->status == SEEN_OK || e->status == SEEN_ABSENT;
    v->users++;
    if (!good && v->damaged++ == 0)
        snprintf(v->error.text, sizeof v->error.text,
                 "user %s: %s; seen forget removes the record",
                 show_user(text, e->user), seen_strerror(e->status));
    return true;
}

/* Every record has a checksum; the pages of data.mdb have none, but all of them that
 * records lie in are read. */
static void judge_store(struct verdict *v)
{
    seen_users *u;
    seen_error error;
    const seen_users_options with_journal = {.tail = true};
    v->store = true;
    seen_status status =
        seen_users_open(&u, v->name, &with_journal, &v->outcome, &v->error);
    if (status == SEEN_ABSENT)
        snprintf(v->error.text, sizeof v->error.text,
                 "no store of users is there: expected one, or a filter file");
    if (status != SEEN_OK) return;
    v->error.text[0] = '\0';
    status = seen_users_each(u, clock_ms(), judge_user, v, &error);
    if (status != SEEN_OK) v->error = error;
    seen_users_close(u, NULL);
    v->good = status == SEEN_OK && v->damaged == 0;
}

static struct verdict judge(const char *name)
{
    struct verdict v = {.name = name, .outcome.size = sizeof v.outcome};
    if (is_store(name)) {
        judge_store(&v);
        return v;
    }
    if (!is_stream(name)) {
        char *path = real_name(name);
        v.good = seen_file_verify(path, &v.outcome, &v.error) == SEEN_OK;
        free(path);
        return v;
    }
    size_t len;
    void *bytes = read_stream(name, &len);
    v.name = stream_name(name);
    v.good = seen_verify(bytes, len, &v.error) == SEEN_OK;
    free(bytes);
    return v;
}

static void print_json(struct json *j, const struct verdict *v)
{
    json_open(j, NULL, '{');
    json_text(j, "file", v->name);
    json_bool(j, "good", v->good);
    if (!v->good) json_text(j, "problem", v->error.text);
    if (v->store) json_number(j, "users", (double)v->users);
    if (v->store) json_number(j, "damaged", (double)v->damaged);
    json_bool(j, "journal", v->outcome.recovered);
    json_number(j, "journal_keys", (double)v->outcome.recovered_keys);
    json_number(j, "torn_bytes", (double)v->outcome.torn_bytes);
    json_close(j, '}');
}

static void print_text(const struct verdict *v)
{
    char keys[UNIT_TEXT], users[UNIT_TEXT], damaged[UNIT_TEXT];
    show_many(users, (double)v->users, "user");
    if (v->damaged)
        printf("%s: BAD: %s of %s damaged: %s\n", v->name,
               show_count(damaged, (double)v->damaged), users, v->error.text);
    else if (!v->good)
        printf("%s: BAD: %s\n", v->name, v->error.text);
    else if (!opt.quiet && v->store && v->outcome.recovered)
        printf("%s: good, %s, with a journal of %s\n", v->name, users,
               show_many(keys, (double)v->outcome.recovered_keys, "change"));
    else if (!opt.quiet && v->store)
        printf("%s: good, %s\n", v->name, users);
    else if (!opt.quiet && v->outcome.recovered)
        printf("%s: good, with a journal of %s\n", v->name,
               show_many(keys, (double)v->outcome.recovered_keys, "change"));
    else if (!opt.quiet)
        printf("%s: good\n", v->name);
}

/* How long these files are, as far as that can be told. */
static uint64_t bytes_of(char **names, size_t n)
{
    uint64_t sum = 0;
    struct stat st;
    for (size_t i = 0; i < n; i++)
        if (stat(names[i], &st) == 0 && S_ISREG(st.st_mode))
            sum += (uint64_t)st.st_size;
    return sum;
}

static int run(char **operands, size_t n)
{
    bool all_good = true;
    struct json j = {.to = stdout};
    if (n == 0) fail("FILE is missing: expected filter files, stores, or -");
    for (size_t i = 0; i < n; i++)
        if (is_server(operands[i]) || is_remote(operands[i]) ||
            strcmp(operands[i], "mem:") == 0)
            fail("%s: is not on a disk of this machine: expected filter files, "
                 "or stores in directories",
                 operands[i]);
    start_work(opt.quiet);
    work_total(bytes_of(operands, n), NULL);
    if (opt.json) {
        json_open(&j, NULL, '{');
        json_open(&j, "files", '[');
    }
    for (size_t i = 0; i < n; i++) {
        work_on(operands[i]);
        struct verdict v = judge(operands[i]);
        work_on(NULL);
        work_done(bytes_of(operands + i, 1));
        all_good = all_good && v.good;
        if (opt.json)
            print_json(&j, &v);
        else
            print_text(&v);
    }
    if (opt.json) {
        json_close(&j, ']');
        json_close(&j, '}');
    }
    end_progress();
    finish_output();
    return all_good ? EXIT_DONE : EXIT_ERROR;
}

static const char *const examples[] = {
    "seen verify *.seen",
    "compare every byte of these files with their checksums",
    "seen verify feed",
    "read the record of every user in a store",
    "seen verify -q filters/*.seen || alert",
    "say nothing unless something is wrong",
    "ssh host cat big.seen | seen verify -",
    "a filter that comes through a pipe",
    NULL,
};

static const struct option *const groups[] = {options, NULL};

const struct verb verb_verify = {
    .name = "verify",
    .summary = "compare filter files and stores with their checksums",
    .operands = "FILE...",
    .text =
        "A flipped bit in a filter can cause a wrong \"never\". Every page of "
        "a file\n"
        "has a checksum, and so has every entry of a journal; here all of them "
        "are\n"
        "compared. Needs no secret. FILE may be a store of users: every record "
        "has a\n"
        "checksum, and so has its journal, but not the pages of data.mdb "
        "between\n"
        "them. Exit code 2 if any file is bad.",
    .examples = examples,
    .options = groups,
    .run = run,
};
