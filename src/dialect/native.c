/*
 * dialect/native.c - the native container, version 1.
 *
 *     0       256     (512)   (1024)
 *     header | second header | checksums | state | listed | pad | payload ...
 *
 * docs/FORMAT.md has every offset. The idea: a reader that trusts nobody can
 * decide from the header alone whether the length is right, and only then looks
 * further; a payload that can be mapped is aligned for being used where it
 * lies; a checksum for every 64 KiB lets a huge file be opened at once and
 * checked piece by piece, and lets a writer who has changed three pages
 * compute three checksums.
 *
 * A saved filter has one header. A file that is changed where it lies has two,
 * in sectors of their own, written in turn: whatever a power cut does to the
 * one being written, the other one is whole. The valid one of the higher epoch
 * counts.
 *
 * Nothing is read from outside before its place has been compared with the
 * bytes that are there, and everything derivable is derived and compared.
 */
#include "dialect/native.h"

#include "base/bytes.h"
#include "base/crc32c.h"

#include <string.h>

#define VERSION 1
#define CRC_AT  (SEEN_HEADER_SIZE - 4)

static const uint8_t magic[8] = {0x89, 'S', 'E', 'E', 'N', '\r', '\n', 0x1a};

/* Numbers of hashes in the header; permanent. */
static const char *const hash_names[] = {NULL, "xxh3-64", "xxh3-128",
                                         "siphash-1-3-128", "u64"};

#define HASHES (sizeof hash_names / sizeof *hash_names)

static uint64_t round_up(uint64_t x, uint64_t to)
{
    return (x + to - 1) / to * to;
}

uint64_t seen_native_pages(uint64_t payload_len)
{
    return round_up(payload_len, SEEN_PAGE_SIZE) / SEEN_PAGE_SIZE;
}

uint64_t seen_part_room(const struct seen_part *part)
{
    return round_up(part->len, SEEN_LINE_SIZE);
}

/* Where things are; false if that is beyond all memory. */
static bool place(struct seen_native *h)
{
    const uint64_t most = (uint64_t)1 << 50;
    if (h->payload_len == 0 || h->payload_len > most ||
        h->payload_len % SEEN_LINE_SIZE)
        return false;
    h->table_offset =
        h->flags & SEEN_NATIVE_TWO ? 2 * SEEN_HEADER_STRIDE : SEEN_HEADER_SIZE;
    uint64_t table = 4 * seen_native_pages(h->payload_len);
    uint64_t end = h->table_offset + table + h->state_len + h->listed_len;
    h->payload_offset = round_up(end, SEEN_LINE_SIZE);
    return h->payload_offset + h->payload_len <= PTRDIFF_MAX;
}

bool seen_native_layout(struct seen_native *h, const struct seen_native_body *b)
{
    h->payload_len = 0;
    for (uint32_t i = 0; i < b->count; i++)
        h->payload_len += seen_part_room(&b->parts[i]);
    return place(h);
}

/* ---- Write -------------------------------------------------------------- */

static uint16_t hash_number(const struct seen_hash_fn *hash)
{
    for (uint16_t i = 1; i < HASHES; i++)
        if (strcmp(hash_names[i], hash->name) == 0) return i;
    return 0;
}

void seen_native_put(const struct seen_native *h, uint8_t *to)
{
    uint64_t fpp;
    memcpy(&fpp, &h->plan.fpp, sizeof fpp);
    memset(to, 0, SEEN_HEADER_SIZE);
    memcpy(to, magic, sizeof magic);
    seen_put_le16(to + 8, VERSION);
    seen_put_le16(to + 10, (uint16_t)h->plan.kind);
    seen_put_le32(to + 12, h->flags);
    seen_put_le64(to + 16, h->plan.items);
    seen_put_le64(to + 24, h->plan.bits);
    seen_put_le64(to + 32, fpp);
    seen_put_le32(to + 40, h->plan.hashes);
    seen_put_le32(to + 44, h->plan.width);
    seen_put_le16(to + 48, hash_number(h->hash));
    seen_put_le16(to + 50, (uint16_t)h->listed_rule);
    seen_put_le32(to + 52, SEEN_PAGE_SIZE);
    seen_put_le64(to + 56, h->items);
    if (!(h->flags & SEEN_NATIVE_APART)) memcpy(to + 64, h->secret, 16);
    seen_put_le64(to + 80, h->secret_check);
    seen_put_le64(to + 88, h->payload_offset);
    seen_put_le64(to + 96, h->payload_len);
    seen_put_le32(to + 104, h->state_len);
    seen_put_le32(to + 108, h->listed_len);
    seen_put_le32(to + 112, h->table_crc);
    seen_put_le32(to + 116, h->extra_crc);
    seen_put_le64(to + 120, h->id);
    seen_put_le64(to + 128, h->epoch);
    seen_put_le64(to + 136, h->sequence);
    seen_put_le32(to + 144, h->key_form);
    seen_put_le32(to + CRC_AT, seen_crc32c(0, to, CRC_AT));
}

