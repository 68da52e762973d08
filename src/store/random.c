/*
 * random.c - secrets from the kernel, or none at all. A clock is no substitute:
 * whoever can guess the second can guess the secret.
 */
#include "seen_file.h"

#include "store/os.h"

#include <errno.h>
#include <string.h>

seen_status seen_random_secret(uint8_t secret[16])
{
    uint8_t fresh[16];
    size_t have = 0;
    while (have < sizeof fresh) {
        ssize_t got = seen_os->get_random(fresh + have, sizeof fresh - have);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return SEEN_IO;
        have += (size_t)got;
    }
    memcpy(secret, fresh, sizeof fresh);
    return SEEN_OK;
}
