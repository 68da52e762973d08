/* input.c - see input.h. */
#include "input.h"

#include "fields.h"
#include "memory.h"
#include "output.h"

#include <inttypes.h>
#include <seen_users.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Format ------------------------------------------------------------- */

struct key_format key_format = {.delim = "\t"};

const struct option key_options[] = {
    HEADING("keys"),
    {'0', NULL, NULL, OPTION_FLAG, &key_format.nul,
     "lines end in NUL, not in newline"},
    {0, "crlf", NULL, OPTION_FLAG, &key_format.crlf,
     "lines may end in CR LF: the CR is not part of the key"},
    {'f', NULL, "FIELDS", OPTION_TEXT, &key_format.fields,
     "the key is these fields of the line, as cut prints them: 2,\n"
     "or 1,3-4 with DELIM between them; a line without DELIM is\n"
     "its own key"},
    {'t', NULL, "DELIM", OPTION_TEXT, &key_format.delim,
     "what separates fields (default: a tab)"},
    {'i', NULL, NULL, OPTION_FLAG, &key_format.fold,
     "ignore the case of ASCII letters"},
    {0, "hex", NULL, OPTION_FLAG, &key_format.hex,
     "keys are written in hex; - alone is the empty key"},
    {0, "u64", "binary", OPTION_FORM, &key_format.u64,
     "keys are decimal numbers, hashed as 8 bytes little-endian;\n"
     "=binary (filters only): the input is those bytes, with no\n"
     "newlines"},
    {0, NULL, NULL, OPTION_FLAG, NULL, NULL},
};

enum key_type {
    KEY_BYTES,
    KEY_UTF16,
    KEY_I32,
    KEY_I64
};

static enum key_type key_type;

static void parse_key_type(const char *text)
{
    static const struct {
        const char *name;
        enum key_type type;
    } types[] = {{"bytes", KEY_BYTES},
                 {"utf8", KEY_BYTES}, /* which lines are */
                 {"utf16", KEY_UTF16},
                 {"i32", KEY_I32},
                 {"i64", KEY_I64}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, text) == 0) {
            key_type = types[i].type;
            return;
        }
    fail("--key-type %s: expected bytes, utf8, utf16, i32 or i64", text);
}

void keys_for_dialect(const char *dialect)
{
    seen_dialect_facts facts = {.size = sizeof facts};
    key_format.big =
        seen_dialect_named(dialect, &facts) && facts.can & SEEN_INT_BIG;
}

void keys_for_bitmap(void)
{
    const char *given = key_format.type   ? "--key-type"
                        : key_format.fold ? "-i"
                                          : NULL;
    if (key_format.hex) return;
    if (given)
        fail("keys of a bitmap are decimal numbers: leave out %s", given);
    if (!key_format.u64) key_format.u64 = DECIMAL;
}

size_t line_end(void)
{
    return key_format.u64 != BINARY;
}

const char *line_word(void)
{
    return key_format.u64 == BINARY ? "integer" : "line";
}

char end_byte(void)
{
    return key_format.nul ? '\0' : '\n';
}

/* What else is said of lines says nothing of bytes. */
static void check_binary(void)
{
    const char *given = key_format.fields ? "-f"
                        : key_format.nul  ? "-0"
                        : key_format.crlf ? "--crlf"
                                          : NULL;
    if (given)
        fail("--u64=binary reads 8 bytes for each key, not lines: leave out %s",
             given);
    if (key_format.users || key_format.whole != WHOLE_LINES)
        fail("--u64=binary is for filters; a store reads lines: use --u64 and "
             "decimal numbers");
}

void check_key_format(void)
{
    if (key_format.type) parse_key_type(key_format.type);
    if (key_type != KEY_BYTES && (key_format.u64 || key_format.fold))
        fail("--key-type %s goes with neither --u64 nor -i", key_format.type);
    if (key_format.hex && (key_type == KEY_I32 || key_type == KEY_I64))
        fail("--key-type %s means decimal numbers: leave out --hex",
             key_format.type);
    if (key_format.hex && key_format.u64)
        fail("--hex and --u64 exclude each other");
    if ((key_format.hex || key_format.u64) && key_format.fold)
        fail("--%s reads digits, whose case means nothing: leave out -i",
             key_format.hex ? "hex" : "u64");
    if (key_format.u64 == BINARY) check_binary();
    if (key_format.crlf && key_format.nul)
        fail("-0: lines end in NUL: leave out --crlf");
    if (!*key_format.delim) fail("-t: expected at least one character");
    if (strcmp(key_format.delim, "\\t") == 0) key_format.delim = "\t";
    if (key_format.fields) parse_fields(key_format.fields);
}

