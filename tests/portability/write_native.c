/*
 * write_native.c - saved filters for a reader in another language, with what
 * this library says about some keys. See read_native.py.
 *
 *     write_native DIRECTORY
 */
#include <seen.h>
#include <seen_allowlist.h>
#include <seen_file.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define MEMBERS 500
#define ASKED   1500 /* the members first */

static const char *directory;
static const uint8_t secret[16] = "no secret at all";

struct file {
    const char *name;
    seen_spec spec;
    uint32_t save_flags;
    seen_listed listed; /* every seventh key */
};

/* Every kind; every hash; every shape of a line. */
static const struct file files[] = {
    {.name = "bloom", .spec = {.kind = SEEN_BLOOM, .items = 500, .fpp = 0.01}},
    {.name = "bloom_one",
     .spec = {.kind = SEEN_BLOOM, .items = 500, .bits = 1000}},
    {.name = "bloom_wide",
     .spec = {.kind = SEEN_BLOOM, .items = 500, .fpp = 1e-18}},
    {.name = "bloom_keyed",
     .spec =
         {.kind = SEEN_BLOOM, .items = 500, .fpp = 0.1, .flags = SEEN_KEYED}},
    {.name = "blocked_1",
     .spec = {.kind = SEEN_BLOCKED, .items = 500, .fpp = 0.3}},
    {.name = "blocked_2",
     .spec = {.kind = SEEN_BLOCKED, .items = 500, .fpp = 0.2}},
    {.name = "blocked_4",
     .spec = {.kind = SEEN_BLOCKED, .items = 500, .fpp = 0.05}},
    {.name = "blocked_8",
     .spec = {.kind = SEEN_BLOCKED, .items = 500, .fpp = 0.01}},
    {.name = "blocked_16",
     .spec = {.kind = SEEN_BLOCKED, .items = 500, .fpp = 1e-5}},
    {.name = "blocked_wide",
     .spec = {.kind = SEEN_BLOCKED, .items = 500, .fpp = 1e-18}},
    {.name = "blocked_keyed",
     .spec = {.kind = SEEN_BLOCKED,
              .items = 500,
              .fpp = 0.02,
              .flags = SEEN_KEYED}},
    {.name = "cuckoo",
     .spec = {.kind = SEEN_CUCKOO, .items = 520, .fpp = 0.01}},
    {.name = "cuckoo_6",
     .spec = {.kind = SEEN_CUCKOO, .items = 520, .bits = 5700}},
    {.name = "cuckoo_roomy",
     .spec = {.kind = SEEN_CUCKOO, .items = 520, .fpp = 0.01, .bits = 300000}},
    {.name = "cuckoo_rare",
     .spec = {.kind = SEEN_CUCKOO, .items = 520, .fpp = 1e-9}},
    {.name = "cuckoo_keyed",
     .spec =
         {.kind = SEEN_CUCKOO, .items = 520, .fpp = 0.01, .flags = SEEN_KEYED},
     .save_flags = SEEN_SECRET_APART},
    {.name = "ribbon", .spec = {.kind = SEEN_RIBBON, .fpp = 0.01}},
    {.name = "ribbon_rough", .spec = {.kind = SEEN_RIBBON, .fpp = 0.6}},
    {.name = "ribbon_10", .spec = {.kind = SEEN_RIBBON, .fpp = 0.001}},
    {.name = "ribbon_rare", .spec = {.kind = SEEN_RIBBON, .fpp = 2.4e-10}},
    {.name = "ribbon_keyed",
     .spec = {.kind = SEEN_RIBBON, .fpp = 0.05, .flags = SEEN_KEYED},
     .save_flags = SEEN_SECRET_APART},
    {.name = "sorted", .spec = {.kind = SEEN_SORTED, .fpp = 0.01}},
    {.name = "sorted_rare", .spec = {.kind = SEEN_SORTED, .fpp = 1e-9}},
    {.name = "sorted_rough", .spec = {.kind = SEEN_SORTED, .fpp = 0.4}},
    {.name = "sorted_keyed",
     .spec = {.kind = SEEN_SORTED, .fpp = 0.05, .flags = SEEN_KEYED},
     .save_flags = SEEN_SECRET_APART},
    {.name = "scalable",
     .spec = {.kind = SEEN_SCALABLE, .items = 900, .fpp = 0.01}},
    {.name = "scalable_grown",
     .spec = {.kind = SEEN_SCALABLE, .items = 6, .fpp = 0.02}},
    {.name = "scalable_guess",
     .spec =
         {.kind = SEEN_SCALABLE, .items = 6, .fpp = 0.02, .flags = SEEN_GUESS}},
    {.name = "scalable_wide",
     .spec = {.kind = SEEN_SCALABLE, .items = 20, .fpp = 1e-7}},
    {.name = "scalable_keyed",
     .spec =
         {.kind = SEEN_SCALABLE, .items = 1, .fpp = 0.1, .flags = SEEN_KEYED}},
    {.name = "window_count", .spec = {.last = 100, .fpp = 0.01}},
    {.name = "window_rough",
     .spec = {.last = 300, .fpp = 0.4, .generations = 2}},
    {.name = "window_time",
     .spec = {.items = 200, .window_ms = 1000, .fpp = 0.01}},
    {.name = "window_both",
     .spec = {.last = 150, .window_ms = 1500, .fpp = 1e-5, .flags = SEEN_KEYED},
     .save_flags = SEEN_SECRET_APART},
    {.name = "window_young",
     .spec = {.last = 2000, .fpp = 1e-4, .generations = 10}},
    {.name = "window_gone",
     .spec = {.items = 200, .window_ms = 1, .fpp = 0.01}},
    {.name = "set", .spec = {.kind = SEEN_SET}},
    {.name = "set_roomy", .spec = {.kind = SEEN_SET, .items = 2000}},
    {.name = "set_keyed", .spec = {.kind = SEEN_SET, .flags = SEEN_KEYED}},
    {.name = "bloom_text",
     .spec = {.kind = SEEN_BLOOM,
              .items = 500,
              .fpp = 0.1,
              .key_form = SEEN_KEYS_TEXT}},
    {.name = "blocked_lower",
     .spec = {.items = 500, .fpp = 0.1, .key_form = SEEN_KEYS_LOWER}},
    {.name = "ribbon_hex",
     .spec = {.kind = SEEN_RIBBON, .fpp = 0.1, .key_form = SEEN_KEYS_HEX}},
    {.name = "set_u64", .spec = {.kind = SEEN_SET, .key_form = SEEN_KEYS_U64}},
    {.name = "window_i32",
     .spec = {.last = 100, .fpp = 0.1, .key_form = SEEN_KEYS_I32}},
    {.name = "sorted_utf16",
     .spec = {.kind = SEEN_SORTED, .fpp = 0.1, .key_form = SEEN_KEYS_UTF16}},
    {.name = "bitmap", .spec = {.kind = SEEN_BITMAP, .bits = 1001}},
    {.name = "bloom_never",
     .spec = {.kind = SEEN_BLOOM, .items = 500, .fpp = 0.3},
     .listed = SEEN_LISTED_NEVER},
    {.name = "ribbon_always",
     .spec = {.kind = SEEN_RIBBON, .fpp = 0.05, .flags = SEEN_KEYED},
     .listed = SEEN_LISTED_ALWAYS},
    {.name = "bitmap_blocks", .spec = {.kind = SEEN_BITMAP, .bits = 600000}},
};

