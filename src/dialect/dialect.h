/*
 * dialect.h - what a dialect is: a scheme and a codec for its header.
 *
 * A dialect is one file, which opens with what the other system does, and one
 * row in dialects.def. It says how to size a filter, how to read one and how to
 * write it; filter/foreign.h does the rest.
 *
 * Reading is the dangerous part, and is done in two steps. `read` looks at bytes
 * that anybody may have made and fills in a struct seen_foreign without taking
 * memory: every length is compared with the bytes that are there. (If there are
 * several links, seen_link_at() gives one place for all of them, and `read` is
 * called once more when there is room.) Only then is memory taken, as much as the
 * links say, and the bits are copied, or decoded by `fill`, which can trust what
 * `read` let through.
 */
#ifndef SEEN_DIALECT_H
#define SEEN_DIALECT_H

#include "filter/foreign.h"

struct seen_dialect {
    seen_dialect_facts facts; /* hash comes from the scheme */
    const struct seen_scheme *scheme;
    const struct seen_foreign_rules *rules;
    const struct seen_filter_ops *ops; /* NULL: seen_foreign_ops */

    /* The first link, and what else a new filter of this spec has; or
     * SEEN_INVALID: the error says what is wrong with the spec. plan.items and
     * plan.fpp are preset from the spec. */
    seen_status (*plan)(const seen_spec *spec, struct seen_foreign *f,
                        seen_error *e);

    /* Do the bytes say that they are of this dialect? NULL: they cannot. */
    bool (*sniff)(const uint8_t *buf, size_t len);

    /* links[].at points into buf, unless there is `fill`. */
    seen_status (*read)(const seen_spec *spec, const uint8_t *buf, size_t len,
                        struct seen_foreign *f, seen_error *e);
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

/* SEEN_ABSENT. */
seen_status seen_no_dialect(const char *name, seen_error *e);

/* Everything of a new filter but the memory for its bits. */
seen_status seen_dialect_plan(const seen_spec *spec, struct seen_foreign *f,
                              seen_error *e);

/* Everything of a filter in bytes but the memory for its bits; links[].at into
 * buf. On SEEN_OK it wants seen_foreign_make() or seen_foreign_end(). */
seen_status seen_dialect_read(const struct seen_dialect *d,
                              const seen_spec *spec, const uint8_t *buf,
                              size_t len, struct seen_foreign *f,
                              seen_error *e);

/* ---- What dialects share ------------------------------------------------- */

/* One rule: bits are set, and that is all. */
extern const struct seen_foreign_rules seen_plain_rules;

/* What is wrong with a spec, in the same words for all dialects: SEEN_INVALID.
 * bits, hashes or bits_per_key is given, but follows from `what`. */
seen_status seen_derived(const seen_spec *spec, const char *what,
                         seen_error *e);
/* bits or hashes (`field`) is not what items and fpp give. */
seen_status seen_not_given(const seen_spec *spec, const char *field,
                           seen_error *e);
seen_status seen_not_per_key(const seen_spec *spec, seen_error *e);
seen_status seen_needs_keys_and_rate(const seen_spec *spec, seen_error *e);
/* SEEN_OK if there are items, and bits_per_key or fpp. */
seen_status seen_needs_per_key(const seen_spec *spec, seen_error *e);

/* What is wrong with bytes: SEEN_CORRUPT. */
seen_status seen_short_head(size_t len, size_t head, seen_error *e);
/* Behind the header are `len` bytes, which the header says are `expected`; or
 * all are, and the spec says so. SEEN_OK if they agree. */
seen_status seen_check_length(uint64_t len, uint64_t expected, seen_error *e);
/* There are n links, at this offset, which are none or too many; and they have so
 * few bytes that they would take more memory than bytes may take: SEEN_OK if not. */
seen_status seen_no_links(const char *what, uint64_t n, unsigned offset,
                          seen_error *e);
seen_status seen_check_links(const char *what, uint64_t n, uint64_t bytes,
                             seen_error *e);
seen_status seen_check_told(uint64_t len, uint64_t expected, seen_error *e);

#endif
