/* bf_args.h - see bf_args.c. */
#ifndef SEEN_MODULE_BF_ARGS_H
#define SEEN_MODULE_BF_ARGS_H

#include "command.h"

/* As the configuration has them. */
struct options bf_default_options(void);

#endif
