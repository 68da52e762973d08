/*
 * users_list.c - users on a plain Redis or Valkey server, or a cluster, in the lists
 * that existing services keep:
 *
 *     redis+list://[user:password@]host[:port][/db]?prefix=P[&n=1000][&p=0.001]
 *                                                          [&ttl=432000]
 *
 * A user is a key, P and his name, and in it a list of up to five Bloom filters,
 * the newest first, each an element `count::base64` (dialect/kevburnsjr.c). n, p
 * and ttl, in seconds, are constants of the service and stored nowhere: whoever
 * has others says so.
 *
 *     LINDEX 0 ─► 998::AAIikOIHCAhKoAUg...     asked: all five
 *                 1000::gAAhQAZEAJQ0...        marked: the newest, or a new one
 *                 1000::IBAgAEgoBgCE...
 *
 * The services read the newest element, set bits in it and write it back: of two
 * that do so at once, the slower one undoes the other. Here the server does it,
 * in a script, and nothing is lost between us. (A service that writes beside us
 * the old way can still overwrite what we did while it was thinking.)
 *
 * A script that decoded 1800 bytes of base64 would be slow, and it need not: a
 * letter of base64 is six bits, so each bit of the filter is one bit of one
 * letter, and testing or setting a bit is looking at, or exchanging, a letter.
 * Which ones is computed here: k times for each item, the letter's number in two
 * bytes and the bit's weight in it, 32 .. 1, in a third.
 *
 * Worked example: n = 1000 and p = 0.001 are 14,400 bits, k = 10. Bit 14,399 is
 * the highest of the last word, and words are big-endian: bit 14,368 of the
 * bytes, counted from the highest of the first one (14,399 ^ 31). That is letter
 * 2394 (14,368 / 6), and there the bit of weight 2 (32 >> 14,368 % 6).
 *
 * The rule of the services, for a call of c items (more than n are calls of n):
 * they all go into the newest filter if its count and c are less than n + 10
 * together, and into a new one otherwise; the count rises for each that the
 * filter did not have. If none is new, nothing is written. Otherwise the list is
 * cut to five and lives for another ttl.
 *
 * What this costs against redis:// with our module: 19 bits an item where that
 * takes 14, all of them from the first item on; a rate of five times p; and one
 * ttl for all that a user has been shown. It is for living beside such a service,
 * and for leaving it: docs/COMMANDS.md.
 */
#include "remote/users_server.h"

#include "base/error.h"
#include "base/out.h"
#include "dialect/dialect.h"
#include "redis/decimal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIALECT_NAME "exposure-list"
#define FILTERS      5 /* of a user, at most */
#define NAME_LEAST   2 /* bytes; the services refuse less */
#define PLACE        3 /* bytes of a position */
#define LETTERS_MAX  65536
#define ITEMS        1000
#define FPP          0.001
#define TTL          432000 /* seconds: five days */

