/* SPDX-License-Identifier: Apache-2.0
 * Writes schedules in our own form (schedule/text.h). Reading the text again gives the same schedules,
 * step for step.
 */
#ifndef TUTTI_DESCRIBE_ENSEMBLE_H
#define TUTTI_DESCRIBE_ENSEMBLE_H

#include "schedule/text.h"

/* Write an ensemble as text, which the caller frees. TUTTI_ERR_ARGUMENT: the schedules are not
 * those of one collective, or the name has characters that a line cannot hold. TUTTI_ERR_SYSTEM: no
 * memory. */
int tutti_ensemble_write(const struct tutti_ensemble *ensemble, char **ret_text);

#endif
