/* bf_args.c - what BF.RESERVE, BF.INSERT and BF.ALLOW are told. */
#include "bf_args.h"

#include "arguments.h"
#include "config.h"

#include <math.h>

#define MS_MAX       ((double)((uint64_t)1 << 48))
#define CAPACITY_MAX ((long long)1 << 62)

struct options bf_default_options(void)
{
    return (struct options){.params = {.capacity = config.capacity,
                                       .error = config.error,
                                       .expansion = (uint32_t)config.expansion,
                                       .keyed = config.keyed}};
}

/* ---- One option --------------------------------------------------------- */

static const char *read_error(const RedisModuleString *s, struct options *w)
{
    if (!to_double(s, &w->params.error)) return "ERR bad error rate";
    if (!(w->params.error > 0 && w->params.error < 1))
        return "ERR (0 < error rate range < 1)";
    w->error = true;
    return NULL;
}

static const char *read_capacity(const RedisModuleString *s, struct options *w)
{
    long long n;
    if (!to_number(s, INT64_MIN, INT64_MAX, &n)) return "ERR bad capacity";
    if (n < 1 || n > CAPACITY_MAX)
        return "ERR (capacity should be larger than 0)";
    w->params.capacity = (uint64_t)n;
    w->capacity = true;
    return NULL;
}

static const char *read_expansion(const RedisModuleString *s, struct options *w)
{
    long long n;
    if (!to_number(s, INT64_MIN, INT64_MAX, &n)) return "ERR bad expansion";
    if (n < 1 || n > 32768)
        return "ERR expansion should be greater or equal to 1";
    w->params.expansion = (uint32_t)n;
    w->expansion = true;
    return NULL;
}

static const char *read_ms(const RedisModuleString *s, uint64_t *ms)
{
    double seconds;
    if (!to_double(s, &seconds) || !(seconds >= 0.001) ||
        seconds * 1000 > MS_MAX)
        return "ERR expected seconds, 0.001 or more, behind WINDOW and TTL";
    *ms = (uint64_t)llround(seconds * 1000);
    return NULL;
}

static const char *read_generations(const RedisModuleString *s,
                                    struct options *w)
{
    long long n;
    if (!to_number(s, 2, 63, &n)) return "ERR GENERATIONS is 2 to 63";
    w->params.generations = (uint32_t)n;
    return NULL;
}

static const char *read_secret(const RedisModuleString *s, struct options *w)
{
    w->secret = true;
    return to_secret(s, &w->params.keyed, w->params.secret);
}

static const char *read_at(const RedisModuleString *s, struct options *w)
{
    long long ms;
    if (!to_number(s, 1, (long long)MS_MAX - 1, &ms))
        return "ERR AT is a time in milliseconds since 1970";
    w->at_ms = (uint64_t)ms;
    return NULL;
}

/* One option and its value. */
static const char *read_option(RedisModuleString **argv, int argc, int *i,
                               struct options *w, bool insert)
{
    RedisModuleString *word = argv[*i];
    if (is_word(word, "NONSCALING")) {
        w->params.fixed = true;
        return NULL;
    }
    if (insert && is_word(word, "NOCREATE")) {
        w->no_create = true;
        return NULL;
    }
    if (++*i >= argc) return "ERR an option is unknown, or lacks its value";
    RedisModuleString *value = argv[*i];
    if (is_word(word, "EXPANSION")) return read_expansion(value, w);
    if (is_word(word, "WINDOW")) return read_ms(value, &w->params.window_ms);
    if (is_word(word, "GENERATIONS")) return read_generations(value, w);
    if (is_word(word, "TTL")) return read_ms(value, &w->ttl_ms);
    if (is_word(word, "SECRET")) return read_secret(value, w);
    if (insert && is_word(word, "CAPACITY")) return read_capacity(value, w);
    if (insert && is_word(word, "ERROR")) return read_error(value, w);
    if (insert && is_word(word, "AT")) return read_at(value, w);
    if (!insert && is_word(word, "LIKE")) {
        w->like = value;
        return NULL;
    }
    return unknown_argument(word);
}

static const char *contradiction(struct options *w)
{
    struct params *p = &w->params;
    if (p->fixed && w->expansion) return "Nonscaling filters cannot expand";
    if (p->window_ms && (p->fixed || w->expansion))
        return "ERR a WINDOW does not grow: no EXPANSION, no NONSCALING";
    if (p->generations && !p->window_ms) return "ERR GENERATIONS needs WINDOW";
    if (w->no_create && (w->capacity || w->error))
        return "ERR NOCREATE with CAPACITY or ERROR: there is nothing to make";
    if (p->fixed || p->window_ms) p->expansion = 0;
    return NULL;
}

/* ---- Commands ----------------------------------------------------------- */

const char *bf_read_reserve(struct call *c)
{
    struct options *w = &c->options;
    int i = 2;
    const char *problem = NULL;
    *w = bf_default_options();
    if (!is_word(c->argv[2], "LIKE")) {
        problem = read_error(c->argv[2], w);
        if (!problem) problem = read_capacity(c->argv[3], w);
        i = 4;
    }
    bool only_like = true;
    for (; !problem && i < c->argc; i++) {
        only_like = only_like &&
                    (is_word(c->argv[i], "LIKE") || is_word(c->argv[i], "TTL"));
        problem = read_option(c->argv, c->argc, &i, w, false);
    }
    if (!problem && w->like && !only_like)
        problem = "ERR beside LIKE only TTL can be given";
    return problem ? problem : contradiction(w);
}

const char *bf_read_insert(struct call *c)
{
    struct options *w = &c->options;
    const char *problem = NULL;
    int i = 2;
    *w = bf_default_options();
    for (; !problem && i < c->argc && !is_word(c->argv[i], "ITEMS"); i++)
        problem = read_option(c->argv, c->argc, &i, w, true);
    if (!problem) problem = contradiction(w);
    if (!problem && i + 1 >= c->argc)
        problem = "ERR expected ITEMS and at least one item";
    w->items = c->argv + i + 1;
    w->n = (size_t)(c->argc - i - 1);
    return problem;
}

/* Options count only where ITEMS follows: items may have any name. */
const char *bf_read_allow(struct call *c)
{
    struct listing *l = &c->listing, m = {0};
    *l = (struct listing){.items = c->argv + 2, .n = (size_t)c->argc - 2};
    for (int i = 2; i < c->argc; i++) {
        if (is_word(c->argv[i], "NEVER")) {
            m.rule = SEEN_LISTED_NEVER;
        } else if (is_word(c->argv[i], "ALWAYS")) {
            m.rule = SEEN_LISTED_ALWAYS;
        } else if (is_word(c->argv[i], "REMOVE")) {
            m.remove = true;
        } else {
            if (!is_word(c->argv[i], "ITEMS")) break;
            m.items = c->argv + i + 1;
            m.n = (size_t)(c->argc - i - 1);
            *l = m;
            break;
        }
    }
    return l->n || l->rule ? NULL : "ERR expected items";
}