static const char script[] =
    "local key, places, k, how = KEYS[1], ARGV[1], tonumber(ARGV[2]), ARGV[3]\n"
    "local most, items = tonumber(ARGV[4]), tonumber(ARGV[5])\n"
    "local letters, ttl = tonumber(ARGV[6]), ARGV[7]\n"
    "local byte, sub = string.byte, string.sub\n"
    "local alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    "0123456789+/'\n"
    "local width, len = 3 * k, math.ceil(letters / 4) * 4\n"
    "local broken = false\n"
    "local function value(c)\n"
    "  if c then\n"
    "    if c >= 97 and c <= 122 then return c - 71 end\n"
    "    if c >= 65 and c <= 90 then return c - 65 end\n"
    "    if c >= 48 and c <= 57 then return c + 4 end\n"
    "    if c == 43 then return 62 elseif c == 47 then return 63 end\n"
    "  end\n"
    "  broken = true\n"
    "  return 0\n"
    "end\n"
    /* An element: its count, and where its letters begin. */
    "local function open(element)\n"
    "  local count, at = string.match(element, '^(%d+)::()')\n"
    "  if not at or #element - at + 1 ~= len then\n"
    "    broken = true\n"
    "    return 0, 1\n"
    "  end\n"
    "  return tonumber(count), at\n"
    "end\n"
    "local list = redis.call('LRANGE', key, 0, how == 'mark' and 0 or 4)\n"
    "local starts = {}\n"
    "for i = 1, #list do\n"
    "  local count, at = open(list[i])\n"
    "  starts[i] = at\n"
    "end\n"
    "local function has(element, at, id)\n"
    "  for i = id, id + width - 1, 3 do\n"
    "    local high, low, weight = byte(places, i, i + 2)\n"
    "    local v = value(byte(element, at + high * 256 + low))\n"
    "    if v % (2 * weight) < weight then return false end\n"
    "  end\n"
    "  return true\n"
    "end\n"
    "local function seen(id)\n"
    "  for i = 1, #list do\n"
    "    if has(list[i], starts[i], id) then return true end\n"
    "  end\n"
    "  return false\n"
    "end\n"
    /* 1. Which are fresh? Which are to be marked? */
    "local ids, answers = {}, {}\n"
    "for id = 1, #places, width do\n"
    "  local fresh = how ~= 'mark' and #ids < most and not seen(id)\n"
    "  if how ~= 'take' or fresh then ids[#ids + 1] = id end\n"
    "  answers[#answers + 1] = fresh and '1' or '0'\n"
    "end\n"
    /* 2. Bits of items `from` to `to` into the newest filter, or a new one. */
    "local head = list[1]\n"
    "local function mark(from, to)\n"
    "  local count, at = 0, 4\n"
    "  if head then count, at = open(head) end\n"
    "  local starts_new = not head or count + to - from + 1 >= items + 10\n"
    "  if starts_new then\n"
    "    head = '0::' .. string.rep('A', letters)\n"
    "    head = head .. string.rep('=', len - letters)\n"
    "    count, at = 0, 4\n"
    "  end\n"
    "  local changed, order, new = {}, {}, 0\n"
    "  for n = from, to do\n"
    "    local is_new = 0\n"
    "    for i = ids[n], ids[n] + width - 1, 3 do\n"
    "      local high, low, weight = byte(places, i, i + 2)\n"
    "      local c = at + high * 256 + low\n"
    "      local v = changed[c] or value(byte(head, c))\n"
    "      if v % (2 * weight) < weight then\n"
    "        if not changed[c] then order[#order + 1] = c end\n"
    "        changed[c] = v + weight\n"
    "        is_new = 1\n"
    "      end\n"
    "    end\n"
    "    new = new + is_new\n"
    "  end\n"
    "  if broken or new == 0 then return end\n"
    /* 3. The letters between those that changed stay as they are. */
    "  table.sort(order)\n"
    "  local out, next = {string.format('%d::', count + new)}, at\n"
    "  for _, c in ipairs(order) do\n"
    "    local v = changed[c] + 1\n"
    "    out[#out + 1] = sub(head, next, c - 1)\n"
    "    out[#out + 1] = sub(alphabet, v, v)\n"
    "    next = c + 1\n"
    "  end\n"
    "  out[#out + 1] = sub(head, next)\n"
    "  head = table.concat(out)\n"
    "  if starts_new then redis.call('LPUSH', key, head)\n"
    "  else redis.call('LSET', key, 0, head) end\n"
    "  redis.call('LTRIM', key, 0, 4)\n"
    "  redis.call('EXPIRE', key, ttl)\n"
    "end\n"
    "for from = 1, #ids, items do\n"
    "  if broken then break end\n"
    "  mark(from, math.min(from + items - 1, #ids))\n"
    "end\n"
    "return broken and 0 or table.concat(answers)\n";

struct list {
    struct seen_server server;
    seen_spec spec; /* of a filter, as the dialect takes it */
    uint64_t ttl;   /* seconds */
    struct seen_place place;
    char digest[SEEN_DIGEST];
    /* Numbers that go with every call: */
    char hashes[8], items[24], letters[8], seconds[24];
};

/* ---- Names -------------------------------------------------------------- */

static seen_status check_user(seen_key user, seen_error *error)
{
    if (user.len >= NAME_LEAST) return SEEN_OK;
    return seen_fail(error, SEEN_INVALID, "user",
                     "user of %zu byte: such lists have users of %d or more",
                     user.len, NAME_LEAST);
}

