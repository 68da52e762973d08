/*
 * policy.h - how long and how many: policies of exposure sets.
 *
 * A policy is written
 *
 *     items=1000,generations=5,fpp=0.001,ttl=5d
 *
 * in any order, what is left out being as here; plain numbers, and a time with
 * its unit. Policies can have names, which are configuration of one server: what
 * is replicated carries the numbers.
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
    seen_exposure *x;
    uint64_t used;
};

/* Give a policy to a name, "default" among them. NULL, or what was expected. */
const char *policy_set(const char *name, const char *text);

/* By name or by its numbers. NULL: *problem says why, until the next one. */
struct policy *policy_find(const char *at, size_t len, const char **problem);

/* The one with these numbers, which seen_policy_problem() has nothing against. */
struct policy *policy_of(const seen_policy *numbers, const char **problem);
bool policy_same(const seen_policy *a, const seen_policy *b);

/* Generations that marks have dropped, under all policies. */
uint64_t policy_dropped(void);

/* The n-th with a name, NULL past the last. */
const struct policy *policy_at(size_t n);

#endif
