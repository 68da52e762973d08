/* sim_os.c - see sim_os.h: file descriptors, mappings and the system calls.
 * Contents are in sim_file.c, names in sim_dir.c. */
#define _GNU_SOURCE /* O_DIRECTORY, O_NOFOLLOW */

#include "helpers/sim_os.h"

#include "helpers/clock.h"

#include "helpers/sim_dir.h"
#include "store/os.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* No file descriptor of the real system is that large, so that a mix-up is
 * seen. */
#define FIRST_FD 100000

#define KNOWN_FLAGS                                                            \
    (O_ACCMODE | O_CREAT | O_EXCL | O_TRUNC | O_APPEND | O_CLOEXEC |           \
     O_DIRECTORY | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK)

/* Exactly one of both, or none: closed. */
struct handle {
    struct sim_file *file;
    struct sim_dir *dir;
    int flags;
    uint64_t pos;
};

struct mapping {
    struct sim_file *file;
    uint8_t *at;
    size_t len;
    enum seen_map_mode mode;
};

struct sim {
    struct sim_dir **dirs;
    size_t n_dirs;
    struct handle *handles; /* handle i is file descriptor FIRST_FD + i */
    size_t n_handles, n_open;
    struct mapping *mappings;
    size_t n_mappings;

    uint64_t next_ino, used, room;
    struct test_rng rng; /* for get_random and the order of names */
    struct faults faults;
    uint64_t calls;
    void (*hook)(void *ctx, const char *call);
    void *hook_ctx;
    bool in_hook;

    struct sim_file **twins; /* while a disk is being copied */
    size_t n_twins;
};

static struct sim *current;
static const struct seen_os *before; /* what seen_os was without us */

/* Not a failed assertion: there may be threads, and whoever reads the core
 * dump wants the stack. */
static void misuse(const char *call, const char *what)
{
    fprintf(stderr, "sim_os: %s: %s\n", call, what);
    abort();
}

static int refuse(int error)
{
    errno = error;
    return -1;
}

/* ---- Entering a system call --------------------------------------------- */

static void observe(struct sim *s)
{
    for (size_t i = 0; i < s->n_mappings; i++)
        sim_file_observe(s->mappings[i].file);
}

/* What every call does first. Gives the error that is due, or 0. */
static int enter(const char *call, size_t *len)
{
    struct sim *s = current;
    if (!s) misuse(call, "no simulation is installed");
    observe(s);
    if (s->in_hook) return 0;
    if (s->hook) {
        s->in_hook = true;
        s->hook(s->hook_ctx, call);
        s->in_hook = false;
        if (current != s) misuse(call, "the hook left another simulation");
    }
    s->calls++;
    return fault_next(&s->faults, call, len);
}

/* ---- Paths -------------------------------------------------------------- */

static struct sim_dir *find_dir(const struct sim *s, const char *path,
                                size_t len)
{
    while (len > 2 && path[0] == '.' && path[1] == '/') {
        path += 2;
        len -= 2;
    }
    while (len > 1 && path[len - 1] == '/')
        len--;
    for (size_t i = 0; i < s->n_dirs; i++)
        if (strlen(s->dirs[i]->path) == len &&
            memcmp(s->dirs[i]->path, path, len) == 0)
            return s->dirs[i];
    return NULL;
}

/* The directory that a path is in, and the name there. NULL: errno. */
static struct sim_dir *resolve(const struct sim *s, const char *path,
                               const char **name)
{
    const char *slash = strrchr(path, '/');
    *name = slash ? slash + 1 : path;
    struct sim_dir *d;
    if (!slash)
        d = find_dir(s, ".", 1);
    else
        d = find_dir(s, path, slash == path ? 1 : (size_t)(slash - path));
    if (!d || !**name) errno = ENOENT;
    if (strlen(*name) > SIM_NAME_MAX) errno = ENAMETOOLONG;
    return **name && strlen(*name) <= SIM_NAME_MAX ? d : NULL;
}

