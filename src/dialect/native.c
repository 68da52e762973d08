/*
 * dialect/native.c - our own container.
 *
 *     offset  size
 *     0       8     magic 89 53 45 45 4e 0d 0a 1a ("\x89SEEN\r\n\x1a")
 *     8       2     version, 1
 *     10      2     kind, 8 = bitmap
 *     12      4     flags, 0
 *     16      8     bits
 *     24      8     payload length in bytes: 8 * ceil(bits / 64)
 *     32      8     payload offset: header and checksums, rounded up to 64
 *     40      4     checksum block: payload bytes per checksum, 65536
 *     44      4     CRC32C of the checksum table
 *     48      76    reserved, 0
 *     124     4     CRC32C of bytes 0..123
 *     128     4*c   checksum table: CRC32C of each payload block, in order
 *             ...   0 up to the payload offset
 *             ...   payload: 64-bit words; bits past the end of the last are 0
 *
 * All little-endian. The magic is PNG's idea: the first byte is not text, and
 * CR LF and ^Z show a transfer that rewrote line ends. The payload is aligned
 * for being used where it lies; per-block checksums let a huge file be opened
 * at once and checked piece by piece.
 *
 * Nothing is read from outside before its place has been compared with the
 * bytes that are there, and everything derivable is derived and compared.
 */
#include "dialect/native.h"

#include "base/bytes.h"
#include "base/crc32c.h"
#include "bits/bitmap.h"

#include <string.h>

#define HEADER  128
#define BLOCK   65536
#define VERSION 1

static const uint8_t magic[8] = {0x89, 'S', 'E', 'E', 'N', '\r', '\n', 0x1a};

static uint64_t round_up(uint64_t x, uint64_t to)
{
    return (x + to - 1) / to * to;
}

static uint64_t payload_len(uint64_t bits)
{
    return seen_words_for(bits) * 8;
}

static uint64_t blocks(uint64_t len)
{
    return round_up(len, BLOCK) / BLOCK;
}

static uint64_t payload_offset(uint64_t bits)
{
    return round_up(HEADER + 4 * blocks(payload_len(bits)), SEEN_LINE_SIZE);
}

bool seen_native_measure(uint64_t bits, uint64_t *len)
{
    if (bits > SEEN_BITMAP_MAX) return false;
    *len = payload_offset(bits) + payload_len(bits);
    return *len <= PTRDIFF_MAX;
}

/* ---- Write -------------------------------------------------------------- */

static void put_words(uint8_t *to, const uint64_t *words, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        seen_put_le64(to + 8 * i, words[i]);
}

static size_t block_len(uint64_t len, uint64_t block)
{
    return (size_t)seen_min64(BLOCK, len - block * BLOCK);
}

void seen_native_write(uint32_t kind, const uint64_t *words, uint64_t bits,
                       uint8_t *buf)
{
    uint64_t len = payload_len(bits), offset = payload_offset(bits);
    uint8_t *table = buf + HEADER;
    memset(buf, 0, (size_t)offset);
    put_words(buf + offset, words, len / 8);
    for (uint64_t i = 0; i < blocks(len); i++)
        seen_put_le32(table + 4 * i, seen_crc32c(0, buf + offset + i * BLOCK,
                                                 block_len(len, i)));

    memcpy(buf, magic, sizeof magic);
    seen_put_le16(buf + 8, VERSION);
    seen_put_le16(buf + 10, (uint16_t)kind);
    seen_put_le64(buf + 16, bits);
    seen_put_le64(buf + 24, len);
    seen_put_le64(buf + 32, offset);
    seen_put_le32(buf + 40, BLOCK);
    seen_put_le32(buf + 44, seen_crc32c(0, table, (size_t)(4 * blocks(len))));
    seen_put_le32(buf + 124, seen_crc32c(0, buf, 124));
}

/* ---- Read --------------------------------------------------------------- */

static bool all_zero(const uint8_t *p, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        if (p[i]) return false;
    return true;
}

seen_status seen_native_read(const uint8_t *buf, size_t len,
                             struct seen_native *out)
{
    /* 1. Is it ours, and of this version? */
    if (len < HEADER || memcmp(buf, magic, sizeof magic) != 0)
        return SEEN_CORRUPT;
    if (seen_get_le16(buf + 8) > VERSION) return SEEN_NEWER;
    if (seen_get_le32(buf + 124) != seen_crc32c(0, buf, 124))
        return SEEN_CORRUPT;
    if (seen_get_le16(buf + 8) != VERSION) return SEEN_CORRUPT;

    /* 2. Does the header agree with itself and with the length? */
    uint64_t bits = seen_get_le64(buf + 16);
    uint64_t whole;
    if (bits == 0 || !seen_native_measure(bits, &whole)) return SEEN_CORRUPT;
    uint64_t payload = payload_len(bits), offset = payload_offset(bits);
    if (len != whole || seen_get_le64(buf + 24) != payload ||
        seen_get_le64(buf + 32) != offset || seen_get_le32(buf + 40) != BLOCK)
        return SEEN_CORRUPT;
    if (seen_get_le32(buf + 12) != 0 || !all_zero(buf + 48, 76))
        return SEEN_CORRUPT;

    /* 3. The padding, and the bits past the end. */
    uint64_t table_end = HEADER + 4 * blocks(payload);
    if (!all_zero(buf + table_end, offset - table_end)) return SEEN_CORRUPT;
    uint64_t last = seen_get_le64(buf + whole - 8);
    if (bits % 64 && last >> (bits % 64)) return SEEN_CORRUPT;

    *out = (struct seen_native){.kind = seen_get_le16(buf + 10),
                                .bits = bits,
                                .payload_offset = offset,
                                .payload_len = payload};
    return SEEN_OK;
}

seen_status seen_native_verify(const uint8_t *buf,
                               const struct seen_native *header)
{
    const uint8_t *table = buf + HEADER;
    const uint8_t *payload = buf + header->payload_offset;
    uint64_t len = header->payload_len, n = blocks(len);
    if (seen_get_le32(buf + 44) != seen_crc32c(0, table, (size_t)(4 * n)))
        return SEEN_CORRUPT;
    for (uint64_t i = 0; i < n; i++)
        if (seen_get_le32(table + 4 * i) !=
            seen_crc32c(0, payload + i * BLOCK, block_len(len, i)))
            return SEEN_CORRUPT;
    return SEEN_OK;
}
