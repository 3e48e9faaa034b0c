/* SPDX-License-Identifier: Apache-2.0
 * Looks up environment variables for the measuring programs. All lookups by name go through this
 * file, so that an empty variable counts as unset everywhere. */
#include "environment.h"

#include <stdlib.h>

const char *perf_environment(const char *name)
{
    const char *text = getenv(name);

    return text != NULL && *text != '\0' ? text : NULL;
}
