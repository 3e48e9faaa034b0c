/* SPDX-License-Identifier: Apache-2.0
 * Measuring which algorithm is the fastest. A trial measures one collective at one size. */
#ifndef TUTTI_TUNE_TUNE_H
#define TUTTI_TUNE_TUNE_H

#include "queue/batch.h"

enum { TUTTI_TRIAL_CHOICES = 40, TUTTI_TRIAL_ROUNDS = 15, TUTTI_TRIAL_MOST = 64 };

struct tutti_trial {
    enum tutti_collective collective;
    size_t count; /* float32 elements of a block */
    size_t bytes; /* of the larger buffer */
    /* The candidates, the same on all ranks. The first is the tuner's choice without this trial. */
    struct tutti_choice choices[TUTTI_TRIAL_CHOICES];
    uint32_t nchoices;
    uint64_t live; /* one bit per candidate that is still in the race */
    /* The median seconds of a call; on rank 0 only. */
    double seconds[TUTTI_TRIAL_CHOICES];
    /* The fastest candidate, on all ranks. The first candidate wins unless it is clearly slower. */
    uint32_t winner;
    bool is_over; /* true if there was no time left to begin */
};

/* Collects the candidates for the collective, with about `bytes` in the larger buffer, and at least
 * one element per block. trial->bytes is the exact size. Local, and the same on all ranks. */
int tutti_trial_prepare(const struct tutti_comm *comm, enum tutti_collective collective,
                        size_t bytes, struct tutti_trial *ret_trial);

/* Measures the candidates, from now until about `deadline_ns` of rank 0's clock. All ranks call it
 * with the same trial. Each buffer has at least trial->bytes. No other operation may be under way
 * on the communicator. */
int tutti_trial_run(struct tutti_comm *comm, struct tutti_trial *trial, void *input, void *output,
                    uint64_t deadline_ns);

/* For each of `count` choices, at most TUTTI_TRIAL_MOST, finds the first one that has the same
 * schedules on all ranks: ret_equal[i] <= i. All ranks call it with the same choices. Their options
 * must be resolved. */
int tutti_trial_find_equal(struct tutti_comm *comm, const struct tutti_choice *choices,
                           uint32_t count, uint32_t *ret_equal);

#endif
