/*
 * client.c - see client.h.
 *
 * Long, because it is one state machine: the nodes that are known, the map of
 * slots to them, and a run of commands, whose replies (MOVED, ASK, a lost
 * connection) change both while it goes on. Reading replies is receive.c.
 */
#define _POSIX_C_SOURCE 200809L

#include "redis/client.h"

#include "base/alloc.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "redis/receive.h"
#include "redis/reply.h"
#include "store/os.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#define SLOTS        16384
#define NODES        SEEN_REDIS_PRIMARIES
#define TIMEOUT_MS   5000
#define PATIENCE_MS  10000
#define PAUSE_MS     20 /* before trying again; longer each time */
#define PAUSE_MAX    200
#define REDIRECTIONS 5 /* rounds without a pause; then nodes disagree */
#define NO_NODE      UINT16_MAX
#define SHORT        6 /* bytes of a password that may be a part of a word */
#define REDIRECTED   0x8000 /* in `node`: there, in the next round */

struct node {
    char host[256];
    uint16_t port;      /* 0: of no node */
    bool wanted;        /* a command was sent there, and goes in this round */
    redisContext *conn; /* NULL: not connected */
    struct seen_receiver receiver;
};

/* What went wrong, in words. */
struct problem {
    size_t command; /* whose it is */
    int os_errno;
    char text[320];
};

struct seen_redis {
    char user[128], password[256];
    uint32_t db;
    uint64_t timeout_ms, patience_ms;
    struct node nodes[NODES];
    uint16_t n_nodes;
    bool cluster;          /* the map of slots is known */
    bool map_is_old;       /* and somebody has said that it is wrong */
    bool moved;            /* a command was sent elsewhere in this round */
    bool stranger;         /* a password is wanted, and none was given */
    bool strange;          /* what was said of the slots is no map */
    uint16_t slots[SLOTS]; /* nodes */
    struct problem last;   /* that there was */
    /* Of a run: of the first command that failed for good, and of the first that
     * failed in this round and is tried again. */
    struct problem final, later;
};

/* ---- Slots -------------------------------------------------------------- */

/* CRC-16/XMODEM: polynomial 1021, from 0. */
static uint16_t crc16(const uint8_t *p, size_t len)
{
    uint32_t crc = 0;
    for (size_t i = 0; i < len; i++) {
        crc ^= (uint32_t)p[i] << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1;
    }
    return (uint16_t)crc;
}

uint16_t seen_redis_slot(const void *key, size_t len)
{
    const uint8_t *p = key, *open = len ? memchr(p, '{', len) : NULL;
    if (open) {
        size_t left = (size_t)(p + len - open - 1);
        const uint8_t *close = left ? memchr(open + 1, '}', left) : NULL;
        if (close && close > open + 1)
            return crc16(open + 1, (size_t)(close - open - 1)) % SLOTS;
    }
    return crc16(p, len) % SLOTS;
}

/* ---- Connections -------------------------------------------------------- */

/* In the words of a server may be what we have sent it ("unknown command 'AUTH',
 * with args beginning with: ..."). (Where a short password is part of other words, stars would tell what it is.) */
static void clean(const seen_redis *c, char *text)
{
    size_t len = strlen(c->password);
    char *sent = strstr(text, ", with args");
    if (sent) *sent = '\0';
    for (char *at = text; len >= SHORT && (at = strstr(at, c->password));) {
        memset(at, '*', len);
        at += len;
    }
}

static void complain(seen_redis *c, const struct node *n, const char *what)
{
    char words[1024];
    snprintf(words, sizeof words, "%s", what);
    clean(c, words);
    c->last.os_errno = 0;
    snprintf(c->last.text, sizeof c->last.text, "%.100s:%u: %.200s", n->host,
             n->port, words);
}

