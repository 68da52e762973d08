/*
 * 10_digest.c - two caches tell each other what they have, in a byte an object.
 *
 * A cache that does not have an object may ask its neighbour before it goes all the
 * way to the origin. Asking for every object costs a round trip for each, nearly
 * always for nothing. So the neighbours send each other a digest now and then, a
 * filter of all they have, and ask only where it says maybe:
 *
 *     request ──► own cache ──► digest of B ──► B ──► origin
 *                                  │                    ▲
 *                                  └─ never ────────────┘
 *
 * Squid has done so since 1998, with Bloom filters of 5 bits an object and 4
 * hashes: 9 % of what B does not have is asked for in vain. A digest does not
 * change, so a ribbon filter serves: 7 bits, and 0.8 %.
 *
 * A digest is of the moment it was made. What B got since is fetched from the
 * origin, what B lost is asked for in vain: both cost time, neither is wrong. Make
 * a new one when a tenth has changed.
 *
 * Who sees the bytes could test which pages a cache has, one guess after the other.
 * Hence the secret, which both have and the digest is sent without
 * (SEEN_SECRET_APART). And whatever arrives instead of a digest is an error, not a
 * crash: seen_load() takes any bytes.
 *
 * Here A is this process, B its child, and a socket is between them.
 */
#define _POSIX_C_SOURCE 200809L

#include <seen.h>
#include <seen_file.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    OBJECTS = 1000000,   /* in the world */
    HELD = 100000,       /* by B: one in ten */
    REQUESTS = 200000,   /* that A cannot answer itself */
    MOST_BYTES = 1000000 /* of a digest: the other end may be anybody */
};

#define RATE 0.01

static uint8_t secret[16]; /* A and B have agreed on it */

static void die(const char *what)
{
    perror(what);
    exit(2);
}

static void must(seen_status status, const char *what)
{
    if (status == SEEN_OK) return;
    fprintf(stderr, "%s: %s\n", what, seen_strerror(status));
    exit(2);
}

static void send_all(int fd, const void *from, size_t len)
{
    for (const char *at = from; len > 0;) {
        ssize_t n = write(fd, at, len);
        if (n <= 0) die("write");
        at += n;
        len -= (size_t)n;
    }
}

static bool receive_all(int fd, void *to, size_t len)
{
    for (char *at = to; len > 0;) {
        ssize_t n = read(fd, at, len);
        if (n < 0) die("read");
        if (n == 0) return false; /* the other end is closed */
        at += n;
        len -= (size_t)n;
    }
    return true;
}

/* ---- The world ----------------------------------------------------------- */

static size_t name_of(uint64_t object, char name[64])
{
    return (size_t)snprintf(name, 64, "http://example.com/object/%" PRIu64,
                            object);
}

static bool b_has(uint64_t object)
{
    return object % (OBJECTS / HELD) == 7;
}

/* ---- B: sends its digest, then answers ------------------------------------- */

static void send_digest(int to)
{
    seen_builder *b;
    seen_filter *f;
    must(seen_builder_new(&b,
                          &(seen_spec){.kind = SEEN_RIBBON,
                                       .fpp = RATE,
                                       .flags = SEEN_KEYED,
                                       .secret = secret},
                          NULL),
         "builder");
    for (uint64_t object = 0; object < OBJECTS; object++) {
        char name[64];
        if (!b_has(object)) continue;
        seen_key key = {name, name_of(object, name)};
        must(seen_builder_add_many(b, seen_keys_of(&key, 1)), "add");
    }
    must(seen_builder_finish(b, &f, NULL), "finish");
    size_t len;
    seen_save(f, SEEN_SECRET_APART, NULL, 0, &len);
    void *bytes = malloc(len);
    if (!bytes) die("malloc");
    must(seen_save(f, SEEN_SECRET_APART, bytes, len, &len), "save");
    uint64_t size = len;
    send_all(to, &size, sizeof size);
    send_all(to, bytes, len);
    free(bytes);
    seen_free(f);
    seen_builder_free(b);
}

static void be_b(int a)
{
    uint64_t object;
    send_digest(a);
    while (receive_all(a, &object, sizeof object)) {
        bool has = b_has(object);
        send_all(a, &has, sizeof has);
    }
}

/* ---- A: asks where the digest says maybe ----------------------------------- */

static seen_filter *receive_digest(int b, size_t *len)
{
    uint64_t size;
    if (!receive_all(b, &size, sizeof size) || size > MOST_BYTES)
        must(SEEN_CORRUPT, "digest");
    void *bytes = malloc(size);
    if (!bytes) die("malloc");
    if (!receive_all(b, bytes, size)) must(SEEN_CORRUPT, "digest");
    seen_filter *f;
    if (seen_load(&f, bytes, size, NULL, NULL, NULL) != SEEN_NO_SECRET)
        must(SEEN_MISMATCH, "a digest that anybody can read");
    must(seen_load(&f, bytes, size, secret, NULL, NULL), "digest");
    free(bytes);
    *len = size;
    return f;
}

int main(void)
{
    int ends[2];
    must(seen_random_secret(secret), "secret");
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) die("socketpair");
    pid_t child = fork();
    if (child < 0) die("fork");
    if (child == 0) {
        close(ends[0]);
        be_b(ends[1]);
        _exit(0);
    }
    close(ends[1]);
    size_t len;
    seen_filter *digest = receive_digest(ends[0], &len);

    uint64_t asked = 0, found = 0, in_vain = 0, overlooked = 0, strangers = 0;
    for (uint64_t i = 0; i < REQUESTS; i++) {
        char name[64];
        uint64_t object = i * 7919 % OBJECTS; /* another one each time */
        bool has = false;
        strangers += !b_has(object);
        if (seen_maybe(digest, name, name_of(object, name))) {
            asked++;
            send_all(ends[0], &object, sizeof object);
            if (!receive_all(ends[0], &has, sizeof has))
                must(SEEN_IO, "B has gone");
            found += has;
            in_vain += !has;
        } else {
            overlooked += b_has(object);
        }
    }
    close(ends[0]);
    int status;
    if (waitpid(child, &status, 0) < 0 || status != 0) die("B");

    double expected = RATE * (double)strangers;
    printf("a digest of %d objects: %zu bytes, %.1f bits each\n", HELD, len,
           8.0 * (double)len / HELD);
    printf("%d requests: asked %" PRIu64 " times, found %" PRIu64
           ", in vain %" PRIu64 "\n",
           REQUESTS, asked, found, in_vain);
    printf("in vain: %.2f %%, promised %.2f %%; 5 bits and 4 hashes: %.2f %%\n",
           100 * (double)in_vain / (double)strangers, 100 * RATE,
           100 * seen_fpp_bloom(1, 5, 4));
    printf("overlooked: %" PRIu64 "\n", overlooked);
    seen_free(digest);
    return overlooked || found != REQUESTS - strangers ||
           (double)in_vain > expected + 5 * sqrt(expected);
}
