/*
 * spec.h - from the user's options to a seen_spec, and back when it does not
 * work: the library speaks of fields, the user typed options.
 */
#ifndef CLI_SPEC_H
#define CLI_SPEC_H

#include "options.h"

#include <seen.h>

/* ---- The wish ----------------------------------------------------------- */

/* What a new filter shall be like; 0, NULL or SEEN_ANY: not said. */
struct wish {
    uint64_t items, bits, hashes, memory, last, window_ms, generations;
    double rate;
    seen_kind kind;
    bool keyed;
    const char *secret_file;
    const char *dialect;
    double bits_per_key;
};

extern struct wish wish;

/* Rows for verbs that make filters, or plan them, and for those that only open
 * them. */
extern const struct option wish_options[];
extern const struct option window_options[];
extern const struct option secret_options[];

#define ITEMS_ROW                                                              \
    {                                                                          \
        'n', NULL, "ITEMS", OPTION_COUNT, &wish.items,                         \
            "keys to hold: 1e9, 10M"                                           \
    }
#define HASHES_ROW                                                             \
    {                                                                          \
        0, "hashes", "K", OPTION_COUNT, &wish.hashes, "bits set per key"       \
    }
#define DIALECT_ROW                                                            \
    {                                                                          \
        0, "dialect", "DIALECT", OPTION_DIALECT, &wish.dialect,                \
            "a filter of another system: see seen dialects"                    \
    }
#define PER_KEY_ROW                                                            \
    {                                                                          \
        0, "bits-per-key", "B", OPTION_REAL, &wish.bits_per_key,               \
            "bits for each key, where a dialect counts so"                     \
    }

/* For verbs that open filters of other systems: which, and what their bytes do
 * not say. */
extern const struct option dialect_options[];
seen_spec told_spec(void);

/* The rate where -p is not given. */
#define DEFAULT_RATE 0.001

bool wish_given(void);       /* any of it, except for the secret's file */
bool only_size_wished(void); /* nothing but -n and -p */

/* What seen_new() takes, without a secret; the rate is the default where one is
 * needed. It may still lack a number of items: see needs_items(). */
seen_spec wished_spec(void);

/* Does this lack the number of items? Anything else that is wrong with it ends
 * the program. */
bool needs_items(const seen_spec *spec);

/* Would what the user said make another filter than this one? Then that is the
 * end of the program. `spec` is what it would be made from, `name` the file;
 * flags are those of seen_info. */
void must_agree(const char *name, const seen_plan *is, uint32_t flags,
                const seen_spec *spec);

/* ---- The plan ----------------------------------------------------------- */

/* The bits of a filter that takes at most so many bytes, header included. */
uint64_t bits_within(uint64_t memory);

/* The plan, or the end of the program with what is wrong. `bits_option` is what
 * the verb calls the field bits. */
seen_plan plan_or_fail(const seen_spec *spec, const char *bits_option);

/* What the library says is wrong, with the option that its field comes from in
 * place of the field; static storage, or in *e. */
const char *in_options(const seen_error *e, const char *bits_option);

#endif
