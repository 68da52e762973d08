/*
 * crc32c.c - CRC-32 with the Castagnoli polynomial 1EDC6F41, reflected, start
 * and end inverted: the CRC of iSCSI (RFC 3720), ext4 and most databases, and
 * the one that processors compute.
 *
 * Check value: the nine bytes "123456789" give e3069283.
 *
 * Two ways to the same number. x86-64 since 2008 has an instruction for eight
 * bytes; elsewhere a table of 16 entries takes half a byte a step. Checksums
 * are computed when filters are saved and loaded, never per key, so that is
 * fast enough and needs no start-up.
 */
#include "base/crc32c.h"

#include "base/base.h"
#include "base/bytes.h"
#include "base/cpu.h"

#include <stdatomic.h>

#if defined(__x86_64__)
#include <nmmintrin.h>

__attribute__((target("sse4.2"))) static uint32_t
crc_hardware(uint32_t crc, const uint8_t *p, size_t len)
{
    uint64_t c = crc;
    for (; len >= 8; p += 8, len -= 8)
        c = _mm_crc32_u64(c, seen_get_le64(p));
    for (; len > 0; p++, len--)
        c = _mm_crc32_u8((uint32_t)c, *p);
    return (uint32_t)c;
}
#endif

static uint32_t crc_table(uint32_t crc, const uint8_t *p, size_t len)
{
    /* Entry i is i pushed through four steps of the reflected polynomial. */
    static const uint32_t nibble[16] = {
        0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
        0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
        0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75};
    for (; len > 0; p++, len--) {
        crc ^= *p;
        crc = crc >> 4 ^ nibble[crc & 15];
        crc = crc >> 4 ^ nibble[crc & 15];
    }
    return crc;
}

#if defined(__x86_64__)
#endif

uint32_t seen_crc32c(uint32_t crc, const void *data, size_t len)
{
    crc = ~crc;
#if defined(__x86_64__)
    if (seen_cpu_use_sse42()) return ~crc_hardware(crc, data, len);
#endif
    return ~crc_table(crc, data, len);
}
