/* seen_args.c - what SEEN commands are told. */
#include "arguments.h"
#include "command.h"

#include <string.h>

#define IDS_MAX                                                                \
    ((size_t)1 << 22) /* packed: two seconds, and 0.3 GB meanwhile */
#define TIME_MAX (((long long)1 << 48) - 1)

/* The value of an option; false: no such option. */
static bool read_option(RedisModuleString *word, RedisModuleString *value,
                        unsigned with, struct request *q, const char **problem)
{
    long long number;
    bool own = is_word(word, "POLICY");
    if (own || (with & WITH_UNDER && is_word(word, "UNDER"))) {
        seen_key text = key_of(value);
        q->policy = policy_find(text.data, text.len, problem);
        q->own = own && !(text.len == 7 && !memcmp(text.data, "default", 7));
    } else if (with & WITH_TIME && is_word(word, "AT")) {
        if (to_number(value, 0, TIME_MAX, &number))
            q->now_ms = (uint64_t)number;
        else
            *problem = "ERR AT is a time in milliseconds since 1970";
    } else if ((with & WITH_LIMIT && is_word(word, "LIMIT")) ||
               (with & WITH_COUNT && is_word(word, "COUNT"))) {
        if (to_number(value, 0, INT64_MAX, &number))
            q->most = (size_t)number;
        else
            *problem = "ERR LIMIT and COUNT are whole numbers, 0 or more";
    } else {
        return false;
    }
    return true;
}

/* The last two arguments: width and ids. */
static const char *read_ids(struct request *q)
{
    long long width;
    if (q->n != 2)
        return "ERR expected a width and the ids, in one argument, at the end";
    q->ids = key_of(q->items[1]);
    if (!to_number(q->items[0], 1, 65536, &width) ||
        q->ids.len % (size_t)width != 0)
        return "ERR width must be 1 to 65536 and must divide the length of the "
               "ids";
    q->width = (size_t)width;
    q->n = q->ids.len / q->width;
    return q->n <= IDS_MAX
               ? NULL
               : "ERR at most 4194304 ids in one command: send several";
}

static void begin(struct request *q)
{
    *q = (struct request){.now_ms = (uint64_t)RedisModule_Milliseconds(),
                          .most = SIZE_MAX};
}

/* Options behind the key, then ITEMS, which may be left out, and the items. */
const char *user_read(struct call *c)
{
    struct request *q = &c->request;
    unsigned with = c->command->with;
    const char *problem = NULL;
    int i = 2;
    begin(q);
    while (!problem && i + 1 < c->argc &&
           read_option(c->argv[i], c->argv[i + 1], with, q, &problem))
        i += 2;
    if (!problem && i < c->argc && is_word(c->argv[i], "ITEMS") &&
        ++i == c->argc)
        problem = "ERR expected at least one item behind ITEMS";
    if (!problem && with & WITH_COUNT && q->most == SIZE_MAX)
        problem = "ERR expected COUNT and a number behind the key";
    if (problem) return problem;
    q->items = c->argv + i;
    q->n = (size_t)(c->argc - i);
    if ((with & WITH_ITEMS && !q->n) || (with & WITH_NONE && q->n))
        return WRONG_ARITY;
    return with & WITH_IDS ? read_ids(q) : NULL;
}

const char *user_read_merge(struct call *c)
{
    begin(&c->request);
    return NULL;
}

const char *user_read_import(struct call *c)
{
    begin(&c->request);
    if (c->argc == 3 || is_word(c->argv[3], "REPLACE")) return NULL;
    return "ERR expected REPLACE, or nothing, behind the bytes";
}
