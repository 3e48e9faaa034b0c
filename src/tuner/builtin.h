/* SPDX-License-Identifier: Apache-2.0
 * The choices that the library brings along: a table of coarse rules. */
#ifndef TUTTI_TUNER_BUILTIN_H
#define TUTTI_TUNER_BUILTIN_H

#include "tuner/tuner.h"

/* The first row that fits; with `is_measured`, only rows for ranks that share memory or crowd a
 * host, which were measured, else only the others. False: none does. */
bool tutti_builtin_find(const struct tutti_tuner_view *view,
                        const struct tutti_tuner_query *query, bool is_measured,
                        struct tutti_choice *ret_choice);

/* Are all ranks on one host, which has fewer cores? */
bool tutti_builtin_is_crowded(const struct tutti_tuner_view *view);

#endif
