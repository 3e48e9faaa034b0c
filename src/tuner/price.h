/* SPDX-License-Identifier: Apache-2.0
 * Seconds of a choice: the algorithm's counts (algorithms/cost.h) times the machine's rates
 * (topology/machine/machine.h). */
#ifndef TUTTI_TUNER_PRICE_H
#define TUTTI_TUNER_PRICE_H

#include "tuner/tuner.h"

/* NAN: there is no machine. Pure. */
double tutti_price(const struct tutti_tuner_view *view, const struct tutti_tuner_query *query,
                   const struct tutti_choice *choice);

/* In how many pieces, all about equal, the call runs (executor/program.c). Pure. */
double tutti_price_pieces(const struct tutti_tuner_view *view,
                          const struct tutti_tuner_query *query,
                          const struct tutti_algorithm *algorithm);

#endif