static void must(bool fact, const char *what)
{
    if (fact) return;
    fprintf(stderr, "write_native: %s\n", what);
    exit(1);
}

static void path_of(char *path, size_t size, const char *name,
                    const char *suffix)
{
    int n = snprintf(path, size, "%s/%s.%s", directory, name, suffix);
    must(n > 0 && n < (int)size, "path too long");
}

static FILE *create(const char *name, const char *suffix)
{
    char path[4096];
    path_of(path, sizeof path, name, suffix);
    FILE *out = fopen(path, "wb");
    must(out != NULL, path);
    return out;
}

static void finish(FILE *out)
{
    must(!ferror(out) && fclose(out) == 0, "cannot write");
}

/* ---- Keys --------------------------------------------------------------- */

static uint8_t bytes[ASKED][20];
static seen_key keys[ASKED];

/* Empty, or 3 .. 20 bytes: shorter ones would repeat. */
static size_t length_of(uint64_t i)
{
    return i == 0 ? 0 : 3 + i % 18;
}

static uint64_t even_then_odd(uint64_t i)
{
    return i < MEMBERS ? 2 * i : 2 * (i - MEMBERS) + 1;
}

/* Bitmaps take integers, of which the members are even. */
static void make_keys(seen_kind kind)
{
    for (uint64_t i = 0; i < ASKED; i++) {
        keys[i] = (seen_key){bytes[i], kind == SEEN_BITMAP ? 8 : length_of(i)};
        uint64_t number =
            kind == SEEN_BITMAP ? even_then_odd(i) : i * 0x9e3779b97f4a7c15u;
        for (int b = 0; b < 20; b++)
            bytes[i][b] =
                (uint8_t)(b < 8 ? number >> (8 * b) : i >> (b % 2 * 8));
    }
}