static struct sim_dir *whole_dir(const struct sim *s, const char *path)
{
    return find_dir(s, path, strlen(path));
}

/* ---- Handles ------------------------------------------------------------ */

static struct handle *handle(const char *call, int fd)
{
    size_t i = (size_t)(fd - FIRST_FD);
    if (fd < FIRST_FD || i >= current->n_handles)
        misuse(call, "not a file descriptor of this simulation");
    struct handle *h = &current->handles[i];
    if (!h->file && !h->dir) misuse(call, "the file descriptor is closed");
    return h;
}

static bool readable(const struct handle *h)
{
    return (h->flags & O_ACCMODE) != O_WRONLY;
}

static bool writable(const struct handle *h)
{
    return (h->flags & O_ACCMODE) != O_RDONLY;
}

static int new_handle(struct sim *s, struct handle h)
{
    s->handles = sim_grown(s->handles, (s->n_handles + 1) * sizeof h);
    s->handles[s->n_handles] = h;
    s->n_open++;
    return FIRST_FD + (int)s->n_handles++;
}

static void close_handle(struct sim *s, struct handle *h)
{
    int fd = FIRST_FD + (int)(h - s->handles);
    if (h->file) {
        if (h->file->locked_by == fd) h->file->locked_by = -1;
        sim_file_unref(h->file);
    }
    *h = (struct handle){0};
    s->n_open--;
}

static int open_dir(struct sim *s, struct sim_dir *d, int flags)
{
    if (flags & O_CREAT && flags & O_EXCL) return refuse(EEXIST);
    if ((flags & O_ACCMODE) != O_RDONLY || flags & (O_CREAT | O_TRUNC))
        return refuse(EISDIR);
    return new_handle(s, (struct handle){.dir = d, .flags = flags});
}

static int os_open(const char *path, int flags, mode_t mode)
{
    int error = enter("open", NULL);
    if (error) return refuse(error);
    if (flags & ~KNOWN_FLAGS) misuse("open", "a flag that is not simulated");
    struct sim *s = current;
    struct sim_dir *d = whole_dir(s, path);
    if (d) return open_dir(s, d, flags);

    const char *name;
    d = resolve(s, path, &name);
    if (!d) return -1;
    struct sim_file *f = sim_dir_find(d, name);
    if (!f && !(flags & O_CREAT)) return refuse(ENOENT);
    if (f && flags & O_CREAT && flags & O_EXCL) return refuse(EEXIST);
    if (flags & O_DIRECTORY) return refuse(ENOTDIR);
    if (f) {
        sim_file_ref(f);
        if (flags & O_TRUNC) sim_file_resize(f, 0);
    } else {
        f = sim_file_new(s->next_ino++, mode & 07777, &s->used);
        sim_dir_create(d, name, f);
    }
    return new_handle(s, (struct handle){.file = f, .flags = flags});
}

static int os_close(int fd)
{
    int error = enter("close", NULL);
    close_handle(current, handle("close", fd));
    return error ? refuse(error) : 0;
}

/* There are no links here, and no other directory to be in. */
static int os_resolve(const char *path, char *buf, size_t cap)
{
    int error = enter("resolve", NULL);
    if (!error && strlen(path) >= cap) error = ENAMETOOLONG;
    if (error) return refuse(error);
    strcpy(buf, path);
    return 0;
}

/* ---- Status ------------------------------------------------------------- */

static void fill_stat(const struct sim_file *f, const struct sim_dir *d,
                      struct seen_stat *out)
{
    *out = (struct seen_stat){.size = f ? f->size : 4096,
                              .allocated = f ? f->size : 4096,
                              .device = 1,
                              .inode = f ? f->ino : d->ino,
                              .links = 1,
                              .mode = f ? f->mode : 0755,
                              .regular = f != NULL,
                              .directory = f == NULL};
}

