/* crc32c.h - the checksum of every durable byte (Castagnoli, RFC 3720). */
#ifndef SEEN_CRC32C_H
#define SEEN_CRC32C_H

#include "base/base.h"

/* Continue from `crc`, which is 0 at the start; pieces give what the whole
 * gives. */
SEEN_PRIVATE uint32_t seen_crc32c(uint32_t crc, const void *data, size_t len);

#endif
