/* test_journal.c - frames come back in order, torn tails end it, damage to what
 * had been on disk is reported. */
#include "store/journal.h"

#include "base/bytes.h"
#include "base/crc32c.h"
#include "helpers/harness.h"
#include "helpers/sim_os.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH "/d/f"
#define ID   77

static struct sim *disk;

static int new_disk(void **state)
{
    (void)state;
    disk = sim_new(test_seed());
    sim_mkdir(disk, "/d");
    sim_install(disk);
    return 0;
}

static int free_disk(void **state)
{
    (void)state;
    assert_int_equal(sim_open_files(disk), 0);
    sim_uninstall();
    sim_free(disk);
    return 0;
}

/* Frame n holds n bytes of value n. */
static void append(seen_journal *j, uint64_t n)
{
    uint8_t bytes[256];
    uint64_t number;
    memset(bytes, (int)n, sizeof bytes);
    assert_int_equal(
        seen_journal_append(j, (uint32_t)n % 3, bytes, n % 256, &number),
        SEEN_OK);
    assert_int_equal(number, n);
}

static seen_journal *open_journal(uint64_t epoch, uint64_t last)
{
    seen_journal *j = NULL;
    assert_int_equal(seen_journal_open(&j, PATH, NULL, ID, epoch, last),
                     SEEN_OK);
    return j;
}

static seen_status check_frame(void *ctx, const struct seen_frame *f)
{
    uint64_t *expected = ctx;
    assert_int_equal(f->sequence, ++*expected);
    assert_int_equal(f->type, f->sequence % 3);
    assert_int_equal(f->len, f->sequence % 256);
    for (size_t i = 0; i < f->len; i++)
        assert_int_equal(f->payload[i], f->sequence % 256);
    return SEEN_OK;
}

static seen_status replay(uint64_t id, uint64_t after,
                          struct seen_replayed *out)
{
    uint64_t expected = after;
    return seen_journal_replay(PATH, id, after, check_frame, &expected, out);
}

static void name_of(char *buf, uint64_t first)
{
    sprintf(buf, PATH ".journal-%016llx", (unsigned long long)first);
}

/* A copy of a segment, to be damaged and put back. */
static uint8_t *segment(uint64_t first, size_t *len)
{
    char name[64];
    name_of(name, first);
    const uint8_t *bytes = sim_get(disk, name, len);
    assert_non_null(bytes);
    uint8_t *copy = malloc(*len);
    assert_non_null(copy);
    memcpy(copy, bytes, *len);
    return copy;
}

static void put_segment(uint64_t first, const uint8_t *bytes, size_t len)
{
    char name[64];
    name_of(name, first);
    seen_os->unlink(name);
    sim_put(disk, name, bytes, len);
}

static void frames_come_back(void **state)
{
    (void)state;
    struct seen_replayed r;
    assert_int_equal(replay(ID, 0, &r), SEEN_OK);
    assert_int_equal(r.last, 0);
    seen_journal *j = open_journal(1, 0);
    for (uint64_t i = 1; i <= 600; i++)
        append(j, i);
    assert_int_equal(seen_journal_commit(j, 600), SEEN_OK);
    seen_journal_close(j);
    for (uint64_t after = 0; after <= 600; after += 60) {
        assert_int_equal(replay(ID, after, &r), SEEN_OK);
        assert_int_equal(r.frames, 600 - after);
        assert_int_equal(r.last, 600);
        assert_int_equal(r.torn, 0);
    }
    /* Somebody else's. */
    assert_int_equal(replay(ID + 1, 0, &r), SEEN_OK);
    assert_int_equal(r.frames, 0);
    assert_int_equal(seen_journal_remove(PATH), SEEN_OK);
    assert_int_equal(replay(ID, 0, &r), SEEN_OK);
    assert_int_equal(r.frames, 0);
}