/* Feeds the payload, as it will lie in the file, through the checksums. */
struct summing {
    uint8_t *table;
    uint32_t crc;
    uint64_t in_page;
};

static void end_page(struct summing *s)
{
    seen_put_le32(s->table, s->crc);
    s->table += 4;
    s->crc = 0;
    s->in_page = 0;
}

static void sum(struct summing *s, const uint8_t *bytes, uint64_t len)
{
    while (len > 0) {
        uint64_t now = seen_min64(len, SEEN_PAGE_SIZE - s->in_page);
        s->crc = seen_crc32c(s->crc, bytes, (size_t)now);
        s->in_page += now;
        bytes += now;
        len -= now;
        if (s->in_page == SEEN_PAGE_SIZE) end_page(s);
    }
}

static void sum_part(struct summing *s, const struct seen_part *part)
{
    static const uint8_t zeros[SEEN_LINE_SIZE];
    uint8_t some[4096];
    if (!part->words) {
        sum(s, part->at, part->len);
        sum(s, zeros, seen_part_room(part) - part->len);
        return;
    }
    uint64_t room = seen_part_room(part), n;
    for (uint64_t at = 0; at < room; at += n) {
        n = seen_min64(room - at, sizeof some);
        seen_native_put_part(part, at, some, n);
        sum(s, some, n);
    }
}

void seen_native_head(struct seen_native *h, const struct seen_native_body *b,
                      uint8_t *head)
{
    uint64_t table_len = 4 * seen_native_pages(h->payload_len);
    uint8_t *table = head + h->table_offset, *extra = table + table_len;
    memset(head, 0, (size_t)h->payload_offset);

    struct summing s = {.table = table};
    for (uint32_t i = 0; i < b->count; i++)
        sum_part(&s, &b->parts[i]);
    if (s.in_page) end_page(&s);
    if (h->state_len) memcpy(extra, b->state, h->state_len);
    if (h->listed_len) memcpy(extra + h->state_len, b->listed, h->listed_len);

    h->table_crc = seen_crc32c(0, table, (size_t)table_len);
    h->extra_crc = seen_crc32c(0, extra, (size_t)h->state_len + h->listed_len);
    seen_native_put(h, head);
    if (h->flags & SEEN_NATIVE_TWO)
        memcpy(head + SEEN_HEADER_STRIDE, head, SEEN_HEADER_SIZE);
}

/* Some bytes of one word. */
static void put_in_word(const uint64_t *word, size_t skip, uint8_t *to,
                        size_t len)
{
    uint8_t bytes[8];
    seen_put_le64(bytes, seen_atomic_load(word));
    memcpy(to, bytes + skip, len);
}

static void put_words(const uint64_t *words, uint64_t from, uint8_t *to,
                      uint64_t len)
{
    words += from / 8;
    size_t skip = from % 8;
    if (skip && len > 0) {
        size_t some = (size_t)seen_min64(8 - skip, len);
        put_in_word(words++, skip, to, some);
        to += some;
        len -= some;
    }
    for (; len >= 8; to += 8, len -= 8)
        seen_put_le64(to, seen_atomic_load(words++));
    if (len > 0) put_in_word(words, 0, to, (size_t)len);
}

void seen_native_put_part(const struct seen_part *part, uint64_t from,
                          uint8_t *to, uint64_t len)
{
    uint64_t there = from < part->len ? seen_min64(part->len - from, len) : 0;
    if (there > 0 && part->words)
        put_words(part->at, from, to, there);
    else if (there > 0)
        memcpy(to, (const uint8_t *)part->at + from, (size_t)there);
    memset(to + there, 0, (size_t)(len - there));
}

void seen_native_get_part(const struct seen_part *part, const uint8_t *from)
{
    if (SEEN_LITTLE_ENDIAN || !part->words) {
        memcpy(part->at, from, (size_t)part->len);
        return;
    }
    uint64_t *words = part->at;
    for (uint64_t i = 0; i < part->len / 8; i++)
        words[i] = seen_get_le64(from + 8 * i);
}

/* ---- Read --------------------------------------------------------------- */

static bool all_zero(const uint8_t *p, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        if (p[i]) return false;
    return true;
}

static const struct seen_hash_fn *hash_numbered(uint32_t number)
{
    const struct seen_hash_fn *hash;
    if (number == 0 || number >= HASHES) return NULL;
    for (size_t i = 0; (hash = seen_hash_at(i)); i++)
        if (strcmp(hash->name, hash_names[number]) == 0) return hash;
    return NULL;
}

