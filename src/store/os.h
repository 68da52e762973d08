/*
 * os.h - every system call of libseen_store, behind one struct that tests can
 * replace to make any of them fail.
 */
#ifndef SEEN_OS_H
#define SEEN_OS_H

#include <stddef.h>
#include <sys/types.h>

struct seen_os {
    ssize_t (*get_random)(void *buf, size_t len); /* as getrandom(2) */
};

/* The real thing, unless a test put something else here. */
extern const struct seen_os *seen_os;

#endif
