/*
 * pack.h - gzip around a filter. DCSO's program writes its files with or without
 * it: the dialect `dcso-gzip` of the command line, which to the library is `dcso`.
 */
#ifndef CLI_PACK_H
#define CLI_PACK_H

#include <stdbool.h>
#include <stddef.h>

/* The name that the library knows a dialect by; NULL for NULL. */
const char *unpacked_name(const char *dialect);
bool is_packed_name(const char *dialect);

/* Are these bytes gzip, with something in it that begins like a DCSO filter? */
bool is_packed(const void *bytes, size_t len);

/* Memory of its own, to be freed. Bytes that are no whole gzip stream are the end
 * of the program; `name` is what they are called. */
void *unpack(const char *name, const void *bytes, size_t len, size_t *out);
void *pack(const void *bytes, size_t len, size_t *out);

#endif
