/*
 * remote.h - a target on a server: redis://...?key=NAME, redis+plain://,
 * redis+gozero://, redis+bitmap:// (seen_remote.h). Asked, added to, described and
 * forgotten; the rest needs a file.
 */
#ifndef CLI_REMOTE_H
#define CLI_REMOTE_H

#include "output.h"
#include "target.h"

bool is_remote(const char *name);

/* As the calls of target.h for files. */
bool find_remote(struct target *t);
void create_remote(struct target *t, const seen_spec *create);
void read_remote(struct target *t); /* warns where nothing is there */
void close_remote(struct target *t);

bool is_remote_bitmap(const struct target *t);
/* All of it leaves the server after so long, or at once. false: nothing of it
 * was there. */
bool expire_remote(struct target *t, uint64_t ttl_ms);
bool delete_remote(struct target *t);

void print_remote(struct target *t, struct json *j); /* NULL: text */

#endif