static void complain_lost(seen_redis *c, const struct node *n, bool unsure)
{
    char what[256];
    snprintf(what, sizeof what, "%.100s%s",
             n->receiver.problem[0] ? n->receiver.problem
                                    : "no memory to send it",
             unsure ? ": whether it happened is not known" : "");
    complain(c, n, what);
    c->last.os_errno = n->receiver.os_errno;
}

/* The last problem is that of a command, which `is_pending` or has failed. The
 * first one counts: its status is that of the run. */
static void blame(seen_redis *c, size_t command, bool is_pending)
{
    struct problem *p = is_pending ? &c->later : &c->final;
    if (command > p->command) return;
    *p = c->last;
    p->command = command;
}

static seen_status tell(const struct problem *p, seen_status status,
                        const char *field, seen_error *error)
{
    if (error && error->status == SEEN_OK) error->os_errno = p->os_errno;
    return seen_fail(error, status, field, "%s", p->text);
}

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static void disconnect(struct node *n)
{
    if (n->conn) redisFree(n->conn);
    n->conn = NULL;
}

/* A command by itself; NULL: the connection is lost. */
static redisReply *do_one(struct node *n, int argc, const char **argv)
{
    redisAppendCommandArgv(n->conn, argc, argv, NULL);
    return seen_receive(&n->receiver);
}

/* A command while connecting: AUTH, SELECT. */
static bool greet(seen_redis *c, struct node *n, int argc, const char **argv)
{
    redisReply *reply = do_one(n, argc, argv);
    const char *error = reply ? seen_reply_error(reply) : NULL;
    bool good = reply && seen_reply_status(reply);
    if (error)
        complain(c, n, error);
    else if (!reply)
        complain_lost(c, n, false);
    else if (!good)
        complain(c, n, "the reply to AUTH or SELECT is no status");
    if (reply) freeReplyObject(reply);
    return good;
}

static bool connect_node(seen_redis *c, struct node *n)
{
    if (n->conn && !n->conn->err) return true;
    disconnect(n);
    struct timeval wait = {.tv_sec = (time_t)(c->timeout_ms / 1000),
                           .tv_usec =
                               (suseconds_t)(c->timeout_ms % 1000) * 1000};
    n->conn = redisConnectWithTimeout(n->host, n->port, wait);
    if (!n->conn || n->conn->err) {
        int number = n->conn && n->conn->err == REDIS_ERR_IO ? errno : 0;
        complain(c, n, n->conn ? n->conn->errstr : "no memory");
        c->last.os_errno = number;
        disconnect(n);
        return false;
    }
    (void)seen_os->cloexec(n->conn->fd); /* an open session, for strangers */
    redisEnableKeepAlive(n->conn);
    seen_receive_begin(&n->receiver, n->conn, c->timeout_ms);
    const char *auth[] = {"AUTH", c->user[0] ? c->user : c->password,
                          c->password};
    char db[16];
    const char *select[] = {"SELECT", db};
    snprintf(db, sizeof db, "%u", c->db);
    bool good = true;
    if (c->password[0]) good = greet(c, n, c->user[0] ? 3 : 2, auth);
    if (good && c->db) good = greet(c, n, 2, select);
    if (!good) disconnect(n);
    return good;
}

/* ---- Nodes -------------------------------------------------------------- */

static uint16_t find_node(const seen_redis *c, const char *host, uint64_t port)
{
    for (uint16_t i = 0; i < c->n_nodes; i++)
        if (c->nodes[i].port == port && strcmp(c->nodes[i].host, host) == 0)
            return i;
    return NO_NODE;
}

static uint16_t node_at(seen_redis *c, const char *host, uint64_t port)
{
    uint16_t i = find_node(c, host, port);
    if (i != NO_NODE) return i;
    for (i = 0; i < c->n_nodes && c->nodes[i].port; i++)
        ;
    if (i == NODES || strlen(host) >= sizeof c->nodes[0].host) return NO_NODE;
    c->nodes[i] = (struct node){.port = (uint16_t)port};
    memcpy(c->nodes[i].host, host, strlen(host) + 1);
    if (i == c->n_nodes) c->n_nodes++;
    return i;
}

