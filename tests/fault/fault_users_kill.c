/*
 * fault_users_kill.c - a store of users whose writer is killed in the middle of
 * its work, fifty times.
 *
 * A child with several threads marks and takes, with checkpoints all the time,
 * and says in shared memory what has been acknowledged. The parent looks on with
 * a tail, copies the store now and then while it changes, kills the child at some
 * moment, and opens what is left: every acknowledged mark is there, in the copy
 * those from before it began; nothing that was taken once is ever given again;
 * and no user has more items than were shown to him.
 */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */

#include "seen_users.h"

#include "helpers/chosen.h"
#include "helpers/keys.h"
#include "helpers/scratch.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS    50
#define THREADS   3
#define USERS     16
#define TURNS     400 /* of a thread, at most */
#define CATALOGUE 4000
#define OFFERED   20
#define COUNT     2
#define NOW       1000000

/* Generations are small, so that what is marked twice would count twice. */
static const seen_policy policy = {.items = 50, .generations = 64};

static char dir[300], copy[320];

/* Seen by parent and child. */
static struct shared {
    atomic_uint_fast64_t marked[THREADS]; /* marks 0 .. of a thread */
    atomic_uint_fast64_t taken[USERS];
    atomic_uchar given[USERS][CATALOGUE];
    atomic_bool ready, twice;
    atomic_uint_fast64_t round;
} * shared;

/* The k-th mark of a thread: one item, for one user. */
struct one {
    uint64_t item;
    uint64_t user;
};

static struct one mark_of(uint64_t thread, uint64_t k)
{
    uint64_t item = (uint64_t)1 << 63 | thread << 32 | k;
    return (struct one){item, test_mix(item) % USERS};
}

static seen_key key(const uint64_t *number)
{
    return (seen_key){number, sizeof *number};
}

/* ---- The child ---------------------------------------------------------- */

static seen_users *users;

static void mark(uint64_t thread)
{
    uint64_t k = shared->marked[thread];
    struct one m = mark_of(thread, k);
    seen_key item = key(&m.item);
    if (seen_users_mark(users, key(&m.user), NOW, seen_keys_of(&item, 1), NULL,
                        NULL))
        _exit(2);
    shared->marked[thread] = k + 1;
}

static void take(struct test_rng *r)
{
    uint64_t user = test_below(r, USERS), id[OFFERED];
    seen_key items[OFFERED];
    size_t taken;
    for (size_t i = 0; i < OFFERED; i++) {
        id[i] = test_below(r, CATALOGUE);
        items[i] = key(&id[i]);
    }
    if (test_users_take(users, key(&user), NOW, items, OFFERED, COUNT, &taken,
                        NULL))
        _exit(3);
    for (size_t i = 0; i < taken; i++) {
        uint64_t item;
        memcpy(&item, items[i].data, sizeof item);
        if (shared->given[user][item]++) shared->twice = true;
    }
    shared->taken[user] += taken;
}

static void *work(void *arg)
{
    uint64_t thread = *(uint64_t *)arg;
    struct test_rng r = test_rng(900 + THREADS * shared->round + thread);
    for (int i = 0; i < TURNS; i++) {
        if (test_below(&r, 2))
            mark(thread);
        else
            take(&r);
        shared->ready = true;
    }
    return NULL;
}

