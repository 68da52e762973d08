/*
 * policy.h - how long and how many: policies of exposure sets.
 *
 * A policy is written as on the command line of `seen`:
 *
 *     items=1000,generations=5,fpp=0.001,ttl=5d
 *
 * in any order, what is left out being the default. Policies can have names,
 * which are configuration of one server: what is replicated carries the numbers.
 */
#ifndef SEEN_MODULE_POLICY_H
#define SEEN_MODULE_POLICY_H

#include "seen_exposure.h"

#include "redis_api.h"

#define POLICY_TEXT 128

struct policy {
    char name[32];          /* "": nobody's, kept because it was used lately */
    char text[POLICY_TEXT]; /* with all numbers, as it is replicated */
    seen_policy policy;     /* defaults filled in */
    seen_exposure *x;
    uint64_t used;
};

/* Give a policy to a name, "default" among them. NULL, or what was expected. */
const char *policy_set(const char *name, const char *text);

/* By name or by its numbers. NULL: *problem says why. */
struct policy *policy_find(const char *at, size_t len, const char **problem);

/* Generations that marks have dropped, under all policies. */
uint64_t policy_dropped(void);

/* The n-th with a name, NULL past the last. */
const struct policy *policy_at(size_t n);

#endif
