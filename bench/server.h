/* server.h - a redis-server of our own, on a free port of 127.0.0.1 and in a
 * directory of its own; both are gone at the end of the program. */
#ifndef SEEN_BENCH_SERVER_H
#define SEEN_BENCH_SERVER_H

/* With these arguments behind the usual ones, NULL at the end; its port. It may
 * take a moment until it answers. */
int bench_server_start(const char *const *more);

#endif
