/* SPDX-License-Identifier: Apache-2.0
 * Shared libraries that are loaded at run time, if the host has them. Their functions are looked up
 * by name and stored in a struct of function pointers. */
#ifndef TUTTI_WRAP_LIBRARY_H
#define TUTTI_WRAP_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

struct tutti_library_function {
    const char *name;
    size_t offset; /* of the pointer in the struct */
    bool is_required;
};

/* Load `file`, look up the `count` functions in `table`, and store their addresses in the struct at
 * `functions`. The address of an optional function that the library lacks is NULL. The caller
 * closes *ret_library. TUTTI_ERR_SYSTEM: the library cannot be loaded, or lacks a required
 * function. The error is recorded as the thread's last message, but not logged. */
int tutti_library_open(const char *file, const struct tutti_library_function *table, size_t count,
                       void *functions, void **ret_library);
/* Unload a library. NULL is ignored. */
void tutti_library_close(void *library);

#endif