static seen_status no_list(const struct list *m, seen_error *error)
{
    return seen_fail(error, SEEN_CORRUPT, "user",
                     "not a list of count::base64, each of %llu bits, as "
                     "n=%llu and p=%g make them: give n and p as the service "
                     "has them",
                     (unsigned long long)m->place.bits,
                     (unsigned long long)m->spec.items, m->spec.fpp);
}

/* ---- Repeats ------------------------------------------------------------ */

struct numbered {
    seen_key key;
    size_t i;
};

static int by_bytes(const void *a, const void *b)
{
    const struct numbered *x = a, *y = b;
    size_t len = x->key.len < y->key.len ? x->key.len : y->key.len;
    int c = len ? memcmp(x->key.data, y->key.data, len) : 0;
    if (c != 0) return c;
    if (x->key.len != y->key.len) return x->key.len < y->key.len ? -1 : 1;
    return x->i < y->i ? -1 : 1;
}

/* again[i]: item i has come before. */
static bool find_repeats(const seen_key *items, size_t n, bool *again)
{
    struct numbered *all = malloc(n * sizeof *all);
    if (!all) return false;
    for (size_t i = 0; i < n; i++)
        all[i] = (struct numbered){items[i], i};
    qsort(all, n, sizeof *all, by_bytes);
    for (size_t i = 0; i < n; i++)
        again[all[i].i] =
            i > 0 && all[i].key.len == all[i - 1].key.len &&
            (all[i].key.len == 0 ||
             memcmp(all[i].key.data, all[i - 1].key.data, all[i].key.len) == 0);
    free(all);
    return true;
}

/* ---- Asking ------------------------------------------------------------- */

static bool put_range(struct seen_server_command *o,
                      const struct seen_server *m, seen_key user)
{
    if (!seen_command_begin(o, m, user, 0)) return false;
    seen_command_text(o, "LRANGE");
    seen_command_key(o, m, user);
    seen_command_text(o, "0");
    seen_command_text(o, "4");
    o->k.repeatable = true;
    return true;
}

/* The elements as a file of the dialect has them; SEEN_ABSENT: there are none.
 * (Between LPUSH and LTRIM of a service there may be six: the five newest count.) */
static seen_status read_filters(const struct list *m,
                                const struct redisReply *reply, seen_filter **f)
{
    size_t n, len = 0;
    seen_key element[FILTERS];
    if (!seen_reply_array(reply, &n) || n > FILTERS) return SEEN_CORRUPT;
    if (n == 0) return SEEN_ABSENT;
    for (size_t i = 0; i < n; i++) {
        if (!seen_reply_string(seen_reply_at(reply, i), &element[i]))
            return SEEN_CORRUPT;
        len += element[i].len + 1;
    }
    char *text = malloc(len), *to = text;
    if (!text) return SEEN_NOMEM;
    for (size_t i = 0; i < n; i++) {
        memcpy(to, element[i].data, element[i].len);
        to += element[i].len;
        *to++ = '\n';
    }
    seen_status status =
        seen_import(f, DIALECT_NAME, &m->spec, text, len, NULL);
    free(text);
    return status;
}

static seen_status get_filters(struct list *m, seen_key user, seen_filter **f,
                               seen_error *error)
{
    seen_status status = check_user(user, error);
    if (status != SEEN_OK) return status;
    struct seen_server_command *o = calloc(1, sizeof *o);
    if (!o) return SEEN_NOMEM;
    status = put_range(o, &m->server, user) ? SEEN_OK : SEEN_NOMEM;
    if (status == SEEN_OK) status = seen_commands_run(&m->server, o, 1, error);
    if (status == SEEN_OK) status = read_filters(m, o->k.reply, f);
    if (status == SEEN_CORRUPT) status = no_list(m, error);
    seen_commands_done(o, 1);
    return status;
}