static void live(seen_mode mode)
{
    seen_users_options o = {.mode = mode,
                            .create = true,
                            .policy = &policy,
                            .checkpoint_bytes = 8000,
                            .journal_bytes = 3000,
                            .checkpoint_ms = 3};
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    pthread_t threads[THREADS];
    uint64_t number[THREADS];
    if (seen_users_open(&users, dir, &o, &outcome, &error) != SEEN_OK) {
        fprintf(stderr, "%s\n", error.text);
        _exit(1);
    }
    for (uint64_t i = 0; i < THREADS; i++) {
        number[i] = i;
        if (pthread_create(&threads[i], NULL, work, &number[i])) _exit(4);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    _exit(seen_users_close(users, NULL) == SEEN_OK ? 0 : 5);
}

/* ---- The parent --------------------------------------------------------- */

struct acknowledged {
    uint64_t marked[THREADS];
};

static struct acknowledged now_acknowledged(void)
{
    struct acknowledged a;
    for (int i = 0; i < THREADS; i++)
        a.marked[i] = shared->marked[i];
    return a;
}

static seen_users *open_users(const char *where, seen_users_options o)
{
    seen_users *u;
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    seen_status status = seen_users_open(&u, where, &o, &outcome, &error);
    if (status != SEEN_OK)
        fail_msg("%s: %s: %s", where, seen_strerror(status), error.text);
    return u;
}

static void assert_marked(seen_users *u, const struct acknowledged *a)
{
    for (uint64_t t = 0; t < THREADS; t++)
        for (uint64_t k = 0; k < a->marked[t]; k++) {
            struct one m = mark_of(t, k);
            seen_key item = key(&m.item);
            bool seen;
            assert_int_equal(seen_users_maybe_many(u, key(&m.user), NOW,
                                                   seen_keys_of(&item, 1),
                                                   &seen, NULL),
                             SEEN_OK);
            if (!seen)
                fail_msg("mark %llu of thread %llu is lost, of %llu",
                         (unsigned long long)k, (unsigned long long)t,
                         (unsigned long long)a->marked[t]);
        }
}

/* At each kill, one call of each thread may have happened without having been
 * told; a mark is then made again. */
static void assert_not_twice(seen_users *u, uint64_t kills)
{
    uint64_t shown[USERS];
    for (uint64_t i = 0; i < USERS; i++)
        shown[i] = shared->taken[i] + kills * THREADS * COUNT;
    for (uint64_t t = 0; t < THREADS; t++)
        for (uint64_t k = 0; k < shared->marked[t]; k++)
            shown[mark_of(t, k).user]++;
    for (uint64_t i = 0; i < USERS; i++) {
        seen_exposure_info info = {.size = sizeof info};
        seen_status status = seen_users_info_of(u, key(&i), NOW, &info, NULL);
        assert_true(status == SEEN_OK || status == SEEN_ABSENT);
        assert_true(info.items <= shown[i]);
    }
    assert_false(shared->twice);
}

static void sleep_us(uint64_t us)
{
    struct timespec t = {.tv_nsec = (long)(us * 1000)};
    nanosleep(&t, NULL);
}

/* While the child works. */
static void look_on(void)
{
    struct acknowledged a = now_acknowledged();
    seen_users *u = open_users(dir, (seen_users_options){.tail = true});
    assert_marked(u, &a);
    seen_users_close(u, NULL);
}

static void back_up(void)
{
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    seen_users *u = open_users(dir, (seen_users_options){0});
    struct acknowledged a = now_acknowledged();
    seen_status status = seen_users_backup(u, copy, &error);
    if (status != SEEN_OK) fail_msg("backup: %s", error.text);
    seen_users_close(u, NULL);
    u = open_users(copy, (seen_users_options){.mode = SEEN_DURABLE});
    assert_marked(u, &a);
    assert_int_equal(seen_users_close(u, NULL), SEEN_OK);
    u = open_users(copy, (seen_users_options){0});
    assert_marked(u, &a);
    seen_users_close(u, NULL);
}

static void remove_store(const char *where)
{
    char command[400];
    snprintf(command, sizeof command, "rm -rf '%s'", where);
    assert_int_equal(system(command), 0);
}

static void check(uint64_t kills)
{
    struct acknowledged a = now_acknowledged();
    seen_users *u = open_users(dir, (seen_users_options){.tail = true});
    assert_marked(u, &a);
    assert_not_twice(u, kills);
    seen_users_close(u, NULL);
}

static uint64_t all_marks(void)
{
    uint64_t n = 0;
    for (int i = 0; i < THREADS; i++)
        n += shared->marked[i];
    return n;
}

static void nothing_acknowledged_is_lost_or_repeated(void **state)
{
    (void)state;
    struct test_rng r = test_rng(91);
    uint64_t killed = 0, all = 0, tails = 0, backups = 0;
    for (uint64_t round = 0; round < ROUNDS * test_scale(); round++) {
        if (round % 5 == 0) { /* a new store */
            remove_store(dir);
            all += all_marks();
            memset(shared, 0, sizeof *shared);
        }
        shared->round = round;
        shared->ready = false;
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) live(round % 2 ? SEEN_DURABLE : SEEN_WRITE);
        int how = 0;
        while (!shared->ready && waitpid(child, &how, WNOHANG) == 0)
            sleep_us(200);
        if (shared->ready && round % 5 == 1) {
            back_up();
            backups++;
        } else if (shared->ready && round % 2) {
            look_on();
            tails++;
        }
        sleep_us(test_below(&r, 20000));
        kill(child, SIGKILL);
        waitpid(child, &how, 0);
        if (WIFEXITED(how)) assert_int_equal(WEXITSTATUS(how), 0);
        killed += WIFSIGNALED(how);
        remove_store(copy);
        check(round % 5 + 1);
    }
    test_tried(killed, "kills");
    print_message("%llu marks acknowledged; %llu readers with a tail, %llu "
                  "copies meanwhile\n",
                  (unsigned long long)(all + all_marks()),
                  (unsigned long long)tails, (unsigned long long)backups);
    assert_true(killed > 0);
}

static int set_up(void **state)
{
    (void)state;
    const char *scratch = test_scratch();
    if (!scratch) return -1;
    snprintf(dir, sizeof dir, "%s/users", scratch);
    snprintf(copy, sizeof copy, "%s/copy", scratch);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return shared == MAP_FAILED;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_acknowledged_is_lost_or_repeated),
    };
    test_announce("fault_users_kill");
    return cmocka_run_group_tests_name("fault_users_kill", tests, set_up,
                                       test_scratch_end);
}
