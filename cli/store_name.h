/*
 * store_name.h - what stores and users are called on the command line: which name
 * means what, and which store of nearly that name there is.
 */
#ifndef CLI_STORE_NAME_H
#define CLI_STORE_NAME_H

#include <seen.h>
#include <stdbool.h>
#include <stddef.h>

/* The verb's first operand. */
const char *store_operand(char **operands, size_t n);

/* Is this what a store is called, and not a filter file? One on a server? */
bool is_store(const char *name);
bool is_server(const char *name);

/* Are these two names of one store? */
bool same_store(const char *a, const char *b);

/* The directory of a store that has one; and does that have a journal? */
const char *dir_of(const char *name);
bool has_journal(const char *path);

/* A store beside this one, or where it would be, with nearly its name; NULL:
 * none. To be freed. */
char *near_store(const char *name);

/* The operand USER. */
seen_key user_operand(const char *text);

/* A user as messages show it: not all bytes are for terminals. */
#define USER_TEXT 64
const char *show_user(char buf[USER_TEXT], seen_key user);

#endif
