/*
 * dialect.h - what a dialect is: a scheme and a codec for its header.
 *
 * A dialect is one file, which opens with what the other system does, and one
 * row in dialects.def. It says how to size a filter, how to read one and how to
 * write it; filter/foreign.h does the rest.
 *
 * Reading is the dangerous part, and is done in two steps. `read` looks at bytes
 * that anybody may have made and fills in a struct seen_foreign without taking
 * memory: every length is compared with the bytes that are there. Only then is
 * memory taken, as much as the links say, and the bits are copied, or decoded by
 * `fill`, which can trust what `read` let through.
 */
#ifndef SEEN_DIALECT_H
#define SEEN_DIALECT_H

#include "filter/foreign.h"

struct seen_dialect {
    seen_dialect_facts facts; /* hash comes from the scheme */
    const struct seen_scheme *scheme;
    const struct seen_foreign_rules *rules;
    const struct seen_filter_ops *ops; /* NULL: seen_foreign_ops */

    /* The first link, and what else a new filter of this spec has; or what is
     * wrong with the spec, in terms of its fields. plan.items and plan.fpp are
     * preset from the spec. */
    const char *(*plan)(const seen_spec *spec, struct seen_foreign *f);

    /* Do the bytes say that they are of this dialect? NULL: they cannot. */
    bool (*sniff)(const uint8_t *buf, size_t len);

    /* links[].at points into buf, unless there is `fill`. Otherwise returns
     * what is wrong, and in *why says it. */
    seen_status (*read)(const seen_spec *spec, const uint8_t *buf, size_t len,
                        struct seen_foreign *f, const char **why);
    void (*fill)(struct seen_foreign *f, const uint8_t *buf, size_t len);

    /* To bytes; `to` NULL measures. SEEN_MISMATCH: a filter of this scheme that
     * this form cannot hold. */
    seen_status (*write)(const struct seen_foreign *f, uint8_t *to,
                         size_t *len);
};

#define DIALECT(name) extern const struct seen_dialect name;
#include "dialect/dialects.def"
#undef DIALECT
SEEN_PRIVATE extern const struct seen_dialect seen_dialect_exposure_list;

/* Row `index` of dialects.def, NULL past its end; by name, or NULL. */
const struct seen_dialect *seen_dialect_row(size_t index);
const struct seen_dialect *seen_dialect_find(const char *name);

/* Everything of a new filter but the memory. */
seen_status seen_dialect_plan(const seen_spec *spec, struct seen_foreign *f,
                              const char **problem);

/* Everything of a filter in bytes but the memory; links[].at into buf. */
seen_status seen_dialect_read(const struct seen_dialect *d,
                              const seen_spec *spec, const uint8_t *buf,
                              size_t len, struct seen_foreign *f,
                              const char **why);

/* ---- What dialects share ------------------------------------------------- */

/* One rule: bits are set, and that is all. */
extern const struct seen_foreign_rules seen_plain_rules;

/* For readers: the status, with its reason. */
SEEN_INLINE seen_status seen_refuse(const char **why, seen_status status,
                                    const char *text)
{
    *why = text;
    return status;
}

#endif
