/*
 * 09_replay.c - no handshake twice: a window over the salts of the last million.
 *
 * Who records an encrypted handshake and sends it again must not get an answer.
 * Every handshake begins with a random salt, so a server keeps the salts it has
 * seen and refuses those that come back. It cannot keep all of them, so it keeps
 * the last million.
 *
 * go-shadowsocks2 does it with a ring: ten Bloom filters (slots) of 100,000 salts,
 * 1e-6 each; the newest takes the salts, all ten are asked, and when the newest is
 * full the oldest is emptied and becomes the newest. A window is the same idea as
 * one filter:
 *
 *     ring     ten arrays, ten hashes probed in ten places     1e-5 in all
 *     window   the lines of a salt in all generations lie side by side; the rate is
 *              that of the whole answer                        1e-6 in all
 *
 * It keeps at least the last million; the ring, just after it has emptied a slot,
 * keeps 900,000. It takes half as much memory again (4.4 instead of 3.6 MB for the
 * same rate, 5.4 for a tenth of it) and reads 22 neighbouring lines where the ring
 * reads 20 bits in each of ten places.
 *
 * Only salts that are new are added. If replays were added too, sending old ones
 * again would push others out of the window. A salt that is wrongly taken for old
 * costs a client a second try: one in a million. Where old handshakes are void
 * anyway (they carry the time), give window_ms instead of last, or both.
 *
 * Keyed: salts come from strangers, who could otherwise choose them so that they
 * fill the filter's bits.
 */
#include <seen.h>
#include <seen_file.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum {
    SALT = 32, /* bytes */
    SLOTS = 10,
    LAST = 1000000,
    HANDSHAKES = 3000000
};

#define RATE 1e-6

/* ---- The recipe ---------------------------------------------------------- */

static seen_status new_window(seen_filter **f)
{
    uint8_t secret[16];
    seen_status s = seen_random_secret(secret);
    if (s != SEEN_OK) return s;
    return seen_new(f,
                    &(seen_spec){.kind = SEEN_WINDOW,
                                 .last = LAST,
                                 .generations = SLOTS,
                                 .fpp = RATE,
                                 .flags = SEEN_KEYED,
                                 .secret = secret},
                    NULL);
}

/* Is this handshake a new one? Threads: one lock around it. */
static bool admit(seen_filter *f, const uint8_t salt[SALT])
{
    return !seen_maybe(f, salt, SALT) && seen_add(f, salt, SALT) == SEEN_OK;
}

/* ---- Under attack -------------------------------------------------------- */

static uint64_t mix(uint64_t x) /* splitmix64: one to one */
{
    x += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

static const uint8_t *salt_of(uint64_t handshake)
{
    static uint8_t salt[SALT];
    for (uint64_t i = 0; i < SALT / 8; i++) {
        uint64_t word = mix(handshake * 4 + i);
        memcpy(salt + 8 * i, &word, 8);
    }
    return salt;
}

int main(void)
{
    seen_filter *f;
    if (new_window(&f)) return 1;
    static bool was_refused[HANDSHAKES]; /* wrongly: its salt is not kept */
    uint64_t refused = 0, replays = 0, admitted = 0;
    for (uint64_t n = 0; n < HANDSHAKES; n++) {
        was_refused[n] = !admit(f, salt_of(n));
        refused += was_refused[n];
        if (n % 4) continue;
        /* One of the last million again: the newest, the oldest, any. */
        uint64_t back = mix(n) % LAST;
        if (n % 1000 == 0) back = 0;
        if (n % 1000 == 4) back = LAST - 1;
        if (back > n) back = n;
        replays++;
        admitted += admit(f, salt_of(n - back)) && !was_refused[n - back];
    }
    /* Older than a million and a slot: forgotten, as it should be. Asked only,
     * because a salt that is admitted pushes others on. */
    uint64_t remembered = 0, old = HANDSHAKES - LAST - LAST / SLOTS - 1000;
    for (uint64_t n = 0; n < old; n++)
        remembered += seen_maybe(f, salt_of(n), SALT);

    double slots[SLOTS], bits = ceil(-log(RATE) / (log(2) * log(2)) * LAST);
    for (int i = 0; i < SLOTS; i++)
        slots[i] = seen_fpp_bloom(LAST / SLOTS, bits / SLOTS, 20);
    seen_info info = {.size = sizeof info};
    seen_measure(f, &info);
    printf("%d handshakes: %" PRIu64 " wrongly refused, promised %.0f\n",
           HANDSHAKES, refused, RATE * HANDSHAKES);
    printf("%" PRIu64 " replays of the last %d: %" PRIu64 " admitted\n",
           replays, LAST, admitted);
    printf("%" PRIu64 " that are older: %" PRIu64 " still refused\n", old,
           remembered);
    printf("the window: %.1f MB, %.0e; a ring of %d filters: %.1f MB, %.0e\n",
           (double)info.bytes / 1e6, info.fpp, SLOTS, bits / 8e6,
           seen_fpp_combined(slots, SLOTS));
    seen_free(f);
    double most = RATE * HANDSHAKES;
    most +=
        8 * sqrt(most); /* of so few, chance makes more than 16 once in 1e8 */
    return admitted || (double)refused > most || (double)remembered > most;
}
