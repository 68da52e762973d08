/* scratch.c - see scratch.h. */
#define _XOPEN_SOURCE 700 /* mkdtemp, nftw */

#include "helpers/scratch.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char dir[256];

const char *test_scratch(void)
{
    const char *tmp = getenv("TMPDIR");
    if (dir[0]) return dir;
    snprintf(dir, sizeof dir, "%s/seen-test-XXXXXX", tmp ? tmp : "/tmp");
    if (mkdtemp(dir)) return dir;
    dir[0] = '\0';
    return NULL;
}

void test_scratch_in_memory(void)
{
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
}

static int remove_one(const char *path, const struct stat *st, int type,
                      struct FTW *where)
{
    (void)st, (void)type, (void)where;
    return remove(path);
}

void test_remove_dir(const char *path)
{
    (void)nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

int test_scratch_remove(void)
{
    int status = nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    dir[0] = '\0';
    return status;
}

int test_scratch_begin(void **state)
{
    (void)state;
    return test_scratch() ? 0 : -1;
}

int test_scratch_end(void **state)
{
    (void)state;
    return test_scratch_remove();
}
