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

const char *seen_version(void)
{
    return SEEN_VERSION;
}