static void a_new_writer_goes_on_and_old_segments_go(void **state)
{
    (void)state;
    struct seen_replayed r;
    for (uint64_t writer = 0; writer < 5; writer++) {
        seen_journal *j = open_journal(writer + 1, 10 * writer);
        for (uint64_t i = 1; i <= 10; i++)
            append(j, 10 * writer + i);
        assert_int_equal(seen_journal_commit(j, 10 * writer + 10), SEEN_OK);
        seen_journal_close(j);
        assert_int_equal(replay(ID, 0, &r), SEEN_OK);
        assert_int_equal(r.last, 10 * writer + 10);
    }
    seen_journal *j = open_journal(9, 50);
    append(j, 51);
    assert_int_equal(seen_journal_drop(j, 50), SEEN_OK);
    assert_int_equal(replay(ID, 50, &r), SEEN_OK);
    assert_int_equal(r.last, 51);
    assert_int_equal(seen_journal_cut(j), SEEN_OK);
    append(j, 52);
    assert_int_equal(seen_journal_cut(j), SEEN_OK);
    assert_int_equal(seen_journal_cut(j), SEEN_OK); /* nothing to cut */
    assert_int_equal(seen_journal_drop(j, 51), SEEN_OK);
    append(j, 53);
    assert_int_equal(seen_journal_commit(j, 53), SEEN_OK);
    seen_journal_close(j);
    assert_int_equal(replay(ID, 51, &r), SEEN_OK);
    assert_int_equal(r.frames, 2);
    assert_int_equal(r.segments, 2);
    /* From before the drop on, something is missing. */
    assert_int_equal(replay(ID, 40, &r), SEEN_CORRUPT);
    assert_string_not_equal(r.problem, "");
}

/* Ten frames, committed one by one, so that each says the one before is
 * durable. */
static void write_ten(void)
{
    seen_journal *j = open_journal(1, 0);
    for (uint64_t i = 1; i <= 10; i++) {
        append(j, i);
        assert_int_equal(seen_journal_commit(j, i), SEEN_OK);
    }
    seen_journal_close(j);
}

/* Where frame n starts in the segment of write_ten(). */
static size_t place_of(uint64_t n)
{
    size_t at = 64;
    for (uint64_t i = 1; i < n; i++)
        at += (40 + i + 7) / 8 * 8;
    return at;
}

static void damage_before_the_end_is_corruption(void **state)
{
    (void)state;
    struct seen_replayed r;
    write_ten();
    size_t len;
    uint8_t *bytes = segment(1, &len);
    for (size_t at = 64; at < place_of(11); at++) {
        bytes[at] ^= 0x40;
        put_segment(1, bytes, len);
        seen_status status = replay(ID, 0, &r);
        /* The padding of a frame means nothing; the last frame has nobody to
         * vouch for it. */
        if (at >= place_of(10))
            assert_true(status == SEEN_OK && r.last >= 9);
        else if (status == SEEN_OK)
            assert_int_equal(r.last, 10);
        else
            assert_true(status == SEEN_CORRUPT && r.problem[0]);
        bytes[at] ^= 0x40;
    }
    for (size_t at = 0; at < 64; at++) { /* the header */
        bytes[at] ^= 0x40;
        put_segment(1, bytes, len);
        assert_int_equal(replay(ID, 0, &r), SEEN_CORRUPT);
        bytes[at] ^= 0x40;
    }
    free(bytes);
}

static void a_torn_tail_is_the_end(void **state)
{
    (void)state;
    struct seen_replayed r;
    /* Frames 6 to 10 were written in one go and never synced. */
    seen_journal *j = open_journal(1, 0);
    for (uint64_t i = 1; i <= 5; i++)
        append(j, i);
    assert_int_equal(seen_journal_commit(j, 5), SEEN_OK);
    for (uint64_t i = 6; i <= 10; i++)
        append(j, i);
    seen_journal_close(j);
    size_t len;
    uint8_t *bytes = segment(1, &len);
    for (uint64_t lost = 6; lost <= 10; lost++) {
        memset(bytes + place_of(lost), 0, place_of(lost + 1) - place_of(lost));
        put_segment(1, bytes, len);
        assert_int_equal(replay(ID, 0, &r), SEEN_OK);
        assert_int_equal(r.last, 5);
    }
    /* The next writer goes on behind it; the rest stays where it is. */
    j = open_journal(2, 5);
    for (uint64_t i = 6; i <= 8; i++)
        append(j, i);
    assert_int_equal(seen_journal_commit(j, 8), SEEN_OK);
    seen_journal_close(j);
    assert_int_equal(replay(ID, 0, &r), SEEN_OK);
    assert_int_equal(r.last, 8);
    free(bytes);
}

/* A name or a key may be the bytes of a frame, as good as a stranger can make
 * it: `tag` is where the salt stands, which he can only guess. */
