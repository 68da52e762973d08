/*
 * fleet.h - how many Redis or Valkey nodes hold what so many users have been
 * shown, and answer for so many requests a second.
 *
 * Three costs were measured (bench/RESULTS.md, "The module") and the rest is
 * multiplication:
 *
 *     memory   users x bytes of one user; between the sizes that were measured,
 *              a straight line
 *     cpu      requests a second x (start + candidates x one candidate)
 *     nodes    what the larger of the two needs, a node being one server process,
 *              which runs commands on one core
 *
 * For example 100M users of 300 items: 789 bytes each, 79 GB; 50,000 requests a
 * second that take 10 of 500 candidates: 3.65 cores, or 1.35 with packed ids. So
 * memory decides, and 9 nodes of 16 GB, 60 % full, hold it.
 */
#ifndef CLI_FLEET_H
#define CLI_FLEET_H

#include <stdbool.h>

/* Prints the plan for "users=100M,items=300,...", or ends the program with what
 * is wrong with it. */
void plan_fleet(const char *wish, bool json);

#endif
