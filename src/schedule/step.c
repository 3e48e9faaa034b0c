/* SPDX-License-Identifier: Apache-2.0
 * The layout of the collectives' buffers, and the names of collectives, steps and options.
 */
#include "schedule/step.h"
#include "schedule/shape.h"

#include <stdlib.h>

uint32_t tutti_input_blocks(enum tutti_collective collective, uint32_t nranks)
{
    switch (collective) {
    case TUTTI_REDUCE_SCATTER:
    case TUTTI_SCATTER:
    case TUTTI_ALLTOALL:
        return nranks;
    case TUTTI_BARRIER:
        return 0;
    default:
        return 1;
    }
}

uint32_t tutti_output_blocks(enum tutti_collective collective, uint32_t nranks)
{
    switch (collective) {
    case TUTTI_ALLGATHER:
    case TUTTI_GATHER:
    case TUTTI_ALLTOALL:
        return nranks;
    case TUTTI_BARRIER:
        return 0;
    default:
        return 1;
    }
}

bool tutti_has_input(enum tutti_collective collective, uint32_t rank, uint32_t root)
{
    switch (collective) {
    case TUTTI_BROADCAST:
    case TUTTI_SCATTER:
        return rank == root;
    case TUTTI_BARRIER:
        return false;
    default:
        return true;
    }
}

bool tutti_has_output(enum tutti_collective collective, uint32_t rank, uint32_t root)
{
    switch (collective) {
    case TUTTI_REDUCE:
    case TUTTI_GATHER:
        return rank == root;
    case TUTTI_BARRIER:
        return false;
    default:
        return true;
    }
}

bool tutti_in_place_shift(enum tutti_collective collective, uint32_t rank, uint32_t root,
                          uint32_t chunks_per_block, int64_t *ret_shift)
{
    int64_t block = (int64_t)rank * chunks_per_block;

    if (!tutti_has_input(collective, rank, root) || !tutti_has_output(collective, rank, root))
        return false;
    switch (collective) {
    case TUTTI_ALLREDUCE:
    case TUTTI_REDUCE:
    case TUTTI_BROADCAST:
        *ret_shift = 0;
        return true;
    case TUTTI_ALLGATHER:
    case TUTTI_GATHER: /* only the root gets here */
        *ret_shift = block;
        return true;
    case TUTTI_REDUCE_SCATTER:
    case TUTTI_SCATTER: /* only the root gets here */
        *ret_shift = -block;
        return true;
    default:
        return false;
    }
}

bool tutti_collective_reduces(enum tutti_collective collective)
{
    return collective == TUTTI_ALLREDUCE || collective == TUTTI_REDUCE ||
           collective == TUTTI_REDUCE_SCATTER;
}

bool tutti_collective_has_root(enum tutti_collective collective)
{
    return collective == TUTTI_REDUCE || collective == TUTTI_BROADCAST ||
           collective == TUTTI_GATHER || collective == TUTTI_SCATTER;
}

const char *tutti_collective_name(enum tutti_collective collective)
{
    static const char *const names[TUTTI_COLLECTIVE_COUNT] = {
        [TUTTI_ALLREDUCE] = "allreduce",
        [TUTTI_REDUCE] = "reduce",
        [TUTTI_BROADCAST] = "broadcast",
        [TUTTI_ALLGATHER] = "allgather",
        [TUTTI_REDUCE_SCATTER] = "reduce_scatter",
        [TUTTI_ALLTOALL] = "alltoall",
        [TUTTI_GATHER] = "gather",
        [TUTTI_SCATTER] = "scatter",
        [TUTTI_BARRIER] = "barrier",
    };

    return (unsigned)collective < TUTTI_COLLECTIVE_COUNT ? names[collective] : "unknown";
}

const char *tutti_step_name(enum tutti_step_kind kind)
{
    static const char *const names[TUTTI_STEP_KIND_COUNT] = {
        [TUTTI_STEP_SEND] = "send",
        [TUTTI_STEP_RECV] = "recv",
        [TUTTI_STEP_RECV_REDUCE] = "recv_reduce",
        [TUTTI_STEP_RECV_COPY_SEND] = "recv_copy_send",
        [TUTTI_STEP_RECV_REDUCE_SEND] = "recv_reduce_send",
        [TUTTI_STEP_RECV_REDUCE_COPY_SEND] = "recv_reduce_copy_send",
        [TUTTI_STEP_COPY] = "copy",
        [TUTTI_STEP_REDUCE] = "reduce",
        [TUTTI_STEP_PUT] = "put",
        [TUTTI_STEP_GET] = "get",
        [TUTTI_STEP_GATHER_REDUCE] = "gather_reduce",
        [TUTTI_STEP_SIGNAL] = "signal",
        [TUTTI_STEP_WAIT] = "wait",
    };

    return (unsigned)kind < TUTTI_STEP_KIND_COUNT ? names[kind] : "unknown";
}

const char *tutti_option_name(enum tutti_option option)
{
    static const char *const names[TUTTI_OPTION_COUNT] = {
        [TUTTI_SEGMENTS] = "segments", [TUTTI_RADIX] = "radix",
        [TUTTI_WINDOW] = "window",     [TUTTI_AGGREGATE] = "aggregate",
        [TUTTI_DOUBLINGS] = "doublings", [TUTTI_CHANNELS] = "channels",
    };

    return (unsigned)option < TUTTI_OPTION_COUNT ? names[option] : "unknown";
}

void tutti_schedule_destroy(struct tutti_schedule *schedule)
{
    if (schedule == NULL)
        return;
    free(schedule->steps);
    free(schedule->deps);
    free(schedule->among);
    free(schedule);
}
