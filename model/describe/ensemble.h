/* SPDX-License-Identifier: Apache-2.0
 * Writes schedules in Tutti's own text form (schedule/text.h). Reading the text again gives the
 * same schedules, step for step.
 */
#ifndef TUTTI_DESCRIBE_ENSEMBLE_H
#define TUTTI_DESCRIBE_ENSEMBLE_H

#include "schedule/text.h"

/* Writes an ensemble as text that ends with a zero byte. The caller releases *ret_text with free().
 * Returns TUTTI_ERR_ARGUMENT if the schedules are not those of all ranks of one collective and
 * root, or if a line cannot hold some character of the name. Returns TUTTI_ERR_SYSTEM if there is
 * no memory. */
int tutti_describe_ensemble(const struct tutti_ensemble *ensemble, char **ret_text);

#endif