static void forge_frame(uint8_t out[40], uint64_t tag)
{
    memset(out, 0, 40);
    seen_put_le64(out + 8, 9);
    seen_put_le64(out + 16, tag);
    seen_put_le64(out + 24, 8); /* "frames up to 8 were on disk" */
    seen_put_le32(out + 32, 1);
    seen_put_le32(out + 4, seen_crc32c(seen_crc32c(0, out, 4), out + 8, 32));
}

static void a_payload_cannot_pass_for_a_frame(void **state)
{
    (void)state;
    const uint64_t guesses[] = {0, 1, 2, ID, UINT64_MAX};
    struct seen_replayed r;
    seen_journal *j = open_journal(1, 0);
    for (uint64_t i = 1; i <= 5; i++)
        append(j, i);
    assert_int_equal(seen_journal_commit(j, 5), SEEN_OK);
    uint8_t payload[40 * 5];
    uint64_t number;
    for (size_t i = 0; i < 5; i++)
        forge_frame(payload + 40 * i, guesses[i]);
    assert_int_equal(
        seen_journal_append(j, 1, payload, sizeof payload, &number), SEEN_OK);
    seen_journal_close(j);
    /* The power fails: of frame 6, the first sector did not arrive. */
    size_t len;
    uint8_t *bytes = segment(1, &len);
    memset(bytes + place_of(6), 0, 40);
    put_segment(1, bytes, len);
    assert_int_equal(replay(ID, 0, &r), SEEN_OK);
    assert_int_equal(r.last, 5);
    assert_true(r.torn > 0);

    /* The next writer goes on, and what is behind the torn tail stays there. */
    j = open_journal(2, 5);
    append(j, 6);
    assert_int_equal(seen_journal_commit(j, 6), SEEN_OK);
    seen_journal_close(j);
    assert_int_equal(replay(ID, 0, &r), SEEN_OK);
    assert_int_equal(r.last, 6);

    /* Who knows the salt could: it is what makes the difference. */
    forge_frame(bytes + place_of(6) + 40, seen_get_le64(bytes + 40));
    seen_journal_remove(PATH);
    put_segment(1, bytes, len);
    assert_int_equal(replay(ID, 0, &r), SEEN_CORRUPT);
    free(bytes);
}

/* Frames that an earlier file has left in the place of a new segment are not
 * replayed, even if the writer has the same epoch. */
static void stale_frames_of_a_recycled_file_are_not_replayed(void **state)
{
    (void)state;
    struct seen_replayed r;
    write_ten();
    size_t len, len_new;
    uint8_t *old = segment(1, &len);
    seen_journal_remove(PATH);
    seen_journal *j = open_journal(1, 0);
    append(j, 1);
    append(j, 2);
    assert_int_equal(seen_journal_commit(j, 2), SEEN_OK);
    seen_journal_close(j);
    uint8_t *bytes = segment(1, &len_new);
    assert_int_equal(len_new, len);
    memcpy(bytes + place_of(3), old + place_of(3), len - place_of(3));
    put_segment(1, bytes, len);
    assert_int_equal(replay(ID, 0, &r), SEEN_OK);
    assert_int_equal(r.last, 2);
    free(bytes);
    free(old);
}

static void each_segment_has_a_salt_of_its_own(void **state)
{
    (void)state;
    seen_journal *j = open_journal(1, 0);
    append(j, 1);
    assert_int_equal(seen_journal_cut(j), SEEN_OK);
    append(j, 2);
    seen_journal_close(j);
    size_t a_len, b_len;
    uint8_t *a = segment(1, &a_len), *b = segment(2, &b_len);
    assert_int_not_equal(seen_get_le64(a + 40), seen_get_le64(b + 40));
    assert_int_equal(seen_get_le64(a + 64 + 16), seen_get_le64(a + 40));
    assert_int_equal(seen_get_le64(b + 64 + 16), seen_get_le64(b + 40));
    free(a);
    free(b);
}

static void other_versions_are_refused(void **state)
{
    (void)state;
    struct seen_replayed r;
    write_ten();
    size_t len;
    uint8_t *bytes = segment(1, &len);
    for (uint32_t version = 0; version < 5; version++) {
        seen_put_le32(bytes + 8, version);
        seen_put_le32(bytes + 60, seen_crc32c(0, bytes, 60));
        put_segment(1, bytes, len);
        assert_int_equal(replay(ID, 0, &r),
                         version == 2 ? SEEN_OK : SEEN_NEWER);
        assert_true(version == 2 || r.problem[0]);
    }
    free(bytes);
}

