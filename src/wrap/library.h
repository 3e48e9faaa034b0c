/* SPDX-License-Identifier: Apache-2.0
 * Loads a shared library at run time, if the host has it. Its functions are looked up by name and
 * stored in a struct of function pointers. */
#ifndef TUTTI_WRAP_LIBRARY_H
#define TUTTI_WRAP_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

struct tutti_library_function {
    const char *name;
    size_t offset; /* of the pointer in the struct */
    bool is_required;
};

/* Load `file` and store the addresses of the `count` functions in `table` in the struct at
 * `functions`; NULL for an optional function that the library lacks. The caller closes
 * *ret_library. TUTTI_ERR_SYSTEM: the library cannot be loaded, or lacks a required function;
 * recorded, but not logged. */
int tutti_library_open(const char *file, const struct tutti_library_function *table, size_t count,
                       void *functions, void **ret_library);
/* Unload a library. NULL is ignored. */
void tutti_library_close(void *library);

#endif
