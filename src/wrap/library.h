/* SPDX-License-Identifier: Apache-2.0
 * A shared library that is loaded at run time, where there is one: its functions are looked up by
 * name and put into a struct of pointers. */
#ifndef TUTTI_WRAP_LIBRARY_H
#define TUTTI_WRAP_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

struct tutti_library_function {
    const char *name;
    size_t offset; /* of the pointer in the struct */
    bool is_required;
};

/* Load `file` and fill in the pointers of `functions`, NULL for an optional function that the
 * library lacks. TUTTI_ERR_SYSTEM, noted not logged: it cannot be loaded, or lacks a function that
 * is required. */
int tutti_library_open(const char *file, const struct tutti_library_function *table, size_t count,
                       void *functions, void **ret_library);
/* NULL is none. */
void tutti_library_close(void *library);

#endif
