/*
 * failing_alloc.c - see failing_alloc.h. A block:
 *
 *     raw (64-aligned)     raw + 64 + offset
 *      | start | size | mark |  given out: size bytes  |
 */
#include "helpers/failing_alloc.h"

#include <stdlib.h>
#include <string.h>

#define ROOM 128 /* for the account and any offset below 64 */
#define MARK 0x5ee45ee45ee45ee4u

/* Lies right before the block, through memcpy: nothing is aligned here. */
struct account {
    uint8_t *start;
    uint64_t size;
    uint64_t mark;
};

static void *take(void *ctx, size_t size)
{
    struct test_alloc *a = ctx;
    a->calls++;
    bool now = a->persistent ? a->calls >= a->fail_at : a->calls == a->fail_at;
    if (a->fail_at && now) {
        a->failed++;
        return NULL;
    }

    size_t room = (size + ROOM + 63) / 64 * 64;
    uint8_t *start = aligned_alloc(64, room);
    if (!start) return NULL;
    uint8_t *block = start + 64 + a->offset;
    struct account account = {start, size, MARK};
    memcpy(block - sizeof account, &account, sizeof account);
    memset(block, 0xa5, size);
    a->blocks++;
    a->bytes += size;
    if (a->bytes > a->peak) a->peak = a->bytes;
    return block;
}

static void give_back(void *ctx, void *ptr, size_t size)
{
    struct test_alloc *a = ctx;
    struct account account;
    memcpy(&account, (uint8_t *)ptr - sizeof account, sizeof account);
    if (account.mark != MARK || account.size != size) {
        a->violations++;
        return;
    }
    a->blocks--;
    a->bytes -= size;
    memset(ptr, 0x5a, size);
    memset((uint8_t *)ptr - sizeof account, 0, sizeof account);
    free(account.start);
}

void test_alloc_init(struct test_alloc *a)
{
    *a = (struct test_alloc){.as = {take, give_back, a}};
}

void test_alloc_arm(struct test_alloc *a, uint64_t nth, bool persistent)
{
    a->calls = 0;
    a->failed = 0;
    a->fail_at = nth;
    a->persistent = persistent;
}
