/* SPDX-License-Identifier: Apache-2.0
 * Memory files without a name, which other processes may map. */
#ifndef TUTTI_BASE_MEMFD_H
#define TUTTI_BASE_MEMFD_H

#include <stddef.h>

/* Create a file of `size_bytes` zero bytes, close-on-exec. Its size is sealed, so that no process
 * can shorten it and crash another that has it mapped. `name` only shows in /proc. The caller
 * closes *ret_fd. TUTTI_ERR_SYSTEM: the reason is recorded, but not logged as a failure, since the
 * caller may have a fallback. */
int tutti_memfd_create(const char *name, size_t size_bytes, int *ret_fd);

#endif
