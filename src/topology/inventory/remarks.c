/* SPDX-License-Identifier: Apache-2.0
 * Keeps lines for the person who reads a machine: what was ignored in a file, and what was assumed
 * about it. */
#include "topology/inventory/inventory.h"

#include "base/log.h"
#include "base/result.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The room for one line. */
#define LINE_BYTES 512

int tutti_inventory_remark(struct tutti_inventory *inventory, const char *format, ...)
{
    size_t used = inventory->remarks == NULL ? 0 : strlen(inventory->remarks);
    char line[LINE_BYTES], *remarks;
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    tutti_log(TUTTI_LOG_INFO, "topology: %s", line);
    remarks = realloc(inventory->remarks, used + strlen(line) + 2);
    if (remarks == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a remark about a topology");
    sprintf(remarks + used, "%s\n", line);
    inventory->remarks = remarks;
    return TUTTI_OK;
}
