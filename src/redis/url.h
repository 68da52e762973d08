/*
 * url.h - where something is on a server:
 *
 *     scheme://[user:password@]host[:port][/path][?name=value&name=value]
 *
 * %XX stands for a byte. A host in brackets is an IPv6 address.
 */
#ifndef SEEN_URL_H
#define SEEN_URL_H

#include "seen.h"

#define SEEN_URL_PARAMS 16

struct seen_url {
    char user[128], password[256], host[256];
    uint16_t port; /* 6379 */
    char path[512];
    size_t n;
    struct {
        char name[32], value[512];
        bool used;
    } param[SEEN_URL_PARAMS];
};

/* What follows the scheme, "//host...". SEEN_INVALID: the error says what. */
seen_status seen_url_parse(const char *rest, struct seen_url *url,
                           seen_error *error);

/* The value of a parameter, NULL: not given. It counts as used. */
const char *seen_url_param(struct seen_url *url, const char *name);
/* All digits, and at most so much; `standard` if it is not given. */
seen_status seen_url_number(struct seen_url *url, const char *name,
                            uint64_t most, uint64_t standard, uint64_t *out,
                            seen_error *error);
/* A parameter that nobody wanted is a mistake. */
seen_status seen_url_done(const struct seen_url *url, seen_error *error);

/* Digits, all of them, at most so much. */
bool seen_url_digits(const char *text, uint64_t most, uint64_t *out);

#endif