/* 0 to 1, as bits: so that -0, which is equal to 0, is not the same. */
static bool sensible_rate(uint64_t bits)
{
    return bits <= (uint64_t)0x3ff << 52;
}

/* The secret is there, or left out, as the flags say; where there is none, a
 * seed of 8 bytes, if the hash reads it. */
static bool secret_fits(const struct seen_native *h)
{
    bool keyed = h->flags & SEEN_NATIVE_KEYED,
         apart = h->flags & SEEN_NATIVE_APART;
    if (keyed != h->hash->keyed || (apart && !keyed)) return false;
    if (apart) return all_zero(h->secret, 16);
    uint32_t seed = keyed ? 16 : h->hash->plain ? 0 : 8;
    if (!all_zero(h->secret + seed, 16 - seed)) return false;
    return h->secret_check == (keyed ? seen_secret_check(h->secret) : 0);
}

/* A list has a rule, and the other way round. */
static bool list_fits(const struct seen_native *h)
{
    return h->listed_rule <= 2 && !h->listed_rule == !h->listed_len;
}

/* Who reads the number itself is told nothing about text; nor are filters of
 * other systems, whose own files would lose it. */
static bool form_fits(const struct seen_native *h)
{
    bool has_one = !h->hash->plain && h->plan.kind != SEEN_FOREIGN;
    return h->key_form <= (has_one ? SEEN_KEYS_UTF16 : SEEN_KEYS_UNKNOWN);
}

/* Only a filter file has two headers, and only such a file has a history. */
static bool history_fits(const struct seen_native *h)
{
    return h->flags & SEEN_NATIVE_TWO || !(h->id | h->epoch | h->sequence);
}

/* Fields that do not belong together, NULL if all do: written by something else
 * than seen, since their checksum is right. */
static const char *contradiction(const struct seen_native *h,
                                 const uint8_t *from)
{
    if (!h->hash) return "an unknown hash at offset 48";
    if (h->flags & ~SEEN_NATIVE_FLAGS) return "unknown flags at offset 12";
    if (!secret_fits(h))
        return "a secret at offset 64 that does not fit the hash";
    if (!list_fits(h)) return "an allowlist at offset 50 without keys or rule";
    if (!history_fits(h))
        return "a history at offset 120 without a second header";
    if (!form_fits(h)) return "a form of keys at offset 144 that does not fit";
    if (h->state_len > SEEN_STATE_MAX)
        return "a state at offset 104 that is too long";
    if (!sensible_rate(seen_get_le64(from + 32)))
        return "a rate at offset 32 that is not from 0 to 1";
    if (seen_get_le32(from + 52) != SEEN_PAGE_SIZE)
        return "a size at offset 52 other than 65536";
    if (!all_zero(from + 148, CRC_AT - 148))
        return "bytes from offset 148 on that are not zero";
    return NULL;
}

seen_status seen_native_get(const uint8_t *from, size_t len,
                            struct seen_native *h, seen_error *e)
{
    /* 1. Is it ours, whole, and of this version? */
    if (len < sizeof magic || memcmp(from, magic, sizeof magic) != 0)
        return seen_corrupt(e, "not a filter of seen: expected its 8 magic "
                               "bytes at offset 0");
    if (len < SEEN_HEADER_SIZE)
        return seen_corrupt(e, "cut off: %zu bytes, expected a header of %d",
                            len, SEEN_HEADER_SIZE);
    uint32_t version = seen_get_le16(from + 8);
    if (version > VERSION)
        return seen_fail(
            e, SEEN_NEWER, "buf",
            "format version %u: this version of seen reads up to %d", version,
            VERSION);
    if (seen_get_le32(from + CRC_AT) != seen_crc32c(0, from, CRC_AT) ||
        version != VERSION)
        return seen_corrupt(
            e, "damaged header: its checksum at offset %d is wrong", CRC_AT);

    /* 2. The fields. */
    *h = (struct seen_native){
        .flags = seen_get_le32(from + 12),
        .hash = hash_numbered(seen_get_le16(from + 48)),
        .listed_rule = seen_get_le16(from + 50),
        .items = seen_get_le64(from + 56),
        .secret_check = seen_get_le64(from + 80),
        .state_len = seen_get_le32(from + 104),
        .listed_len = seen_get_le32(from + 108),
        .payload_len = seen_get_le64(from + 96),
        .table_crc = seen_get_le32(from + 112),
        .extra_crc = seen_get_le32(from + 116),
        .id = seen_get_le64(from + 120),
        .epoch = seen_get_le64(from + 128),
        .sequence = seen_get_le64(from + 136),
        .key_form = seen_get_le32(from + 144),
    };
    h->plan = (seen_plan){.kind = (seen_kind)seen_get_le16(from + 10),
                          .items = seen_get_le64(from + 16),
                          .bits = seen_get_le64(from + 24),
                          .hashes = seen_get_le32(from + 40),
                          .width = seen_get_le32(from + 44)};
    uint64_t fpp = seen_get_le64(from + 32);
    memcpy(&h->plan.fpp, &fpp, sizeof fpp);
    memcpy(h->secret, from + 64, 16);

