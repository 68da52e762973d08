/* target.c - see target.h. */
#define _XOPEN_SOURCE 700 /* realpath */

#include "target.h"

#include "foreign.h"
#include "memory.h"
#include "output.h"
#include "overwrite.h"
#include "patience.h"
#include "remote.h"
#include "secret.h"
#include "source.h"
#include "spec.h"
#include "units.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- Names -------------------------------------------------------------- */

/* Where a link leads, in one step; NULL: it is none. */
static char *behind_link(const char *name)
{
    struct stat st;
    if (lstat(name, &st) != 0 || !S_ISLNK(st.st_mode)) return NULL;
    const char *slash = strrchr(name, '/');
    size_t dir = slash ? (size_t)(slash + 1 - name) : 0;
    size_t room = 4096;
    char *to = must_have(malloc(dir + room));
    ssize_t len = readlink(name, to + dir, room - 1);
    if (len <= 0) {
        free(to);
        return NULL;
    }
    to[dir + (size_t)len] = '\0';
    if (to[dir] == '/')
        memmove(to, to + dir, (size_t)len + 1);
    else
        memcpy(to, name, dir);
    return to;
}

/* A link may lead to a file that is yet to be made. */
char *real_name(const char *name)
{
    char *real = realpath(name, NULL);
    if (real) return real;
    real = must_have(strdup(name));
    for (int links = 0; errno == ENOENT && links < 40; links++) {
        char *next = behind_link(real);
        if (!next) break;
        free(real);
        real = next;
        errno = ENOENT;
    }
    return real;
}

/* ---- Streams ------------------------------------------------------------ */

static bool look_at(const char *name, struct stat *st)
{
    return (is_stdin(name) ? fstat(STDIN_FILENO, st) : stat(name, st)) == 0;
}

/* By that name, as /dev/stdin, or as /dev/fd/0? Terminals and other devices have
 * one inode for everybody. */
static bool means_stdin(const char *name)
{
    struct stat a, b;
    return is_stdin(name) || (look_at(name, &a) && !S_ISCHR(a.st_mode) &&
                              look_at("-", &b) && same_file(&a, &b));
}

bool is_stream(const char *name)
{
    struct stat st;
    return is_stdin(name) || (stat(name, &st) == 0 &&
                              (S_ISFIFO(st.st_mode) ||
                               (S_ISSOCK(st.st_mode) && means_stdin(name))));
}

const char *stream_name(const char *name)
{
    return means_stdin(name) ? "stdin" : name;
}

void must_not_be_stream(const char *name)
{
    if (!is_stream(name)) return;
    if (means_stdin(name))
        fail("stdin can only be read: expected a filter file");
    fail("%s: is a pipe, which can only be read: expected a filter file", name);
}

/* Opening a named pipe waits for a program that writes to it: whoever waits in
 * vain should know for what. The other end of <(command) is there. */
static int open_stream(const char *name)
{
    if (means_stdin(name)) return STDIN_FILENO;
    int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) fail("%s: %s", name, strerror(errno));
    struct pollfd coming = {.fd = fd, .events = POLLIN};
    bool silent = poll(&coming, 1, 1000) == 0;
    if (silent && strncmp(name, "/dev/fd/", 8) != 0)
        note("%s: waiting for a program to write to this pipe", name);
    if (silent) poll(&coming, 1, -1);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    return fd;
}

void *read_stream(const char *name, size_t *len)
{
    int fd = open_stream(name);
    size_t cap = 1 << 20;
    char *bytes = must_have(malloc(cap));
    *len = 0;
    for (;;) {
        if (*len == cap) bytes = must_have(realloc(bytes, cap *= 2));
        ssize_t got = read(fd, bytes + *len, cap - *len);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) fail("%s: read: %s", stream_name(name), strerror(errno));
        if (got == 0) break;
        *len += (size_t)got;
    }
    if (fd != STDIN_FILENO) close(fd);
    return bytes;
}

/* The bytes of a stream come once: they are the filter, or they are keys. (A file
 * can be both, by its name.) */
static void must_have_keys_in(const char *input, const char *name)
{
    struct stat filter, keys;
    bool known = look_at(name, &filter) && look_at(input, &keys) &&
                 !S_ISCHR(filter.st_mode);
    bool same =
        known ? same_file(&filter, &keys) : is_stdin(input) && is_stdin(name);
    if (same && (is_stdin(input) || !S_ISREG(filter.st_mode)))
        fail("%s is the filter: name files with the keys", stream_name(name));
}