static int os_stat(const char *path, struct seen_stat *out)
{
    int error = enter("stat", NULL);
    if (error) return refuse(error);
    const struct sim_dir *d = whole_dir(current, path);
    const struct sim_file *f = NULL;
    if (!d) {
        const char *name;
        const struct sim_dir *parent = resolve(current, path, &name);
        if (!parent) return -1;
        f = sim_dir_find(parent, name);
        if (!f) return refuse(ENOENT);
    }
    fill_stat(f, d, out);
    return 0;
}

static int os_fstat(int fd, struct seen_stat *out)
{
    int error = enter("fstat", NULL);
    const struct handle *h = handle("fstat", fd);
    if (error) return refuse(error);
    fill_stat(h->file, h->dir, out);
    return 0;
}

/* ---- Reading and writing ------------------------------------------------ */

static ssize_t read_at(const struct handle *h, void *buf, size_t len,
                       uint64_t offset)
{
    if (h->dir) return refuse(EISDIR);
    if (!readable(h)) return refuse(EBADF);
    if (offset >= h->file->size) return 0;
    uint64_t left = h->file->size - offset;
    if (len > left) len = (size_t)left;
    if (len) memcpy(buf, h->file->now + offset, len);
    return (ssize_t)len;
}

/* How large may this file become? */
static uint64_t limit(const struct sim *s, const struct sim_file *f)
{
    uint64_t room = s->room > s->used ? s->room - s->used : 0;
    uint64_t size = f->size + room;
    return size < SIM_FILE_MAX ? size : SIM_FILE_MAX;
}

static ssize_t write_at(const struct handle *h, const void *buf, size_t len,
                        uint64_t offset)
{
    if (h->dir || !writable(h)) return refuse(EBADF);
    if (len == 0) return 0;
    uint64_t most = limit(current, h->file);
    if (offset >= most) return refuse(ENOSPC);
    if (len > most - offset) len = (size_t)(most - offset);
    sim_file_write(h->file, buf, len, offset);
    return (ssize_t)len;
}

static ssize_t os_read(int fd, void *buf, size_t len)
{
    int error = enter("read", &len);
    struct handle *h = handle("read", fd);
    if (error) return refuse(error);
    ssize_t n = read_at(h, buf, len, h->pos);
    if (n > 0) h->pos += (uint64_t)n;
    return n;
}

static ssize_t os_write(int fd, const void *buf, size_t len)
{
    int error = enter("write", &len);
    struct handle *h = handle("write", fd);
    if (error) return refuse(error);
    if (h->file && h->flags & O_APPEND) h->pos = h->file->size;
    ssize_t n = write_at(h, buf, len, h->pos);
    if (n > 0) h->pos += (uint64_t)n;
    return n;
}

static ssize_t os_pread(int fd, void *buf, size_t len, uint64_t offset)
{
    int error = enter("pread", &len);
    const struct handle *h = handle("pread", fd);
    return error ? refuse(error) : read_at(h, buf, len, offset);
}

static ssize_t os_pwrite(int fd, const void *buf, size_t len, uint64_t offset)
{
    int error = enter("pwrite", &len);
    const struct handle *h = handle("pwrite", fd);
    if (error) return refuse(error);
    /* Linux would append, POSIX would not. */
    if (h->flags & O_APPEND) misuse("pwrite", "opened with O_APPEND");
    return write_at(h, buf, len, offset);
}

static int os_truncate(int fd, uint64_t len)
{
    int error = enter("truncate", NULL);
    const struct handle *h = handle("truncate", fd);
    if (error) return refuse(error);
    if (h->dir || !writable(h)) return refuse(EINVAL);
    if (len > h->file->size && len > limit(current, h->file))
        return refuse(ENOSPC);
    sim_file_resize(h->file, len);
    return 0;
}

static int os_chmod(int fd, mode_t mode)
{
    int error = enter("chmod", NULL);
    const struct handle *h = handle("chmod", fd);
    if (!error && !h->file) error = EINVAL; /* nobody does it to directories */
    if (error) return refuse(error);
    h->file->mode = mode & 07777;
    return 0;
}

