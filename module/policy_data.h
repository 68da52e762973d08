/*
 * policy_data.h - policies that SEEN.POLICY has set are data of the server, as its
 * keys are.
 *
 *     RDB       beside the keys (the aux data of their type): how many, then name
 *               and policy of each as strings. With a preamble, AOF files, too.
 *     AOF       SEEN.POLICY, as it happens. A rewritten file without a preamble
 *               holds only keys, so they go in twice more: before the first key
 *               of ours, and into the file that goes on behind it
 *     replicas  SEEN.POLICY, as it happens; and the RDB they begin with
 *
 * When data are loaded, those policies take the place of all that were set. An RDB
 * file of an earlier module has none.
 */
#ifndef SEEN_MODULE_POLICY_DATA_H
#define SEEN_MODULE_POLICY_DATA_H

#include "redis_api.h"

/* Hear of loading and of files being rewritten. */
int policy_data_subscribe(RedisModuleCtx *ctx);

/* Methods of a data type. _save writes always, which Redis 7.0 needs; _save2 only
 * if there is something: a server without the module can load that file. */
int policy_aux_load(RedisModuleIO *io, int encoding, int when);
void policy_aux_save(RedisModuleIO *io, int when);
void policy_aux_save2(RedisModuleIO *io, int when);

/* To be called for every key that is written into a rewritten AOF, before it: the
 * first one brings the policies along. */
void policy_aof_rewrite(RedisModuleIO *io);

#endif