static void truncation_anywhere_gives_a_prefix(void **state)
{
    (void)state;
    struct seen_replayed r;
    write_ten();
    size_t len;
    uint8_t *bytes = segment(1, &len);
    for (size_t cut = 0; cut < place_of(11); cut++) {
        put_segment(1, bytes, cut);
        assert_int_equal(replay(ID, 0, &r), SEEN_OK);
        uint64_t whole = 0;
        while (whole < 10 && place_of(whole + 2) <= cut)
            whole++;
        assert_int_equal(r.last, whole);
    }
    free(bytes);
}

static void after_a_failed_sync_nothing_is_acknowledged(void **state)
{
    (void)state;
    seen_journal *j = open_journal(1, 0);
    append(j, 1);
    struct faults *f = sim_faults(disk);
    f->only = "datasync";
    fault_arm(f, 1, EIO, false);
    assert_int_equal(seen_journal_commit(j, 1), SEEN_IO);
    assert_int_equal(errno, EIO);
    fault_arm(f, 0, 0, false);
    /* Syncing again would succeed and prove nothing. */
    assert_int_equal(seen_journal_commit(j, 1), SEEN_IO);
    uint64_t number;
    assert_int_equal(seen_journal_append(j, 1, "x", 1, &number), SEEN_IO);
    seen_journal_close(j);
}

static void frames_have_a_limit(void **state)
{
    (void)state;
    seen_journal *j = open_journal(1, 0);
    uint64_t number;
    assert_int_equal(seen_journal_append(j, 1, "", SEEN_FRAME_MAX + 1, &number),
                     SEEN_INVALID);
    seen_journal_close(j);
}

/* What the next writer finds was perhaps never synced. It goes on behind it, so
 * it has to last. */
static void what_is_taken_over_lasts(void **state)
{
    (void)state;
    struct seen_replayed r;
    seen_journal *j = open_journal(1, 0);
    append(j, 1);
    assert_int_equal(seen_journal_commit(j, 1), SEEN_OK);
    append(j, 2);
    append(j, 3);
    seen_journal_close(j); /* killed */
    assert_int_equal(replay(ID, 0, &r), SEEN_OK);
    assert_int_equal(r.last, 3);
    j = open_journal(2, 3);
    append(j, 4);
    assert_int_equal(seen_journal_commit(j, 4), SEEN_OK);
    seen_journal_close(j);
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct sim *after = sim_after_power_loss(disk, seed);
        sim_install(after);
        assert_int_equal(replay(ID, 0, &r), SEEN_OK);
        assert_int_equal(r.last, 4);
        sim_install(disk);
        sim_free(after);
    }
}

static void look_for_segments(void *ctx, const char *call)
{
    uint64_t *cuts = ctx;
    (void)call;
    for (uint64_t seed = 0; seed < 20; seed++, ++*cuts) {
        struct seen_replayed r;
        struct sim *after = sim_after_power_loss(disk, seed);
        sim_install(after);
        assert_int_equal(replay(ID, 0, &r), SEEN_OK);
        assert_true(r.segments > 0);
        sim_install(disk);
        sim_free(after);
    }
}

/* Who says that he has a journal has one, whenever the power fails. */
static void a_journal_is_never_without_segments(void **state)
{
    (void)state;
    uint64_t cuts = 0;
    seen_journal_close(open_journal(1, 0));
    sim_on_call(disk, look_for_segments, &cuts);
    for (uint64_t epoch = 2; epoch < 5; epoch++)
        seen_journal_close(open_journal(epoch, 0));
    sim_on_call(disk, NULL, NULL);
    assert_true(cuts > 200);
}

/* Nor when taking it over fails, at whatever call. */
static void a_failed_open_leaves_a_segment(void **state)
{
    (void)state;
    struct faults *f = sim_faults(disk);
    struct seen_replayed r;
    uint64_t n = 1;
    seen_journal_close(open_journal(1, 0));
    for (;; n++) {
        seen_journal *j = NULL;
        fault_arm(f, n, EIO, false);
        seen_status status = seen_journal_open(&j, PATH, NULL, ID, n + 1, 0);
        bool fired = f->fired > 0;
        fault_arm(f, 0, 0, false);
        seen_journal_close(j);
        if (!fired) assert_int_equal(status, SEEN_OK);
        assert_int_equal(replay(ID, 0, &r), SEEN_OK);
        assert_true(r.segments > 0);
        if (!fired) break;
    }
    assert_true(n > 5);
}

