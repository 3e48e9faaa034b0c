/* SPDX-License-Identifier: Apache-2.0
 * The only place of the measuring programs that reads the environment. */
#include "environment.h"

#include <stdlib.h>

const char *perf_environment(const char *name)
{
    const char *text = getenv(name);

    return text != NULL && *text != '\0' ? text : NULL;
}
