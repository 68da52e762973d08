/*
 * 08_blocklist.c - a list of known spam, shipped as a filter, and an exact list of
 * what must never be blocked.
 *
 * Somebody collects spam and publishes it; mail servers compare what comes in. What
 * is compared is not the mail but what stays the same in all copies of it: no
 * case, no spaces, no words with digits or an @ in them (names, amounts, links with
 * a number for each victim).
 *
 *     "Dear bob@example.com, WIN  $5000 now!"  ──►  "dearwinnow"
 *
 * The published list does not change until the next one, so it is a ribbon filter:
 * ten bits a mail at 0.1 %, the smallest there is. It is built from keys that come
 * one after the other, and goes out as bytes with a checksum.
 *
 * A wrong "maybe" is a letter that does not arrive, and one in a thousand is too
 * many for the one who misses it. His remedy is not a better filter for everybody
 * but an allowlist (seen_allowlist.h): exact, his own, and asked only about the few
 * mails that the filter would block.
 */
#include <seen.h>
#include <seen_allowlist.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SPAM = 50000,
    MAILS = 200000, /* that are none */
    TEXT = 400      /* bytes */
};

#define RATE 0.001

/* ---- What stays the same: the recipe --------------------------------------- */

/* Letters of words that have nothing else in them, in lower case. A word ends at
 * a space; what stands at its end (comma, full stop) does not count. */
static size_t essence(const char *mail, char *to)
{
    size_t len = 0;
    while (*mail) {
        size_t start = len, word = strcspn(mail, " \t\r\n");
        bool plain = true;
        for (size_t i = 0; i < word; i++) {
            char c = mail[i];
            if (c >= 'A' && c <= 'Z') c = (char)(c - 'A' + 'a');
            if (c >= 'a' && c <= 'z')
                to[len++] = c;
            else if (!strchr(".,;:!?", c))
                plain = false;
        }
        if (!plain) len = start;
        mail += word;
        mail += strspn(mail, " \t\r\n");
    }
    return len;
}

/* ---- Mails, made from numbers --------------------------------------------- */

static uint64_t mix(uint64_t x) /* splitmix64: one to one */
{
    x += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

/* The nth text, as copy number `copy` of it looks. Sixteen words, of sixteen
 * each: every text is another one. */
static void write_mail(uint64_t n, uint64_t copy, char mail[TEXT])
{
    static const char *const words[] = {
        "money", "friend", "urgent", "invoice", "meeting", "tomorrow",
        "prize", "letter", "garden", "account", "holiday", "please",
        "never", "answer", "kindly", "doctor"};
    uint64_t text = mix(n), looks = mix(copy);
    int at = snprintf(mail, TEXT, "Dear %c%c%c@example.org,\n",
                      'a' + (char)(looks % 26), 'a' + (char)(looks / 26 % 26),
                      'a' + (char)(looks / 676 % 26));
    for (int i = 0; i < 16; i++, text >>= 4, looks >>= 2) {
        at +=
            snprintf(mail + at, (size_t)(TEXT - at), "%s%s%s", words[text & 15],
                     looks & 1 ? "," : "", looks & 2 ? "  " : " ");
        if (looks & 1) mail[at - 4] -= 'a' - 'A'; /* a letter of the word */
    }
    snprintf(mail + at, (size_t)(TEXT - at), "only $%" PRIu64 "!", copy);
}

static bool is_blocked(const seen_filter *list, const char *mail)
{
    char key[TEXT];
    return seen_maybe(list, key, essence(mail, key));
}

/* ---- The publisher ------------------------------------------------------- */

static void *publish(size_t *len)
{
    seen_builder *b;
    if (seen_builder_new(&b, &(seen_spec){.kind = SEEN_RIBBON, .fpp = RATE},
                         NULL))
        return NULL;
    for (uint64_t n = 0; n < SPAM; n++) {
        char mail[TEXT], text[TEXT];
        write_mail(n, n, mail);
        seen_key key = {text, essence(mail, text)};
        if (seen_builder_add_many(b, seen_keys_of(&key, 1))) return NULL;
    }
    seen_filter *list;
    if (seen_builder_finish(b, &list, NULL)) return NULL;
    seen_builder_free(b);
    seen_save(list, 0, NULL, 0, len);
    void *bytes = malloc(*len);
    if (bytes && seen_save(list, 0, bytes, *len, len)) return NULL;
    seen_free(list);
    return bytes;
}

/* ---- The mail server ----------------------------------------------------- */

static int check(bool right, const char *what)
{
    if (!right) fprintf(stderr, "wrong: %s\n", what);
    return !right;
}

/* Let this mail through from now on. */
static seen_status allow(seen_filter *list, const char *mail)
{
    char key[TEXT];
    seen_allowlist *allowed;
    seen_status s = seen_allowlist_new(&allowed, NULL);
    if (s == SEEN_OK) s = seen_allowlist_add(allowed, key, essence(mail, key));
    if (s == SEEN_OK) s = seen_allow(list, allowed, SEEN_LISTED_NEVER);
    seen_allowlist_free(allowed);
    return s;
}

int main(void)
{
    size_t len;
    void *bytes = publish(&len);
    seen_filter *list;
    if (!bytes || seen_load(&list, bytes, len, NULL, NULL, NULL)) {
        fprintf(stderr, "the list cannot be made, or not be read back\n");
        return 1;
    }
    printf("%d spam mails: a list of %zu bytes, %.2f for each\n", SPAM, len,
           (double)len / SPAM);

    char mail[TEXT];
    uint64_t caught = 0, wrong = 0, victim = 0;
    for (uint64_t n = 0; n < SPAM; n++) { /* other copies than were published */
        write_mail(n, n + 777, mail);
        caught += is_blocked(list, mail);
    }
    for (uint64_t n = 0; n < MAILS; n++) {
        write_mail(SPAM + n, n, mail);
        if (!is_blocked(list, mail)) continue;
        if (wrong++ == 0) victim = SPAM + n;
    }
    double expected = RATE * MAILS;
    printf("caught %" PRIu64 " of %d; wrongly blocked %" PRIu64
           " of %d others, promised %.0f\n",
           caught, SPAM, wrong, MAILS, expected);
    int bad = check(caught == SPAM, "spam came through");
    bad |= check((double)wrong <= expected + 5 * sqrt(expected), "the rate");
    bad |= check(wrong > 0, "somebody must complain");

    /* Whoever was sent mail number `victim` complains. */
    write_mail(victim, 1, mail);
    bad |= check(is_blocked(list, mail), "not blocked before");
    if (allow(list, mail)) return 1;
    write_mail(victim, 2, mail);
    bad |= check(!is_blocked(list, mail), "blocked though it is allowed");
    write_mail(0, 1, mail);
    bad |= check(is_blocked(list, mail), "everything is allowed now");
    printf("after a complaint: mail %" PRIu64
           " passes in every copy, spam does not\n",
           victim);
    seen_free(list);
    free(bytes);
    return bad;
}
