/*
 * plain.c - a blocked filter in plain strings, for servers that load no modules.
 *
 *     NAME                 what it is, as text (below)
 *     NAME:TAG:0         lines 0 .. 524287, 64 bytes each, and 8 bytes more
 *     NAME:TAG:1         the next ones, and so on
 *
 * A key has one line of 512 bits, or two, and in each a bit in every of its eight
 * words (bits/line.h). So a question is one GETRANGE of 64 bytes and an add one
 * BITFIELD that sets eight bits, without a script. Bit b of a line is bit b of
 * its bytes as SETBIT numbers them: highest first.
 *
 * Evicted or expired strings must not be mistaken for empty ones. The eight bytes
 * behind the lines are written when a string is made, at once with its length,
 * and never again: a string that an add has made anew, because it was gone, stays
 * shorter than that. Every batch asks for the length of the strings it touched,
 * and where it is not the full one there is no answer.
 *
 * The strings are made first, under a tag of their own, a random number, and the text last, if
 * nobody else has made it meanwhile: whoever finds the text finds strings that
 * were whole.
 *
 *     seen-plain 1 lines=N probes=1|2 items=N fpp=P tag=HEX secret=HEX
 *
 * Worked example: ten million keys at 0.1 %: 307,200 lines, 19.7 MB, one string,
 * 15.7 bits a key. go-zero's filter takes 20 bits a key, and its questions are
 * scripts of 14 calls each.
 */
#include "remote/remote.h"

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/keys.h"
#include "bits/line.h"
#include "hash/hash.h"
#include "probe/reduce.h"
#include "redis/decimal.h"
#include "remote/batch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE       64 /* bytes */
#define PART_LINES ((uint64_t)1 << 19)
#define TRAILER    8
#define LINES_MAX  ((uint64_t)1 << 36)
#define WORDS      3 /* log2 of a line's eight */

struct plain {
    uint64_t lines, items;
    uint32_t probes; /* lines of a key */
    double fpp;
    uint64_t tag;
    uint8_t secret[16];
    /* NAME:TAG: before the number of a string */
    char prefix[SEEN_REMOTE_KEY - 20];
    size_t prefix_len;
};

/* ---- What it is --------------------------------------------------------- */

static void put_hex(const uint8_t *bytes, size_t n, char *to)
{
    for (size_t i = 0; i < n; i++)
        snprintf(to + 2 * i, 3, "%02x", bytes[i]);
}

static void describe(const struct plain *p, char *text, size_t cap)
{
    char secret[33], fpp[SEEN_DECIMAL];
    seen_decimal_put(p->fpp, fpp);
    put_hex(p->secret, sizeof p->secret, secret);
    snprintf(text, cap,
             "seen-plain 1 lines=%llu probes=%u items=%llu fpp=%s "
             "tag=%016llx secret=%s",
             (unsigned long long)p->lines, p->probes,
             (unsigned long long)p->items, fpp, (unsigned long long)p->tag,
             secret);
}

static seen_status understand(const char *text, struct plain *p)
{
    char secret[33], fpp[SEEN_DECIMAL], again[512];
    unsigned long long lines, items, tag;
    *p = (struct plain){0};
    if (strncmp(text, "seen-plain ", 11) != 0) return SEEN_CORRUPT;
    if (strncmp(text + 11, "1 ", 2) != 0) return SEEN_NEWER;
    if (sscanf(text,
               "seen-plain 1 lines=%llu probes=%u items=%llu fpp=%31s "
               "tag=%16llx secret=%32[0-9a-f]",
               &lines, &p->probes, &items, fpp, &tag, secret) != 6 ||
        strlen(secret) != 32 || !seen_decimal_get(fpp, &p->fpp))
        return SEEN_CORRUPT;
    for (size_t i = 0; i < 16; i++) {
        char pair[3] = {secret[2 * i], secret[2 * i + 1], 0};
        p->secret[i] = (uint8_t)strtoul(pair, NULL, 16);
    }
    p->lines = lines;
    p->items = items;
    p->tag = tag;
    describe(p, again, sizeof again); /* as we would have written it */
    bool good = strcmp(text, again) == 0 && p->lines >= p->probes &&
                p->lines <= LINES_MAX && p->probes >= 1 && p->probes <= 2;
    return good ? SEEN_OK : SEEN_CORRUPT;
}

static uint64_t parts_of(const struct plain *p)
{
    return (p->lines + PART_LINES - 1) / PART_LINES;
}

