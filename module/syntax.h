/*
 * syntax.h - what COMMAND DOCS tells about arguments, out of one line of text.
 *
 * commands.def has the arguments of each command as docs/MODULE.md writes them:
 *
 *     key [CAPACITY n:int] [NOCREATE] (EXPANSION n:int | NONSCALING) ITEMS item...
 *
 *     name         an argument: a string, or `:int`, `:double`, `:ms` (since 1970);
 *                  `key` and what is told as `:key` are names of keys
 *     WORD         a word that stands for itself; before a name it is the name's
 *     a...         one or more of them
 *     [a b]        these may be missing
 *     (a b | c)    one of them
 *
 * Servers want that as a tree, which they copy.
 */
#ifndef SEEN_MODULE_SYNTAX_H
#define SEEN_MODULE_SYNTAX_H

#include "redis_api.h"

/* The tree, good until the next call. NULL: the line makes none. */
RedisModuleCommandArg *syntax_read(const char *line);

#endif
