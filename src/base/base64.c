/* base64.c - see base64.h. */
#include "base/base64.h"

static const char plain[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int value(char c, bool url)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    if (c == (url ? '-' : '+')) return 62;
    return c == (url ? '_' : '/') ? 63 : -1;
}

static char letter(uint32_t six, bool url)
{
    if (url && six == 62) return '-';
    if (url && six == 63) return '_';
    return plain[six];
}

bool seen_base64_check(const char *text, size_t len, bool url, size_t *bytes)
{
    if (len % 4) return false;
    size_t pad = len && text[len - 1] == '=' ? 1 : 0;
    if (pad && text[len - 2] == '=') pad = 2;
    for (size_t i = 0; i < len - pad; i++)
        if (value(text[i], url) < 0) return false;
    int last = pad ? value(text[len - pad - 1], url) : 0;
    if (last & (pad == 2 ? 15 : pad == 1 ? 3 : 0)) return false;
    *bytes = len / 4 * 3 - pad;
    return true;
}

void seen_base64_decode(const char *text, size_t len, bool url, uint8_t *to)
{
    for (size_t i = 0; i < len; i += 4) {
        uint32_t bits = 0;
        for (size_t j = 0; j < 4; j++) {
            int v = value(text[i + j], url);
            bits = bits << 6 | (uint32_t)(v < 0 ? 0 : v); /* padding */
        }
        *to++ = (uint8_t)(bits >> 16);
        if (text[i + 2] != '=') *to++ = (uint8_t)(bits >> 8);
        if (text[i + 3] != '=') *to++ = (uint8_t)bits;
    }
}

void seen_base64_encode(const uint8_t *from, size_t len, bool url, char *to)
{
    for (size_t i = 0; i < len; i += 3) {
        size_t have = len - i < 3 ? len - i : 3;
        uint32_t bits = (uint32_t)from[i] << 16;
        if (have > 1) bits |= (uint32_t)from[i + 1] << 8;
        if (have > 2) bits |= from[i + 2];
        *to++ = letter(bits >> 18, url);
        *to++ = letter(bits >> 12 & 63, url);
        *to++ = have > 1 ? letter(bits >> 6 & 63, url) : '=';
        *to++ = have > 2 ? letter(bits & 63, url) : '=';
    }
}
