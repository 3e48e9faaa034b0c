/* SPDX-License-Identifier: Apache-2.0
 * Creates memory files without a name. Other processes can map such a file after they have received
 * its descriptor. */
#ifndef TUTTI_BASE_MEMFD_H
#define TUTTI_BASE_MEMFD_H

#include <stddef.h>

/* Create a file of `size_bytes` zero bytes, close-on-exec. Its size is sealed, so that no process
 * can shorten the file and crash another that has mapped it. `name` only shows in /proc. The caller
 * closes *ret_fd. TUTTI_ERR_SYSTEM: the reason is recorded, but not logged as a failure, since the
 * caller may have a fallback. */
int tutti_memfd_create(const char *name, size_t size_bytes, int *ret_fd);

#endif
