/* SPDX-License-Identifier: Apache-2.0
 * Trials, which find the fastest algorithm by measurement. A trial measures one collective at one
 * size. tuttiCommTune (tune.c) runs trials and makes a table of their results.
 *
 * The calling thread must be inside the communicator. If tutti_trial_run or tutti_trial_find_equal
 * returns an error, the caller must fail the communicator. */
#ifndef TUTTI_TUNE_TUNE_H
#define TUTTI_TUNE_TUNE_H

#include "queue/batch.h"

enum {
    TUTTI_TRIAL_CHOICES = 40,  /* the most candidates of a trial */
    TUTTI_TRIAL_ROUNDS = 15,   /* the most rounds of a trial */
    TUTTI_TRIAL_COMPARED = 64, /* the most choices that tutti_trial_find_equal compares */
};

struct tutti_trial {
    enum tutti_collective collective;
    bool is_on_gpu; /* the calls are on device memory */
    size_t count; /* float32 elements of a block; 0: the collective moves no data */
    size_t bytes; /* of the larger buffer */
    /* The candidates, the same on all ranks. The first is the tuner's choice without this trial. */
    struct tutti_choice choices[TUTTI_TRIAL_CHOICES];
    uint32_t nchoices;
    uint64_t remaining; /* bit i is set: candidate i has not been dropped */
    /* The median seconds of a call of each candidate. Only rank 0 sets them. */
    double seconds[TUTTI_TRIAL_CHOICES];
    /* The fastest candidate, on all ranks. The first candidate wins unless it is clearly slower. */
    uint32_t winner;
    bool is_skipped; /* true if no time was left to begin, so nothing was measured */
};

/* Collects the candidates for calls of the collective that have about `bytes` in the larger buffer,
 * and at least one element per block. The calls are on device memory if `is_on_gpu`.
 * ret_trial->bytes is the exact size. The function sends no messages, and its result is the same on
 * all ranks. */
int tutti_trial_prepare(const struct tutti_comm *comm, bool is_on_gpu,
                        enum tutti_collective collective, size_t bytes,
                        struct tutti_trial *ret_trial);

/* Measures the candidates until about `deadline_ns`, a time of tutti_now_ns() on rank 0. All ranks
 * must call this function with the same trial. Each buffer has at least trial->bytes bytes. No
 * other operation may be under way on the communicator. */
int tutti_trial_run(struct tutti_comm *comm, struct tutti_trial *trial, void *input, void *output,
                    uint64_t deadline_ns);

/* For each choice i, sets ret_equal[i] to the index of the first choice that has the same schedules
 * on all ranks, which is at most i. `count` is at most TUTTI_TRIAL_COMPARED. All ranks must call
 * this function with the same choices. The options of the choices must be resolved. */
int tutti_trial_find_equal(struct tutti_comm *comm, const struct tutti_choice *choices,
                           uint32_t count, uint32_t *ret_equal);

#endif