static uint64_t lines_of_part(const struct plain *p, uint64_t part)
{
    uint64_t left = p->lines - part * PART_LINES;
    return left < PART_LINES ? left : PART_LINES;
}

/* As soon as the tag is known. */
static void set_prefix(const seen_remote *m, struct plain *p)
{
    p->prefix_len =
        (size_t)snprintf(p->prefix, sizeof p->prefix, "%s:%016llx:", m->key,
                         (unsigned long long)p->tag);
}

static void name_part(const struct plain *p, uint64_t part,
                      char out[SEEN_REMOTE_KEY])
{
    snprintf(out, SEEN_REMOTE_KEY, "%s%llu", p->prefix,
             (unsigned long long)part);
}

/* The strings, then the text. */
static bool key_at(const seen_remote *m, uint64_t i, char out[SEEN_REMOTE_KEY])
{
    const struct plain *p = m->own;
    if (i < parts_of(p))
        name_part(p, i, out);
    else
        memcpy(out, m->key, strlen(m->key) + 1);
    return i <= parts_of(p);
}

/* ---- Making one --------------------------------------------------------- */

/* From 2.3 % on a blocked filter has four bits a key (seen plan -p 3%); here a key
 * always has eight, and whoever wants no more than that gets a filter for 2 %. */
static seen_status plan(struct plain *p, const seen_spec *spec,
                        seen_error *error)
{
    seen_plan blocked = {.size = sizeof blocked};
    seen_spec wish = {.kind = SEEN_BLOCKED,
                      .items = spec->items,
                      .fpp = spec->fpp > 0.02 ? 0.02 : spec->fpp,
                      .flags = SEEN_KEYED,
                      .secret = p->secret};
    seen_status status = seen_plan_for(&wish, &blocked, error);
    if (status != SEEN_OK) return status;
    p->lines = blocked.bits / SEEN_LINE_BITS;
    p->probes = blocked.lines;
    p->items = spec->items;
    p->fpp = spec->fpp;
    if (p->probes > 2 || p->lines > LINES_MAX)
        return seen_fail(error, SEEN_UNSUPPORTED, "fpp",
                         "fpp %g: takes more than two lines a key, expected a "
                         "higher rate",
                         spec->fpp);
    return SEEN_OK;
}

/* Zeros, and the trailer behind them. */
static seen_status make_part(seen_remote *m, const struct plain *p,
                             uint64_t part, seen_error *error)
{
    char key[SEEN_REMOTE_KEY], at[24], trailer[TRAILER + 1] = "seenline";
    const char *argv[] = {"SETRANGE", key, at, trailer};
    struct seen_command k;
    const int64_t end = (int64_t)(lines_of_part(p, part) * LINE);
    int64_t len;
    name_part(p, part, key);
    snprintf(at, sizeof at, "%lld", (long long)end);
    seen_status status = seen_remote_do(m, &k, 4, argv, true, error);
    if (status == SEEN_OK &&
        !seen_reply_integer(k.reply, end + TRAILER, end + TRAILER, &len))
        status = seen_pool_strange(argv[0], k.reply, "the length that it makes",
                                   error);
    seen_redis_done(&k, 1);
    return status;
}

/* As far as that can be done: nobody knows their names but us. */
static void remove_parts(seen_remote *m, const struct plain *p)
{
    char key[SEEN_REMOTE_KEY];
    seen_status status = SEEN_OK;
    for (uint64_t i = 0; status == SEEN_OK && i < parts_of(p); i++) {
        const char *argv[] = {"UNLINK", key};
        struct seen_command k;
        name_part(p, i, key);
        status = seen_remote_do(m, &k, 2, argv, true, NULL);
        seen_redis_done(&k, 1);
    }
}

static seen_status make(seen_remote *m, const seen_spec *spec, bool *ours,
                        seen_error *error)
{
    struct plain *p = m->own;
    uint8_t random[16];
    char text[512];
    seen_status status = seen_remote_check_create(spec, error);
    if (status != SEEN_OK) return status;
    if (seen_random_secret(p->secret) != SEEN_OK ||
        seen_random_secret(random) != SEEN_OK)
        return seen_fail_io(error, NULL, "random bytes");
    p->tag = seen_get_le64(random);
    set_prefix(m, p);
    status = plan(p, spec, error);
    for (uint64_t i = 0; status == SEEN_OK && i < parts_of(p); i++)
        status = make_part(m, p, i, error);
    if (status != SEEN_OK) {
        remove_parts(m, p);
        return status;
    }
    describe(p, text, sizeof text);
    const char *argv[] = {"SET", m->key, text, "NX"};
    struct seen_command k;
    status = seen_remote_do(m, &k, 4, argv, false, error);
    *ours = status == SEEN_OK && seen_reply_status(k.reply);
    if (status == SEEN_OK && !*ours && !seen_reply_nil(k.reply))
        status = seen_pool_strange("SET", k.reply, "OK or nil", error);
    seen_redis_done(&k, 1);
    /* If the reply was lost it may be ours: its parts stay. */
    if (status == SEEN_OK && !*ours) remove_parts(m, p);
    return status;
}

