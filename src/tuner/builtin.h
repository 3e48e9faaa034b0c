/* SPDX-License-Identifier: Apache-2.0
 * The choices that the library brings along: a table of coarse rules. */
#ifndef TUTTI_TUNER_BUILTIN_H
#define TUTTI_TUNER_BUILTIN_H

#include "tuner/tuner.h"

/* The first row that fits; with `in_memory`, only rows for ranks that share memory, else only the
 * others. NULL: none. */
const struct tutti_algorithm *tutti_builtin_find(const struct tutti_tuner_view *view,
                                                 const struct tutti_tuner_query *query,
                                                 bool in_memory);

#endif
