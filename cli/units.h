/*
 * units.h - numbers as people write and read them.
 *
 * Each parser takes all of the text or nothing; on failure it returns what was
 * expected, as the end of a sentence, and leaves *out alone. NULL is success.
 */
#ifndef CLI_UNITS_H
#define CLI_UNITS_H

#include <seen.h>
#include <stddef.h>
#include <stdint.h>

/* A whole number of things, at least 1: 1000, 1e6, 10M, 1.5G, 64Ki. */
const char *parse_count(const char *text, uint64_t *out);

/* Bytes, at least 1: 512, 64MiB, 1.5GB, 100k. */
const char *parse_size(const char *text, uint64_t *out);

/* A probability above 0 and below 1: 0.01, 1e-6, 0.1%, 1/1000. */
const char *parse_rate(const char *text, double *out);

/* Any number above 0: 10, 9.9. */
const char *parse_real(const char *text, double *out);

/* Milliseconds, at least 1: 500ms, 30s, 30m, 12h, 5d, 2w. */
const char *parse_time(const char *text, uint64_t *out);
const char *parse_wait(const char *text, uint64_t *out); /* may be 0 */

/* For people: 14,000,000; 55.0 MB; 0.1%, or "full" for a rate that is NaN. Each
 * writes to buf and returns it; 32 bytes are enough for all. */
#define UNIT_TEXT 32
const char *show_count(char buf[UNIT_TEXT], double n);
const char *show_size(char buf[UNIT_TEXT], double bytes);
const char *show_rate(char buf[UNIT_TEXT], double p);
const char *show_short(char buf[UNIT_TEXT], double n); /* 1.2M */

/* With what is counted, in the singular: 1 mark, 20,000 marks, 2 batches; and the
 * same in short: 1.2M lines. */
const char *show_many(char buf[UNIT_TEXT], double n, const char *thing);
const char *show_about(char buf[UNIT_TEXT], double n, const char *thing);

/* How many keys a filter was planned for; 0: as many as come. */
uint64_t planned_items(const seen_info *info);

/* How many keys it holds: 99,985, and the thing if any; "about" where one that
 * it took for known is not counted. */
const char *show_keys(char buf[UNIT_TEXT], const seen_info *info,
                      const char *thing);

/* Milliseconds, exactly, as parse_time() takes them: 5d, 90m, 1001ms; and how
 * long something is ago, roughly: 3.5 h. */
const char *show_time(char buf[UNIT_TEXT], uint64_t ms);
const char *show_age(char buf[UNIT_TEXT], uint64_t ms);

#endif
