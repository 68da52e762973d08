/*
 * foreign.c - see foreign.h.
 *
 * A file is mapped and looked at where it lies; most dialects can be asked there,
 * too. To change one it is copied to memory, and written beside and renamed when
 * the last key is in: these formats have no journal.
 */
#define _POSIX_C_SOURCE 200809L

#include "foreign.h"

#include "memory.h"
#include "output.h"
#include "pack.h"
#include "spec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAMES_MAX 8

/* ---- Bytes -------------------------------------------------------------- */

/* false: there is nothing to map, which others will say better. */
static bool map_file(struct target *t)
{
    struct stat st;
    static char nothing[1];
    int fd = open(t->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    bool regular = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    t->len = regular ? (size_t)st.st_size : 0;
    if (regular && t->len > 0)
        t->bytes = mmap(NULL, t->len, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    t->mapped = regular && t->len > 0 && t->bytes != MAP_FAILED;
    if (!t->mapped) t->bytes = NULL;
    if (regular && t->len == 0) t->bytes = nothing;
    return t->bytes != NULL;
}

static void let_go(struct target *t)
{
    if (t->mapped)
        munmap(t->bytes, t->len);
    else if (t->packed)
        free(t->bytes);
    if (t->path || t->packed) t->bytes = NULL;
    t->mapped = false;
}

/* What is in the gzip takes the place of it. */
static void unpack_target(struct target *t)
{
    size_t len;
    bool was_mapped = t->mapped;
    void *bytes = unpack(t->name, t->bytes, t->len, &len);
    if (was_mapped)
        munmap(t->bytes, t->len);
    else if (!t->path)
        free(t->bytes);
    t->mapped = false;
    t->packed = true;
    t->bytes = bytes;
    t->len = len;
}

static bool is_ours(const struct target *t)
{
    return t->len >= 8 && memcmp(t->bytes, "\x89SEEN\r\n\x1a", 8) == 0;
}

/* ---- Which -------------------------------------------------------------- */

static const char *sniff(const struct target *t)
{
    const char *names[NAMES_MAX];
    char list[256] = "";
    size_t n = seen_sniff(t->bytes, t->len, names, NAMES_MAX);
    if (n <= 1) return n ? names[0] : NULL;
    for (size_t i = 0, len = 0; i < n && i < NAMES_MAX; i++)
        len += (size_t)snprintf(list + len, sizeof list - len, "%s%s",
                                i ? ", " : "", names[i]);
    fail("%s: could be any of %s: say which with --dialect", t->name, list);
}

static void describe(struct target *t)
{
    seen_dialect_facts facts = {.size = sizeof facts};
    seen_dialect_named(t->dialect, &facts);
    seen_info_of(t->loaded, &t->info);
    seen_plan_of(t->loaded, &t->plan);
    t->info.hash = facts.hash;
    t->info.saved_bytes = t->len;
}

/* What redis-cli, echo and editors put behind the last byte. */
#define TAKE_IT_OFF                                                            \
    "take it off, for example redis-cli --raw GET KEY | head -c -1 > FILE"

/* The filter without the newline behind it; NULL: none, or no filter either. */
static seen_filter *without_newline(const struct target *t,
                                    const seen_spec *spec)
{
    const char *bytes = t->bytes;
    seen_filter *f;
    if (t->len < 2 || bytes[t->len - 1] != '\n') return NULL;
    return seen_import(&f, t->dialect, spec, bytes, t->len - 1, NULL) == SEEN_OK
               ? f
               : NULL;
}

/* Where the length of a file is all that tells its bits, a newline makes another
 * filter of it, and most keys are absent from that. */
static void suspect_newline(const struct target *t, const seen_spec *spec)
{
    seen_dialect_facts facts = {.size = sizeof facts};
    seen_info with = {.size = sizeof with}, without = {.size = sizeof without};
    seen_dialect_named(t->dialect, &facts);
    if (facts.can & SEEN_CAN_SNIFF) return;
    seen_filter *shorter = without_newline(t, spec);
    if (!shorter) return;
    seen_info_of(t->loaded, &with);
    seen_info_of(shorter, &without);
    seen_free(shorter);
    if (with.bits != without.bits)
        warn("%s: ends in a newline, which counts as a byte of the %s filter; "
             "if "
             "it was appended, all answers are wrong: " TAKE_IT_OFF,
             t->name, t->dialect);
}

static _Noreturn void cannot_import(const struct target *t,
                                    const seen_spec *spec, const seen_error *e)
{
    if (e->status == SEEN_NOMEM) fail("%s: out of memory", t->name);
    if (without_newline(t, spec))
        fail("%s: as %s: is one byte longer than the filter, a newline, which "
             "redis-cli appends: " TAKE_IT_OFF,
             t->name, t->dialect);
    fail("%s: as %s: %s", t->name, t->dialect, in_options(e, "--bits"));
}

bool find_foreign(struct target *t)
{
    if (t->path && !map_file(t)) return false;
    bool ours = is_ours(t);
    const char *named = unpacked_name(wish.dialect);
    if (is_packed_name(wish.dialect) && !ours && !is_packed(t->bytes, t->len))
        fail("%s: is not a gzip file of a DCSO filter", t->name);
    if (!ours && (!named || strcmp(named, "dcso") == 0) &&
        is_packed(t->bytes, t->len))
        unpack_target(t);
    t->dialect = ours ? NULL : named ? named : sniff(t);
    if (!t->dialect && t->packed)
        fail("%s: holds no DCSO filter in its gzip", t->name);
    if (!t->dialect) {
        t->unknown = !ours;
        let_go(t);
        return false;
    }
    seen_spec spec = told_spec();
    seen_error e;
    seen_status status =
        seen_import_view(&t->loaded, t->dialect, &spec, t->bytes, t->len, &e);
    if (status == SEEN_UNSUPPORTED)
        status =
            seen_import(&t->loaded, t->dialect, &spec, t->bytes, t->len, &e);
    if (status != SEEN_OK) cannot_import(t, &spec, &e);
    suspect_newline(t, &spec);
    keys_for_dialect(t->dialect);
    describe(t);
    return true;
}

/* Can keys be removed again? Then each add counts. */
static bool counting(const char *dialect)
{
    seen_dialect_facts facts = {.size = sizeof facts};
    return seen_dialect_named(dialect, &facts) && facts.can & SEEN_CAN_REMOVE;
}

/* ---- Change ------------------------------------------------------------- */

void change_foreign(struct target *t)
{
    seen_dialect_facts facts = {.size = sizeof facts};
    seen_filter *copy;
    seen_dialect_named(t->dialect, &facts);
    if (!(facts.can & SEEN_CAN_ADD))
        fail("%s: %s filters take no keys once they are made: build it again",
             t->name, t->dialect);
    if (seen_copy(&copy, t->loaded, NULL) != SEEN_OK)
        fail("%s: out of memory", t->name);
    seen_free(t->loaded);
    let_go(t);
    t->filter = t->loaded = copy;
    seen_info measured = {.size = sizeof measured};
    seen_measure(copy, &measured);
    t->info.items = measured.items;
    t->counts = counting(t->dialect);
}

void create_foreign(struct target *t, const seen_spec *spec)
{
    plan_or_fail(spec, "--bits");
    t->packed = is_packed_name(wish.dialect);
    if (seen_new(&t->loaded, spec, NULL) != SEEN_OK) fail("out of memory");
    t->filter = t->loaded;
    t->dialect = spec->dialect;
    keys_for_dialect(t->dialect);
    t->counts = counting(t->dialect);
    t->changed = t->outcome.created = true;
    describe(t);
}

const char *heed_contained(const struct target *t)
{
    seen_info info = {.size = sizeof info};
    seen_info_of(t->filter, &info);
    if (wish.dialect && strcmp(unpacked_name(wish.dialect), info.dialect) != 0)
        fail("%s: is a file of seen that holds a %s filter, --dialect says %s",
             t->name, info.dialect, wish.dialect);
    keys_for_dialect(info.dialect);
    return info.dialect;
}

void load_container(struct target *t)
{
    if (t->loaded) return;
    if (!map_file(t)) fail("%s: %s", t->name, strerror(errno));
    if (seen_load(&t->loaded, t->bytes, t->len, NULL, NULL, &t->error) !=
        SEEN_OK)
        fail("%s: %s", t->name, t->error.text);
    let_go(t);
    t->filter = t->loaded;
    t->counts = counting(heed_contained(t));
}

void *foreign_bytes(const char *name, const seen_filter *f, const char *dialect,
                    size_t *len)
{
    seen_info info = {.size = sizeof info};
    const char *plain = unpacked_name(dialect);
    seen_status status = seen_export(f, plain, NULL, 0, len, NULL);
    if (status == SEEN_MISMATCH) {
        seen_info_of(f, &info);
        fail("%s: a %s filter has the bits of a key elsewhere than %s%s%s: "
             "build one from the keys, seen build --dialect %s",
             name, dialect, info.dialect ? "a " : "one of ours of kind ",
             info.dialect ? info.dialect : seen_kind_name(info.kind),
             info.layers > 1 ? " of several arrays" : "", dialect);
    }
    if (status != SEEN_OK && status != SEEN_SHORT)
        fail("%s: %s", name, seen_strerror(status));
    void *bytes = must_have(malloc(*len + 1));
    status = seen_export(f, plain, bytes, *len, len, NULL);
    if (status != SEEN_OK) fail("%s: %s", name, seen_strerror(status));
    if (!is_packed_name(dialect)) return bytes;
    void *packed = pack(bytes, *len, len);
    free(bytes);
    return packed;
}

static void write_back(struct target *t)
{
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    seen_status status;
    if (t->dialect) {
        size_t len;
        void *bytes = foreign_bytes(t->name, t->loaded,
                                    t->packed ? "dcso-gzip" : t->dialect, &len);
        status = seen_file_write(t->path, bytes, len, &outcome, &error);
        free(bytes);
    } else {
        status = seen_file_save_over(t->path, t->loaded, 0, &t->info, &outcome,
                                     &error);
    }
    if (status != SEEN_OK) fail("%s: %s", t->name, error.text);
}

void close_foreign(struct target *t)
{
    if (t->changed) write_back(t);
    t->changed = false;
    seen_free(t->loaded);
    t->loaded = NULL;
    let_go(t);
}
