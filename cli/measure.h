/*
 * measure.h - how fast a filter is on this machine, and whether it keeps its
 * promise.
 *
 * Keys are numbered, and made from their numbers a few thousand at a time, outside
 * the time that is measured: any number of keys takes no memory beside the filter.
 * Those numbered below n are added; those from NOT_THERE on never are.
 *
 *     add      all n keys, in batches
 *     single   seen_maybe() of one key after the other, half of them there
 *     batch    the same through seen_maybe_many()
 *     rate     keys that are not there, until a hundred wrong answers are due or
 *              a second is over
 *     read     what no filter can beat: one word from each of many random cache
 *              lines of as much memory, each asked for well before it is needed
 *
 * Speeds are medians of several rounds, in processor time of one thread.
 */
#ifndef CLI_MEASURE_H
#define CLI_MEASURE_H

#include <seen.h>

struct measured {
    seen_kind kind;
    seen_plan plan;
    seen_error error; /* why there is nothing to tell, if there is an error */
    uint64_t bytes;
    double add_ns, single_ns, batch_ns, read_ns; /* each */
    double rate;                                 /* of wrong answers ... */
    uint64_t probes, wrong; /* ... and what it was counted from */
};

#define LEAST_KEY_BYTES 8
#define KEY_BYTES_MAX   65536

/* `what` (static storage) is under way, and so much of it is done; for whoever
 * shows progress. */
typedef void measure_progress(const char *what, double part);

/* An answer "never" for a key that is there ends the program. */
struct measured measure(const seen_spec *spec, size_t key_bytes,
                        measure_progress *progress);

#endif