const char *target_operand(char **operands, size_t n)
{
    if (n == 0) fail("TARGET is missing: expected a filter file, a URL, or -");
    if (n == 1) must_have_keys_in("-", operands[0]);
    for (size_t i = 1; i < n; i++)
        must_have_keys_in(operands[i], operands[0]);
    return operands[0];
}

/* ---- Finding ------------------------------------------------------------ */

static seen_status look_at_bytes(struct target *t)
{
    seen_status status =
        seen_look(t->bytes, t->len, &t->info, &t->plan, &t->error);
    if (t->len == 0)
        snprintf(t->error.text, sizeof t->error.text,
                 "is empty: expected a filter");
    return status;
}

/* Wherever it lies: in its own file, or in a container of ours. */
static bool found_foreign(const struct target *t)
{
    if (wish.secret_file)
        fail("%s: filters of other systems have no secret: leave out "
             "--secret-file",
             t->name);
    return true;
}

__attribute__((noreturn)) static void not_a_file(const struct target *t)
{
    struct stat st;
    size_t size = strlen(t->path) + sizeof "/data.mdb";
    char *data = must_have(malloc(size));
    snprintf(data, size, "%s/data.mdb", t->path);
    if (stat(data, &st) == 0)
        fail("%s: is a store of users, not a filter file: seen fresh asks it, "
             "seen mark adds to it",
             t->name);
    fail("%s: is a directory: expected a filter file", t->name);
}

bool find_target(struct target *t, const char *name)
{
    *t = (struct target){.name = name,
                         .info.size = sizeof t->info,
                         .plan.size = sizeof t->plan,
                         .outcome.size = sizeof t->outcome,
                         .on_server = is_remote(name)};
    if (t->on_server && no_verify)
        fail("%s: is on a server: --no-verify is for filter files", t->name);
    if (t->on_server) return find_remote(t);
    if (is_stream(name)) {
        t->name = stream_name(name);
        t->bytes = read_stream(name, &t->len);
    } else {
        t->path = real_name(name);
    }
    struct stat st;
    if (t->path && stat(t->path, &st) == 0 && S_ISDIR(st.st_mode))
        not_a_file(t);
    if (find_foreign(t)) return found_foreign(t);
    seen_status status =
        t->path ? seen_file_look(t->path, &t->info, &t->plan, &t->error)
                : look_at_bytes(t);
    if (status == SEEN_ABSENT) return false;
    if (status == SEEN_CORRUPT && t->unknown)
        fail("%s: %s (if another system wrote it, say which: --dialect)",
             t->name, t->error.text);
    if (status != SEEN_OK) fail("%s: %s", t->name, t->error.text);
    if (t->plan.kind == SEEN_FOREIGN) return found_foreign(t);
    if (wish.dialect)
        fail("%s: is a filter of seen itself, of kind %s: leave out --dialect",
             t->name, seen_kind_name(t->plan.kind));
    if (t->plan.kind == SEEN_BITMAP) keys_for_bitmap();
    return true;
}

void target_missing(const struct target *t)
{
    if (t->on_server)
        fail("%s: no such filter there; seen add -n ITEMS -p RATE makes one",
             t->name);
    fail(
        "%s: no such file; seen build -o %s makes a filter (seen take and seen "
        "mark, a store of users)",
        t->name, t->name);
}

/* ---- Opening ------------------------------------------------------------ */

bool no_verify;

static void must_open(const struct target *t, seen_status status)
{
    if (status == SEEN_OK) return;
    if (status == SEEN_NO_SECRET)
        fail("%s: its secret is kept apart: add --secret-file FILE", t->name);
    if (status == SEEN_MISMATCH && t->info.flags & SEEN_KEYED)
        fail("%s: the secret in %s is another one", t->name, wish.secret_file);
    if (status == SEEN_MISMATCH)
        fail("%s: is not keyed: leave out --secret-file", t->name);
    fail("%s: %s", t->name,
         *t->error.text ? t->error.text : seen_strerror(status));
}

