/* SPDX-License-Identifier: Apache-2.0
 * Files without a name, in memory, that other processes may map. */
#ifndef TUTTI_BASE_MEMFD_H
#define TUTTI_BASE_MEMFD_H

#include <stddef.h>

/* A file of `size_bytes` zero bytes, close-on-exec. Its size is sealed: a process that has it
 * cannot make it shorter and so crash another that has it mapped. `name` only shows in /proc.
 * TUTTI_ERR_SYSTEM: the reason is recorded, but not logged as a failure, since the caller may do
 * without. */
int tutti_memfd_create(const char *name, size_t size_bytes, int *ret_fd);

#endif
