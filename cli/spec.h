/*
 * spec.h - from the user's options to a seen_spec, and back when it does not
 * work: the library speaks of fields, the user typed options.
 */
#ifndef CLI_SPEC_H
#define CLI_SPEC_H

#include <seen.h>

/* The bits of a filter that takes at most so many bytes, header included. */
uint64_t bits_within(uint64_t memory);

/* The plan, or the end of the program with what is wrong. `bits_option` is what
 * the verb calls the field bits. */
seen_plan plan_or_fail(const seen_spec *spec, const char *bits_option);

/* A sentence of seen_plan_problem() in the words of the command line; static
 * storage. */
const char *in_options(const char *problem, const char *bits_option);

#endif