static seen_status read_text(seen_remote *m, const struct redisReply *reply,
                             seen_error *error)
{
    seen_key text;
    if (seen_reply_nil(reply)) return seen_remote_absent(m, error);
    if (!seen_reply_string(reply, &text))
        return seen_pool_strange("GET", reply, "a string", error);
    bool whole = strlen(text.data) == text.len; /* no NUL in it */
    seen_status status = whole ? understand(text.data, m->own) : SEEN_CORRUPT;
    if (status == SEEN_OK)
        set_prefix(m, m->own);
    else
        seen_fail(error, status, "key",
                  "%.100s: is no filter of this layout: give another key",
                  m->key);
    return status;
}

static seen_status find(seen_remote *m, seen_error *error)
{
    const char *argv[] = {"GET", m->key};
    struct seen_command k;
    seen_status status = seen_remote_do(m, &k, 2, argv, true, error);
    if (status == SEEN_OK) status = read_text(m, k.reply, error);
    seen_redis_done(&k, 1);
    return status;
}

static seen_status open(seen_remote *m, const seen_spec *create,
                        seen_outcome *outcome, seen_error *error)
{
    seen_error found = {0};
    m->own = seen_alloc_zeroed(&seen_system_memory, sizeof(struct plain));
    if (!m->own) return SEEN_NOMEM;
    seen_status status = find(m, &found);
    if (status != SEEN_ABSENT || !create)
        return seen_fail_as(error, status, &found);
    bool ours = false;
    status = make(m, create, &ours, error);
    if (status != SEEN_OK) return status;
    outcome->created = ours;
    return ours ? SEEN_OK : find(m, error);
}

static void close(seen_remote *m)
{
    seen_release(&seen_system_memory, m->own, sizeof(struct plain));
}

/* ---- Keys --------------------------------------------------------------- */

struct probe {
    uint64_t part, line; /* in the part */
    uint32_t x;          /* for bits/line.h */
};

/* The two halves of the hash take turns in choosing the line and the bits. */
static struct probe probe_of(const struct plain *p, seen_hash h, uint32_t i)
{
    uint64_t line = seen_reduce(i ? h.lo : h.hi, p->lines);
    return (struct probe){line / PART_LINES, line % PART_LINES,
                          (uint32_t)(i ? h.hi : h.lo)};
}

/* The key is a string of lines: NAME:TAG:part. */
static void put_part(struct seen_wire *w, struct seen_command *k,
                     const struct plain *p, uint64_t part)
{
    char key[SEEN_REMOTE_KEY];
    memcpy(key, p->prefix, p->prefix_len);
    size_t digits = seen_wire_digits(part, key + p->prefix_len);
    seen_wire_key(w, k, key, p->prefix_len + digits);
}

static void put_question(struct seen_wire *w, struct seen_command *k,
                         const struct plain *p, const struct probe *o)
{
    seen_wire_begin(w, k, 4, true);
    seen_wire_text(w, "GETRANGE");
    put_part(w, k, p, o->part);
    seen_wire_number(w, o->line * LINE);
    seen_wire_number(w, o->line * LINE + LINE - 1);
    seen_wire_end(w, k);
}

static void put_add(struct seen_wire *w, struct seen_command *k,
                    const struct plain *p, const struct probe *o)
{
    seen_wire_begin(w, k, 2 + 4 * SEEN_LINE_WORDS, true);
    seen_wire_text(w, "BITFIELD");
    put_part(w, k, p, o->part);
    for (uint32_t g = 0; g < SEEN_LINE_WORDS; g++)
        seen_wire_set_bit(w, o->line * SEEN_LINE_BITS +
                                 seen_line_bit(o->x, g, WORDS));
    seen_wire_end(w, k);
}