static seen_status ask(struct seen_users *u, seen_key user, uint64_t now_ms,
                       seen_keys items, bool repeats, bool *seen,
                       seen_error *error)
{
    struct list *m = (struct list *)u;
    const size_t n = items.n;
    seen_filter *f = NULL;
    struct seen_pairs p;
    (void)now_ms;
    seen_status status = get_filters(m, user, &f, error);
    if (status != SEEN_OK && status != SEEN_ABSENT) return status;
    memset(seen, 0, n * sizeof *seen);
    bool *again = n && repeats ? malloc(n * sizeof *again) : NULL;
    bool fits = seen_pairs_make(&p, items) &&
                (!n || !repeats || (again && find_repeats(p.at, n, again)));
    if (f && fits) (void)seen_maybe_many(f, items, seen);
    for (size_t i = 0; again && fits && i < n; i++)
        seen[i] |= again[i];
    free(again);
    seen_pairs_free(&p);
    seen_free(f);
    return fits ? SEEN_OK : SEEN_NOMEM;
}

/* ---- Changing ----------------------------------------------------------- */

/* Where the bits of an item are: letter and weight, k times. */
static uint8_t *put_places(const struct list *m, seen_key item, uint8_t *to)
{
    const struct seen_scheme *scheme = seen_dialect_exposure_list.scheme;
    static const uint8_t no_seed[32];
    uint64_t pos[SEEN_POSITIONS_MAX];
    struct seen_digest d;
    scheme->digest(no_seed, item.data, item.len, &d);
    scheme->positions(&m->place, &d, 0, m->place.hashes, pos);
    for (uint32_t i = 0; i < m->place.hashes; i++) {
        uint64_t bit = pos[i] ^ scheme->order ^ SEEN_ORDER_HIGH_FIRST;
        *to++ = (uint8_t)(bit / 6 >> 8);
        *to++ = (uint8_t)(bit / 6);
        *to++ = (uint8_t)(32 >> bit % 6);
    }
    return to;
}

/* What a request becomes. */
struct call {
    struct seen_server_command *command; /* NULL: there is nothing to do */
    struct seen_pairs items;
    bool *again; /* items that have come before; NULL: who cares */
    bool takes;
};

/* Of candidates, each is sent once. */
static bool is_sent(const struct call *c, size_t i)
{
    return !c->takes || !c->again[i];
}

static bool put_request(struct call *c, struct list *m,
                        const seen_users_request *r)
{
    struct seen_server_command *o = c->command;
    const size_t n = r->items.n;
    if (!seen_pairs_make(&c->items, r->items)) return false;
    if (c->takes || r->fresh) {
        c->again = malloc(n * sizeof *c->again);
        if (!c->again || !find_repeats(c->items.at, n, c->again)) return false;
    }
    if (!seen_command_begin(o, &m->server, r->user, 0)) return false;
    o->packed = malloc(n * m->place.hashes * PLACE);
    if (!o->packed) return false;
    uint8_t *end = (uint8_t *)o->packed;
    for (size_t i = 0; i < n; i++)
        if (is_sent(c, i)) end = put_places(m, c->items.at[i], end);
    snprintf(o->number[0], sizeof o->number[0], "%zu", c->takes ? r->count : n);
    seen_command_text(o, "EVALSHA");
    seen_command_text(o, m->digest);
    seen_command_text(o, "1");
    seen_command_key(o, &m->server, r->user);
    seen_command_add(o, o->packed, (size_t)(end - (uint8_t *)o->packed));
    seen_command_text(o, m->hashes);
    seen_command_text(o, c->takes ? "take" : r->fresh ? "tell" : "mark");
    seen_command_text(o, o->number[0]);
    seen_command_text(o, m->items);
    seen_command_text(o, m->letters);
    seen_command_text(o, m->seconds);
    o->k.script = script;
    /* Marked twice, so many would fill a filter that they do not fill once. */
    o->k.repeatable =
        !c->takes && !r->fresh && 2 * (uint64_t)n < m->spec.items + 10;
    return true;
}