/* ---- How keys were made -------------------------------------------------- */

/* i64 are the same bytes as u64, as far as both have the number. Fields belong to
 * the input: another list may have the same keys elsewhere in its lines. */
seen_key_form key_form(void)
{
    static const seen_key_form of_type[] = {[KEY_UTF16] = SEEN_KEYS_UTF16,
                                            [KEY_I32] = SEEN_KEYS_I32,
                                            [KEY_I64] = SEEN_KEYS_U64};
    if (key_type != KEY_BYTES) return of_type[key_type];
    return key_format.hex    ? SEEN_KEYS_HEX
           : key_format.u64  ? SEEN_KEYS_U64
           : key_format.fold ? SEEN_KEYS_LOWER
                             : SEEN_KEYS_TEXT;
}

static const struct {
    const char *name, *phrase;
} forms[] = {
    [SEEN_KEYS_TEXT] = {"text", "lines as they are"},
    [SEEN_KEYS_LOWER] = {"lower", "lines in lower case (-i)"},
    [SEEN_KEYS_HEX] = {"hex", "the bytes of hex digits (--hex)"},
    [SEEN_KEYS_U64] = {"u64", "integers of 8 bytes (--u64)"},
    [SEEN_KEYS_I32] = {"i32", "integers of 4 bytes (--key-type i32)"},
    [SEEN_KEYS_UTF16] = {"utf16", "lines in UTF-16 (--key-type utf16)"},
};

const char *form_name(seen_key_form form)
{
    return form < sizeof forms / sizeof *forms ? forms[form].name : NULL;
}

const char *form_phrase(seen_key_form form)
{
    return form < sizeof forms / sizeof *forms ? forms[form].phrase : NULL;
}

/* Nothing is to be done to the text of a key, except for what is cut off from its
 * line: a user, a CR. */
static bool keys_are_text(void)
{
    return !key_format.hex && key_format.u64 != DECIMAL && !key_format.fold &&
           !key_format.fields && key_type == KEY_BYTES;
}

/* ---- Lines to keys ------------------------------------------------------ */

/* Each writes the key of a line to `to` and returns its length, or says through
 * *bad why there is none. No key is longer than room_for(line). */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

static size_t decode_hex(seen_key line, uint8_t *to, const char **bad)
{
    const char *c = line.data;
    if (line.len == 1 && *c == '-') return 0;
    if (line.len == 0 || line.len % 2) {
        *bad = "expected an even number of hex digits, or - for the empty key";
        return 0;
    }
    for (size_t i = 0; i < line.len / 2; i++) {
        int high = hex_digit(c[2 * i]), low = hex_digit(c[2 * i + 1]);
        if (high < 0 || low < 0) {
            *bad = "expected hex digits only";
            return 0;
        }
        to[i] = (uint8_t)(high << 4 | low);
    }
    return line.len / 2;
}

static size_t decode_u64(seen_key line, uint8_t *to, const char **bad)
{
    const char *c = line.data;
    uint64_t value = 0;
    bool fits = line.len > 0;
    for (size_t i = 0; i < line.len && fits; i++) {
        uint64_t digit = (uint64_t)(c[i] - '0');
        fits = c[i] >= '0' && c[i] <= '9' && value <= (UINT64_MAX - digit) / 10;
        value = value * 10 + digit;
    }
    if (!fits) *bad = "expected a decimal number below 2^64";
    for (int i = 0; i < 8; i++)
        to[i] = (uint8_t)(value >> (8 * i));
    return 8;
}

static size_t put_number(uint64_t value, size_t width, uint8_t *to)
{
    for (size_t i = 0; i < width; i++)
        to[key_format.big ? width - 1 - i : i] = (uint8_t)(value >> (8 * i));
    return width;
}

/* With a sign, as the integers of Java, Go and Parquet. */
static size_t decode_integer(seen_key line, uint8_t *to, const char **bad)
{
    const char *c = line.data;
    bool wide = key_type == KEY_I64, minus = line.len > 0 && *c == '-';
    uint64_t most = (wide ? (uint64_t)INT64_MAX : INT32_MAX) + minus;
    uint64_t value = 0;
    bool fits = line.len > minus;
    for (size_t i = minus; i < line.len && fits; i++) {
        uint64_t digit = (uint64_t)(c[i] - '0');
        fits = c[i] >= '0' && c[i] <= '9' && digit <= most &&
               value <= (most - digit) / 10;
        value = value * 10 + digit;
    }
    if (!fits)
        *bad = wide ? "expected a decimal number of 64 bits, with sign"
                    : "expected a decimal number of 32 bits, with sign";
    return put_number(minus ? -value : value, wide ? 8 : 4, to);
}

