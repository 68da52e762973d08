/* sim_backend.c - see sim_backend.h. A transaction works on a copy of everything:
 * tests have a handful of users. */
#include "helpers/sim_backend.h"

#include "base/error.h"
#include "helpers/harness.h"
#include "store/io.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    uint8_t name[SEEN_USER_MAX];
    uint8_t *record;
    size_t name_len, len;
};

/* What one transaction has left. */
struct version {
    uint64_t users; /* of this version: the backend, snapshots, a transaction */
    uint64_t number;
    uint8_t meta[SEEN_META_SIZE];
    bool has_meta;
    struct entry *at; /* by name */
    size_t n;
};

struct sim_backend {
    struct version *now, *next; /* next: of the transaction that is made */
    bool committing;
    uint64_t open;
    uint64_t fail_at;
    bool landed, failed;
    void (*hook)(void *ctx, const char *call);
    void *ctx;
};

struct snapshot {
    struct sim_backend *backend;
    struct version *version; /* NULL: asleep */
    struct lent {
        struct lent *next;
        size_t len;
        uint8_t bytes[];
    } * lent;
};

static struct sim_backend *installed;

static void *grown(void *at, size_t size)
{
    void *more = realloc(at, size ? size : 1);
    assert_non_null(more);
    return more;
}

/* ---- Versions ----------------------------------------------------------- */

static void drop_version(struct version *v)
{
    if (!v || --v->users) return;
    for (size_t i = 0; i < v->n; i++)
        free(v->at[i].record);
    free(v->at);
    free(v);
}

static struct version *copy_version(const struct version *v)
{
    struct version *c = grown(NULL, sizeof *c);
    *c = *v;
    c->users = 1;
    c->at = grown(NULL, v->n * sizeof *c->at);
    for (size_t i = 0; i < v->n; i++) {
        c->at[i] = v->at[i];
        c->at[i].record = grown(NULL, v->at[i].len);
        memcpy(c->at[i].record, v->at[i].record, v->at[i].len);
    }
    return c;
}

static int compare(const struct entry *e, seen_key user)
{
    size_t len = e->name_len < user.len ? e->name_len : user.len;
    int order = memcmp(e->name, user.data, len);
    return order ? order : (int)e->name_len - (int)user.len;
}

/* Where a user is or belongs. */
static size_t place(const struct version *v, seen_key user, bool *there)
{
    size_t i = 0;
    while (i < v->n && compare(&v->at[i], user) < 0)
        i++;
    *there = i < v->n && compare(&v->at[i], user) == 0;
    return i;
}

static void set(struct version *v, seen_key user, seen_record record)
{
    bool there;
    size_t i = place(v, user, &there);
    if (!there && !record.len) return;
    if (!there) {
        v->at = grown(v->at, (v->n + 1) * sizeof *v->at);
        memmove(v->at + i + 1, v->at + i, (v->n++ - i) * sizeof *v->at);
        v->at[i] = (struct entry){.name_len = user.len};
        memcpy(v->at[i].name, user.data, user.len);
    }
    if (record.len) {
        v->at[i].record = grown(v->at[i].record, record.len);
        memcpy(v->at[i].record, record.data, record.len);
        v->at[i].len = record.len;
    } else {
        free(v->at[i].record);
        memmove(v->at + i, v->at + i + 1, (--v->n - i) * sizeof *v->at);
    }
}

/* ---- Life --------------------------------------------------------------- */

struct sim_backend *sim_backend_new(void)
{
    struct sim_backend *s = grown(NULL, sizeof *s);
    *s = (struct sim_backend){.now = grown(NULL, sizeof *s->now)};
    *s->now = (struct version){.users = 1};
    return s;
}

void sim_backend_free(struct sim_backend *s)
{
    if (!s) return;
    if (installed == s) installed = NULL;
    drop_version(s->now);
    drop_version(s->next);
    free(s);
}

struct sim_backend *sim_backend_install(struct sim_backend *s)
{
    struct sim_backend *before = installed;
    installed = s;
    return before;
}

struct sim_backend *sim_backend_after(const struct sim_backend *s, bool newer)
{
    struct sim_backend *after = grown(NULL, sizeof *after);
    *after = (struct sim_backend){
        .now = copy_version(s->committing && newer ? s->next : s->now)};
    return after;
}

void sim_backend_on_step(struct sim_backend *s,
                         void (*hook)(void *ctx, const char *call), void *ctx)
{
    s->hook = hook;
    s->ctx = ctx;
}