static void load_bytes(struct target *t)
{
    if (t->info.journaled)
        fail("%s: a writer had this file when it was copied, and part of it is "
             "in its journal: name the file instead",
             t->name);
    must_open(t, seen_load(&t->loaded, t->bytes, t->len, given_secret(), NULL,
                           &t->error));
    t->filter = t->loaded;
    free(t->bytes);
    t->bytes = NULL;
}

/* Waits for another writer, if this is one. */
static seen_status open_file(struct target *t, seen_file_options options)
{
    if (no_verify) options.flags |= SEEN_UNVERIFIED;
    bool writes = options.mode != SEEN_READ;
    if (writes) options.wait_ms = first_wait();
    seen_status status =
        seen_file_open(&t->store, t->path, &options, &t->outcome, &t->error);
    if (!writes || status != SEEN_BUSY || !wait_on(t->name)) return status;
    options.wait_ms = second_wait();
    return seen_file_open(&t->store, t->path, &options, &t->outcome, &t->error);
}

/* Is it damaged in such a way that it can be asked all the same? */
static bool opens_unverified(const struct target *t,
                             const seen_file_options *options)
{
    seen_file *file;
    seen_file_options quick = *options;
    quick.flags |= SEEN_UNVERIFIED;
    if (seen_file_open(&file, t->path, &quick, NULL, NULL) != SEEN_OK)
        return false;
    seen_file_close(file, NULL);
    return true;
}

static void open_store(struct target *t, const seen_file_options *options)
{
    seen_status status = open_file(t, *options);
    if (status == SEEN_BUSY && options->mode != SEEN_READ)
        waited_in_vain(t->name);
    if (status == SEEN_CORRUPT && options->mode == SEEN_READ &&
        opens_unverified(t, options))
        fail("%s: %s; seen check --no-verify asks it as it is", t->name,
             t->error.text);
    must_open(t, status);
    t->filter = seen_file_filter(t->store);
}

void record_keys(seen_spec *spec)
{
    bool has_room = !spec->dialect && spec->kind != SEEN_BITMAP;
    spec->key_form = has_room ? key_form() : SEEN_KEYS_UNKNOWN;
}

void compare_keys(const struct target *t)
{
    seen_key_form made = t->info.key_form, given = key_form();
    if (made != SEEN_KEYS_UNKNOWN && made != given)
        warn("%s: its keys are %s, these are %s: the same line is another key, "
             "and nearly all look absent",
             t->name, form_phrase(made), form_phrase(given));
}

uint64_t clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void advance_target(struct target *t)
{
    if (t->plan.kind != SEEN_WINDOW) return;
    seen_status s = t->store
                        ? seen_file_advance(t->store, clock_ms(), &t->error)
                        : seen_advance(t->loaded, clock_ms());
    if (s != SEEN_OK)
        fail("%s: %s", t->name, t->store ? t->error.text : seen_strerror(s));
}

void must_be_file(const struct target *t)
{
    if (t->on_server)
        fail("%s: is on a server: expected a filter file", t->name);
}

void read_target(struct target *t)
{
    if (t->on_server) {
        read_remote(t);
        return;
    }
    if (t->dialect)
        t->filter = t->loaded;
    else if (t->path)
        open_store(t, &(seen_file_options){.secret = given_secret()});
    else
        load_bytes(t);
    if (t->plan.kind == SEEN_FOREIGN && !t->dialect) heed_contained(t);
    advance_target(t);
}

static void create_target(struct target *t, seen_mode mode,
                          const seen_spec *create)
{
    seen_spec spec = *create;
    spec.secret = new_secret();
    if (spec.secret) spec.flags |= SEEN_KEYED;
    plan_or_fail(&spec, wish.memory ? "-M" : "--bits");
    seen_file_options options = {
        .mode = mode,
        .flags = wish.secret_file ? SEEN_SECRET_APART : 0,
        .secret = wish.secret_file ? spec.secret : NULL,
        .create = &spec};
    keep_secret();
    seen_status status = open_file(t, options);
    if (status != SEEN_OK && !t->outcome.created) forget_secret();
    if (status == SEEN_BUSY) waited_in_vain(t->name);
    must_open(t, status);
    t->filter = seen_file_filter(t->store);
    seen_file_look(t->path, &t->info, &t->plan, NULL);
}