/* One character of UTF-8; 0 bytes: there is none. */
static size_t decode_utf8(const uint8_t *c, size_t len, uint32_t *out)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = *c < 0x80 ? 1 : *c >> 5 == 6 ? 2 : *c >> 4 == 14 ? 3 : 4;
    if (n == 4 && *c >> 3 != 30) return 0;
    if (n > len) return 0;
    *out = n == 1 ? *c : *c & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if (c[i] >> 6 != 2) return 0;
        *out = *out << 6 | (c[i] & 0x3f);
    }
    bool surrogate = *out >= 0xd800 && *out < 0xe000;
    return *out < least[n] || *out > 0x10ffff || surrogate ? 0 : n;
}

static size_t to_utf16(const uint8_t *c, size_t len, uint8_t *to,
                       const char **bad)
{
    size_t out = 0;
    for (size_t n; len > 0; c += n, len -= n) {
        uint32_t point = 0;
        n = decode_utf8(c, len, &point);
        if (n == 0) {
            *bad = "expected UTF-8";
            return 0;
        }
        if (point >= 0x10000) {
            out += put_number(0xd800 + ((point - 0x10000) >> 10), 2, to + out);
            point = 0xdc00 + ((point - 0x10000) & 0x3ff);
        }
        out += put_number(point, 2, to + out);
    }
    return out;
}

static size_t fold(seen_key text, uint8_t *to)
{
    const char *from = text.data;
    for (size_t i = 0; i < text.len; i++) {
        bool upper = from[i] >= 'A' && from[i] <= 'Z';
        to[i] = (uint8_t)(from[i] + (upper ? 'a' - 'A' : 0));
    }
    return text.len;
}

/* "user<TAB>item": the user; the line becomes the item. */
static seen_key cut_user(seen_key *line, const char **bad)
{
    const char *from = line->data;
    const char *tab = line->len ? memchr(from, '\t', line->len) : NULL;
    seen_key user = {from, tab ? (size_t)(tab - from) : 0};
    if (!tab) {
        *bad = "expected a user, a tab and an item";
        return user;
    }
    if (user.len == 0 || user.len > SEEN_USER_MAX)
        *bad = "expected a user of 1 to 511 bytes before the tab";
    line->data = tab + 1;
    line->len -= user.len + 1;
    return user;
}

static size_t room_for(seen_key line)
{
    size_t text = key_type == KEY_UTF16 ? 3 * line.len : line.len;
    return text + 8;
}

static bool ends_in_cr(seen_key line)
{
    const char *text = line.data;
    return !key_format.nul && line.len > 0 && text[line.len - 1] == '\r';
}

static bool begins_with_mark(seen_key line)
{
    return !key_format.nul && line.len >= 3 &&
           memcmp(line.data, "\xef\xbb\xbf", 3) == 0;
}

/* Of lines that end in CR, or begin with a mark, those whose keys do. */
static void count_strays(struct chunk *c, seen_key line, seen_key key)
{
    c->cr += !key_format.crlf && ends_in_cr(line) && ends_in_cr(key);
    c->marked += begins_with_mark(line) && begins_with_mark(key);
}

/* A key that is not a piece of its line is made at `to`. */
static seen_key make_key(seen_key line, uint8_t *to, struct chunk *c)
{
    /* UTF-16 is made from text that lies behind what it becomes. */
    uint8_t *aside = to + (key_type == KEY_UTF16 ? 2 * line.len : 0);
    seen_key text = line, key = {to, 0};
    if (key_format.fields) {
        text = pick_fields(line, (char *)aside, &c->odd);
        count_strays(c, line, text);
    }
    if (key_format.hex)
        text = (seen_key){aside, decode_hex(text, aside, &c->bad)};
    if (c->bad) return text;

    if (key_type == KEY_I32 || key_type == KEY_I64)
        key.len = decode_integer(text, to, &c->bad);
    else if (key_type == KEY_UTF16)
        key.len = to_utf16(text.data, text.len, to, &c->bad);
    else if (key_format.u64)
        key.len = decode_u64(text, to, &c->bad);
    else if (key_format.fold)
        key.len = fold(text, to);
    else
        key = text;
    return key;
}

/* Fields, if there are any, decide: their lines may have tabs. */
const char *odd_lines(void)
{
    if (key_format.fields)
        return "no DELIM, and the line is the key, or none of the fields, and "
               "the key is empty: is -t what separates the fields of -f?";
    return key_format.users ? "a second tab, which is part of the item "
                              "(cut -f 1,2 leaves it out)"
                            : NULL;
}