/* Nodes come and go, and a client stays. The first one was named by the caller and
 * may be known to the cluster by another name. */
static void forget_nodes(seen_redis *c, const bool named[NODES])
{
    for (uint16_t i = 1; i < c->n_nodes; i++) {
        if (named[i] || c->nodes[i].wanted) continue;
        disconnect(&c->nodes[i]);
        c->nodes[i].port = 0;
    }
}

/* "127.0.0.1:7001", as MOVED and ASK have it; without a host: the same one. */
static uint16_t node_named(seen_redis *c, const char *name, const char *self)
{
    char host[256];
    uint64_t port;
    const char *colon = strrchr(name, ':');
    if (!colon || (size_t)(colon - name) >= sizeof host) return NO_NODE;
    memcpy(host, name, (size_t)(colon - name));
    host[colon - name] = '\0';
    if (!seen_url_digits(colon + 1, 65535, &port) || !port) return NO_NODE;
    return node_at(c, host[0] ? host : self, port);
}

/* One range of CLUSTER SLOTS: first, last, [host, port, ...], replicas. */
struct range {
    int64_t first, last, port;
    const char *host;
};

static bool read_range(const redisReply *range, const char *self,
                       struct range *out)
{
    size_t parts, words;
    seen_key host = {0};
    if (!seen_reply_array(range, &parts) || parts < 3) return false;
    const redisReply *primary = seen_reply_at(range, 2);
    if (!seen_reply_array(primary, &words) || words < 2 ||
        !seen_reply_integer(seen_reply_at(range, 0), 0, SLOTS - 1,
                            &out->first) ||
        !seen_reply_integer(seen_reply_at(range, 1), out->first, SLOTS - 1,
                            &out->last) ||
        !seen_reply_integer(seen_reply_at(primary, 1), 1, 65535, &out->port))
        return false;
    if (!seen_reply_string(seen_reply_at(primary, 0), &host) &&
        !seen_reply_nil(seen_reply_at(primary, 0)))
        return false;
    out->host = host.len ? host.data : self;
    return true;
}

/* The map that was there stays unless this is a whole one. Nodes that are not in
 * it are forgotten first: others may need their place. */
static bool take_map(seen_redis *c, const struct node *n,
                     const redisReply *reply)
{
    struct range r;
    size_t ranges = 0;
    bool named[NODES] = {false}, good = seen_reply_array(reply, &ranges);
    for (size_t i = 0; good && i < ranges; i++) {
        good = read_range(seen_reply_at(reply, i), n->host, &r);
        uint16_t at = good ? find_node(c, r.host, (uint64_t)r.port) : NO_NODE;
        if (at != NO_NODE) named[at] = true;
    }
    if (!good) {
        c->strange = true;
        complain(c, n, "the reply to CLUSTER SLOTS is no map of slots");
    }
    if (!good || !ranges) return false;
    named[n - c->nodes] = true; /* it lives, and its name is needed below */
    forget_nodes(c, named);
    memset(c->slots, 0xff, sizeof c->slots);
    for (size_t i = 0; i < ranges; i++) {
        (void)read_range(seen_reply_at(reply, i), n->host, &r);
        uint16_t at = node_at(c, r.host, (uint64_t)r.port);
        for (int64_t slot = r.first; slot <= r.last; slot++)
            c->slots[slot] = at;
    }
    return true;
}