/* `lost`: why commands have no reply. */
static seen_status read_request(const struct call *c, const struct list *m,
                                seen_users_request *r, const seen_error *lost,
                                seen_error *error)
{
    r->n_taken = 0;
    if (!c->command) return SEEN_OK;
    const struct redisReply *reply = c->command->k.reply;
    if (c->command->k.status != SEEN_OK)
        return seen_fail_as(error, c->command->k.status, lost);
    int64_t broken;
    seen_key answers;
    if (seen_reply_integer(reply, 0, 0, &broken)) return no_list(m, error);
    size_t sent = 0, at = 0, taken = 0;
    for (size_t i = 0; i < r->items.n; i++)
        sent += is_sent(c, i);
    bool good = seen_reply_string(reply, &answers) && answers.len == sent;
    const char *letter = good ? answers.data : "";
    for (size_t i = 0; good && i < sent; i++) {
        good = letter[i] == '0' || letter[i] == '1';
        taken += letter[i] == '1';
    }
    if (!good || (c->takes && taken > r->count))
        return seen_pool_strange("a script", reply, "0 or 1 for each item",
                                 error);
    for (size_t i = 0; i < r->items.n; i++) {
        bool fresh = is_sent(c, i) && letter[at++] == '1';
        if (c->takes && fresh)
            r->taken[r->n_taken++] = i;
        else if (!c->takes && r->fresh)
            r->fresh[i] = fresh && !c->again[i];
    }
    return SEEN_OK;
}

/* Bad requests are found before any is carried out. */
static seen_status check_requests(bool takes, seen_users_request *r, size_t n,
                                  seen_error *error)
{
    seen_status status = SEEN_OK;
    for (size_t i = 0; i < n; i++) {
        r[i].status = check_user(r[i].user, error);
        if (!takes && r[i].items.n == 0)
            r[i].status =
                seen_fail(error, SEEN_INVALID, "items",
                          "items.n 0: a mark in such lists has items");
        if (status == SEEN_OK) status = r[i].status;
    }
    return status;
}

static seen_status change(struct seen_users *u, enum seen_users_change kind,
                          uint64_t now_ms, seen_users_request *r, size_t n,
                          seen_error *error)
{
    struct list *m = (struct list *)u;
    seen_error lost = {0};
    (void)now_ms;
    seen_status status = check_requests(kind == SEEN_USERS_TAKE, r, n, error);
    if (status != SEEN_OK) {
        seen_users_refuse(r, n, status);
        return status;
    }
    struct seen_server_command *o = calloc(n, sizeof *o);
    struct call *c = calloc(n, sizeof *c);
    size_t commands = 0;
    if (!o || !c) status = SEEN_NOMEM;
    for (size_t i = 0; status == SEEN_OK && i < n; i++) {
        c[i].takes = kind == SEEN_USERS_TAKE;
        if (c[i].takes && (r[i].items.n == 0 || r[i].count == 0)) continue;
        c[i].command = &o[commands++];
        if (!put_request(&c[i], m, &r[i])) status = SEEN_NOMEM;
    }
    bool ready = status == SEEN_OK;
    if (ready && commands)
        (void)seen_commands_run(&m->server, o, commands, &lost);
    for (size_t i = 0; i < n; i++) { /* each has a status of its own */
        r[i].status =
            ready ? read_request(&c[i], m, &r[i], &lost, error) : status;
        if (status == SEEN_OK) status = r[i].status;
        if (c) free(c[i].again);
        if (c) seen_pairs_free(&c[i].items);
    }
    if (o) seen_commands_done(o, n);
    free(c);
    return status;
}

static seen_status forget(struct seen_users *u, seen_key user, uint64_t now_ms,
                          seen_keys items, seen_error *error)
{
    (void)u, (void)user, (void)now_ms;
    if (items.n == 0) return SEEN_OK;
    return seen_fail(error, SEEN_UNSUPPORTED, NULL,
                     "items cannot be taken out of Bloom filters: a user is "
                     "forgotten as a whole");
}

/* ---- One command about a user ------------------------------------------- */

static seen_status number_of(struct list *m, const char *command, seen_key user,
                             bool repeatable, int64_t *out, seen_error *error)
{
    seen_status status = check_user(user, error);
    if (status != SEEN_OK) return status;
    struct seen_server_command *o = calloc(1, sizeof *o);
    if (!o) return SEEN_NOMEM;
    if (seen_command_begin(o, &m->server, user, 0)) {
        seen_command_text(o, command);
        seen_command_key(o, &m->server, user);
        o->k.repeatable = repeatable;
        status = seen_commands_run(&m->server, o, 1, error);
        if (status == SEEN_OK &&
            !seen_reply_integer(o->k.reply, -2, INT64_MAX, out))
            status = seen_pool_strange(command, o->k.reply, "a number", error);
    } else {
        status = SEEN_NOMEM;
    }
    seen_commands_done(o, 1);
    return status;
}

