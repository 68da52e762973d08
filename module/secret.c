/* secret.c - see secret.h. */
#include "secret.h"

#include "arguments.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

uint8_t exposure_secret[16] = {'s', 'e', 'e', 'n', ':', ' ', 'n', 'o',
                               ' ', 's', 'e', 'c', 'r', 'e', 't', '!'};
bool exposure_keyed;

bool secret_random(uint8_t secret[16])
{
    return getrandom(secret, 16, 0) == 16;
}

const char *secret_load(const char *path)
{
    char text[SECRET_DIGITS + 2];
    FILE *file = fopen(path, "rb");
    if (!file) return "a file that can be read";
    size_t len = fread(text, 1, sizeof text, file);
    fclose(file);
    if (len == 16)
        memcpy(exposure_secret, text, 16);
    else if (len < SECRET_DIGITS || len > SECRET_DIGITS + 1 ||
             (len > SECRET_DIGITS && text[SECRET_DIGITS] != '\n') ||
             !hex_to_secret(text, SECRET_DIGITS, exposure_secret))
        return "a file of 32 hex digits and a newline, or of 16 bytes";
    exposure_keyed = true;
    return NULL;
}
