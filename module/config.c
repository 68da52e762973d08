/* config.c - see config.h. */
#include "config.h"

#include "arguments.h"
#include "memory.h"
#include "policy.h"
#include "secret.h"

#include <stdio.h>
#include <string.h>

struct config config = {.error = 0.01,
                        .capacity = 100,
                        .cf_capacity = 1024,
                        .expansion = 2,
                        .keyed = true};

/* ---- Parameters --------------------------------------------------------- */

static const struct number {
    const char *name;
    uint64_t *to;
    long long min, max;
} numbers[] = {
    {"capacity", &config.capacity, 1, (long long)1 << 40},
    {"cf-capacity", &config.cf_capacity, 4, (long long)1 << 40},
    {"expansion", &config.expansion, 1, 32768},
    {"memory-limit", &memory_limit, 65536, (long long)1 << 46},
};

#define NUMBERS (sizeof numbers / sizeof *numbers)

/* Words. NULL, or what was expected. */
static const char *set_word(const char *name, const char *value)
{
    if (!strcmp(name, "commands")) {
        if (!strcmp(value, "all"))
            config.commands = COMMANDS_ALL;
        else if (!strcmp(value, "seen"))
            config.commands = COMMANDS_SEEN;
        else if (!strcmp(value, "auto"))
            config.commands = COMMANDS_AUTO;
        else
            return "all, seen or auto";
        return NULL;
    }
    if (!strcmp(name, "keyed")) {
        if (strcmp(value, "yes") && strcmp(value, "no")) return "yes or no";
        config.keyed = !strcmp(value, "yes");
        return NULL;
    }
    if (!strcmp(name, "error")) {
        double error;
        if (!text_to_double(value, &error) || !(error > 0 && error < 1))
            return "a rate above 0 and below 1";
        config.error = error;
        return NULL;
    }
    if (!strcmp(name, "secret-file")) return secret_load(value);
    if (!strncmp(name, "policy", 6) && (!name[6] || name[6] == '.'))
        return policy_configure(name[6] ? name + 7 : "default", value);
    return "one of commands, keyed, error, capacity, cf-capacity, expansion, "
           "memory-limit, secret-file, policy, policy.NAME";
}

/* ---- At loading --------------------------------------------------------- */

static int refuse(RedisModuleCtx *ctx, const char *text, const char *expected)
{
    RedisModule_Log(ctx, "warning", "seen: argument %s: expected %s", text,
                    expected);
    return REDISMODULE_ERR;
}

static int load_one(RedisModuleCtx *ctx, const char *text)
{
    char name[64];
    const char *equals = strchr(text, '=');
    size_t len = equals ? (size_t)(equals - text) : 0;
    if (!equals || len >= sizeof name) return refuse(ctx, text, "NAME=VALUE");
    memcpy(name, text, len);
    name[len] = 0;
    for (size_t i = 0; i < NUMBERS; i++) {
        long long value;
        if (strcmp(numbers[i].name, name)) continue;
        if (!text_to_number(equals + 1, &value) || value < numbers[i].min ||
            value > numbers[i].max) {
            char range[64];
            snprintf(range, sizeof range, "%lld to %lld", numbers[i].min,
                     numbers[i].max);
            return refuse(ctx, text, range);
        }
        *numbers[i].to = (uint64_t)value;
        return REDISMODULE_OK;
    }
    const char *expected = set_word(name, equals + 1);
    return expected ? refuse(ctx, text, expected) : REDISMODULE_OK;
}

int config_load(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    policy_configure("default", "items=1000"); /* the first of all */
    for (int i = 0; i < argc; i++)
        if (load_one(ctx, RedisModule_StringPtrLen(argv[i], NULL)) !=
            REDISMODULE_OK)
            return REDISMODULE_ERR;
    return REDISMODULE_OK;
}

/* ---- CONFIG SET and CONFIG GET ------------------------------------------ */

static long long get_number(const char *name, void *data)
{
    const uint64_t *from = data;
    (void)name;
    return (long long)*from;
}

static int change_number(const char *name, long long value, void *data,
                         RedisModuleString **problem)
{
    uint64_t *to = data;
    (void)name;
    (void)problem;
    *to = (uint64_t)value;
    return REDISMODULE_OK;
}

/* Those of the words that can change while the server runs. */
static const char *const words[] = {"error", "keyed", "policy"};

#define WORDS (sizeof words / sizeof *words)

static void show_word(const char *name, char *text, size_t cap)
{
    if (!strcmp(name, "error"))
        snprintf(text, cap, "%.17g", config.error);
    else if (!strcmp(name, "keyed"))
        snprintf(text, cap, "%s", config.keyed ? "yes" : "no");
    else
        snprintf(text, cap, "%s", policy_at(0)->text);
}

static RedisModuleString *get_word(const char *name, void *data)
{
    RedisModuleString **lent = data; /* to the server, until the next time */
    char text[POLICY_TEXT];
    show_word(name, text, sizeof text);
    if (*lent) RedisModule_FreeString(NULL, *lent);
    *lent = RedisModule_CreateString(NULL, text, strlen(text));
    return *lent;
}

/* The default that SEEN.POLICY has set counts, so another configured one would be
 * accepted and change nothing. */
static const char *overruled(const char *name, const char *value)
{
    const struct policy *p = policy_at(0);
    if (strcmp(name, "policy") != 0 || !p->set || !strcmp(value, p->text))
        return NULL;
    return "no other policy while SEEN.POLICY has set the default: change it "
           "there, or SEEN.POLICY default RESET";
}

static int change_word(const char *name, RedisModuleString *value, void *data,
                       RedisModuleString **problem)
{
    (void)data;
    size_t len;
    const char *text_of_value = RedisModule_StringPtrLen(value, &len);
    const char *expected = strlen(text_of_value) == len
                               ? overruled(name, text_of_value)
                               : "a value without NUL bytes";
    if (!expected) expected = set_word(name, text_of_value);
    if (!expected) return REDISMODULE_OK;
    char text[160];
    int n = snprintf(text, sizeof text, "expected %s", expected);
    *problem = RedisModule_CreateString(NULL, text, (size_t)n);
    return REDISMODULE_ERR;
}

int config_register(RedisModuleCtx *ctx)
{
    if (!RedisModule_RegisterNumericConfig ||
        !RedisModule_RegisterStringConfig || !RedisModule_LoadConfigs)
        return REDISMODULE_OK;
    for (size_t i = 0; i < NUMBERS; i++) {
        const struct number *n = &numbers[i];
        bool bytes = n->to == &memory_limit;
        if (RedisModule_RegisterNumericConfig(
                ctx, n->name, (long long)*n->to,
                bytes ? REDISMODULE_CONFIG_MEMORY : REDISMODULE_CONFIG_DEFAULT,
                n->min, n->max, get_number, change_number, NULL,
                n->to) != REDISMODULE_OK)
            return REDISMODULE_ERR;
    }
    static RedisModuleString *lent[WORDS];
    for (size_t i = 0; i < WORDS; i++) {
        char text[POLICY_TEXT];
        show_word(words[i], text, sizeof text);
        if (RedisModule_RegisterStringConfig(
                ctx, words[i], text, REDISMODULE_CONFIG_DEFAULT, get_word,
                change_word, NULL, &lent[i]) != REDISMODULE_OK)
            return REDISMODULE_ERR;
    }
    return RedisModule_LoadConfigs(ctx);
}