/* Everything here belongs to one user. */
static int os_chown(int fd, uint32_t user, uint32_t group)
{
    int error = enter("chown", NULL);
    (void)handle("chown", fd);
    if (!error && (user || group)) error = EPERM;
    return error ? refuse(error) : 0;
}

static int os_allocate(int fd, uint64_t len)
{
    int error = enter("allocate", NULL);
    const struct handle *h = handle("allocate", fd);
    if (error) return refuse(error);
    if (h->dir || !writable(h)) return refuse(EBADF);
    if (len <= h->file->size) return 0;
    if (len > limit(current, h->file)) return refuse(ENOSPC);
    sim_file_resize(h->file, len);
    return 0;
}

static int os_space(int fd, uint64_t *bytes)
{
    int error = enter("space", NULL);
    (void)handle("space", fd);
    if (error) return refuse(error);
    const struct sim *s = current;
    *bytes = s->room > s->used ? s->room - s->used : 0;
    return 0;
}

/* ---- Durability --------------------------------------------------------- */

static int sync_handle(const char *call, int fd)
{
    int error = enter(call, NULL);
    const struct handle *h = handle(call, fd);
    if (error != EINTR) {
        if (h->file)
            sim_file_sync(h->file, error != 0);
        else
            sim_dir_sync(h->dir, error != 0);
    }
    return error ? refuse(error) : 0;
}

static int os_datasync(int fd)
{
    return sync_handle("datasync", fd);
}

static int os_sync(int fd)
{
    return sync_handle("sync", fd);
}

/* ---- Names -------------------------------------------------------------- */

static int os_rename(const char *from, const char *to)
{
    int error = enter("rename", NULL);
    if (error) return refuse(error);
    const struct sim *s = current;
    if (whole_dir(s, from)) misuse("rename", "directories are not simulated");
    if (whole_dir(s, to)) return refuse(EISDIR);
    const char *old, *new;
    struct sim_dir *d = resolve(s, from, &old);
    if (!d) return -1;
    const struct sim_dir *target = resolve(s, to, &new);
    if (!target) return -1;
    if (d != target) return refuse(EXDEV);
    if (!sim_dir_find(d, old)) return refuse(ENOENT);
    if (strcmp(old, new) != 0) sim_dir_rename(d, old, new);
    return 0;
}

static int os_unlink(const char *path)
{
    int error = enter("unlink", NULL);
    if (error) return refuse(error);
    if (whole_dir(current, path)) return refuse(EISDIR);
    const char *name;
    struct sim_dir *d = resolve(current, path, &name);
    if (!d) return -1;
    if (!sim_dir_find(d, name)) return refuse(ENOENT);
    sim_dir_unlink(d, name);
    return 0;
}

/* Durable at once, as by sim_mkdir(). */
static int os_mkdir(const char *path, mode_t mode)
{
    (void)mode;
    int error = enter("mkdir", NULL);
    if (error) return refuse(error);
    if (whole_dir(current, path)) return refuse(EEXIST);
    sim_mkdir(current, path);
    return 0;
}

static int os_rmdir(const char *path)
{
    (void)path;
    int error = enter("rmdir", NULL);
    return refuse(error ? error : EPERM); /* nobody does it here */
}

struct name {
    char text[SIM_NAME_MAX + 1];
};

/* All names in random order, in an array to be freed: the caller's function
 * may change the directory. */
static struct name *names_in(struct sim *s, const struct sim_dir *d, size_t *n)
{
    struct name *names =
        sim_grown(NULL, (d->now.n + s->n_dirs + 2) * sizeof *names);
    *n = 0;
    strcpy(names[(*n)++].text, ".");
    strcpy(names[(*n)++].text, "..");
    for (size_t i = 0; i < d->now.n; i++)
        strcpy(names[(*n)++].text, d->now.at[i].name);
    for (size_t i = 0; i < s->n_dirs; i++) {
        const char *name;
        const struct sim_dir *parent = resolve(s, s->dirs[i]->path, &name);
        if (parent == d && s->dirs[i] != d) strcpy(names[(*n)++].text, name);
    }
    for (size_t i = *n; i > 1; i--) {
        size_t j = (size_t)test_below(&s->rng, i);
        struct name other = names[j];
        names[j] = names[i - 1];
        names[i - 1] = other;
    }
    return names;
}