void write_target(struct target *t, seen_mode mode, const seen_spec *create)
{
    if (t->on_server) {
        if (wait_given())
            fail("%s: the URL's patience= applies there: leave out --wait",
                 t->name);
        if (create) create_remote(t, create);
        return;
    }
    assert(t->path); /* must_not_be_stream() */
    if (create && create->dialect)
        create_foreign(t, create);
    else if (t->dialect)
        change_foreign(t);
    else if (!create && t->plan.kind == SEEN_FOREIGN)
        load_container(t);
    else if (create)
        create_target(t, mode, create);
    else
        open_store(
            t, &(seen_file_options){.mode = mode, .secret = given_secret()});
}

seen_status ask_target(struct target *t, const seen_key *keys, size_t n,
                       bool *answers)
{
    if (t->remote)
        return seen_remote_maybe_many(t->remote, seen_keys_of(keys, n), answers,
                                      &t->error);
    seen_maybe_many(t->filter, seen_keys_of(keys, n), answers);
    return SEEN_OK;
}

static seen_status add_to_remote(struct target *t, const seen_key *keys,
                                 size_t n, bool *before, size_t *done)
{
    seen_status status = seen_remote_add_many(t->remote, seen_keys_of(keys, n),
                                              before, &t->error);
    *done = status == SEEN_OK ? n : 0;
    for (size_t i = 0; i < *done; i++)
        before[i] = !before[i];
    return status;
}

seen_status add_to_target(struct target *t, const seen_key *keys, size_t n,
                          bool *before, size_t *done)
{
    if (t->remote) return add_to_remote(t, keys, n, before, done);
    if (t->store)
        return seen_file_visit_many(t->store, seen_keys_of(keys, n), before,
                                    done, &t->error);
    if (t->counts) memset(before, false, n);
    seen_status status = seen_visit_many(t->loaded, seen_keys_of(keys, n),
                                         t->counts ? NULL : before, done);
    t->changed |= *done > 0;
    return status;
}

seen_status remove_from_target(struct target *t, const seen_key *keys, size_t n,
                               bool *removed)
{
    if (t->remote)
        return seen_remote_remove_many(t->remote, seen_keys_of(keys, n),
                                       removed, &t->error);
    if (t->store)
        return seen_file_remove_many(t->store, seen_keys_of(keys, n), removed,
                                     NULL, &t->error);
    for (size_t i = 0; i < n; i++) {
        seen_status status = seen_remove(t->loaded, keys[i].data, keys[i].len);
        if (status != SEEN_OK && status != SEEN_ABSENT) return status;
        removed[i] = status == SEEN_OK;
        t->changed |= removed[i];
    }
    return SEEN_OK;
}

void blame_target(struct target *t, seen_status status, struct chunk *c)
{
    if (t->remote) {
        t->failed = true;
        snprintf(c->failure, sizeof c->failure, "%.256s: %.463s", t->name,
                 t->error.text);
    } else if (status == SEEN_IO) {
        t->failed = true;
        snprintf(c->failure, sizeof c->failure, "%.256s: %.463s", t->name,
                 t->store ? t->error.text : strerror(errno));
    } else if (status == SEEN_INVALID && t->plan.kind == SEEN_BITMAP) {
        c->bad = "is not below the bound of this bitmap";
    } else if (status == SEEN_UNSUPPORTED && t->dialect) {
        c->bad = "cannot be added: this filter answers maybe to everything, or "
                 "was made for no keys";
    } else if (status == SEEN_CORRUPT) {
        c->bad = "the file is damaged where this key belongs: seen verify "
                 "tells more";
    } else {
        c->bad = seen_strerror(status);
    }
}

void close_target(struct target *t)
{
    seen_status status = seen_file_close(t->store, &t->error);
    if (status != SEEN_OK && !t->failed) fail("%s: %s", t->name, t->error.text);
    close_foreign(t);
    close_remote(t);
    free(t->bytes);
    free(t->path);
}

/* Its number of keys does not tell: those that come at once are all in one
 * generation, and the fuller that is, the more of them it takes for known. A small
 * one is planned far better than it was asked to be: what will not be wrong once
 * in a thousand times its keys is no matter. */
