/* scratch.h - a directory of this test alone, on the real disk. */
#ifndef SEEN_TEST_SCRATCH_H
#define SEEN_TEST_SCRATCH_H

/* Made by the first call, in $TMPDIR or /tmp; NULL if that cannot be. */
const char *test_scratch(void);

/* With everything in it; 0 on success. The next call makes another. */
int test_scratch_remove(void);

/* A directory in it, if it is there, with everything in it. */
void test_remove_dir(const char *path);

/* Before it is made: in memory, if there is such a place. For tests that kill
 * nothing but processes: syncs cost nothing there. */
void test_scratch_in_memory(void);

/* Making and removing it, as fixtures of a group. */
int test_scratch_begin(void **state);
int test_scratch_end(void **state);

#endif
