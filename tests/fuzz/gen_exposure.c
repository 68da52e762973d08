/*
 * gen_exposure.c - writes what fuzz_exposure.c starts from:
 *
 *     gen_exposure tests/fuzz/corpus/exposure
 *
 * Two records of one user under each policy: one that has just begun, one with
 * as many generations as there may be, or as fit into the 4 KB that libFuzzer
 * tries by itself.
 */
#include "exposure_input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 4096

static struct items items;

static void must(bool fact, const char *what)
{
    if (fact) return;
    fprintf(stderr, "gen_exposure: %s\n", what);
    exit(EXIT_FAILURE);
}

/* Items first .. first + n marked in steps, one a millisecond apart; how many
 * bytes that makes at `out`. */
static size_t make_record(seen_exposure *x, size_t first, size_t n, size_t step,
                          uint8_t *out)
{
    size_t len = 0;
    for (size_t i = 0; i < n; i += step) {
        seen_record before = {out, len}, after;
        must(seen_exposure_mark(x, before, 1000 + i / step,
                                seen_keys_of(items.key + first + i, step), NULL,
                                &after) == SEEN_OK,
             "mark");
        must(after.len <= MOST / 2, "a record is too long");
        memcpy(out, after.data, after.len);
        len = after.len;
    }
    return len;
}

static void write_input(const char *directory, const char *name, uint8_t policy,
                        size_t few, size_t many, size_t step)
{
    static uint8_t input[HEADER + 2 * MOST], second[MOST];
    char path[4096];
    seen_exposure *x;
    must(seen_exposure_new(&x, &policies[policy], secret, NULL, NULL) ==
             SEEN_OK,
         "new");
    size_t a = make_record(x, 0, few, few ? few : 1, input + HEADER);
    size_t b = make_record(x, few / 2, many, step, second);
    seen_exposure_free(x);
    input[0] = policy;
    seen_put_le64(input + 1, 1003);
    seen_put_le16(input + 9, (uint16_t)a);
    memcpy(input + HEADER + a, second, b);

    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "wb");
    must(file != NULL, path);
    must(fwrite(input, 1, HEADER + a + b, file) == HEADER + a + b &&
             fclose(file) == 0,
         path);
}

int main(int argc, char **argv)
{
    must(argc == 2, "expected a directory");
    make_items(&items);
    write_input(argv[1], "new_user", 0, 0, 1, 1);
    write_input(argv[1], "one_generation", 0, 10, 100, 10);
    write_input(argv[1], "full_generation", 0, 0, 1000, 100);
    write_input(argv[1], "three_generations", 1, 10, 60, 6);
    write_input(argv[1], "tiny", 2, 3, 6, 1);
    write_input(argv[1], "same_times", 2, 3, 3, 3);
    write_input(argv[1], "one_item", 3, 1, 2, 1);
    write_input(argv[1], "many_generations", 4, 10, 600, 50);
    write_input(argv[1], "rare", 5, 4, 200, 10);
    return EXIT_SUCCESS;
}