    /* 3. Do they agree with each other? */
    const char *wrong = contradiction(h, from);
    if (wrong) return seen_corrupt(e, "the header has %s", wrong);
    h->plan.hash_bits = h->hash->bits;
    if (!place(h) || seen_get_le64(from + 88) != h->payload_offset)
        return seen_corrupt(e,
                            "the header has lengths at offset 88 that do not "
                            "belong together");
    return SEEN_OK;
}

/* The padding between the parts of the head. */
static bool padding_ok(const uint8_t *buf, const struct seen_native *h)
{
    uint64_t end = h->table_offset + 4 * seen_native_pages(h->payload_len) +
                   h->state_len + h->listed_len;
    const uint64_t gap = SEEN_HEADER_STRIDE - SEEN_HEADER_SIZE;
    if (h->flags & SEEN_NATIVE_TWO &&
        (!all_zero(buf + SEEN_HEADER_SIZE, gap) ||
         !all_zero(buf + SEEN_HEADER_STRIDE + SEEN_HEADER_SIZE, gap)))
        return false;
    return all_zero(buf + end, h->payload_offset - end);
}

seen_status seen_native_read(const uint8_t *buf, size_t len,
                             struct seen_native *h, seen_error *e)
{
    struct seen_native first, second;
    seen_status a = seen_native_get(buf, len, &first, e), b = SEEN_CORRUPT;
    if (a == SEEN_NEWER) return a;
    bool two = a != SEEN_OK || first.flags & SEEN_NATIVE_TWO;
    if (two && len >= SEEN_HEADER_STRIDE + SEEN_HEADER_SIZE) {
        b = seen_native_get(buf + SEEN_HEADER_STRIDE, len - SEEN_HEADER_STRIDE,
                            &second, NULL);
        if (b == SEEN_OK && !(second.flags & SEEN_NATIVE_TWO)) b = SEEN_CORRUPT;
    }
    if (b == SEEN_NEWER) { /* never the older of two headers */
        seen_error_begin(e);
        return seen_fail(e, b, "buf",
                         "the second header is of a later version of seen");
    }
    if (a != SEEN_OK && b != SEEN_OK) return a;

    bool take_second =
        b == SEEN_OK && (a != SEEN_OK || second.epoch > first.epoch);
    *h = take_second ? second : first;
    h->slot = take_second;
    uint64_t all = h->payload_offset + h->payload_len;
    seen_error_begin(e); /* what was wrong with the other header is no matter */
    if (len != all)
        return seen_corrupt(e, "%s: %zu bytes, expected %" PRIu64,
                            len < all ? "cut off" : "too long", len, all);
    if (!padding_ok(buf, h))
        return seen_corrupt(e,
                            "bytes between the header and the payload that are "
                            "not zero");
    return SEEN_OK;
}

seen_status seen_native_check_extra(const uint8_t *buf,
                                    const struct seen_native *h, seen_error *e)
{
    const uint8_t *extra =
        buf + h->table_offset + 4 * seen_native_pages(h->payload_len);
    uint32_t crc = seen_crc32c(0, extra, (size_t)h->state_len + h->listed_len);
    if (crc == h->extra_crc) return SEEN_OK;
    return seen_corrupt(
        e, "damaged between offset %td and %" PRIu64 ": wrong checksum",
        extra - buf, h->payload_offset);
}

seen_status seen_native_verify(const uint8_t *buf, const struct seen_native *h,
                               seen_error *e)
{
    const uint8_t *table = buf + h->table_offset;
    uint64_t n = seen_native_pages(h->payload_len);
    if (seen_crc32c(0, table, (size_t)(4 * n)) != h->table_crc)
        return seen_corrupt(e, "damaged table of checksums at offset %" PRIu64,
                            h->table_offset);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t left = h->payload_len - i * SEEN_PAGE_SIZE;
        uint64_t at = h->payload_offset + i * SEEN_PAGE_SIZE;
        uint32_t crc =
            seen_crc32c(0, buf + at, (size_t)seen_min64(left, SEEN_PAGE_SIZE));
        if (crc != seen_get_le32(table + 4 * i))
            return seen_corrupt(e,
                                "damaged in the 64 KiB from offset %" PRIu64
                                " on: wrong checksum",
                                at);
    }
    return SEEN_OK;
}
