/* survey.h - what a store holds: all users added up, or one of them. */
#ifndef CLI_SURVEY_H
#define CLI_SURVEY_H

#include "output.h"
#include "users.h"

/* Numbers of users, by powers of two: [i] has those of 2^i and more. */
struct spread {
    uint64_t users[64];
    uint64_t total, most;
};

struct survey {
    seen_users_stats stats;
    uint64_t users;   /* that have been shown something */
    uint64_t aged;    /* whose marks have all aged out */
    uint64_t damaged; /* whose record cannot be read */
    struct spread items, bytes;
    double rate, most_rate; /* on average, and of the worst user */
};

/* Looks at every user; a call that fails ends the program. */
void take_survey(struct users *u, struct survey *s);

void print_survey(const struct users *u, const struct survey *s);
void json_survey(struct json *j, const struct users *u, const struct survey *s);

/* One user; who is unknown has been shown nothing. */
void find_user(struct users *u, seen_key user, seen_exposure_info *info);

void print_user(const struct users *u, seen_key user,
                const seen_exposure_info *info);
void json_user(struct json *j, const struct users *u, const char *user,
               const seen_exposure_info *info);

#endif