static void put_length(struct seen_wire *w, struct seen_command *k,
                       const struct plain *p, uint64_t part)
{
    seen_wire_begin(w, k, 2, true);
    seen_wire_text(w, "STRLEN");
    put_part(w, k, p, part);
    seen_wire_end(w, k);
}

static bool bits_are_set(const uint8_t *line, uint32_t x)
{
    bool all = true;
    for (uint32_t g = 0; g < SEEN_LINE_WORDS; g++) {
        uint32_t bit = seen_line_bit(x, g, WORDS);
        all &= line[bit / 8] >> (7 - bit % 8) & 1;
    }
    return all;
}

/* Was everything set? */
static seen_status read_reply(const struct redisReply *reply, bool adds,
                              const struct probe *o, bool *set,
                              seen_error *error)
{
    seen_key line;
    if (adds)
        return seen_reply_flags(reply, SEEN_LINE_WORDS, set)
                   ? SEEN_OK
                   : seen_pool_strange("BITFIELD", reply, "8 bits", error);
    if (!seen_reply_string(reply, &line) || line.len != LINE)
        return seen_pool_strange("GETRANGE", reply, "a string of 64 bytes",
                                 error);
    *set = bits_are_set(line.data, o->x);
    return SEEN_OK;
}

/* ---- Batches ------------------------------------------------------------ */

/* A pipeline: a command for each probe, then a length of each part that they
 * touch. */
struct batch {
    struct seen_batch commands;
    struct probe *o;
    uint64_t *part;              /* whose lengths are asked for */
    uint64_t probes, most_parts; /* that there is room for */
    size_t n, parts;
};

static bool make_room(struct batch *b, const struct plain *p, size_t keys,
                      bool adds)
{
    const size_t each =
        SEEN_WIRE_COMMAND + 2 * SEEN_WIRE_WORD + 8 + p->prefix_len + 20 +
        (adds ? SEEN_LINE_WORDS * SEEN_WIRE_BIT : 2 * SEEN_WIRE_NUMBER);
    *b = (struct batch){.probes = keys * p->probes, .most_parts = parts_of(p)};
    if (b->most_parts > b->probes) b->most_parts = b->probes;
    b->o = seen_alloc_zeroed(&seen_system_memory, b->probes * sizeof *b->o);
    b->part =
        seen_alloc_zeroed(&seen_system_memory, b->most_parts * sizeof *b->part);
    return seen_batch_new(&b->commands, b->probes + b->most_parts, each) &&
           b->o && b->part;
}

static void free_room(struct batch *b)
{
    seen_batch_free(&b->commands);
    seen_release(&seen_system_memory, b->part, b->most_parts * sizeof *b->part);
    seen_release(&seen_system_memory, b->o, b->probes * sizeof *b->o);
}

static void note_part(struct batch *b, uint64_t part)
{
    for (size_t i = 0; i < b->parts; i++)
        if (b->part[i] == part) return;
    b->part[b->parts++] = part;
}

static void put_keys(struct batch *b, const struct plain *p, bool adds,
                     const seen_key *keys, size_t n)
{
    struct seen_wire w = seen_batch_wire(&b->commands);
    struct seen_command *k = b->commands.k;
    b->n = b->parts = 0;
    for (size_t i = 0; i < n; i++) {
        seen_hash h =
            seen_hash_siphash13.one(p->secret, keys[i].data, keys[i].len);
        for (uint32_t probe = 0; probe < p->probes; probe++, b->n++) {
            struct probe *o = &b->o[b->n];
            *o = probe_of(p, h, probe);
            (adds ? put_add : put_question)(&w, &k[b->n], p, o);
            note_part(b, o->part);
        }
    }
    for (size_t i = 0; i < b->parts; i++)
        put_length(&w, &k[b->n + i], p, b->part[i]);
}

static seen_status check_part(const seen_remote *m, uint64_t part,
                              const struct redisReply *reply, seen_error *error)
{
    uint64_t full = lines_of_part(m->own, part) * LINE + TRAILER;
    int64_t length;
    if (!seen_reply_integer(reply, 0, INT64_MAX, &length))
        return seen_pool_strange("STRLEN", reply, "a length", error);
    if ((uint64_t)length == full) return SEEN_OK;
    return seen_fail(error, SEEN_CORRUPT, "key",
                     "%.100s: part %llu is gone, evicted or expired, and "
                     "its keys with it: delete the filter and fill it again",
                     m->key, (unsigned long long)part);
}

