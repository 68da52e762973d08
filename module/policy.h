/*
 * policy.h - how long and how many: policies of exposure sets.
 *
 * A policy is written
 *
 *     items=1000,generations=5,fpp=0.001,ttl=5d
 *
 * in any order, what is left out being as here; plain numbers, and a time with
 * its unit. What is replicated of a mark carries the numbers.
 *
 * Policies can have names, one of them "default". A name gets its policy from the
 * configuration of this server (load arguments, CONFIG SET seen.policy), or it is
 * set by SEEN.POLICY, and that counts: what is set is data, which is saved with
 * the keys and told to replicas (policy_data.h). Where the data say nothing, or
 * have been replaced by others that do not, what is configured holds.
 */
#ifndef SEEN_MODULE_POLICY_H
#define SEEN_MODULE_POLICY_H

#include "seen_exposure.h"

#include "redis_api.h"

#include <stdbool.h>

#define POLICY_TEXT 128

struct policy {
    char name[32];          /* "": nobody's, kept because it was used lately */
    char text[POLICY_TEXT]; /* with all numbers, as it is replicated */
    seen_policy policy;     /* defaults filled in */
    bool configured, set;   /* its name; both: what is set counts */
    seen_policy base;       /* what is configured */
    seen_exposure *x;
    uint64_t used;
};

/* Give a policy to a name. NULL, or what was expected; *changed: it was another, or
 * had not been set. */
const char *policy_configure(const char *name, const char *text);
const char *policy_set(const char *name, size_t len, const char *text,
                       size_t text_len, bool *changed);

/* Take back what was set, of a name (false: nothing was) or of all. */
bool policy_reset(const char *name, size_t len);
void policy_reset_all(void);

/* The n-th that was set, NULL past the last. */
const struct policy *policy_set_at(size_t n);

/* By name or by its numbers. NULL: *problem says why, until the next one. */
struct policy *policy_find(const char *at, size_t len, const char **problem);

/* The one with these numbers, which seen_policy_check() has nothing against. */
struct policy *policy_of(const seen_policy *numbers, const char **problem);
bool policy_same(const seen_policy *a, const seen_policy *b);

/* The room of one that is not in use any more is given back if rooms are large. */
void policy_rest(struct policy *p);

/* What all policies take to work in. */
uint64_t policy_bytes(void);

/* Generations that marks have dropped, under all policies. */
uint64_t policy_dropped(void);

/* The one of this name, or NULL. */
const struct policy *policy_named(const char *name, size_t len);

/* The n-th with a name, the default first; NULL past the last. */
const struct policy *policy_at(size_t n);

#endif
