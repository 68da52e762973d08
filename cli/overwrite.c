/* overwrite.c - see overwrite.h. */
#define _POSIX_C_SOURCE 200809L

#include "overwrite.h"

#include "output.h"
#include "pack.h"
#include "source.h"
#include "units.h"

#include <errno.h>
#include <fcntl.h>
#include <seen.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

bool overwrite;

/* ---- The input ---------------------------------------------------------- */

bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* By the shell, which opened it as our output with > and not with >>. */
static bool was_emptied(const struct stat *out)
{
    return out->st_size == 0 && !(fcntl(STDOUT_FILENO, F_GETFL) & O_APPEND);
}

static void must_differ(const struct stat *out, const char *output,
                        const char *input)
{
    struct stat in;
    int failed = is_stdin(input) ? fstat(STDIN_FILENO, &in) : stat(input, &in);
    if (failed || !same_file(out, &in)) return;
    if (output)
        fail("%s: is the input, which the output would replace: write to "
             "another file",
             output);
    fail("%s: input and output are the same file; nothing was read or "
         "written%s: write to another file, then rename it",
         is_stdin(input) ? "stdin" : input,
         was_emptied(out) ? ", but > has emptied the file before" : "");
}

void output_is_no_input(const char *output, char **inputs, size_t n)
{
    struct stat out;
    int failed = output ? stat(output, &out) : fstat(STDOUT_FILENO, &out);
    if (failed || !S_ISREG(out.st_mode)) return;
    if (n == 0) must_differ(&out, output, "-");
    for (size_t i = 0; i < n; i++)
        must_differ(&out, output, inputs[i]);
}

/* ---- Something else ----------------------------------------------------- */

/* Do these bytes belong to what may be replaced? */
typedef bool recognise(const void *bytes, size_t len);

static bool is_filter(const void *bytes, size_t len)
{
    const char *name[1];
    return (len >= 8 && memcmp(bytes, "\x89SEEN\r\n\x1a", 8) == 0) ||
           is_packed(bytes, len) || seen_sniff(bytes, len, name, 1) > 0;
}

static bool is_svg(const void *bytes, size_t len)
{
    return len >= 4 && memcmp(bytes, "<svg", 4) == 0;
}

/* What is going to be replaced; "": nothing. */
static char lost[96];

static void describe(const void *bytes, size_t len)
{
    const char *name[1];
    char keys[UNIT_TEXT];
    seen_info info = {.size = sizeof info};
    if (seen_look(bytes, len, &info, NULL, NULL) == SEEN_OK)
        snprintf(lost, sizeof lost, "a filter of kind %s with %s",
                 seen_kind_name(info.kind), show_keys(keys, &info, "key"));
    else if (seen_sniff(bytes, len, name, 1) > 0)
        snprintf(lost, sizeof lost, "a %s filter", name[0]);
    else if (is_filter(bytes, len))
        snprintf(lost, sizeof lost, "a filter that %s",
                 is_packed(bytes, len) ? "was in gzip" : "was damaged");
    else
        snprintf(lost, sizeof lost, "a file that was no filter");
}

/* An empty file has nothing to lose, and a device or pipe is not replaced. */
static void may_replace(const char *path, recognise *known, const char *what)
{
    struct stat st;
    if (!path || stat(path, &st) != 0 || !S_ISREG(st.st_mode) ||
        st.st_size == 0)
        return;
    snprintf(lost, sizeof lost, "a file that could not be read");
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && overwrite) return;
    if (fd < 0)
        fail("%s: exists, and cannot be read to see whether it is %s: %s; "
             "--force replaces it",
             path, what, strerror(errno));
    size_t len = (size_t)st.st_size;
    void *bytes = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (bytes == MAP_FAILED && overwrite) return;
    if (bytes == MAP_FAILED) fail("%s: map: %s", path, strerror(errno));
    if (!overwrite && !known(bytes, len))
        fail("%s: exists, and is not %s; --force replaces it", path, what);
    describe(bytes, len);
    munmap(bytes, len);
}

bool has_replaced(void)
{
    return lost[0];
}

void note_replaced(const char *path)
{
    if (has_replaced()) note("%s: replaced %s", path, lost);
}

void may_replace_filter(const char *path)
{
    may_replace(path, is_filter, "a filter that can be recognised");
}

void may_replace_svg(const char *path)
{
    if (path && strcmp(path, "-") != 0)
        may_replace(path, is_svg, "an SVG picture");
}