/* After a cut that failed the old segment goes on, and the next one cuts. */
static void a_failed_cut_changes_nothing(void **state)
{
    (void)state;
    struct faults *f = sim_faults(disk);
    struct seen_replayed r;
    uint64_t failures = 0, last = 0;
    seen_journal *j = open_journal(1, 0);
    for (uint64_t n = 1;; n++) {
        append(j, ++last);
        assert_int_equal(seen_journal_commit(j, last), SEEN_OK);
        fault_arm(f, n, ENOSPC, false);
        seen_status status = seen_journal_cut(j);
        bool fired = f->fired > 0;
        fault_arm(f, 0, 0, false);
        if (!fired) assert_int_equal(status, SEEN_OK);
        failures += status != SEEN_OK;
        append(j, ++last);
        assert_int_equal(replay(ID, 0, &r), SEEN_OK);
        assert_int_equal(r.last, last);
        if (!fired) break;
    }
    seen_journal_close(j);
    assert_true(failures > 3);
}

/* As many writers leave that die one after the other. */
static void any_number_of_segments(void **state)
{
    (void)state;
    const uint64_t segments = 1100;
    struct seen_replayed r;
    seen_journal *j = open_journal(1, 0);
    for (uint64_t i = 1; i <= segments; i++) {
        size_t len;
        append(j, i);
        assert_int_equal(seen_journal_cut(j), SEEN_OK);
        uint8_t *bytes = segment(i, &len);
        put_segment(i, bytes, 400); /* of the space that it has claimed */
        free(bytes);
    }
    seen_journal_close(j);
    assert_int_equal(replay(ID, 0, &r), SEEN_OK);
    assert_int_equal(r.segments, segments + 1);
    assert_int_equal(r.last, segments);
    j = open_journal(2, segments);
    assert_int_equal(seen_journal_drop(j, segments), SEEN_OK);
    seen_journal_close(j);
    assert_int_equal(replay(ID, segments, &r), SEEN_OK);
    assert_int_equal(r.segments, 1);
}

static void drop_segment(void *ctx, const char *call)
{
    char name[64];
    int *opens = ctx;
    if (strcmp(call, "open") != 0 || ++*opens != 2) return;
    name_of(name, 4);
    assert_int_equal(seen_os->unlink(name), 0);
}

static void a_reader_is_told_what_was_dropped(void **state)
{
    (void)state;
    struct seen_replayed r;
    int opens = 0;
    seen_journal *j = open_journal(1, 0);
    for (uint64_t i = 1; i <= 3; i++)
        append(j, i);
    assert_int_equal(seen_journal_cut(j), SEEN_OK);
    append(j, 4);
    seen_journal_close(j);
    assert_int_equal(replay(ID, 0, &r), SEEN_OK);
    assert_int_equal(r.last, 4);
    assert_int_equal(r.gone, 0);
    sim_on_call(disk, drop_segment, &opens);
    assert_int_equal(replay(ID, 0, &r), SEEN_OK);
    sim_on_call(disk, NULL, NULL);
    assert_int_equal(r.last, 3);
    assert_int_equal(r.gone, 1);
}

int main(void)
{
#define ON_DISK(test) cmocka_unit_test_setup_teardown(test, new_disk, free_disk)
    const struct CMUnitTest tests[] = {
        ON_DISK(frames_come_back),
        ON_DISK(a_new_writer_goes_on_and_old_segments_go),
        ON_DISK(damage_before_the_end_is_corruption),
        ON_DISK(a_torn_tail_is_the_end),
        ON_DISK(a_payload_cannot_pass_for_a_frame),
        ON_DISK(stale_frames_of_a_recycled_file_are_not_replayed),
        ON_DISK(each_segment_has_a_salt_of_its_own),
        ON_DISK(other_versions_are_refused),
        ON_DISK(truncation_anywhere_gives_a_prefix),
        ON_DISK(after_a_failed_sync_nothing_is_acknowledged),
        ON_DISK(what_is_taken_over_lasts),
        ON_DISK(a_journal_is_never_without_segments),
        ON_DISK(a_failed_open_leaves_a_segment),
        ON_DISK(a_failed_cut_changes_nothing),
        ON_DISK(any_number_of_segments),
        ON_DISK(a_reader_is_told_what_was_dropped),
        ON_DISK(frames_have_a_limit),
    };
    test_announce("journal");
    return cmocka_run_group_tests_name("journal", tests, NULL, NULL);
}