void sim_backend_fail(struct sim_backend *s, uint64_t nth, bool landed)
{
    s->fail_at = nth;
    s->landed = landed;
    s->failed = false;
}

bool sim_backend_failed(const struct sim_backend *s)
{
    return s->failed;
}

uint64_t sim_backend_open(const struct sim_backend *s)
{
    return s->open;
}

/* What is in the file lies here; on the disk is that it is there, and whole. */
static const char whole_file[] = "a backend";

static seen_status fill_new(const char *path, seen_error *error)
{
    int fd = seen_io_open(path, O_RDWR, 0);
    if (fd < 0) return seen_fail_io(error, NULL, "fill");
    seen_status status = seen_io_write_at(fd, whole_file, sizeof whole_file, 0);
    if (status != SEEN_OK) seen_fail_io(error, NULL, "fill");
    seen_io_close(fd);
    return status;
}

static seen_status check_file(const char *dir, seen_error *error)
{
    char path[256], bytes[sizeof whole_file] = "";
    size_t got = 0;
    snprintf(path, sizeof path, "%s/data.mdb", dir);
    int fd = seen_io_open(path, O_RDONLY, 0);
    if (fd < 0) return seen_fail_io(error, NULL, "data.mdb");
    seen_status status = seen_io_read_at(fd, bytes, sizeof bytes, 0, &got);
    seen_io_close(fd);
    if (status != SEEN_OK) return seen_fail_io(error, NULL, "data.mdb");
    if (memcmp(bytes, whole_file, sizeof bytes) == 0) return SEEN_OK;
    return seen_fail(error, SEEN_CORRUPT, NULL, "data.mdb is not whole");
}

static void lose_everything(struct sim_backend *s)
{
    drop_version(s->now);
    s->now = grown(NULL, sizeof *s->now);
    *s->now = (struct version){.users = 1};
}

static seen_status backend_open(void **backend, const char *dir, bool write,
                                seen_error *error)
{
    bool made;
    seen_status status = seen_backend_look(dir, &made, error);
    if (status == SEEN_OK && write && !made) {
        lose_everything(installed); /* with its file */
        status = seen_backend_make(dir, fill_new, error);
    }
    if (status == SEEN_OK) status = check_file(dir, error);
    if (status != SEEN_OK) return status;
    installed->open++;
    *backend = installed;
    return SEEN_OK;
}

static void backend_close(void *backend)
{
    struct sim_backend *s = backend;
    assert_null(s->next);
    s->open--;
}

static seen_status meta(void *backend, struct seen_meta *out, seen_error *error)
{
    const struct sim_backend *s = backend;
    (void)error;
    if (!s->now->has_meta) return SEEN_ABSENT;
    return seen_meta_get(s->now->meta, sizeof s->now->meta, out);
}

/* ---- Snapshots ---------------------------------------------------------- */

static seen_status snapshot_new(void *backend, void **out)
{
    struct snapshot *s = grown(NULL, sizeof *s);
    *s = (struct snapshot){.backend = backend};
    s->backend->open++;
    *out = s;
    return SEEN_OK;
}

static void snapshot_sleep(void *snapshot)
{
    struct snapshot *s = snapshot;
    drop_version(s->version);
    s->version = NULL;
    while (s->lent) {
        struct lent *l = s->lent;
        s->lent = l->next;
        memset(l->bytes, 0xee, l->len);
        free(l);
    }
}

static void snapshot_free(void *snapshot)
{
    struct snapshot *s = snapshot;
    if (!s) return;
    snapshot_sleep(s);
    s->backend->open--;
    free(s);
}

static seen_status snapshot_wake(void *snapshot, seen_error *error)
{
    (void)error;
    struct snapshot *s = snapshot;
    if (s->version) return SEEN_OK;
    s->version = s->backend->now;
    s->version->users++;
    return SEEN_OK;
}

static uint64_t snapshot_sees(void *snapshot)
{
    const struct snapshot *s = snapshot;
    assert_non_null(s->version);
    return s->version->number;
}

static void snapshot_hold(void *snapshot)
{
    assert_non_null(((struct snapshot *)snapshot)->version);
}

static seen_status snapshot_told(void *snapshot, struct seen_meta *out,
                                 seen_error *error)
{
    const struct snapshot *s = snapshot;
    (void)error;
    assert_non_null(s->version);
    if (!s->version->has_meta) return SEEN_ABSENT;
    return seen_meta_get(s->version->meta, sizeof s->version->meta, out);
}

