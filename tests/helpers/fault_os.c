/* fault_os.c - see fault_os.h: wrappers that ask before they call. */
#include "helpers/fault_os.h"

#include "helpers/clock.h"
#include "helpers/harness.h"
#include "store/os.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

static struct faults plan;
static pthread_mutex_t plan_lock = PTHREAD_MUTEX_INITIALIZER;
static const struct seen_os *real;
static atomic_uint_fast64_t open_files, mappings;

/* May this call go ahead? Otherwise errno says why not. */
static bool allowed(const char *call, size_t *len)
{
    pthread_mutex_lock(&plan_lock);
    int error = fault_next(&plan, call, len);
    pthread_mutex_unlock(&plan_lock);
    if (error) errno = error;
    return !error;
}

static ssize_t os_get_random(void *buf, size_t len)
{
    return allowed("get_random", &len) ? real->get_random(buf, len) : -1;
}

static int os_open(const char *path, int flags, mode_t mode)
{
    if (!allowed("open", NULL)) return -1;
    int fd = real->open(path, flags, mode);
    if (fd >= 0) open_files++;
    return fd;
}

static int os_close(int fd)
{
    int status = real->close(fd);
    if (status == 0) open_files--;
    return allowed("close", NULL) ? status : -1;
}

static int os_resolve(const char *path, char *buf, size_t cap)
{
    return allowed("resolve", NULL) ? real->resolve(path, buf, cap) : -1;
}

static int os_stat(const char *path, struct seen_stat *out)
{
    return allowed("stat", NULL) ? real->stat(path, out) : -1;
}

static int os_fstat(int fd, struct seen_stat *out)
{
    return allowed("fstat", NULL) ? real->fstat(fd, out) : -1;
}

static ssize_t os_read(int fd, void *buf, size_t len)
{
    return allowed("read", &len) ? real->read(fd, buf, len) : -1;
}

static ssize_t os_write(int fd, const void *buf, size_t len)
{
    return allowed("write", &len) ? real->write(fd, buf, len) : -1;
}

static ssize_t os_pread(int fd, void *buf, size_t len, uint64_t offset)
{
    return allowed("pread", &len) ? real->pread(fd, buf, len, offset) : -1;
}

static ssize_t os_pwrite(int fd, const void *buf, size_t len, uint64_t offset)
{
    return allowed("pwrite", &len) ? real->pwrite(fd, buf, len, offset) : -1;
}

static int os_truncate(int fd, uint64_t len)
{
    return allowed("truncate", NULL) ? real->truncate(fd, len) : -1;
}

static int os_chmod(int fd, mode_t mode)
{
    return allowed("chmod", NULL) ? real->chmod(fd, mode) : -1;
}

static int os_chown(int fd, uint32_t user, uint32_t group)
{
    return allowed("chown", NULL) ? real->chown(fd, user, group) : -1;
}

static int os_allocate(int fd, uint64_t len)
{
    return allowed("allocate", NULL) ? real->allocate(fd, len) : -1;
}

static int os_space(int fd, uint64_t *bytes)
{
    return allowed("space", NULL) ? real->space(fd, bytes) : -1;
}

static int os_datasync(int fd)
{
    return allowed("datasync", NULL) ? real->datasync(fd) : -1;
}

static int os_sync(int fd)
{
    return allowed("sync", NULL) ? real->sync(fd) : -1;
}

static int os_rename(const char *from, const char *to)
{
    return allowed("rename", NULL) ? real->rename(from, to) : -1;
}

static int os_unlink(const char *path)
{
    return allowed("unlink", NULL) ? real->unlink(path) : -1;
}

static int os_mkdir(const char *path, mode_t mode)
{
    return allowed("mkdir", NULL) ? real->mkdir(path, mode) : -1;
}

static int os_rmdir(const char *path)
{
    return allowed("rmdir", NULL) ? real->rmdir(path) : -1;
}

static int os_lock(int fd)
{
    return allowed("lock", NULL) ? real->lock(fd) : -1;
}

static int os_lock_shared(int fd)
{
    return allowed("lock_shared", NULL) ? real->lock_shared(fd) : -1;
}

static int os_cloexec(int fd)
{
    return allowed("cloexec", NULL) ? real->cloexec(fd) : -1;
}

static int os_unlock(int fd)
{
    return allowed("unlock", NULL) ? real->unlock(fd) : -1;
}

static uint64_t os_process(void)
{
    return real->process();
}

static uint32_t os_user(void)
{
    return real->user();
}

static int os_list(const char *dir, bool (*each)(void *ctx, const char *name),
                   void *ctx)
{
    return allowed("list", NULL) ? real->list(dir, each, ctx) : -1;
}

static void *os_map(int fd, size_t len, enum seen_map_mode mode)
{
    if (!allowed("map", NULL)) return NULL;
    void *at = real->map(fd, len, mode);
    if (at) mappings++;
    return at;
}

static int os_unmap(void *at, size_t len)
{
    int status = real->unmap(at, len);
    if (status == 0) mappings--;
    return allowed("unmap", NULL) ? status : -1;
}

static int os_msync(void *at, size_t len)
{
    return allowed("msync", NULL) ? real->msync(at, len) : -1;
}

static const struct seen_os faulty = {
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

struct faults *fault_os_install(void)
{
    assert_ptr_not_equal(seen_os, &faulty);
    real = seen_os;
    seen_os = &faulty;
    plan = (struct faults){0};
    open_files = mappings = 0;
    return &plan;
}

void fault_os_uninstall(void)
{
    assert_ptr_equal(seen_os, &faulty);
    seen_os = real;
}

uint64_t fault_os_open_files(void)
{
    return open_files;
}

uint64_t fault_os_mappings(void)
{
    return mappings;
}
