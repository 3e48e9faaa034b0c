/* SPDX-License-Identifier: Apache-2.0
 * Loading of a shared library, and look-up of its functions (library.h). */
#include "wrap/library.h"

#include "base/log.h"
#include "base/result.h"

#include <dlfcn.h>
#include <string.h>

static int look_up(const char *file, void *library, const struct tutti_library_function *function,
                   void *functions)
{
    void *address = dlsym(library, function->name);

    if (address == NULL && function->is_required)
        return tutti_note(TUTTI_ERR_SYSTEM, "%s has no function %s; a newer version has it", file,
                          function->name);
    if (address == NULL)
        tutti_log(TUTTI_LOG_DEBUG, "%s has no function %s; going without", file, function->name);
    /* ISO C does not allow a cast from a data pointer to a function pointer, but POSIX gives both
     * the same representation. */
    memcpy((char *)functions + function->offset, &address, sizeof address);
    return TUTTI_OK;
}

int tutti_library_open(const char *file, const struct tutti_library_function *table, size_t count,
                       void *functions, void **ret_library)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    int rc;

    if (library == NULL)
        return tutti_note(TUTTI_ERR_SYSTEM, "%s", dlerror());
    for (size_t i = 0; i < count; i++)
        TUTTI_TRY_OR(close, rc, look_up(file, library, &table[i], functions));
    *ret_library = library;
    return TUTTI_OK;

close:
    dlclose(library);
    return rc;
}

void tutti_library_close(void *library)
{
    if (library != NULL)
        dlclose(library);
}