static seen_status snapshot_get(void *snapshot, seen_key user,
                                seen_record *record)
{
    struct snapshot *s = snapshot;
    bool known;
    assert_non_null(s->version);
    size_t i = place(s->version, user, &known);
    if (!known) return SEEN_ABSENT;
    const struct entry *e = &s->version->at[i];
    struct lent *l = grown(NULL, sizeof *l + e->len);
    *l = (struct lent){s->lent, e->len};
    memcpy(l->bytes, e->record, e->len);
    s->lent = l;
    *record = (seen_record){l->bytes, l->len};
    return SEEN_OK;
}

static seen_status snapshot_each(void *snapshot, const seen_key *after,
                                 bool (*each)(void *ctx, seen_key user,
                                              seen_record record),
                                 void *ctx)
{
    struct snapshot *s = snapshot;
    bool known = false;
    assert_non_null(s->version);
    size_t i = after ? place(s->version, *after, &known) : 0;
    for (i += known; i < s->version->n; i++) {
        const struct entry *e = &s->version->at[i];
        if (!each(ctx, (seen_key){e->name, e->name_len},
                  (seen_record){e->record, e->len}))
            break;
    }
    return SEEN_OK;
}

/* ---- Transactions ------------------------------------------------------- */

static bool fails(struct sim_backend *s)
{
    if (!s->fail_at || --s->fail_at) return false;
    s->failed = true;
    errno = EIO;
    return true;
}

static seen_status wanted(seen_error *error)
{
    return seen_fail(error, SEEN_IO, NULL, "a fault was wanted");
}

static void tell(struct sim_backend *s, const char *when)
{
    if (s->hook) s->hook(s->ctx, when);
}

static seen_status begin(void *backend, seen_error *error)
{
    struct sim_backend *s = backend;
    assert_null(s->next);
    if (fails(s)) return wanted(error);
    tell(s, "begin");
    s->next = copy_version(s->now);
    s->next->number++;
    return SEEN_OK;
}

static uint64_t number(void *backend)
{
    const struct sim_backend *s = backend;
    assert_non_null(s->next);
    return s->next->number;
}

static seen_status put(void *backend, seen_key user, seen_record record,
                       seen_error *error)
{
    struct sim_backend *s = backend;
    assert_non_null(s->next);
    if (fails(s)) return wanted(error);
    set(s->next, user, record);
    return SEEN_OK;
}

static void backend_abort(void *backend)
{
    struct sim_backend *s = backend;
    assert_non_null(s->next);
    drop_version(s->next);
    s->next = NULL;
}

static seen_status commit(void *backend, const struct seen_meta *m,
                          seen_error *error)
{
    struct sim_backend *s = backend;
    assert_non_null(s->next);
    bool failed = fails(s);
    if (failed && !s->landed) {
        backend_abort(s);
        return wanted(error);
    }
    seen_meta_put(m, s->next->meta);
    s->next->has_meta = true;
    s->committing = true;
    tell(s, "during commit");
    s->committing = false;
    drop_version(s->now);
    s->now = s->next;
    s->next = NULL;
    tell(s, "after commit");
    errno = EIO;
    return failed ? wanted(error) : SEEN_OK;
}

static seen_status grow(void *backend)
{
    (void)backend;
    return SEEN_FULL;
}

/* ---- The whole ---------------------------------------------------------- */

static void sizes(void *backend, uint64_t *users, uint64_t *bytes)
{
    const struct sim_backend *s = backend;
    *users = s->now->n;
    *bytes = 0;
}

static seen_status copy(void *backend, const char *dir, seen_error *error)
{
    (void)backend, (void)dir, (void)error;
    return SEEN_UNSUPPORTED;
}

static void disown(void *backend)
{
    (void)backend; /* nobody forks here */
}

const struct seen_backend_ops sim_backend_ops = {
    .there = seen_backend_there,
    .open = backend_open,
    .close = backend_close,
    .disown = disown,
    .meta = meta,
    .snapshot_new = snapshot_new,
    .snapshot_free = snapshot_free,
    .wake = snapshot_wake,
    .sleep = snapshot_sleep,
    .sees = snapshot_sees,
    .hold = snapshot_hold,
    .told = snapshot_told,
    .get = snapshot_get,
    .each = snapshot_each,
    .begin = begin,
    .number = number,
    .put = put,
    .commit = commit,
    .abort = backend_abort,
    .grow = grow,
    .sizes = sizes,
    .copy = copy,
};
