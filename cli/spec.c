/* spec.c - see spec.h. */
#include "spec.h"

#include "output.h"
#include "units.h"

#include <ctype.h>
#include <string.h>

/* A filter has a header of a few hundred bytes beside its bits. */
#define HEADER_BYTES 512

uint64_t bits_within(uint64_t memory)
{
    uint64_t payload =
        memory > 2 * HEADER_BYTES ? memory - HEADER_BYTES : memory;
    return payload < UINT64_MAX / 8 ? payload * 8 : UINT64_MAX;
}

static const char *option_for(const char *word, size_t len,
                              const char *bits_option)
{
    const struct {
        const char *field, *option;
    } names[] = {{"items", "-n"},
                 {"fpp", "-p"},
                 {"bits", bits_option},
                 {"limit", "-M"},
                 {"hashes", "--hashes"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i].field) == len &&
            memcmp(names[i].field, word, len) == 0)
            return names[i].option;
    return NULL;
}

const char *in_options(const char *problem, const char *bits_option)
{
    static char text[256];
    size_t len = 0;
    while (*problem && len + 32 < sizeof text) {
        size_t word = 0;
        while (isalpha((unsigned char)problem[word]))
            word++;
        const char *option = option_for(problem, word, bits_option);
        if (option) {
            len +=
                (size_t)snprintf(text + len, sizeof text - len, "%s", option);
            problem += word;
            continue;
        }
        do
            text[len++] = *problem++;
        while (word-- > 1 && len + 32 < sizeof text);
    }
    text[len] = '\0';
    return text;
}

/* Over the limit? Then how much it would take is what the user needs to know. */
static void fail_over_limit(const seen_spec *spec)
{
    seen_spec unlimited = *spec;
    seen_plan plan;
    char needed[UNIT_TEXT], given[UNIT_TEXT];
    unlimited.limit = 0;
    if (!spec->limit || seen_plan_for(&unlimited, &plan) != SEEN_OK) return;
    fail("-M %s is too little: -n and -p need %s",
         show_size(given, (double)spec->limit),
         show_size(needed, (double)plan.bytes));
}

seen_plan plan_or_fail(const seen_spec *spec, const char *bits_option)
{
    seen_plan plan;
    if (seen_plan_for(spec, &plan) == SEEN_OK) return plan;
    fail_over_limit(spec);
    fail("%s", in_options(seen_plan_problem(spec), bits_option));
}