static int os_list(const char *dir, bool (*each)(void *ctx, const char *name),
                   void *ctx)
{
    int error = enter("list", NULL);
    if (error) return refuse(error);
    const struct sim_dir *d = whole_dir(current, dir);
    if (!d) return refuse(ENOENT);
    size_t n;
    struct name *names = names_in(current, d, &n);
    for (size_t i = 0; i < n && each(ctx, names[i].text); i++)
        continue;
    free(names);
    return 0;
}

static int os_lock(int fd)
{
    int error = enter("lock", NULL);
    const struct handle *h = handle("lock", fd);
    if (error) return refuse(error);
    if (h->dir) misuse("lock", "directories are not simulated");
    if (h->file->locked_by >= 0 && h->file->locked_by != fd)
        return refuse(EWOULDBLOCK);
    h->file->locked_by = fd;
    return 0;
}

/* Held by nobody: enough for whoever asks whether there is a writer. */
static int os_lock_shared(int fd)
{
    int error = enter("lock_shared", NULL);
    const struct handle *h = handle("lock_shared", fd);
    if (error) return refuse(error);
    if (h->dir) misuse("lock_shared", "directories are not simulated");
    return h->file->locked_by >= 0 ? refuse(EWOULDBLOCK) : 0;
}

static int os_cloexec(int fd)
{
    int error = enter("cloexec", NULL);
    (void)handle("cloexec", fd);
    return error ? refuse(error) : 0;
}

static int os_unlock(int fd)
{
    int error = enter("unlock", NULL);
    const struct handle *h = handle("unlock", fd);
    if (error) return refuse(error);
    if (h->dir) misuse("unlock", "directories are not simulated");
    if (h->file->locked_by == fd) h->file->locked_by = -1;
    return 0;
}

/* ---- Mappings ----------------------------------------------------------- */

static void *os_map(int fd, size_t len, enum seen_map_mode mode)
{
    int error = enter("map", NULL);
    const struct handle *h = handle("map", fd);
    if (!error && h->dir) error = ENODEV;
    if (!error && len == 0) error = EINVAL;
    if (!error && !readable(h)) error = EACCES;
    if (!error && mode == SEEN_MAP_WRITE && !writable(h)) error = EACCES;
    if (!error && len > SIM_FILE_MAX) error = ENOMEM;
    if (error) {
        errno = error;
        return NULL;
    }
    struct sim *s = current;
    struct mapping m = {sim_file_ref(h->file), NULL, len, mode};
    m.at = sim_file_map(m.file, len, mode);
    s->mappings = sim_grown(s->mappings, (s->n_mappings + 1) * sizeof m);
    s->mappings[s->n_mappings++] = m;
    return m.at;
}

static void drop_mapping(struct sim *s, struct mapping *m)
{
    sim_file_unmap(m->file, m->at, m->len, m->mode);
    sim_file_unref(m->file);
    *m = s->mappings[--s->n_mappings];
}

static int os_unmap(void *at, size_t len)
{
    int error = enter("unmap", NULL);
    struct sim *s = current;
    struct mapping *m = s->mappings, *end = m + s->n_mappings;
    while (m < end && m->at != at)
        m++;
    if (m == end) misuse("unmap", "nothing is mapped there");
    if (m->len != len) misuse("unmap", "mapped with another length");
    drop_mapping(s, m);
    return error ? refuse(error) : 0;
}

