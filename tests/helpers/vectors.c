/* vectors.c - see vectors.h. */
#include "helpers/vectors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint8_t *test_vector_file(const char *name, const char *file, size_t *len)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s/%s", SEEN_TEST_VECTORS, name, file);
    FILE *in = fopen(path, "rb");
    if (!in) fail_msg("%s is not there", path);
    size_t cap = 1 << 20;
    uint8_t *bytes = malloc(cap);
    assert_non_null(bytes);
    *len = fread(bytes, 1, cap - 1, in);
    assert_true(*len < cap - 1);
    bytes[*len] = 0;
    fclose(in);
    return bytes;
}

/* ---- Keys --------------------------------------------------------------- */

static uint8_t hex_byte(const char *c)
{
    char two[3] = {c[0], c[1], 0};
    return (uint8_t)strtoul(two, NULL, 16);
}

static struct test_keys load_keys(const char *kind, const char *name)
{
    char file[64];
    size_t len;
    snprintf(file, sizeof file, "%s.txt", name);
    char *text = (char *)test_vector_file(kind, file, &len);
    struct test_keys k = {.keys = calloc(len, sizeof *k.keys),
                          .store = malloc(len)};
    assert_true(k.keys && k.store);
    uint8_t *to = k.store;
    for (char *line = text; *line; line = strchr(line, '\n') + 1) {
        size_t digits = strcspn(line, "\n");
        if (*line == '-') digits = 0;
        k.keys[k.n++] = (seen_key){to, digits / 2};
        for (size_t i = 0; i < digits; i += 2)
            *to++ = hex_byte(line + i);
    }
    free(text);
    return k;
}

static void free_keys(struct test_keys *k)
{
    free(k->keys);
    free(k->store);
}

/* ---- vector.txt --------------------------------------------------------- */

static void take_maybe(struct test_vector *v, const char *numbers)
{
    v->maybe = calloc(v->strangers.n, sizeof *v->maybe);
    assert_non_null(v->maybe);
    char *end;
    for (unsigned long i; (i = strtoul(numbers, &end, 10)); numbers = end) {
        assert_true(i <= v->strangers.n);
        v->maybe[i - 1] = true;
    }
}

static void take(struct test_vector *v, const char *word, const char *value)
{
    if (strcmp(word, "dialect") == 0)
        snprintf(v->dialect, sizeof v->dialect, "%s", value);
    else if (strcmp(word, "encoding") == 0)
        snprintf(v->encoding, sizeof v->encoding, "%s", value);
    else if (strcmp(word, "rebuild") == 0)
        v->cleared = true;
    else if (strcmp(word, "items") == 0)
        v->spec.items = strtoull(value, NULL, 10);
    else if (strcmp(word, "bits") == 0)
        v->spec.bits = strtoull(value, NULL, 10);
    else if (strcmp(word, "fpp") == 0)
        v->spec.fpp = strtod(value, NULL);
    else if (strcmp(word, "bits_per_key") == 0)
        v->spec.bits_per_key = strtod(value, NULL);
    else if (strcmp(word, "keys") == 0)
        v->keys = load_keys("keys", value);
    else if (strcmp(word, "built_from") == 0)
        v->built_from = load_keys("keys", value);
    else if (strcmp(word, "then_removed") == 0)
        v->removed = load_keys("keys", value);
    else if (strcmp(word, "strangers") == 0)
        v->strangers = load_keys("strangers", value);
    else if (strcmp(word, "maybe") == 0)
        take_maybe(v, value);
    else
        fail_msg("%s: %s is no word of a vector.txt", v->name, word);
}

struct test_vector test_vector_load(const char *name)
{
    struct test_vector v = {0};
    snprintf(v.name, sizeof v.name, "%s", name);
    v.bytes = test_vector_file(name, "filter.bin", &v.len);
    size_t len;
    char *text = (char *)test_vector_file(name, "vector.txt", &len), *next;
    for (char *line = text; *line; line = next) {
        next = line + strcspn(line, "\n");
        if (*next) *next++ = '\0';
        char *space = line + strcspn(line, " ");
        if (*space) *space++ = '\0';
        take(&v, line, space);
    }
    free(text);
    assert_true(v.keys.n > 0 && v.strangers.n > 0 && v.maybe);
    return v;
}

void test_vector_free(struct test_vector *v)
{
    free_keys(&v->keys);
    free_keys(&v->built_from);
    free_keys(&v->removed);
    free_keys(&v->strangers);
    free(v->maybe);
    free(v->bytes);
}
