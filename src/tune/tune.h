/* SPDX-License-Identifier: Apache-2.0
 * Measuring which algorithm is the fastest: one collective at one size at a time. */
#ifndef TUTTI_TUNE_TUNE_H
#define TUTTI_TUNE_TUNE_H

#include "queue/batch.h"

enum { TUTTI_TRIAL_CHOICES = 40, TUTTI_TRIAL_ROUNDS = 15, TUTTI_TWINS_MOST = 64 };

struct tutti_trial {
    enum tutti_collective collective;
    size_t count; /* float32 elements of a block */
    size_t bytes; /* of the larger buffer */
    /* The same on all ranks; the first is what would be chosen without this trial. */
    struct tutti_choice choices[TUTTI_TRIAL_CHOICES];
    uint32_t nchoices;
    uint64_t live; /* bit per choice that is still in the race */
    /* On rank 0: the medians, and the fastest; the first one, unless that is clearly slower. */
    double seconds[TUTTI_TRIAL_CHOICES];
    uint32_t winner;
    bool is_over; /* before it had begun: there was no time left */
};

/* What the choices for the collective are, at about `bytes`, at least one element of each block. */
int tutti_trial_prepare(const struct tutti_comm *comm, enum tutti_collective collective,
                        size_t bytes, struct tutti_trial *ret_trial);

/* Measure, on all ranks alike, from about now until `deadline_ns`, by rank 0's clock. The buffers
 * have trial->bytes each. Nothing else may be under way on the communicator. */
int tutti_trial_run(struct tutti_comm *comm, struct tutti_trial *trial, void *input, void *output,
                    uint64_t deadline_ns);

/* For each choice of at most TUTTI_TWINS_MOST the first one with the same schedules on all ranks,
 * itself or an earlier one. To be called by all ranks alike. */
int tutti_trial_find_twins(struct tutti_comm *comm, const struct tutti_choice *choices,
                           uint32_t count, uint32_t *ret_twins);

#endif
