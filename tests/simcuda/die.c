/* SPDX-License-Identifier: Apache-2.0
 * Ends a simulation that has found a mistake. */
#include "simcuda/die.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void sim_die(const char *format, ...)
{
    va_list args;

    fputs("simulated driver: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    abort();
}