static int os_msync(void *at, size_t len)
{
    int error = enter("msync", NULL);
    const struct sim *s = current;
    uintptr_t start = (uintptr_t)at;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), i = 0;
    while (i < s->n_mappings &&
           (start < (uintptr_t)s->mappings[i].at ||
            start - (uintptr_t)s->mappings[i].at >= s->mappings[i].len))
        i++;
    if (i == s->n_mappings) misuse("msync", "nothing is mapped there");
    const struct mapping *m = &s->mappings[i];
    uint64_t from = start - (uintptr_t)m->at;
    if (len > m->len - from) misuse("msync", "beyond what is mapped");
    if (!error && start % page != 0) error = EINVAL;
    if (error == EINTR || error == EINVAL || m->mode == SEEN_MAP_PRIVATE)
        return error ? refuse(error) : 0;
    uint64_t to = (from + len + page - 1) / page * page;
    sim_file_sync_range(m->file, from, to, error != 0);
    return error ? refuse(error) : 0;
}

static ssize_t os_get_random(void *buf, size_t len)
{
    int error = enter("get_random", &len);
    if (error) return refuse(error);
    uint8_t *out = buf;
    for (size_t i = 0; i < len; i++)
        out[i] = (uint8_t)test_next(&current->rng);
    return (ssize_t)len;
}

/* ---- A disk ------------------------------------------------------------- */

static void add_dir(struct sim *s, struct sim_dir *d)
{
    s->dirs = sim_grown(s->dirs, (s->n_dirs + 1) * sizeof(struct sim_dir *));
    s->dirs[s->n_dirs++] = d;
}

static struct sim *empty(uint64_t seed)
{
    struct sim *s = calloc(1, sizeof *s);
    assert_non_null(s);
    s->next_ino = 2;
    s->room = (uint64_t)256 << 20;
    s->rng.state = test_mix(seed);
    return s;
}

struct sim *sim_new(uint64_t seed)
{
    struct sim *s = empty(seed);
    sim_mkdir(s, ".");
    sim_mkdir(s, "/");
    return s;
}

void sim_free(struct sim *s)
{
    if (!s) return;
    if (s->in_hook) misuse("sim_free", "in its own hook");
    if (current == s) sim_uninstall();
    while (s->n_mappings)
        drop_mapping(s, s->mappings);
    for (size_t i = 0; i < s->n_handles; i++)
        if (s->handles[i].file) sim_file_unref(s->handles[i].file);
    for (size_t i = 0; i < s->n_dirs; i++)
        sim_dir_free(s->dirs[i]);
    assert_int_equal(s->used, 0);
    free(s->mappings);
    free(s->handles);
    free(s->dirs);
    free(s);
}

/* While a disk is copied, each file is copied once and both know it. */
struct copying {
    struct sim *from, *to;
    struct test_rng *rng; /* NULL: nothing is lost */
};

static struct sim_file *copy_file(void *ctx, struct sim_file *f)
{
    const struct copying *c = ctx;
    if (f->twin) return sim_file_ref(f->twin);
    struct sim *s = c->from;
    f->twin = c->rng ? sim_file_after_power_loss(f, c->rng, &c->to->used)
                     : sim_file_copy(f, &c->to->used);
    s->twins =
        sim_grown(s->twins, (s->n_twins + 1) * sizeof(struct sim_file *));
    s->twins[s->n_twins++] = f;
    return f->twin;
}

static struct sim *copy_disk(struct sim *s, uint64_t seed, struct test_rng *r)
{
    observe(s);
    struct copying c = {.from = s, .to = empty(seed), .rng = r};
    c.to->next_ino = s->next_ino;
    c.to->room = s->room;
    for (size_t i = 0; i < s->n_dirs; i++)
        add_dir(c.to, r ? sim_dir_after_power_loss(s->dirs[i], r, copy_file, &c)
                        : sim_dir_copy(s->dirs[i], copy_file, &c));
    for (size_t i = 0; i < s->n_twins; i++)
        s->twins[i]->twin = NULL;
    free(s->twins);
    s->twins = NULL;
    s->n_twins = 0;
    return c.to;
}

