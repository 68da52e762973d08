/*
 * input.c - see input.h.
 *
 * read() into half-megabyte chunks is as fast as mmap on files and works on
 * pipes too. A chunk must end at the end of a line; what lies behind the last
 * one is carried into the next chunk. A line longer than a chunk makes the
 * chunk grow, so there is no limit but memory.
 */
#define _GNU_SOURCE /* memrchr, memmem */

#include "input.h"

#include "decompress.h"
#include "memory.h"
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <seen_users.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK (512 * 1024)

/* ---- Format ------------------------------------------------------------- */

struct key_format key_format = {.delim = "\t"};

const struct option key_options[] = {
    HEADING("keys"),
    {'0', NULL, NULL, OPTION_FLAG, &key_format.nul,
     "lines end in NUL, not in newline"},
    {0, "crlf", NULL, OPTION_FLAG, &key_format.crlf,
     "lines may end in CR LF: the CR is no part of the key"},
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
    {0, "u64", NULL, OPTION_FLAG, &key_format.u64,
     "keys are decimal numbers: 8 bytes little-endian"},
    {0, NULL, NULL, OPTION_FLAG, NULL, NULL},
};

struct range {
    size_t from, to; /* fields, counted from 1, both inclusive */
};

#define MAX_RANGES 64

/* Ascending, and with fields between them: join_ranges(). */
static struct range ranges[MAX_RANGES];
static size_t range_count;

static const char *parse_number(const char *text, size_t *out)
{
    size_t value = 0;
    const char *c = text;
    for (; *c >= '0' && *c <= '9'; c++) {
        if (value > SIZE_MAX / 10 - 10) return NULL;
        value = value * 10 + (size_t)(*c - '0');
    }
    *out = value;
    return c;
}

