/*
 * sim_os.h - an operating system in memory whose machine loses power.
 *
 * kill -9 proves nothing about durability, since the page cache survives it.
 * Here is a disk that remembers what programs may rely on and nothing more, and
 * a power loss draws one of the states that it may be in afterwards:
 *
 *   contents   Since the last sync() or datasync() of the file, each sector of
 *              512 bytes is on the disk as it was then, or in any version that
 *              it had after a later system call; each independently of the
 *              others. Stores through a mapping arrive in pieces of 8 bytes.
 *   size       as it was at the last sync, or after any change since then, or
 *              somewhere on the way if it grew. What was never written reads
 *              as zeros.
 *   names      of the creations, renames and removals in a directory since its
 *              last sync(), a prefix, or any of them, those of one name in
 *              their order. Syncing a new file does not make its
 *              name durable: some file systems do that, POSIX does not ask it.
 *   msync      makes the sectors of the range durable, but not the size.
 *   failed     A sync that failed (except with EINTR) leaves the changes in
 *              doubt, and also clean: as on Linux, the next sync succeeds and
 *              does not write them. Only changing them again helps.
 *
 * This is stricter than any one file system, on purpose: a program that gets
 * along with it gets along with all of them. More lenient than reality in three
 * things: sectors are never unreadable, a cached page is never given up, and a
 * store into a hole of a mapped file always finds room.
 *
 * Tests see the file system through seen_os and these calls. Names: any
 * directory must first be made with sim_mkdir(); "." and "/" are there.
 * rename() works within one directory. list() gives "." and "..", too, and no
 * promise of order. File descriptors are never used twice, and the use of one
 * that is not open, or of memory that is not mapped, ends the program with a
 * message: it is a bug whatever the test is about. Mappings are real ones, so
 * that a store through SEEN_MAP_READ or a page behind the end of the file are
 * signals.
 *
 * A typical test:
 *
 *     static void cut(void *ctx, const char *call)
 *     {
 *         struct sim *disk = sim_after_power_loss(sim, test_next(&rng));
 *         sim_install(disk);
 *         ... open, compare with what had been acknowledged, close ...
 *         assert_int_equal(sim_open_files(disk) + sim_mappings(disk), 0);
 *         sim_free(disk);
 *         sim_install(sim);
 *     }
 *
 *     sim = sim_new(test_seed());
 *     sim_install(sim);
 *     sim_on_call(sim, cut, NULL);
 *     ... write, acknowledge ...
 *     cut(NULL, "end");
 *     sim_uninstall();
 *     sim_free(sim);
 *
 * One thread at a time, and no fork().
 */
#ifndef SEEN_TEST_SIM_OS_H
#define SEEN_TEST_SIM_OS_H

#include "helpers/faults.h"

struct sim;

struct sim *sim_new(uint64_t seed);

/* With everything that is open and mapped. Uninstalls it if need be. */
void sim_free(struct sim *s);

/* Make seen_os this one; gives the one that was before, NULL: none. What is
 * open in one simulation means nothing in another, but mappings stay. */
struct sim *sim_install(struct sim *s);

/* Make seen_os what it was before the first installation. */
void sim_uninstall(void);

/* ---- The end of the world ----------------------------------------------- */

/* What the machine finds after a power loss at this moment: another simulation
 * with nothing open; s goes on as if nothing had happened. The same seed gives
 * the same state. */
struct sim *sim_after_power_loss(struct sim *s, uint64_t seed);

/* What the next process finds when this one is killed: everything that was
 * written, whether it is durable or not. A recovery that reads it and does not
 * sync it is still one power loss away from losing it. */
struct sim *sim_after_kill(struct sim *s);

/* Call `hook` before each system call; NULL: no more. Calls on s from inside
 * of it are neither counted nor reported; it may install other simulations if
 * it puts s back. */
void sim_on_call(struct sim *s, void (*hook)(void *ctx, const char *call),
                 void *ctx);

/* System calls so far. */
uint64_t sim_calls(const struct sim *s);

/* ---- Faults ------------------------------------------------------------- */

/* What goes wrong next, to be armed by the calls of faults.h. */
struct faults *sim_faults(struct sim *s);

/* Bytes in all files together; a write beyond is short, the next fails with
 * ENOSPC. 256 MiB unless told; a single file has at most 64 MiB. */
void sim_set_room(struct sim *s, uint64_t bytes);

/* ---- Without system calls ----------------------------------------------- */

void sim_mkdir(struct sim *s, const char *path);

/* A new file with these bytes under this name. It is durable, and so are all
 * names in its directory. */
void sim_put(struct sim *s, const char *path, const void *bytes, size_t len);

/* The bytes of a file, valid until the next change; NULL: no such file. */
const uint8_t *sim_get(struct sim *s, const char *path, size_t *len);

/* Would a power loss at this moment leave no choice? */
bool sim_all_durable(struct sim *s);

/* What was opened and not closed, mapped and not unmapped. */
uint64_t sim_open_files(const struct sim *s);
uint64_t sim_mappings(const struct sim *s);

#endif
