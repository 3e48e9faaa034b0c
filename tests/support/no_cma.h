/* SPDX-License-Identifier: Apache-2.0
 * A process that must not read the memory of others, as in a container with a seccomp filter. */
#ifndef TUTTI_TESTS_SUPPORT_NO_CMA_H
#define TUTTI_TESTS_SUPPORT_NO_CMA_H

#include <stdbool.h>

/* From now on process_vm_readv fails with EPERM in this process and its children. There is no way
 * back, so call it in a child. False: the kernel has no seccomp filters. */
bool forbid_cma(void);

#endif
