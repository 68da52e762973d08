/* secret.c - see secret.h. */
#include "secret.h"

#include <sys/random.h>

bool secret_random(uint8_t secret[16])
{
    return getrandom(secret, 16, 0) == 16;
}