static void write_key(FILE *out, const seen_filter *f, seen_key key)
{
    const uint8_t *data = key.data;
    seen_hash h = seen_hash_key(f, key.data, key.len);
    bool maybe = seen_maybe(f, key.data, key.len);
    uint32_t count = maybe ? seen_count(f, key.data, key.len) : 0;
    fprintf(out, "%" PRIu32 " ", maybe && count == 0 ? 1 : count); /* listed */
    for (size_t i = 0; i < key.len; i++)
        fprintf(out, "%02x", data[i]);
    fprintf(out, " %" PRIx64 " %" PRIx64 "\n", h.lo, h.hi);
}

/* ---- Files -------------------------------------------------------------- */

static uint8_t *save(const seen_filter *f, uint32_t flags, size_t *len)
{
    must(seen_save(f, flags, NULL, 0, len) == SEEN_SHORT, "cannot measure");
    uint8_t *buf = malloc(*len);
    must(buf && seen_save(f, flags, buf, *len, len) == SEEN_OK, "cannot save");
    return buf;
}

static void write_answers(const char *name, const seen_filter *f)
{
    FILE *out = create(name, "keys");
    for (size_t i = 0; i < ASKED; i++)
        write_key(out, f, keys[i]);
    finish(out);
}

static void write_filter(const char *name, const seen_filter *f, uint32_t flags)
{
    size_t len;
    uint8_t *buf = save(f, flags, &len);
    FILE *out = create(name, "seen");
    fwrite(buf, 1, len, out);
    finish(out);
    free(buf);
    if (flags & SEEN_SECRET_APART) {
        out = create(name, "secret");
        fwrite(secret, 1, sizeof secret, out);
        finish(out);
    }
    write_answers(name, f);
}

static seen_filter *fill(seen_spec spec, size_t n)
{
    seen_filter *f = NULL;
    make_keys(spec.kind);
    if (spec.flags & SEEN_KEYED) spec.secret = secret;
    const bool built = seen_kind_built(spec.kind);
    seen_status status =
        built ? seen_build(&f, &spec, seen_keys_of(keys, n), NULL)
              : seen_new(&f, &spec, NULL);
    if (status == SEEN_OK && spec.window_ms) /* twenty each 100 ms */
        for (size_t i = 0; i < n && status == SEEN_OK; i++) {
            seen_advance(f, i / 20 * 100);
            status = seen_add(f, keys[i].data, keys[i].len);
        }
    else if (status == SEEN_OK && !built)
        status = seen_add_many(f, seen_keys_of(keys, n), NULL);
    if (spec.window_ms == 1) seen_advance(f, UINT64_MAX);
    must(status == SEEN_OK, seen_strerror(status));
    return f;
}

static void list_some(seen_filter *f, seen_listed rule)
{
    seen_allowlist *list = NULL;
    must(seen_allowlist_new(&list, NULL) == SEEN_OK, "no list");
    for (size_t i = 0; i < ASKED; i += 7)
        must(seen_allowlist_add(list, keys[i].data, keys[i].len) == SEEN_OK,
             "cannot list");
    must(seen_allow(f, list, rule) == SEEN_OK, "cannot allow");
    seen_allowlist_free(list);
}

