/* SPDX-License-Identifier: Apache-2.0
 * The tuner: which algorithm a call runs by.
 *
 * It looks only at what is the same on all ranks, so that all choose alike.
 */
#ifndef TUTTI_TUNER_H
#define TUTTI_TUNER_H

#include "algorithms/algorithm.h"

/* The communicator, as far as the choice depends on it. */
struct tutti_tuner_view {
    uint32_t nranks;
    bool is_one_domain; /* all ranks share windows */
    bool all_read;      /* and can read each other's memory */
    bool all_store;     /* and store to it: one process */
    size_t half_bytes;  /* of a window half */
};

/* One call. */
struct tutti_tuner_query {
    enum tutti_collective collective;
    bool is_vector;      /* a v-form */
    size_t block_bytes;  /* of one block; of v-forms, their mean */
    size_t element_bytes;
};

/* Is TUTTI_ALGORITHM well-formed? TUTTI_ERR_USAGE as below, before the first call. */
int tutti_tuner_check(void);

/* The algorithm TUTTI_ALGORITHM names for the collective if it can serve the call, else the best by
 * the table of choose.c. TUTTI_ERR_USAGE: the variable names an unknown collective or algorithm. */
int tutti_tuner_choose(const struct tutti_tuner_view *view, const struct tutti_tuner_query *query,
                       const struct tutti_algorithm **ret_algorithm);

/* Can `algorithm` serve the call on this communicator? */
bool tutti_tuner_can_serve(const struct tutti_tuner_view *view,
                           const struct tutti_tuner_query *query,
                           const struct tutti_algorithm *algorithm);

#endif
