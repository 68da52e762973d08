/* api/bytes.h - filters to containers and back, for seen_save() and filter
 * files. */
#ifndef SEEN_API_BYTES_H
#define SEEN_API_BYTES_H

#include "dialect/native.h"

/* A filter taken apart, ready to be written. */
struct seen_saved {
    struct seen_native header;
    struct seen_native_body body;
    struct seen_part parts[SEEN_MAX_PARTS];
    uint8_t state[SEEN_STATE_MAX];
    uint8_t *listed; /* of its own; NULL: no list */
    uint8_t *whole;  /* of its own: the bytes of another system's filter */
    uint64_t whole_len;
};

/* `flags`: those of the header that are up to the caller. SEEN_INVALID: larger
 * than any memory; a secret to be kept apart where there is none. */
SEEN_PRIVATE seen_status seen_saved_from(const seen_filter *f, uint32_t flags,
                                         struct seen_saved *out);
SEEN_PRIVATE void seen_saved_free(struct seen_saved *s);

enum seen_restore_mode {
    SEEN_RESTORE_COPY, /* into memory of its own */
    SEEN_RESTORE_VIEW, /* where it lies, not to be changed */
    SEEN_RESTORE_MAP /* where it lies, to be changed: kinds with ops->touches */
};

/* Stands for whatever the secret is: to look at bits, not to ask questions. */
SEEN_PRIVATE extern const uint8_t seen_any_secret[16];

/* From a container whose header has been read. The pages are not compared with
 * their checksums: whoever copies them does it before. */
SEEN_PRIVATE seen_status seen_restore(seen_filter **f, const uint8_t *buf,
                                      const struct seen_native *h,
                                      enum seen_restore_mode mode,
                                      const uint8_t *secret,
                                      const seen_allocator *allocator,
                                      seen_error *e);

#endif