/* One attempt in two bumps a key and takes another seed. */
static void write_reseeded_ribbon(void)
{
    static const uint8_t none[8];
    bool found = false;
    for (uint64_t i = 0; i < 1000 && !found; i++) {
        seen_spec spec = {.kind = SEEN_RIBBON, .fpp = 0.01, .seed = i};
        seen_filter *f = fill(spec, MEMBERS);
        size_t len;
        uint8_t *buf = save(f, 0, &len);
        /* Behind one checksum: the list, the starts, the seed. */
        found = memcmp(buf + 260 + 16, none, 8) != 0;
        free(buf);
        if (found) write_filter("ribbon_reseeded", f, 0);
        seen_free(f);
    }
    must(found, "every ribbon filter was built at once");
}

/* Several layers, the first of them of two segments. */
static void write_large_ribbon(void)
{
    seen_builder *b;
    seen_filter *f = NULL;
    seen_spec spec = {.kind = SEEN_RIBBON, .fpp = 0.2};
    make_keys(spec.kind);
    must(seen_builder_new(&b, &spec, NULL) == SEEN_OK, "no builder");
    bool added =
        seen_builder_add_many(b, seen_keys_of(keys, MEMBERS)) == SEEN_OK;
    for (uint64_t i = 0; i < 100000 && added; i++)
        added = seen_builder_add_many(b, seen_keys_u64(&i, 1)) == SEEN_OK;
    must(added && seen_builder_finish(b, &f, NULL) == SEEN_OK, "no ribbon");
    write_filter("ribbon_large", f, 0);
    seen_builder_free(b);
    seen_free(f);
}

/* The first keys many times, others a few times, and some of them less again. */
static void write_copies(const char *name, seen_spec spec, uint32_t flags)
{
    seen_filter *f = fill(spec, MEMBERS);
    for (size_t i = 0; i < 60; i++)
        for (size_t times = i < 6 ? 300 * i : i % 3; times > 0; times--)
            must(seen_add(f, keys[i].data, keys[i].len) == SEEN_OK, "full");
    for (size_t i = 0; i < 60; i += 3)
        must(seen_remove(f, keys[i].data, keys[i].len) == SEEN_OK, "absent");
    write_filter(name, f, flags);
    seen_free(f);
}

/* A filter file has two headers. */
static void write_stored(void)
{
    seen_filter *f = fill(files[0].spec, MEMBERS);
    char path[4096];
    path_of(path, sizeof path, "stored", "seen");
    must(seen_file_save(path, f, 0, NULL, NULL) == SEEN_OK, "cannot store");
    write_answers("stored", f);
    seen_free(f);
}

int main(int argc, char **argv)
{
    must(argc == 2, "usage: write_native DIRECTORY");
    directory = argv[1];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        seen_filter *f = fill(files[i].spec, MEMBERS);
        if (files[i].listed) list_some(f, files[i].listed);
        write_filter(files[i].name, f, files[i].save_flags);
        seen_free(f);
    }
    seen_filter *empty = fill((seen_spec){.kind = SEEN_RIBBON, .fpp = 0.01}, 0);
    write_filter("ribbon_empty", empty, 0);
    seen_free(empty);
    seen_filter *few = fill((seen_spec){.kind = SEEN_RIBBON, .fpp = 0.01}, 6);
    write_filter("ribbon_listed", few, 0);
    seen_clear(few);
    write_filter("ribbon_cleared", few, 0);
    seen_free(few);
    empty = fill((seen_spec){.kind = SEEN_SORTED, .fpp = 0.01}, 0);
    write_filter("sorted_empty", empty, 0);
    seen_free(empty);
    /* With samples: 512 keys and more have some. */
    seen_filter *many =
        fill((seen_spec){.kind = SEEN_SORTED, .fpp = 0.004}, ASKED - 100);
    write_filter("sorted_many", many, 0);
    seen_free(many);
    write_copies("cuckoo_copies",
                 (seen_spec){.kind = SEEN_CUCKOO, .items = 800, .fpp = 0.001},
                 0);
    write_copies("cuckoo_copies_keyed",
                 (seen_spec){.kind = SEEN_CUCKOO,
                             .items = 800,
                             .fpp = 0.01,
                             .flags = SEEN_KEYED},
                 SEEN_SECRET_APART);
    write_reseeded_ribbon();
    write_large_ribbon();
    write_stored();
    return 0;
}
