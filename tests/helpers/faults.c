/* faults.c - see faults.h. */
#include "helpers/faults.h"

#include <errno.h>
#include <string.h>

/* POSIX lists EINTR for these. */
static const char *const interruptible[] = {
    "get_random", "open",   "close",       "read",     "write",
    "pread",      "pwrite", "truncate",    "allocate", "datasync",
    "sync",       "lock",   "lock_shared",
};

static bool can_be_interrupted(const char *call)
{
    for (size_t i = 0; i < sizeof interruptible / sizeof *interruptible; i++)
        if (strcmp(call, interruptible[i]) == 0) return true;
    return false;
}

static void arm(struct faults *f, struct faults plan)
{
    plan.only = f->only;
    plan.never = f->never;
    *f = plan;
}

void fault_arm(struct faults *f, uint64_t nth, int error, bool persistent)
{
    /* Whoever retries would do so for ever. */
    assert_false(error == EINTR && persistent);
    arm(f, (struct faults){
               .fail_at = nth, .error = error, .persistent = persistent});
}

void fault_arm_short(struct faults *f, uint64_t nth, bool persistent)
{
    arm(f, (struct faults){
               .fail_at = nth, .shorten = true, .persistent = persistent});
}

void fault_arm_random(struct faults *f, uint64_t odds, struct test_rng dice)
{
    arm(f, (struct faults){.odds = odds, .dice = dice});
}

/* In which way would it be this time? */
static void draw(struct faults *f)
{
    static const int errors[] = {EIO, ENOSPC, EINTR, 0};
    f->error = errors[test_below(&f->dice, 4)];
    f->shorten = f->error == 0;
}

static bool is_time(struct faults *f)
{
    if (f->odds) return test_below(&f->dice, f->odds) == 0;
    return f->fail_at &&
           (f->persistent ? f->calls >= f->fail_at : f->calls == f->fail_at);
}

static bool can_befall(const struct faults *f, const char *call,
                       const size_t *len)
{
    if (f->only && strcmp(f->only, call) != 0) return false;
    if (f->never && strcmp(f->never, call) == 0) return false;
    if (f->shorten) return len && *len > 1;
    return f->error != EINTR || can_be_interrupted(call);
}

int fault_next(struct faults *f, const char *call, size_t *len)
{
    if (f->odds) draw(f);
    if (!can_befall(f, call, len)) return 0;
    f->calls++;
    if (!is_time(f)) return 0;

    if (f->fired++ == 0) f->call = call;
    if (!f->shorten) return f->error;
    *len = 1 + test_mix(f->calls) % (*len - 1);
    return 0;
}