static bool ask_map(seen_redis *c, struct node *n)
{
    const char *argv[] = {"CLUSTER", "SLOTS"};
    redisReply *reply = NULL;
    for (bool again = n->conn; !reply; again = false) {
        if (!connect_node(c, n)) return false;
        reply = do_one(n, 2, argv);
        if (!reply) complain_lost(c, n, false);
        if (!reply) disconnect(n);
        if (!again) break; /* one that was idle may have been closed */
    }
    if (!reply) return false;
    const char *error = seen_reply_error(reply);
    bool good = !error && take_map(c, n, reply);
    if (error && starts(error, "NOAUTH")) {
        c->stranger = true;
        complain(c, n, error);
    }
    freeReplyObject(reply);
    return good;
}

/* From whoever answers first. Nodes that do not may be many, and each takes its
 * time: all but the first are asked only while there is patience. */
static bool renew_map(seen_redis *c, uint64_t until)
{
    for (uint16_t i = 0; i < c->n_nodes; i++) {
        if (!c->nodes[i].port) continue;
        if (i > 0 && seen_receive_clock() >= until) break;
        if (!ask_map(c, &c->nodes[i])) continue;
        c->cluster = true;
        c->map_is_old = false;
        return true;
    }
    return false;
}

static uint16_t node_for(const seen_redis *c, const struct seen_command *k)
{
    if (k->primary) return (uint16_t)(k->primary - 1);
    if (!c->cluster || k->key == 0) return 0;
    const char *key = k->wire ? k->wire + k->key : k->argv[k->key];
    uint16_t node =
        c->slots[seen_redis_slot(key, k->wire ? k->key_len : k->len[k->key])];
    return node == NO_NODE ? 0 : node;
}

/* ---- Replies ------------------------------------------------------------ */

/* "MOVED 3999 127.0.0.1:6381": where to. */
static bool redirect(seen_redis *c, struct seen_command *k,
                     const struct node *from, const char *error)
{
    bool ask = starts(error, "ASK ");
    if (!ask && !starts(error, "MOVED ")) return false;
    const char *space = strrchr(error, ' ');
    uint16_t to = node_named(c, space + 1, from->host);
    if (!ask) c->map_is_old = true;
    if (to == NO_NODE) return false;
    c->moved = true;
    c->nodes[to].wanted = true;
    k->node = to;
    k->asking = ask;
    return true;
}

static bool means_later(const char *error)
{
    static const char *const later[] = {"TRYAGAIN", "CLUSTERDOWN", "LOADING",
                                        "READONLY", "MASTERDOWN",  "NOREPLICAS",
                                        "BUSY"};
    for (size_t i = 0; i < sizeof later / sizeof *later; i++)
        if (starts(error, later[i])) return true;
    return false;
}

/* What a reply means for its command; *later: the server is not ready. */
static void take_reply(seen_redis *c, struct seen_command *k, size_t i,
                       struct node *n, redisReply *reply, bool *later)
{
    const char *error = seen_reply_error(reply);
    k->reply = reply;
    k->asking = false;
    k->pending = false;
    k->unknown = false;
    k->status = SEEN_OK;
    if (!error) return;
    complain(c, n, error);
    k->status = SEEN_IO;
    errno = EPROTO;
    bool moved = redirect(c, k, n, error);
    bool wait = !moved && means_later(error);
    if (starts(error, "READONLY") || starts(error, "CLUSTERDOWN"))
        c->map_is_old = true;
    if (!moved && !wait && starts(error, "ERR unknown command"))
        k->status = SEEN_UNSUPPORTED;
    k->unknown = k->script && starts(error, "NOSCRIPT");
    k->pending = moved || wait || k->unknown;
    *later |= wait;
    blame(c, i, k->pending);
    freeReplyObject(reply);
    k->reply = NULL;
}

/* ---- Running ------------------------------------------------------------ */

static bool is_due(const struct seen_command *k, uint16_t node)
{
    return k->pending && k->node == node;
}

/* Commands from `i` on that lie one behind the other, in one piece; the next. */
static size_t send_wire(const struct node *n, const struct seen_command *k,
                        size_t i, size_t count, uint16_t node, bool *good)
{
    const char *from = k[i].wire;
    size_t len = 0;
    do
        len += k[i++].wire_len;
    while (i < count && is_due(&k[i], node) && !k[i].asking &&
           k[i].wire == from + len);
    *good = redisAppendFormattedCommand(n->conn, from, len) == REDIS_OK;
    return i;
}