static int by_start(const void *a, const void *b)
{
    const struct range *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

/* Fields come in the order of the line, and each of them once. */
static void join_ranges(void)
{
    size_t n = 1;
    qsort(ranges, range_count, sizeof *ranges, by_start);
    for (size_t i = 1; i < range_count; i++) {
        struct range *last = &ranges[n - 1];
        if (last->to < ranges[i].from - 1)
            ranges[n++] = ranges[i];
        else if (last->to < ranges[i].to)
            last->to = ranges[i].to;
    }
    range_count = n;
}

/* "1,3-4,7-": a list as cut has it. */
static void parse_fields(const char *list)
{
    const char *c = list;
    for (;;) {
        struct range r;
        const char *start = c;
        c = parse_number(c, &r.from);
        bool open_start = c == start;
        if (c && open_start) r.from = 1;
        r.to = r.from;
        if (c && *c == '-') {
            start = ++c;
            c = parse_number(c, &r.to);
            if (c == start) {
                if (open_start) c = NULL; /* "-" alone */
                r.to = SIZE_MAX;
            }
        } else if (open_start) {
            c = NULL;
        }
        if (!c || r.from == 0 || r.to < r.from || (*c && *c != ','))
            fail("-f %s: expected fields counted from 1, such as 2 or 1,3-4",
                 list);
        if (range_count == MAX_RANGES)
            fail("-f %s: more than %d ranges", list, MAX_RANGES);
        ranges[range_count++] = r;
        if (!*c) break;
        c++;
    }
    join_ranges();
}

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
    key_format.u64 = true;
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
    return !key_format.hex && !key_format.u64 && !key_format.fold &&
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

/* A place in a line: a field, and where it begins. */
struct walk {
    const char *at, *end;
    size_t field;
};

/* Where the field ends. */
static const char *field_end(const struct walk *w)
{
    const char *stop = memmem(w->at, (size_t)(w->end - w->at), key_format.delim,
                              strlen(key_format.delim));
    return stop ? stop : w->end;
}

/* False: that was the last one. */
static bool next_field(struct walk *w)
{
    const char *stop = field_end(w);
    if (stop == w->end) return false;
    w->at = stop + strlen(key_format.delim);
    w->field++;
    return true;
}

/* Fields that follow each other are one piece of the line. False: it ends before
 * the first of them. */
static bool find_piece(struct walk *w, struct range r, seen_key *piece)
{
    while (w->field < r.from)
        if (!next_field(w)) return false;
    const char *from = w->at, *stop = w->end;
    if (r.to != SIZE_MAX) {
        while (w->field < r.to && next_field(w))
            ;
        stop = field_end(w);
    }
    *piece = (seen_key){from, (size_t)(stop - from)};
    return true;
}

/* The text that `cut -d DELIM -f LIST` prints: the line itself where DELIM is
 * not in it, otherwise the fields that there are. One piece stays where it lies;
 * several are joined in `to`, and are no longer than the line. */
static seen_key pick_fields(seen_key line, char *to, size_t *odd)
{
    struct walk w = {line.data, (const char *)line.data + line.len, 1};
    const size_t delim = strlen(key_format.delim);
    seen_key text, piece;
    if (!find_piece(&w, ranges[0], &text)) {
        ++*odd;
        return w.field == 1 ? line : (seen_key){to, 0};
    }
    if (w.field == 1 && text.len == line.len && ranges[0].to != SIZE_MAX)
        ++*odd; /* no DELIM in it, and the first field is wanted */
    for (size_t i = 1; i < range_count && find_piece(&w, ranges[i], &piece);
         i++) {
        if (text.data != to) memcpy(to, text.data, text.len);
        memcpy(to + text.len, key_format.delim, delim);
        memcpy(to + text.len + delim, piece.data, piece.len);
        text = (seen_key){to, text.len + delim + piece.len};
    }
    return text;
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

void split_chunk(struct chunk *c)
{
    const int end_byte = key_format.nul ? '\0' : '\n';
    const char *from = c->bytes, *end = c->bytes + c->len;
    c->n = c->odd = c->cr = c->marked = 0;
    c->bad = NULL;
    while (from < end) {
        const char *stop = memchr(from, end_byte, (size_t)(end - from));
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

const char *show_bad_line(const struct chunk *c, char buf[BAD_LINE_TEXT])
{
    return show_bytes(buf, BAD_LINE_TEXT, c->lines[c->n]);
}

void chunk_of(struct chunk *c, char **arguments, size_t n)
{
    char text[BAD_LINE_TEXT];
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

/* ---- Sources ------------------------------------------------------------ */

struct source {
    char **names;
    size_t n, next;        /* files, and which comes next */
    int fd;                /* -1: none open */
    struct stream *stream; /* its content */
    const char *file;
    bool begins;               /* nothing of it has been handed on */
    size_t marks;              /* files that began with a mark of UTF-8, */
    const char *marked_file;   /* and the first of them */
    const char *wide_file;     /* the first that looks like UTF-16, */
    const char *wide_encoding; /* and like which */
    bool patient;              /* may wait a little for a fuller chunk */
    bool hasty;
    char *carry; /* the start of a line whose end has not come yet */
    size_t carry_len, carry_cap;
    uint64_t total;
    _Atomic uint64_t bytes; /* other threads ask how far we are */
    bool broken;            /* a failure was handed on: the end */
};

static char *only_stdin[] = {"-"};

bool is_stdin(const char *name)
{
    return strcmp(name, "-") == 0;
}

/* Marks that say how the text behind them is written. */
static const struct mark {
    const char *bytes;
    size_t len;
    const char *encoding; /* that is no lines of bytes; NULL: it is */
} all_marks[] = {{"\xef\xbb\xbf", 3, NULL},
                 {"\xff\xfe\0\0", 4, "UTF-32"},
                 {"\0\0\xfe\xff", 4, "UTF-32"},
                 {"\xff\xfe", 2, "UTF-16"},
                 {"\xfe\xff", 2, "UTF-16"}};

#define MARKS (sizeof all_marks / sizeof *all_marks)

/* The mark that a file begins with, of which these are the first bytes; NULL:
 * none. `*more`: it could still become one. None has the end of a line in it, so
 * no line waits for that. */
static const struct mark *find_mark(const char *bytes, size_t have, bool *more)
{
    *more = false;
    for (size_t i = 0; i < MARKS; i++) {
        size_t len = have < all_marks[i].len ? have : all_marks[i].len;
        if (memcmp(bytes, all_marks[i].bytes, len) != 0) continue;
        if (len == all_marks[i].len) return &all_marks[i];
        *more = true;
    }
    return NULL;
}

/* At the beginning of a tar archive; its file may have been compressed. */
static bool is_tar(const char *bytes, size_t len)
{
    return len >= 262 && memcmp(bytes + 257, "ustar", 5) == 0;
}

#define NOT_LINES                                                              \
    "%s: is a tar archive, expected lines: tar -xOf prints the files in it"

#define NOT_BYTES                                                              \
    "%s: is text in %s, expected lines of bytes or UTF-8: convert it first, "  \
    "iconv -f %s -t UTF-8"

/* Of a regular file, before anything has been done; what is compressed is found
 * out later. */
static void must_be_bytes(const char *name, int fd)
{
    char first[512];
    bool more;
    ssize_t got = pread(fd, first, sizeof first, lseek(fd, 0, SEEK_CUR));
    if (got <= 0 || key_format.nul) return;
    if (is_tar(first, (size_t)got)) fail(NOT_LINES, name);
    const struct mark *mark = find_mark(first, (size_t)got, &more);
    if (mark && mark->encoding)
        fail(NOT_BYTES, name, mark->encoding, mark->encoding);
}

/* The size of a readable regular file, 0 for other readable things. */
static uint64_t inspect(const char *name)
{
    struct stat st;
    int failed = is_stdin(name) ? fstat(STDIN_FILENO, &st) : stat(name, &st);
    if (failed)
        fail("%s: %s%s", name, strerror(errno),
             errno == ENOENT ? " (INPUT is a file of lines; stdin, if there is "
                               "none)"
                             : "");
    if (S_ISDIR(st.st_mode)) fail("%s: is a directory", name);
    if (!is_stdin(name)) {
        /* Opening a pipe could wait for its writer; asking does not. */
        int fd = S_ISREG(st.st_mode) ? open(name, O_RDONLY | O_CLOEXEC) : -1;
        if (fd < 0 && (S_ISREG(st.st_mode) || access(name, R_OK) != 0))
            fail("%s: %s", name, strerror(errno));
        if (fd >= 0) {
            must_be_bytes(name, fd);
            close(fd);
        }
    } else if (S_ISREG(st.st_mode)) {
        must_be_bytes("stdin", STDIN_FILENO);
    }
    return S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
}

struct source *open_source(char **names, size_t n, bool hasty)
{
    struct source *s = must_have(calloc(1, sizeof *s));
    s->names = n ? names : only_stdin;
    s->n = n ? n : 1;
    s->fd = -1;
    s->hasty = hasty;
    bool sized = true;
    for (size_t i = 0; i < s->n; i++) {
        uint64_t size = inspect(s->names[i]);
        sized = sized && size > 0;
        s->total += size;
    }
    if (!sized) s->total = 0;
    return s;
}

__attribute__((format(printf, 3, 4))) static void
break_off(struct source *s, struct chunk *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(c->failure, sizeof c->failure, format, args);
    va_end(args);
    s->broken = true;
}

static bool open_next(struct source *s, struct chunk *c)
{
    const char *name = s->names[s->next++];
    s->file = is_stdin(name) ? "stdin" : name;
    s->fd = is_stdin(name) ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC);
    if (s->fd < 0) {
        break_off(s, c, "%s: %s", name, strerror(errno));
        return false;
    }
    struct stat st;
    bool regular = fstat(s->fd, &st) == 0 && S_ISREG(st.st_mode);
    s->patient = !regular && !s->hasty;
    s->stream = stream_open(s->fd, &s->bytes);
    s->begins = !key_format.nul; /* otherwise keys may be any bytes */
#ifdef F_SETPIPE_SZ
    fcntl(s->fd, F_SETPIPE_SZ,
          1 << 20); /* fewer switches; no harm if refused */
#endif
    return true;
}

static void close_current(struct source *s)
{
    stream_close(s->stream);
    if (s->fd != STDIN_FILENO) close(s->fd);
    s->fd = -1;
}

static void reserve(struct chunk *c, size_t cap)
{
    if (cap <= c->cap) return;
    c->bytes = must_have(realloc(c->bytes, cap));
    c->cap = cap;
}

/* Behind what the chunk has; one byte stays free for the end that a last line
 * may lack. -1 is an error, 0 the end of the file. */
static ssize_t read_some(struct source *s, struct chunk *c)
{
    if (c->len + 1 >= c->cap) reserve(c, 2 * c->len + 2);
    return stream_read(s->stream, c->bytes + c->len, c->cap - c->len - 1);
}

static void set_carry(struct source *s, const char *from, size_t len)
{
    if (len > s->carry_cap) {
        s->carry = must_have(realloc(s->carry, len));
        s->carry_cap = len;
    }
    if (len > 0) memcpy(s->carry, from, len);
    s->carry_len = len;
}

/* Do two lines begin with the same user? b ends before `end`. */
static bool same_user(const char *a, const char *b, const char *end)
{
    const char end_byte = key_format.nul ? '\0' : '\n';
    while (b < end && *a == *b && *a != '\t' && *a != end_byte)
        a++, b++;
    return b < end && *a == '\t' && *b == '\t';
}

/*
 * Lines that end at `end` have come behind the first `known` bytes. Where does
 * that begin which may still go on? At the last line that has another user than
 * the line before it: `last`, up to now.
 */
static size_t last_user(const struct chunk *c, size_t last, size_t known,
                        size_t end)
{
    const int end_byte = key_format.nul ? '\0' : '\n';
    const char *stop = c->bytes + end;
    for (const char *line = c->bytes + known; line < stop; line++) {
        if (!same_user(c->bytes + last, line, stop))
            last = (size_t)(line - c->bytes);
        line = memchr(line, end_byte, (size_t)(stop - line));
    }
    return last;
}

/* Text in UTF-16 that no mark tells: nearly every other byte is NUL, as long as it
 * is Latin; and the bytes between them are not. Which come first tells its name;
 * NULL: it is none. */
static const char *looks_wide(const struct chunk *c)
{
    size_t nul[2] = {0}, pairs = (c->len < 512 ? c->len : 512) / 2;
    for (size_t i = 0; i < 2 * pairs; i++)
        nul[i % 2] += c->bytes[i] == '\0';
    size_t most = nul[0] > nul[1] ? nul[0] : nul[1];
    if (pairs < 4 || 4 * most < 3 * pairs || nul[0] + nul[1] != most)
        return NULL;
    return nul[0] > nul[1] ? "UTF-16BE" : "UTF-16LE";
}

/* False: not yet, or not at all, and then the source is broken. */
static bool begin_file(struct source *s, struct chunk *c)
{
    bool more;
    const struct mark *mark = find_mark(c->bytes, c->len, &more);
    if (!mark && more) return false;
    s->begins = false;
    if (is_tar(c->bytes, c->len)) {
        c->len = 0;
        break_off(s, c, NOT_LINES, s->file);
        return false;
    }
    if (!mark) {
        const char *encoding = s->wide_file ? NULL : looks_wide(c);
        if (encoding) s->wide_file = s->file, s->wide_encoding = encoding;
        return true;
    }
    if (mark->encoding) {
        c->len = 0;
        break_off(s, c, NOT_BYTES, s->file, mark->encoding, mark->encoding);
        return false;
    }
    c->len -= mark->len;
    memmove(c->bytes, c->bytes + mark->len, c->len);
    if (s->marks++ == 0) s->marked_file = s->file;
    return true;
}

/* From the open file; false if it has no more lines. */
static bool read_file(struct source *s, struct chunk *c)
{
    const int end_byte = key_format.nul ? '\0' : '\n';
    size_t lines = 0; /* bytes up to the end of the last line */
    size_t whole = 0; /* bytes that do not belong to what comes */
    reserve(c, s->carry_len);
    if (s->carry_len > 0) memcpy(c->bytes, s->carry, s->carry_len);
    c->len = s->carry_len;
    c->file = s->file;
    s->carry_len = 0;

    for (;;) {
        ssize_t got = read_some(s, c);
        if (got < 0) {
            break_off(s, c, "%s: %s", s->file, stream_error(s->stream));
            break;
        }
        if (got == 0) {
            close_current(s);
            if (c->len > 0 && c->bytes[c->len - 1] != end_byte)
                c->bytes[c->len++] = (char)end_byte;
            return c->len > 0;
        }
        size_t known = c->len; /* and no end of a line in it */
        c->len += (size_t)got;
        if (s->begins) {
            known = 0;
            if (!begin_file(s, c)) {
                if (s->broken) break;
                continue;
            }
        }
        const char *last = memrchr(c->bytes + known, end_byte, c->len - known);
        if (last) {
            size_t end = (size_t)(last + 1 - c->bytes);
            if (key_format.whole == WHOLE_LINES) whole = end;
            if (key_format.whole == WHOLE_USERS)
                whole = last_user(c, whole, lines, end);
            lines = end;
        }
        bool full = c->len + 1 >= c->cap;
        if (whole > 0 && (full || !s->patient || !stream_ready(s->stream)))
            break;
    }
    set_carry(s, c->bytes + whole, c->len - whole);
    c->len = whole;
    return true;
}

bool read_chunk(struct source *s, struct chunk *c)
{
    reserve(c, CHUNK);
    c->failure[0] = '\0';
    while (!s->broken) {
        c->len = 0;
        if (s->fd < 0) {
            if (s->next == s->n) return false;
            if (!open_next(s, c)) return true;
        }
        if (read_file(s, c)) return true;
    }
    return false;
}

const char *source_wide(const struct source *s, const char **encoding)
{
    *encoding = s->wide_encoding;
    return s->wide_file;
}

size_t source_marks(const struct source *s, const char **file)
{
    *file = s->marked_file;
    return s->marks;
}

uint64_t source_bytes(const struct source *s)
{
    return s->bytes;
}

uint64_t source_total(const struct source *s)
{
    return s->total;
}

void close_source(struct source *s)
{
    if (s->fd >= 0) close_current(s);
    free(s->carry);
    free(s);
}
