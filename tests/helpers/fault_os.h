/*
 * fault_os.h - the operating system that is there, but calls fail on demand,
 * and what is opened and mapped is counted.
 *
 * Calls may come from several threads.
 */
#ifndef SEEN_TEST_FAULT_OS_H
#define SEEN_TEST_FAULT_OS_H

#include "helpers/faults.h"

/* Put itself between libseen_store and what seen_os is now. The plan starts
 * disarmed and is valid until the end of the program; see faults.h. */
struct faults *fault_os_install(void);

/* Put back what was there. */
void fault_os_uninstall(void);

/* Opened and not closed, mapped and not unmapped, since the installation. */
uint64_t fault_os_open_files(void);
uint64_t fault_os_mappings(void);

#endif
