/* SPDX-License-Identifier: Apache-2.0
 * Lists the TUTTI_* variables in this process's environment: those of param_table.h, those of our
 * programs, and misspelled ones. The library reports misspelled variables, because a user would
 * not notice otherwise that they have no effect.
 */
#ifndef TUTTI_BASE_ENVIRONMENT_H
#define TUTTI_BASE_ENVIRONMENT_H

#include "base/log.h"
#include "base/param.h"

enum { TUTTI_VARIABLE_NAME_BYTES = 64 };

struct tutti_variable {
    char name[TUTTI_VARIABLE_NAME_BYTES]; /* truncated if it is longer */
    const char *value; /* points into the environment; to print it, use tutti_variable_shown */
    const struct tutti_param_info *info;  /* NULL: the library has no such parameter */
    bool is_known;                        /* a parameter, or a variable of our programs */
};

/* Get the next TUTTI_* variable with a nonempty value, in the order of the environment. *at is the
 * cursor: the caller sets it to 0 before the first call, and does not change it afterwards. False:
 * there are no more. As with getenv, no other thread may change the environment meanwhile. */
bool tutti_environment_next(size_t *at, struct tutti_variable *ret_variable);

/* Returns the value as it may be printed: a placeholder if the name contains SECRET. The text is
 * valid as long as the value itself. */
const char *tutti_variable_shown(const struct tutti_variable *variable);

/* Returns the name of the parameter whose spelling is closest to `name`; NULL: none is close
 * enough. The name is a static string. */
const char *tutti_environment_nearest(const char *name);

/* Write all TUTTI_* variables as "NAME=value NAME=value", or "none" if there are none. A text that
 * does not fit into `size` bytes ends with "...". Values of secrets are not shown. */
void tutti_environment_format(char *ret_text, size_t size);

/* Log one line at `level` for each unknown variable, with the closest known name if there is one.
 * Only the first call in a process logs. */
void tutti_environment_report_unknown(enum tutti_log_level level);

#endif
