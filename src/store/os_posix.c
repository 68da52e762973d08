/* os_posix.c - the system calls themselves. */
#define _DEFAULT_SOURCE /* getrandom */

#include "store/os.h"

#include <sys/random.h>

static ssize_t get_random(void *buf, size_t len)
{
    return getrandom(buf, len, 0);
}

static const struct seen_os posix = {get_random};

const struct seen_os *seen_os = &posix;