static seen_status forget_user(struct seen_users *u, seen_key user,
                               uint64_t now_ms, bool *known, seen_error *error)
{
    int64_t keys = 0;
    (void)now_ms;
    /* What is no list says so, and stays. */
    seen_status status =
        number_of((struct list *)u, "LLEN", user, true, &keys, error);
    if (status == SEEN_OK)
        status =
            number_of((struct list *)u, "UNLINK", user, false, &keys, error);
    *known = keys > 0;
    return status;
}

/* ---- How they are doing ------------------------------------------------- */

/* Of all that is known of the time, the list has when it goes. */
static seen_status inspect(const struct list *m, const struct redisReply *reply,
                           seen_exposure_info *info)
{
    seen_filter *f = NULL;
    seen_info of = {.size = sizeof of};
    seen_exposure_info own = {.size = sizeof own};
    if (!seen_out_ok(&info->size)) return SEEN_INVALID;
    seen_status status = read_filters(m, reply, &f);
    if (status != SEEN_OK) return status;
    seen_measure(f, &of);
    seen_free(f);
    own.items = of.items;
    own.fpp_now = of.fpp_now;
    size_t n = 0;
    seen_key element = {0};
    (void)seen_reply_array(reply, &n); /* of strings: it has been imported */
    own.generations = (uint32_t)n;
    for (size_t i = 0; i < n; i++) {
        (void)seen_reply_string(seen_reply_at(reply, i), &element);
        own.generation[i].items = strtoull(element.data, NULL, 10);
        own.generation[i].bytes = element.len;
        own.bytes += element.len;
    }
    return seen_out(&info->size, &own, sizeof own);
}

static seen_status info_of(struct seen_users *u, seen_key user, uint64_t now_ms,
                           seen_exposure_info *info, seen_error *error)
{
    struct list *m = (struct list *)u;
    int64_t left = -1;
    seen_status status = number_of(m, "PTTL", user, true, &left, error);
    if (status != SEEN_OK) return status;
    struct seen_server_command *o = calloc(1, sizeof *o);
    if (!o) return SEEN_NOMEM;
    status = put_range(o, &m->server, user) ? SEEN_OK : SEEN_NOMEM;
    if (status == SEEN_OK) status = seen_commands_run(&m->server, o, 1, error);
    if (status == SEEN_OK) status = inspect(m, o->k.reply, info);
    if (status == SEEN_CORRUPT) status = no_list(m, error);
    seen_commands_done(o, 1);
    uint64_t ttl = m->ttl * 1000;
    if (status == SEEN_OK && left >= 0 && (uint64_t)left <= ttl &&
        now_ms > ttl - (uint64_t)left) {
        info->newest = now_ms - (ttl - (uint64_t)left);
        info->generation[0].newest = info->newest;
    }
    return status;
}

static void read_entry(const struct seen_server *m,
                       const struct redisReply *reply, uint64_t now_ms,
                       seen_users_entry *e)
{
    seen_exposure_info info = {.size = sizeof info};
    (void)now_ms;
    e->status = inspect((const struct list *)m, reply, &info);
    seen_users_entry_fill(e, &info);
}

static const struct seen_server_reader reader = {
    .type = "list", .put = put_range, .read = read_entry};

static seen_status record(struct seen_users *u, seen_key user, void *buf,
                          size_t cap, size_t *len, seen_error *error)
{
    (void)u, (void)user, (void)buf, (void)cap, (void)len;
    return seen_fail(error, SEEN_UNSUPPORTED, NULL,
                     "such a store has lists of filters and no records");
}

/* ---- Life --------------------------------------------------------------- */

static const struct seen_users_ops ops = {
    SEEN_SERVER_OPS,
    .ask = ask,
    .change = change,
    .forget = forget,
    .forget_user = forget_user,
    .info_of = info_of,
    .record = record,
};

