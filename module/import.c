/*
 * import.c - filters that other systems made, in keys of ours.
 *
 *     BF.IMPORT key DIALECT name bytes [BITS m] [HASHES k] [CAPACITY n] [ERROR p]
 *     CF.IMPORT key DIALECT redisbloom-cf bytes
 *     BF.LOAD key payload
 *
 * The library reads the bytes (docs/DIALECTS.md); from then on the key is like any
 * other, and answers as the original does, false positives included. What some
 * bytes do not say, the options do. BF.LOAD is how valkey-bloom's append-only
 * files bring filters back: its payload is the dialect `valkey-bloom`. RedisBloom's
 * chunks come through LOADCHUNK: chunks.h.
 */
#include "arguments.h"
#include "command.h"
#include "reply.h"

#include <string.h>

#define ITEMS_MAX ((long long)1 << 62)

/* What the bytes do not say. NULL, or an error. */
static const char *read_options(RedisModuleString **argv, int argc,
                                seen_spec *spec)
{
    for (int i = 0; i < argc; i += 2) {
        long long n = 0;
        bool whole = i + 1 < argc && to_number(argv[i + 1], 1, ITEMS_MAX, &n);
        if (i + 1 == argc) return "ERR an option lacks its value";
        if (is_word(argv[i], "ERROR")) {
            if (!to_double(argv[i + 1], &spec->fpp) ||
                !(spec->fpp > 0 && spec->fpp < 1))
                return "ERR (0 < error rate range < 1)";
            continue;
        }
        if (is_word(argv[i], "BITS"))
            spec->bits = (uint64_t)n;
        else if (is_word(argv[i], "CAPACITY"))
            spec->items = (uint64_t)n;
        else if (is_word(argv[i], "HASHES"))
            spec->hashes = (uint32_t)n;
        else
            return "ERR unknown argument received: expected BITS, HASHES, "
                   "CAPACITY or ERROR";
        if (!whole || (is_word(argv[i], "HASHES") && n > UINT32_MAX))
            return "ERR BITS, HASHES and CAPACITY are whole numbers above 0";
    }
    return NULL;
}

/* The dialect of this name, if keys of the family can hold it. NULL, or an error. */
static const char *find_dialect(const struct family *family,
                                const RedisModuleString *name,
                                seen_dialect_facts *facts)
{
    seen_key text = key_of(name);
    char word[32] = "";
    if (text.len < sizeof word) memcpy(word, text.data, text.len);
    facts->size = sizeof *facts;
    if (!seen_dialect_named(word, facts))
        return "ERR no such dialect: `seen dialects` lists them";
    bool removes = facts->can & SEEN_CAN_REMOVE;
    if (removes == (family == &cuckoo_family)) return NULL;
    return error_text("ERR filters of the dialect %s are %s keys: %s.IMPORT",
                      facts->name, removes ? "CF" : "BF",
                      removes ? "CF" : "BF");
}

const char *import_read(struct call *c)
{
    struct import *m = &c->import;
    m->spec = (seen_spec){0};
    if (!is_word(c->argv[2], "DIALECT"))
        return "ERR expected DIALECT, its name, and the filter's bytes";
    const char *problem = find_dialect(c->family, c->argv[3], &m->dialect);
    return problem ? problem : read_options(c->argv + 5, c->argc - 5, &m->spec);
}

static int import(struct call *c, const char *dialect, const seen_spec *spec,
                  const RedisModuleString *bytes, const char *hint)
{
    seen_error error;
    struct object *o;
    seen_status status =
        object_import(c->family, dialect, spec, key_of(bytes), &o, &error);
    if (status == SEEN_NOMEM) return reply_status(c->ctx, status);
    if (status != SEEN_OK)
        return reply_error(c->ctx, "ERR received bad data: as %s: %s%s",
                           dialect, error.text,
                           status == SEEN_INVALID ? hint : "");
    call_set(c, o);
    RedisModule_ReplicateVerbatim(c->ctx);
    call_changed(c, c->family == &bloom_family ? "bf.import" : "cf.import");
    return RedisModule_ReplyWithSimpleString(c->ctx, "OK");
}

int import_named(struct call *c)
{
    const struct import *m = &c->import;
    return import(c, m->dialect.name, &m->spec, c->argv[4],
                  m->dialect.needs ? " (keys: CAPACITY, rate: ERROR)" : "");
}

int import_valkey(struct call *c)
{
    return import(c, "valkey-bloom", &(seen_spec){0}, c->argv[2], "");
}
