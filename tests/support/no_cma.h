/* SPDX-License-Identifier: Apache-2.0
 * Forbids a process to read the memory of others, or to take their descriptors, as the seccomp
 * filter of a container does. */
#ifndef TUTTI_TESTS_SUPPORT_NO_CMA_H
#define TUTTI_TESTS_SUPPORT_NO_CMA_H

#include <stdbool.h>

/* From now on process_vm_readv fails with EPERM in this process and its children. There is no way
 * back, so call it in a child. False: the kernel has no seccomp filters. */
bool forbid_cma(void);

/* The same for all calls that need the right to trace the other process: pidfd_getfd, too. */
bool forbid_tracing(void);

#endif
