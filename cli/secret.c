/* secret.c - see secret.h. */
#define _POSIX_C_SOURCE 200809L

#include "secret.h"

#include "memory.h"
#include "output.h"
#include "spec.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <seen_file.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECRET 16
#define HEX    (2 * SECRET)

static uint8_t secret[SECRET];
static bool unwritten; /* it is new and belongs into a file of its own */

/* ---- Reading ------------------------------------------------------------ */

static bool from_hex(const char *text)
{
    for (size_t i = 0; i < HEX; i++)
        if (!isxdigit((unsigned char)text[i])) return false;
    for (size_t i = 0; i < SECRET; i++) {
        char pair[3] = {text[2 * i], text[2 * i + 1], '\0'};
        secret[i] = (uint8_t)strtoul(pair, NULL, 16);
    }
    return true;
}

/* One byte more than the longest that is right. */
static size_t read_text(int fd, char text[HEX + 2])
{
    size_t len = 0;
    while (len < HEX + 2) {
        ssize_t got = read(fd, text + len, HEX + 2 - len);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) fail("%s: read: %s", wish.secret_file, strerror(errno));
        if (got == 0) break;
        len += (size_t)got;
    }
    return len;
}

/* false: there is no such file. Read once, however many filters it is for: it may
 * be a pipe. */
static bool read_secret(void)
{
    static const char *known; /* its name: seen server has two */
    char text[HEX + 2];
    if (known == wish.secret_file) return true;
    int fd = open(wish.secret_file, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) return false;
    if (fd < 0) fail("%s: %s", wish.secret_file, strerror(errno));
    size_t len = read_text(fd, text);
    close(fd);
    bool line = len == HEX + 1 && text[HEX] == '\n';
    if (len == SECRET)
        memcpy(secret, text, SECRET);
    else if (!(len == HEX || line) || !from_hex(text))
        fail("%s: is not a secret: expected 16 bytes or 32 hex digits",
             wish.secret_file);
    known = wish.secret_file;
    return true;
}

const uint8_t *given_secret(void)
{
    if (!wish.secret_file) return NULL;
    if (!read_secret()) fail("%s: %s", wish.secret_file, strerror(ENOENT));
    return secret;
}

/* ---- Making ------------------------------------------------------------- */

const uint8_t *new_secret(void)
{
    if (!wish.keyed && !wish.secret_file) return NULL;
    if (wish.secret_file && read_secret()) return secret;
    if (seen_random_secret(secret) != SEEN_OK)
        fail("the system gave no random bytes for a secret");
    unwritten = wish.secret_file != NULL;
    return secret;
}

static bool write_secret(int fd)
{
    char text[HEX + 2];
    for (size_t i = 0; i < SECRET; i++)
        snprintf(text + 2 * i, 3, "%02x", secret[i]);
    text[HEX] = '\n';
    return write(fd, text, HEX + 1) == HEX + 1 && fsync(fd) == 0;
}

/* A filter whose secret a loss of power takes away is lost, too. Where the
 * directory cannot be synced, there is nothing better to be done. */
static void sync_dir_of(const char *path)
{
    char *dir = must_have(strdup(path));
    char *slash = strrchr(dir, '/');
    if (slash) slash[slash == dir] = '\0';
    int fd = open(slash ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
    free(dir);
}

void keep_secret(void)
{
    if (!unwritten) return;
    int fd =
        open(wish.secret_file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) fail("%s: %s", wish.secret_file, strerror(errno));
    if (!write_secret(fd)) {
        int error = errno;
        forget_secret();
        fail("%s: write: %s", wish.secret_file, strerror(error));
    }
    close(fd);
    sync_dir_of(wish.secret_file);
}

void forget_secret(void)
{
    if (unwritten) unlink(wish.secret_file);
}
