/*
 * 01_hello.c - the smallest program: make a filter, add a name, ask for two.
 */
#include <seen.h>

#include <stdio.h>

static void ask(const seen_filter *f, const char *name)
{
    printf("%s: %s\n", name, seen_maybe_str(f, name) ? "maybe" : "never");
}

int main(void)
{
    seen_filter *f;
    if (seen_new(&f, &(seen_spec){.items = 1000000, .fpp = 0.01}, NULL))
        return 1;

    seen_add_str(f, "alice");
    ask(f, "alice");
    ask(f, "bob");

    seen_free(f);
    return 0;
}
