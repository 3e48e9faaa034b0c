/* SPDX-License-Identifier: Apache-2.0
 * The price of a choice in seconds: the algorithm's counts (algorithms/cost.h) times the machine's
 * rates (topology/machine/machine.h). */
#ifndef TUTTI_TUNER_PRICE_H
#define TUTTI_TUNER_PRICE_H

#include "tuner/tuner.h"

/* The predicted seconds of the call. NAN: view->machine is NULL. INFINITY: the cost could not be
 * counted, for lack of memory. Pure. */
double tutti_price(const struct tutti_tuner_view *view, const struct tutti_tuner_query *query,
                   const struct tutti_choice *choice);

/* The number of pieces, all of about the same size, that the call runs in (executor/program.c); at
 * least 1. Pure. */
double tutti_price_pieces(const struct tutti_tuner_view *view,
                          const struct tutti_tuner_query *query,
                          const struct tutti_algorithm *algorithm);

#endif
