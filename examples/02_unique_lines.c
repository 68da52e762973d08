/*
 * 02_unique_lines.c - copy standard input to standard output, leaving out lines
 * that (maybe) came before. One line in a million is left out by mistake once
 * ten million different ones have passed; memory stays at 40 MB whatever their
 * length.
 */
#include <seen.h>

#include <stdio.h>

int main(void)
{
    seen_filter *f;
    seen_status s =
        seen_new(&f, &(seen_spec){.items = 10000000, .fpp = 1e-6}, NULL);
    if (s != SEEN_OK) {
        fprintf(stderr, "unique_lines: %s\n", seen_strerror(s));
        return 1;
    }

    char line[4096]; /* a longer line counts as several */
    while (s == SEEN_OK && fgets(line, sizeof line, stdin)) {
        bool before;
        s = seen_visit(f, line, strlen(line), &before);
        if (s == SEEN_OK && !before) fputs(line, stdout);
    }
    seen_free(f);
    return s != SEEN_OK;
}