static seen_status read_url(struct list *m, seen_error *error)
{
    struct seen_url *url = &m->server.pool.url;
    seen_plan plan = {.size = sizeof plan};
    seen_status status =
        seen_url_number(url, "n", UINT32_MAX, ITEMS, &m->spec.items, error);
    if (status == SEEN_OK)
        status = seen_url_number(url, "ttl", UINT32_MAX, TTL, &m->ttl, error);
    const char *p = seen_url_param(url, "p");
    m->spec.fpp = FPP;
    m->spec.dialect = DIALECT_NAME;
    if (status == SEEN_OK) status = seen_url_done(url, error);
    if (status != SEEN_OK) return status;
    if (p && (!seen_decimal_get(p, &m->spec.fpp) ||
              !(m->spec.fpp > 0 && m->spec.fpp < 1)))
        return seen_fail(error, SEEN_INVALID, "url",
                         "URL: p=%s is not a rate between 0 and 1", p);
    if (m->ttl == 0)
        return seen_fail(error, SEEN_INVALID, "url",
                         "URL: ttl=0: expected seconds");
    seen_error why;
    status = seen_plan_for(&m->spec, &plan, &why);
    if (status != SEEN_OK)
        return seen_fail(error, status, "url", "URL: %s", why.text);
    if (plan.bits / 6 >= LETTERS_MAX)
        return seen_fail(error, SEEN_UNSUPPORTED, "url",
                         "URL: n=%llu and p=%g take %llu bits, which is too "
                         "much for a list",
                         (unsigned long long)m->spec.items, m->spec.fpp,
                         (unsigned long long)plan.bits);
    m->place = seen_place_of(plan.bits, plan.hashes, 0);
    m->server.policy = (seen_policy){.items = (uint32_t)m->spec.items,
                                     .generations = FILTERS,
                                     .fpp = m->spec.fpp,
                                     .ttl_ms = m->ttl * 1000};
    return SEEN_OK;
}

static void put_numbers(struct list *m)
{
    snprintf(m->hashes, sizeof m->hashes, "%u", m->place.hashes);
    snprintf(m->items, sizeof m->items, "%llu",
             (unsigned long long)m->spec.items);
    snprintf(m->letters, sizeof m->letters, "%u",
             (unsigned)((m->place.bits + 5) / 6));
    snprintf(m->seconds, sizeof m->seconds, "%llu", (unsigned long long)m->ttl);
}

static seen_status check_options(const struct list *m,
                                 const seen_users_options *options,
                                 seen_error *error)
{
    const seen_policy is = m->server.policy, *p = options->policy;
    if (options->secret)
        return seen_fail(error, SEEN_INVALID, "options.secret",
                         "such lists have no secret: leave it out");
    if (p && ((p->items && p->items != is.items) ||
              (p->generations && p->generations != is.generations) ||
              (p->fpp > 0 && p->fpp != is.fpp) ||
              (p->ttl_ms && p->ttl_ms != is.ttl_ms)))
        return seen_fail(error, SEEN_INVALID, "options.policy",
                         "the policy is that of the service: n, p and ttl "
                         "of the URL, and five filters");
    return SEEN_OK;
}

seen_status seen_remote_users_list(struct seen_users **u, const char *where,
                                   const seen_users_options *options,
                                   seen_outcome *outcome, seen_error *error)
{
    (void)outcome;
    struct list *m = calloc(1, sizeof *m);
    if (!m) return SEEN_NOMEM;
    m->server.head.ops = &ops;
    m->server.reader = &reader;
    seen_status status = seen_server_open(&m->server, where, "", error);
    if (status == SEEN_OK) status = read_url(m, error);
    if (status == SEEN_OK) status = check_options(m, options, error);
    if (status == SEEN_OK) put_numbers(m);
    if (status == SEEN_OK)
        m->server.head.holds = seen_policy_holds(&m->server.policy);
    if (status == SEEN_OK && options->mode != SEEN_READ)
        status = seen_pool_script(&m->server.pool, script, m->digest, error);
    if (status == SEEN_OK)
        *u = &m->server.head;
    else
        seen_server_close(&m->server.head, NULL);
    return status;
}
