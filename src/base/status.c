/* status.c - what a status means, in words. */
#include "seen.h"

#include "base/base.h"

#define STATUS(name, number, text)                                             \
    static_assert(name == number,                                              \
                  #name " differs between seen.h and the table");
#include "base/status.def"
#undef STATUS

const char *seen_strerror(seen_status status)
{
    switch (status) {
#define STATUS(name, number, text)                                             \
    case name:                                                                 \
        return text;
#include "base/status.def"
#undef STATUS
    }
    return "unknown status";
}

#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)

const char *seen_version(void)
{
    static_assert(sizeof SEEN_VERSION ==
                      sizeof TEXT(SEEN_VERSION_MAJOR) "." TEXT(
                          SEEN_VERSION_MINOR) "." TEXT(SEEN_VERSION_PATCH),
                  "SEEN_VERSION differs from its numbers");
    return TEXT(SEEN_VERSION_MAJOR) "." TEXT(SEEN_VERSION_MINOR) "." TEXT(
        SEEN_VERSION_PATCH);
}

uint32_t seen_version_number(void)
{
    return SEEN_VERSION_NUMBER;
}
