/* SPDX-License-Identifier: Apache-2.0
 * The TUTTI_* variables that this process was given: those of param_table.h, those of our programs,
 * and misspelt ones, which would otherwise be ignored in silence.
 */
#ifndef TUTTI_BASE_ENVIRONMENT_H
#define TUTTI_BASE_ENVIRONMENT_H

#include "base/log.h"
#include "base/param.h"

enum { TUTTI_VARIABLE_NAME_BYTES = 64 };

struct tutti_variable {
    char name[TUTTI_VARIABLE_NAME_BYTES]; /* cut if it is longer */
    const char *value;                    /* in the environment; for people: tutti_variable_shown */
    const struct tutti_param_info *info;  /* NULL: the library has no such parameter */
    bool is_known;                        /* a parameter, or a variable of our programs */
};

/* The next TUTTI_* variable with a value, in the order of the environment. `at` is 0 at first and
 * kept between calls. False: there are no more. Like getenv, not to be called while another thread
 * changes the environment. */
bool tutti_environment_next(size_t *at, struct tutti_variable *ret_variable);

/* The value as it may be shown: that of a secret is not. Lives as long as the value. */
const char *tutti_variable_shown(const struct tutti_variable *variable);

/* The parameter whose name is most like `name`; NULL: none is like it. */
const char *tutti_environment_nearest(const char *name);

/* All of them as "NAME=value NAME=value", cut to `size`; "none" when there are none. */
void tutti_environment_format(char *ret_text, size_t size);

/* One line at `level` for each variable that is unknown, with the name that it is most like. Only
 * the first call in a process writes. */
void tutti_environment_report_unknown(enum tutti_log_level level);

#endif
