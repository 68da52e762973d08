/*
 * server_cluster.h - nodes of `seen server` that run become a cluster: half of
 * them primaries, half replicas. DIR/unfinished is there while one is made.
 */
#ifndef CLI_SERVER_CLUSTER_H
#define CLI_SERVER_CLUSTER_H

/* Unless the nodes are a cluster already, make one of them, with redis-cli; until
 * all its slots are served. `dir` has their data, for messages. */
void make_cluster(const char *client, const char *dir);

#endif