static bool send_all(const struct node *n, struct seen_command *k, size_t count,
                     uint16_t node)
{
    const char *asking[] = {"ASKING"};
    bool good = true;
    for (size_t i = 0; good && i < count;) {
        if (!is_due(&k[i], node)) {
            i++;
            continue;
        }
        if (k[i].asking)
            good = redisAppendCommandArgv(n->conn, 1, asking, NULL) == REDIS_OK;
        if (good && k[i].wire) {
            i = send_wire(n, k, i, count, node, &good);
        } else if (good) {
            good = redisAppendCommandArgv(n->conn, k[i].argc, k[i].argv,
                                          k[i].len) == REDIS_OK;
            i++;
        }
    }
    return good;
}

/* The connection is gone; *later: it is to be tried again. */
static void lose(seen_redis *c, struct node *n, struct seen_command *k,
                 size_t count, uint16_t node, bool sent, bool *later)
{
    bool unsure = false;
    for (size_t i = 0; i < count; i++)
        unsure |= sent && is_due(&k[i], node) && !k[i].repeatable;
    bool nonsense = sent && n->receiver.nonsense; /* it would come again */
    if (sent) complain_lost(c, n, unsure);
    disconnect(n);
    c->map_is_old = c->cluster;
    for (size_t i = 0; i < count; i++) {
        if (!is_due(&k[i], node)) continue;
        k[i].status = nonsense ? SEEN_CORRUPT : SEEN_IO;
        k[i].asking = false;
        k[i].pending = !nonsense && (k[i].repeatable || !sent);
        *later |= k[i].pending;
        blame(c, i, k[i].pending);
    }
}

/* Scripts that the node did not know: it does the next time. */
static bool load_scripts(struct node *n, const struct seen_command *k,
                         size_t count, uint16_t node)
{
    const char *last = NULL;
    bool good = true;
    for (size_t i = 0; good && i < count; i++) {
        if (!k[i].unknown || k[i].node != node || k[i].script == last) continue;
        const char *argv[] = {"SCRIPT", "LOAD", k[i].script};
        redisReply *reply = do_one(n, 3, argv);
        good = reply != NULL;
        if (reply) freeReplyObject(reply);
        last = k[i].script;
    }
    return good;
}

/* An array in a reply has no more elements than its command has words, or than
 * any may have. */
static size_t most_elements(const struct seen_command *k, size_t count)
{
    size_t most = 0;
    for (size_t i = 0; i < count; i++)
        if (k[i].argc > 0 && (size_t)k[i].argc > most) most = (size_t)k[i].argc;
    return SEEN_RECEIVE_ELEMENTS + most;
}

static redisReply *reply_to(struct node *n, const struct seen_command *k)
{
    redisReply *reply = seen_receive(&n->receiver);
    if (!reply || !k->asking) return reply;
    freeReplyObject(reply); /* to ASKING */
    return seen_receive(&n->receiver);
}

static void run_node(seen_redis *c, struct seen_command *k, size_t count,
                     uint16_t node, bool *later)
{
    struct node *n = &c->nodes[node];
    if (!connect_node(c, n)) {
        lose(c, n, k, count, node, false, later);
        return;
    }
    n->receiver.elements = most_elements(k, count);
    bool good = send_all(n, k, count, node);
    for (size_t i = 0; good && i < count; i++) {
        if (!is_due(&k[i], node)) continue;
        redisReply *reply = reply_to(n, &k[i]);
        good = reply != NULL;
        if (!good) break;
        uint16_t before = k[i].node;
        take_reply(c, &k[i], i, n, reply, later);
        /* Who is sent elsewhere in this batch goes in the next one. */
        if (k[i].pending && k[i].node != before) k[i].node |= REDIRECTED;
    }
    if (good) good = load_scripts(n, k, count, node);
    if (!good) lose(c, n, k, count, node, true, later);
}