struct sim *sim_after_power_loss(struct sim *s, uint64_t seed)
{
    struct test_rng r = {test_mix(seed)};
    return copy_disk(s, test_next(&r), &r);
}

struct sim *sim_after_kill(struct sim *s)
{
    return copy_disk(s, s->rng.state, NULL);
}

/* ---- The rest of the interface ------------------------------------------ */

static uint32_t os_user(void) /* everything is its */
{
    return 0;
}

static uint64_t os_process(void) /* nobody forks here */
{
    return 1;
}

static const struct seen_os simulated = {
    .get_random = os_get_random,
    .open = os_open,
    .close = os_close,
    .cloexec = os_cloexec,
    .resolve = os_resolve,
    .stat = os_stat,
    .fstat = os_fstat,
    .read = os_read,
    .write = os_write,
    .pread = os_pread,
    .pwrite = os_pwrite,
    .truncate = os_truncate,
    .chmod = os_chmod,
    .chown = os_chown,
    .allocate = os_allocate,
    .space = os_space,
    .datasync = os_datasync,
    .sync = os_sync,
    .rename = os_rename,
    .unlink = os_unlink,
    .mkdir = os_mkdir,
    .rmdir = os_rmdir,
    .lock = os_lock,
    .lock_shared = os_lock_shared,
    .unlock = os_unlock,
    .process = os_process,
    .user = os_user,
    .clock = test_clock,
    .ticks = test_ticks,
    .list = os_list,
    .map = os_map,
    .unmap = os_unmap,
    .msync = os_msync,
};

struct sim *sim_install(struct sim *s)
{
    struct sim *previous = current;
    if (!before) before = seen_os;
    current = s;
    seen_os = s ? &simulated : before;
    if (!s) before = NULL;
    return previous;
}

void sim_uninstall(void)
{
    sim_install(NULL);
}

void sim_on_call(struct sim *s, void (*hook)(void *ctx, const char *call),
                 void *ctx)
{
    s->hook = hook;
    s->hook_ctx = ctx;
}

uint64_t sim_calls(const struct sim *s)
{
    return s->calls;
}

struct faults *sim_faults(struct sim *s)
{
    return &s->faults;
}

void sim_set_room(struct sim *s, uint64_t bytes)
{
    s->room = bytes;
}

void sim_mkdir(struct sim *s, const char *path)
{
    if (!whole_dir(s, path)) add_dir(s, sim_dir_new(path, s->next_ino++));
}

void sim_put(struct sim *s, const char *path, const void *bytes, size_t len)
{
    const char *name;
    struct sim_dir *d = resolve(s, path, &name);
    if (!d) misuse("sim_put", "no such directory");
    struct sim_file *f = sim_file_new(s->next_ino++, 0644, &s->used);
    sim_file_write(f, bytes, len, 0);
    sim_file_sync(f, false);
    sim_dir_create(d, name, f);
    sim_dir_sync(d, false);
    sim_file_unref(f);
}

const uint8_t *sim_get(struct sim *s, const char *path, size_t *len)
{
    const char *name;
    const struct sim_dir *d = resolve(s, path, &name);
    const struct sim_file *f = d ? sim_dir_find(d, name) : NULL;
    if (!f) return NULL;
    *len = (size_t)f->size;
    static const uint8_t nothing;
    return f->now ? f->now : &nothing;
}

bool sim_all_durable(struct sim *s)
{
    observe(s);
    for (size_t i = 0; i < s->n_dirs; i++) {
        const struct sim_dir *d = s->dirs[i];
        if (d->n_changes) return false;
        for (size_t j = 0; j < d->now.n; j++)
            if (!sim_file_durable(d->now.at[j].file)) return false;
    }
    return true;
}

uint64_t sim_open_files(const struct sim *s)
{
    return s->n_open;
}

uint64_t sim_mappings(const struct sim *s)
{
    return s->n_mappings;
}
