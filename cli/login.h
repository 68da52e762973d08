/*
 * login.h - passwords of URLs: nobody else sees them.
 *
 * A URL with a password is replaced in the arguments by one with *** in its place,
 * which is what all messages then have, and overwritten where other users of the
 * machine can read it (ps, /proc). The real one is kept for the library.
 */
#ifndef CLI_LOGIN_H
#define CLI_LOGIN_H

#include <stddef.h>

/* Of redis...:// URLs, and of others with a user and a password, before anything
 * is said. */
void hide_passwords(int argc, char **argv);

/* Users and items may be such URLs, too, and are taken as they were given. */
void give_back(char **arguments, size_t n);

/* What to connect with: the URL as it was given; where it has no password, with
 * that of SEEN_REDIS_PASSWORD or REDISCLI_AUTH. Anything else comes back as it is.
 * Lent for as long as the program runs. */
const char *real_url(const char *name);

#endif
