/* SPDX-License-Identifier: Apache-2.0
 * The built-in choices, which are a table of coarse rules. */
#ifndef TUTTI_TUNER_BUILTIN_H
#define TUTTI_TUNER_BUILTIN_H

#include "tuner/tuner.h"

/* Finds the first row that fits the call and names an algorithm that can serve it. With
 * `is_measured` only the measured rows are searched, which are for ranks that share memory or crowd
 * a host. Otherwise only the general rows are searched. Options that the row does not set are 0.
 * Returns false if no row fits. */
bool tutti_builtin_find(const struct tutti_tuner_view *view,
                        const struct tutti_tuner_query *query, bool is_measured,
                        struct tutti_choice *ret_choice);

/* Finds the first row for protocols of GPUs whose protocol can run the call (query->protocols).
 * Returns false if there is none. */
bool tutti_builtin_find_protocol(const struct tutti_tuner_view *view,
                                 const struct tutti_tuner_query *query,
                                 struct tutti_choice *ret_choice);

/* True if all ranks are on one host that has fewer cores than ranks. */
bool tutti_builtin_is_crowded(const struct tutti_tuner_view *view);

#endif
