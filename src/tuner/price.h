/* SPDX-License-Identifier: Apache-2.0
 * The price of a choice in seconds: the algorithm's counts (algorithms/cost.h) times the machine's
 * rates (topology/machine/machine.h). */
#ifndef TUTTI_TUNER_PRICE_H
#define TUTTI_TUNER_PRICE_H

#include "tuner/tuner.h"

/* Returns the predicted seconds of the call. NAN: view->machine is NULL. INFINITY: the cost could
 * not be counted, for lack of memory. The function has no side effects, and is thread-safe. */
double tutti_price(const struct tutti_tuner_view *view, const struct tutti_tuner_query *query,
                   const struct tutti_choice *choice);

/* Returns the number of pieces in which the call runs (executor/program.c), which is at least 1.
 * The pieces are of about the same size. The function has no side effects, and is thread-safe. */
double tutti_price_pieces(const struct tutti_tuner_view *view,
                          const struct tutti_tuner_query *query,
                          const struct tutti_algorithm *algorithm);

#endif
