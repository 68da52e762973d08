/*
 * report.h - sentences for people, into the reports of seen_store.h. A report
 * may be NULL; the first sentence stays; errno stays, too.
 */
#ifndef SEEN_REPORT_H
#define SEEN_REPORT_H

#include "seen_store.h"

#include "base/base.h"

SEEN_PRIVATE void seen_report_begin(seen_store_report *r);

/* Gives back the status. */
SEEN_PRIVATE __attribute__((format(printf, 3, 4))) seen_status
seen_report(seen_store_report *r, seen_status status, const char *format, ...);

/* SEEN_IO: a system call failed; the sentence says which and why. */
SEEN_PRIVATE seen_status seen_report_io(seen_store_report *r, const char *what);

#endif