static void route(seen_redis *c, struct seen_command *k, size_t n)
{
    for (uint16_t i = 0; i < c->n_nodes; i++)
        c->nodes[i].wanted = false; /* nobody is forgotten until all went out */
    for (size_t i = 0; i < n; i++) {
        if (!k[i].pending) continue;
        if (k[i].node & REDIRECTED && k[i].node != NO_NODE)
            k[i].node ^= REDIRECTED;
        else
            k[i].node = node_for(c, &k[i]);
        if (c->nodes[k[i].node].port) continue;
        k[i].pending = false; /* it was for one of seen_redis_primaries() */
        k[i].status = SEEN_BUSY;
        c->last.os_errno = 0;
        snprintf(c->last.text, sizeof c->last.text,
                 "a node has left the cluster meanwhile: try again");
        blame(c, i, false);
    }
}

/* Each node once: what is pending afterwards waits for the next round. */
static bool run_once(seen_redis *c, struct seen_command *k, size_t n)
{
    bool later = false, asked[NODES] = {false};
    c->later.command = SIZE_MAX;
    route(c, k, n);
    for (size_t i = 0; i < n; i++) {
        uint16_t node = k[i].node;
        if (!k[i].pending || node & REDIRECTED || asked[node]) continue;
        asked[node] = true;
        run_node(c, k, n, node, &later);
    }
    return later;
}

static bool any_pending(const struct seen_command *k, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (k[i].pending) return true;
    return false;
}

static void rest(uint64_t ms)
{
    nanosleep(&(struct timespec){.tv_nsec = (long)ms * 1000000}, NULL);
}

/* hiredis writes to sockets that the server may have closed. That is an error of
 * the call; the signal must not end a program that never heard of it. */
struct held {
    sigset_t pipe, before;
    bool was_there;
};

static void hold_signal(struct held *h)
{
    sigset_t pending;
    sigemptyset(&h->pipe);
    sigaddset(&h->pipe, SIGPIPE);
    sigpending(&pending);
    h->was_there = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &h->pipe, &h->before);
}

static void drop_signal(const struct held *h)
{
    int before = errno;
    if (!h->was_there) /* then it is ours */
        while (sigtimedwait(&h->pipe, NULL, &(struct timespec){0}) < 0 &&
               errno == EINTR)
            ;
    pthread_sigmask(SIG_SETMASK, &h->before, NULL);
    errno = before;
}

seen_status seen_redis_run(seen_redis *c, struct seen_command *k, size_t n,
                           seen_error *error)
{
    struct held held;
    uint64_t until = seen_receive_clock() + c->patience_ms, pause = PAUSE_MS;
    size_t rounds = 0; /* with redirections */
    for (size_t i = 0; i < n; i++) {
        k[i].reply = NULL;
        k[i].status = SEEN_IO;
        k[i].asking = false;
        k[i].pending = true;
        k[i].unknown = false;
        k[i].node = NO_NODE;
    }
    c->final.command = SIZE_MAX;
    hold_signal(&held);
    while (any_pending(k, n)) {
        c->moved = false;
        bool later = run_once(c, k, n);
        rounds += c->moved;
        if (!any_pending(k, n) || seen_receive_clock() >= until) break;
        if (later || (c->moved && rounds > REDIRECTIONS)) {
            rest(pause);
            pause = 2 * pause < PAUSE_MAX ? 2 * pause : PAUSE_MAX;
        }
        if (c->map_is_old) (void)renew_map(c, until);
    }
    drop_signal(&held);
    for (size_t i = 0; i < n; i++) {
        const struct problem *p = k[i].pending ? &c->later : &c->final;
        if (k[i].status == SEEN_OK) continue;
        assert(p->command == i);
        return tell(p, k[i].status, NULL, error);
    }
    return SEEN_OK;
}

