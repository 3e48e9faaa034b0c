/* SPDX-License-Identifier: Apache-2.0
 * Crews whose ranks are on GPUs. Rank r is on GPU r modulo the number of GPUs. */
#ifndef TUTTI_TESTS_GPU_RANKS_H
#define TUTTI_TESTS_GPU_RANKS_H

#include "fault/crew.h"
#include "wrap/cuda.h"

#include <stddef.h>
#include <stdint.h>

enum { NRANKS = 3, LONG_MS = 600000 };

/* Marks of the board; the others are the test's. */
enum { MARK_CALLED, MARK_ENDED, MARK_OWN };

struct rank {
    struct crew_seat *seat;
    int32_t *numbers; /* as many as the script says, on the GPU, whose context is current */
};

struct script {
    tuttiResult_t (*act)(struct rank *rank); /* with its communicator formed */
    uint32_t victim;                         /* rank, or call: its meaning depends on the act */
    size_t count;                            /* of numbers */
    void (*before)(struct rank *rank);       /* it is formed; may be NULL */
};

const struct script *script_of(const struct rank *rank);

const struct tutti_cu_driver *driver(void);
/* Of what a test needs and no fault is to meet. */
void must(int code);

/* Copies from the host to the rank's GPU, and waits until the copy has arrived, which cuMemcpy alone
 * need not do. */
void upload(const struct rank *rank, const void *from, size_t bytes);

/* Wait until all ranks have come here, though they may have failed. */
void meet(struct crew_seat *seat, int mark);

/* Rank 2 does not call; rank 0 gives up while what it and rank 1 have enqueued waits. All go on by
 * `act`, which ends for that reason. */
tuttiResult_t abort_meanwhile(struct rank *rank,
                              tuttiResult_t (*enqueue)(struct rank *rank, tuttiStream_t stream),
                              tuttiResult_t (*act)(struct rank *rank));

/* Runs the seats of crews with a script. */
tuttiResult_t form_and_act(struct crew_seat *seat);
struct crew_board *play(const struct script *script, bool is_threads, int timeout_ms,
                        const char *const *environment);

/* The same where all ranks must come through; what was said on the way, until the next time. */
const char *play_aloud(const struct script *script, bool is_threads,
                       const char *const *environment);

/* The GPU of rank 1 is lost: it says so, and the others end. */
void expect_loss(const struct crew_board *board);

/* Fails the test unless the rank got that, and its text says that. */
void expect_report(const struct crew_board *board, int rank, tuttiResult_t wanted,
                   const char *said);

#endif