static void make_keys(struct chunk *c)
{
    /* 1. Room for all, so that keys do not move. */
    size_t room = 0;
    for (size_t i = 0; i < c->n && !keys_are_text(); i++)
        room += room_for(c->lines[i]);
    if (room > c->scratch_cap) {
        free(c->scratch);
        c->scratch = must_have(malloc(room));
        c->scratch_cap = room;
    }

    /* 2. The keys, up to the first that is none. */
    uint8_t *to = c->scratch;
    for (size_t i = 0; i < c->n; i++) {
        seen_key text = c->lines[i];
        bool cr = ends_in_cr(text);
        if (key_format.crlf) text.len -= cr;
        if (key_format.users) {
            c->users[i] = cut_user(&text, &c->bad);
            if (!key_format.fields)
                c->odd += memchr(text.data, '\t', text.len) != NULL;
        }
        if (!c->bad && !keys_are_text()) {
            text = make_key(text, to, c);
            if (text.data == to) to += text.len;
        }
        if (c->bad) {
            if (cr && !key_format.crlf)
                c->bad = "ends in CR LF, as Windows writes lines: add --crlf";
            c->n = i;
            return;
        }
        c->keys[i] = text;
    }
}

/* Where keys are the lines there is one array for both. */
static void grow_lines(struct chunk *c)
{
    bool apart = key_format.users || key_format.crlf || !keys_are_text();
    c->lines_cap = c->lines_cap ? 2 * c->lines_cap : 1024;
    size_t size = c->lines_cap * sizeof *c->lines;
    c->lines = must_have(realloc(c->lines, size));
    c->keys = apart ? must_have(realloc(c->keys, size)) : c->lines;
    if (key_format.users) c->users = must_have(realloc(c->users, size));
}

static void add_line(struct chunk *c, const char *text, size_t len)
{
    if (c->n == c->lines_cap) grow_lines(c);
    c->lines[c->n++] = (seen_key){text, len};
}

static void split_numbers(struct chunk *c)
{
    for (size_t at = 0; at < c->len; at += BINARY_WIDTH)
        add_line(c, c->bytes + at, BINARY_WIDTH);
}

void split_chunk(struct chunk *c)
{
    const char *from = c->bytes, *end = c->bytes + c->len;
    c->n = c->odd = c->cr = c->marked = 0;
    c->bad = NULL;
    if (key_format.u64 == BINARY) {
        split_numbers(c);
        return;
    }
    while (from < end) {
        const char *stop = memchr(from, end_byte(), (size_t)(end - from));
        seen_key line = {from, (size_t)(stop - from)};
        if (!key_format.fields) count_strays(c, line, line);
        add_line(c, from, line.len);
        from = stop + 1;
    }
    if (c->keys != c->lines) make_keys(c);
}

const char *show_bytes(char *buf, size_t cap, seen_key bytes)
{
    const char *from = bytes.data;
    size_t len = 0;
    for (; len < bytes.len && len < cap - 4; len++)
        buf[len] = from[len] >= ' ' && from[len] <= '~' ? from[len] : '?';
    strcpy(buf + len, len < bytes.len ? "..." : "");
    return buf;
}

seen_key show_line(const struct chunk *c, size_t i, char buf[NUMBER_TEXT])
{
    if (key_format.u64 != BINARY) return c->lines[i];
    const uint8_t *bytes = c->lines[i].data;
    uint64_t value = 0;
    for (size_t b = BINARY_WIDTH; b-- > 0;)
        value = value << 8 | bytes[b];
    int len = snprintf(buf, NUMBER_TEXT, "%" PRIu64, value);
    return (seen_key){buf, (size_t)len};
}

const char *show_bad_line(const struct chunk *c, char buf[BAD_LINE_TEXT])
{
    char number[NUMBER_TEXT];
    return show_bytes(buf, BAD_LINE_TEXT, show_line(c, c->n, number));
}

void chunk_of(struct chunk *c, char **arguments, size_t n)
{
    char text[BAD_LINE_TEXT];
    if (key_format.u64 == BINARY)
        fail("--u64=binary: items that are arguments are decimal numbers: use "
             "--u64");
    for (size_t i = 0; i < n; i++)
        add_line(c, arguments[i], strlen(arguments[i]));
    if (c->keys != c->lines) make_keys(c);
    if (c->bad) fail("%s: %s", show_bad_line(c, text), c->bad);
}

void free_chunk(struct chunk *c)
{
    if (c->keys != c->lines) free(c->keys);
    free(c->lines);
    free(c->users);
    free(c->scratch);
    free(c->bytes);
}
