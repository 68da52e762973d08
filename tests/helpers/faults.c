/* faults.c - see faults.h. */
#include "helpers/faults.h"

#include "helpers/harness.h"

#include <errno.h>
#include <string.h>

/* POSIX lists EINTR for these. */
static const char *const interruptible[] = {
    "get_random", "open",     "close",    "read",     "write", "pread",
    "pwrite",     "truncate", "allocate", "datasync", "sync",  "lock",
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

static bool can_befall(const struct faults *f, const char *call,
                       const size_t *len)
{
    if (f->only && strcmp(f->only, call) != 0) return false;
    if (f->shorten) return len && *len > 1;
    return f->error != EINTR || can_be_interrupted(call);
}

int fault_next(struct faults *f, const char *call, size_t *len)
{
    if (!can_befall(f, call, len)) return 0;
    f->calls++;
    bool now = f->persistent ? f->calls >= f->fail_at : f->calls == f->fail_at;
    if (!f->fail_at || !now) return 0;

    if (f->fired++ == 0) f->call = call;
    if (!f->shorten) return f->error;
    *len = 1 + test_mix(f->calls) % (*len - 1);
    return 0;
}
