/* Never show a user the same thing twice: usage 05_take DIR */
#include <seen_users.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

static seen_key text(const char *s)
{
    return (seen_key){s, strlen(s)};
}

int main(int argc, char **argv)
{
    if (argc != 2) return 2;
    seen_users *users;
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    const seen_users_options options = {.mode = SEEN_DURABLE, .create = true};
    if (seen_users_open(&users, argv[1], &options, &outcome, &error)) {
        fprintf(stderr, "%s: %s\n", argv[1], error.text);
        return 1;
    }

    const uint64_t now_ms = (uint64_t)time(NULL) * 1000; /* milliseconds */
    for (int visit = 1; visit <= 3; visit++) {
        seen_key items[] = {text("cats"), text("dogs"), text("news"),
                            text("cats"), text("goal")};
        size_t taken[2], n;
        if (seen_users_take(users, text("alice"), now_ms,
                            seen_keys_of(items, 5), 2, taken, &n, &error)) {
            fprintf(stderr, "%s: %s\n", argv[1], error.text);
            return 1;
        }
        printf("visit %d:", visit);
        for (size_t i = 0; i < n; i++)
            printf(" %.*s", (int)items[taken[i]].len,
                   (const char *)items[taken[i]].data);
        printf("\n");
    }
    return seen_users_close(users, NULL) != SEEN_OK;
}