bool is_crowded(uint64_t last, const seen_info *info)
{
    double promised = fmax(info->fpp, wish.rate);
    return info->kind == SEEN_WINDOW && !last && info->fpp_now > 2 * promised &&
           info->fpp_now * (double)info->capacity > 1e-3;
}

bool is_overfull(const seen_info *info)
{
    double promised = fmax(info->fpp, wish.rate);
    return info->kind != SEEN_WINDOW && planned_items(info) &&
           info->items > info->capacity && !(info->fpp_now < 1.1 * promised) &&
           !(info->fpp_now * (double)info->capacity < 1e-3);
}

void warn_crowded(const char *name, const seen_info *info)
{
    char planned[UNIT_TEXT], now[UNIT_TEXT], rate[UNIT_TEXT];
    warn("%s: keys came faster than its window was planned for, %s evenly over "
         "its time: the rate has risen from %s to %s; make one with a larger "
         "-n, or for bursts with --last",
         name, show_count(planned, (double)info->capacity),
         show_rate(rate, info->fpp), show_rate(now, info->fpp_now));
}

void note_recovery(const struct target *t)
{
    char keys[UNIT_TEXT], torn[UNIT_TEXT];
    if (!t->outcome.recovered) return;
    note("%s: was not closed last time: %s recovered from its journal "
         "(lines added or removed, repeats included)%s%s%s",
         t->name, show_many(keys, (double)t->outcome.recovered_keys, "change"),
         t->outcome.torn_bytes ? ", " : "",
         t->outcome.torn_bytes ? show_size(torn, (double)t->outcome.torn_bytes)
                               : "",
         t->outcome.torn_bytes ? " of it never finished" : "");
}

/* ---- Results ------------------------------------------------------------ */

static bool is_stdout(const char *path)
{
    struct stat a, b;
    return stat(path, &a) == 0 && fstat(STDOUT_FILENO, &b) == 0 &&
           same_file(&a, &b);
}

const char *output_path(const char *name)
{
    if (!name || !*name)
        fail("-o is missing: expected -o FILE, or -o - for stdout");
    if (strcmp(name, "-") != 0 && !is_stdout(name)) return name;
    if (isatty(STDOUT_FILENO))
        fail("a filter is not text, and stdout is a terminal: expected -o FILE "
             "or a pipe");
    return NULL;
}

static void save_to_stdout(const seen_filter *f, uint32_t flags)
{
    size_t len;
    seen_status status = seen_save(f, flags, NULL, 0, &len);
    if (status != SEEN_SHORT) fail("filter: %s", seen_strerror(status));
    void *bytes = must_have(malloc(len));
    status = seen_save(f, flags, bytes, len, &len);
    if (status != SEEN_OK) fail("filter: %s", seen_strerror(status));
    write_all(bytes, len);
    free(bytes);
}

void export_filter(const char *path, const seen_filter *f, const char *dialect)
{
    size_t len;
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    void *bytes = foreign_bytes(path ? path : "stdout", f, dialect, &len);
    if (!path) {
        write_all(bytes, len);
    } else {
        char *real = real_name(path);
        if (seen_file_write(real, bytes, len, &outcome, &error) != SEEN_OK)
            fail("%s: %s", path, error.text);
        free(real);
    }
    free(bytes);
}

void save_filter(const char *path, const seen_filter *f, bool secret_apart)
{
    save_over(path, f, secret_apart, NULL);
}

bool same_name(const char *a, const char *b)
{
    struct stat x, y;
    if (stat(a, &x) == 0 && stat(b, &y) == 0) return same_file(&x, &y);
    char *real_a = real_name(a), *real_b = real_name(b);
    bool same = strcmp(real_a, real_b) == 0;
    free(real_a);
    free(real_b);
    return same;
}

bool target_is(const struct target *t, const char *path)
{
    return t->path && path && same_name(t->path, path);
}

void save_over(const char *path, const seen_filter *f, bool secret_apart,
               const seen_info *was)
{
    uint32_t flags = secret_apart ? SEEN_SECRET_APART : 0;
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    keep_secret();
    if (!path) {
        save_to_stdout(f, flags);
        return;
    }
    char *real = real_name(path);
    if (seen_file_save_over(real, f, flags, was, &outcome, &error) != SEEN_OK) {
        if (!outcome.created) forget_secret();
        fail("%s: %s", path, error.text);
    }
    free(real);
}