void seen_redis_done(struct seen_command *k, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (k[i].reply) freeReplyObject(k[i].reply);
        k[i].reply = NULL;
    }
}

seen_status seen_redis_primaries(seen_redis *c, struct seen_primaries *out,
                                 seen_error *error)
{
    struct held held;
    bool has_slots[NODES] = {false};
    *out = (struct seen_primaries){0};
    hold_signal(&held);
    bool known = renew_map(c, seen_receive_clock() + c->patience_ms);
    drop_signal(&held);
    if (c->cluster && !known) return tell(&c->last, SEEN_IO, NULL, error);
    has_slots[0] = !c->cluster;
    for (size_t i = 0; c->cluster && i < SLOTS; i++)
        if (c->slots[i] != NO_NODE) has_slots[c->slots[i]] = true;
    for (uint16_t i = 0; i < c->n_nodes; i++)
        if (has_slots[i]) out->at[out->n++] = (uint16_t)(i + 1);
    /* Of who has slots, too: the place of a node may be another's now. */
    out->map = seen_crc32c(0, c->slots, sizeof c->slots);
    for (size_t i = 0; i < out->n; i++) {
        const struct node *n = &c->nodes[out->at[i] - 1];
        out->map = seen_crc32c(out->map, n->host, strlen(n->host) + 1);
        out->map = seen_crc32c(out->map, &n->port, sizeof n->port);
    }
    return SEEN_OK;
}

/* ---- Life --------------------------------------------------------------- */

uint64_t seen_redis_patience(struct seen_url *url)
{
    uint64_t ms = 0;
    if (seen_url_number(url, "patience", 3600000, PATIENCE_MS, &ms, NULL))
        return 0; /* who opens says what is wrong with it */
    return seen_receive_clock() + ms;
}

bool seen_redis_rest(uint64_t until)
{
    if (seen_receive_clock() >= until) return false;
    rest(PAUSE_MAX);
    return true;
}

seen_status seen_redis_open(seen_redis **out, struct seen_url *url, uint32_t db,
                            seen_error *error)
{
    seen_redis *c = seen_alloc_zeroed(&seen_system_memory, sizeof *c);
    if (!c) return SEEN_NOMEM;
    memcpy(c->user, url->user, sizeof c->user);
    memcpy(c->password, url->password, sizeof c->password);
    c->db = db;
    node_at(c, url->host, url->port);
    seen_status status = seen_url_number(url, "timeout", 3600000, TIMEOUT_MS,
                                         &c->timeout_ms, error);
    if (status == SEEN_OK)
        status = seen_url_number(url, "patience", 3600000, PATIENCE_MS,
                                 &c->patience_ms, error);
    if (status == SEEN_OK && c->timeout_ms == 0)
        status = seen_fail(error, SEEN_INVALID, "url",
                           "URL: timeout=0: expected 1 to 3600000 ms");
    struct held held;
    hold_signal(&held);
    if (status == SEEN_OK && !connect_node(c, &c->nodes[0]))
        status = tell(&c->last, SEEN_IO, "url", error);
    /* Who knows the others need not fear for the one that was named. */
    if (status == SEEN_OK) (void)renew_map(c, 0);
    drop_signal(&held);
    if (status == SEEN_OK && (c->stranger || c->strange))
        status =
            tell(&c->last, c->strange ? SEEN_CORRUPT : SEEN_IO, "url", error);
    if (status == SEEN_OK)
        *out = c;
    else
        seen_redis_close(c);
    return status;
}

void seen_redis_close(seen_redis *c)
{
    if (!c) return;
    for (uint16_t i = 0; i < c->n_nodes; i++)
        disconnect(&c->nodes[i]);
    seen_release(&seen_system_memory, c, sizeof *c);
}