static seen_status check_parts(const seen_remote *m, const struct batch *b,
                               seen_error *error)
{
    seen_status status = SEEN_OK;
    for (size_t i = 0; status == SEEN_OK && i < b->parts; i++)
        status =
            check_part(m, b->part[i], b->commands.k[b->n + i].reply, error);
    return status;
}

static seen_status run_batch(seen_remote *m, struct batch *b, bool adds,
                             const seen_key *keys, size_t n, bool *set,
                             seen_error *error)
{
    const struct plain *p = m->own;
    struct seen_command *k = b->commands.k;
    put_keys(b, p, adds, keys, n);
    seen_status status = seen_pool_run(&m->pool, k, b->n + b->parts, error);
    if (status == SEEN_OK) status = check_parts(m, b, error);
    for (size_t i = 0; status == SEEN_OK && i < n; i++) {
        bool all = true;
        for (uint32_t probe = 0; status == SEEN_OK && probe < p->probes;
             probe++) {
            size_t at = i * p->probes + probe;
            bool one = false;
            status = read_reply(k[at].reply, adds, &b->o[at], &one, error);
            all &= one;
        }
        if (set) set[i] = all;
    }
    seen_redis_done(k, b->n + b->parts);
    return status;
}

static seen_status send(seen_remote *m, bool adds, seen_keys keys, bool *there,
                        seen_error *error)
{
    const size_t most = keys.n < SEEN_BATCH_KEYS ? keys.n : SEEN_BATCH_KEYS;
    struct seen_batch_keys some;
    struct batch b;
    seen_status status =
        make_room(&b, m->own, most, adds) ? SEEN_OK : SEEN_NOMEM;
    for (size_t at = 0; status == SEEN_OK && at < keys.n; at += most) {
        const size_t n = keys.n - at < most ? keys.n - at : most;
        status = run_batch(m, &b, adds, seen_batch_keys(&some, keys, at, n), n,
                           there ? there + at : NULL, error);
    }
    free_room(&b);
    return status;
}

/* ---- How it is doing ---------------------------------------------------- */

static seen_status look_at_part(seen_remote *m, uint64_t part, const char *key,
                                seen_error *error)
{
    const char *argv[] = {"STRLEN", key};
    struct seen_command k;
    seen_status status = seen_remote_do(m, &k, 2, argv, true, error);
    if (status == SEEN_OK) status = check_part(m, part, k.reply, error);
    seen_redis_done(&k, 1);
    return status;
}

/* A key sets one bit in each word of its lines; by Poisson, of the bits of all
 * words exp(-keys / (64 lines)) are still 0. */
static seen_status info_of(seen_remote *m, seen_remote_info *info,
                           seen_error *error)
{
    const struct plain *p = m->own;
    char key[SEEN_REMOTE_KEY];
    double ones = 0;
    seen_status status = SEEN_OK;
    for (uint64_t i = 0; status == SEEN_OK && i < parts_of(p); i++) {
        char end[24];
        const char *argv[] = {"BITCOUNT", key, "0", end};
        struct seen_command k;
        name_part(p, i, key);
        status = look_at_part(m, i, key, error);
        if (status != SEEN_OK) break;
        snprintf(end, sizeof end, "%llu",
                 (unsigned long long)(lines_of_part(p, i) * LINE - 1));
        int64_t n = 0;
        const int64_t bits = (int64_t)(lines_of_part(p, i) * SEEN_LINE_BITS);
        status = seen_remote_do(m, &k, 4, argv, true, error);
        if (status == SEEN_OK && !seen_reply_integer(k.reply, 0, bits, &n))
            status = seen_pool_strange("BITCOUNT", k.reply, "a number", error);
        ones += (double)n;
        seen_redis_done(&k, 1);
    }
    double zeros = 1 - ones / ((double)p->lines * SEEN_LINE_BITS);
    double keys =
        -64.0 * (double)p->lines * log(zeros > 0 ? zeros : 1e-9) / p->probes;
    info->layout = "plain";
    info->capacity = p->items;
    info->fpp = p->fpp;
    info->items = (uint64_t)(keys + 0.5);
    info->bytes = p->lines * LINE + parts_of(p) * TRAILER;
    info->parts = parts_of(p);
    return status;
}

const struct seen_remote_ops seen_remote_plain = {
    .scheme = "redis+plain",
    .key_in_path = true,
    .type = "string",
    .open = open,
    .send = send,
    .info = info_of,
    .key_at = key_at,
    .close = close,
};
