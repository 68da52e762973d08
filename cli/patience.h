/*
 * patience.h - --wait: how long a verb that changes a file or a store waits for
 * another program that does.
 *
 *     status = open(..., first_wait());
 *     if (status == SEEN_BUSY && wait_on(name))
 *         status = open(..., second_wait());
 *
 * The first wait is short and silent. Before the second, whoever looks at a
 * terminal is told what is going on.
 */
#ifndef CLI_PATIENCE_H
#define CLI_PATIENCE_H

#include "options.h"

#include <stdint.h>

extern const struct option wait_options[];

bool wait_given(void);

uint64_t first_wait(void); /* milliseconds */
bool wait_on(const char *name);
uint64_t second_wait(void);

/* The end of the program: it was not enough. */
_Noreturn void waited_in_vain(const char *name);

#endif
