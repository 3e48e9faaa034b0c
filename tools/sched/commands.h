/* SPDX-License-Identifier: Apache-2.0
 * Declares the commands of tutti-sched. Each command is defined in a file of its own. */
#ifndef TUTTI_SCHED_COMMANDS_H
#define TUTTI_SCHED_COMMANDS_H

#include "common/request.h"

extern const struct command sched_list;
extern const struct command sched_print;
extern const struct command sched_check;
extern const struct command sched_draw;
extern const struct command sched_build;
extern const struct command sched_explain;
extern const struct command sched_import;

#endif
