/* SPDX-License-Identifier: Apache-2.0
 * The table of protocols (protocols.h). */
#include "algorithms/protocols.h"

#include "base/result.h"

static const char *const names[TUTTI_PROTOCOL_COUNT] = {
    [TUTTI_PROTOCOL_STEPS] = "steps",   [TUTTI_PROTOCOL_LL] = "ll",
    [TUTTI_PROTOCOL_LL128] = "ll128",   [TUTTI_PROTOCOL_DIRECT] = "direct",
    [TUTTI_PROTOCOL_COPIES] = "copies",
};

/* Each is defined in the file that emits it. */
extern const struct tutti_algorithm tutti_two_shot_allreduce, tutti_direct_reduce,
    tutti_direct_allgather, tutti_direct_alltoall, tutti_direct_barrier, tutti_direct_broadcast,
    tutti_direct_gather, tutti_direct_one_shot_reduce, tutti_direct_reduce_scatter,
    tutti_direct_scatter, tutti_linear_exclusive_scan, tutti_linear_scan, tutti_mapped_allgather,
    tutti_mapped_allreduce, tutti_mapped_alltoall, tutti_mapped_exclusive_scan,
    tutti_mapped_gather, tutti_mapped_reduce, tutti_mapped_reduce_scatter, tutti_mapped_scan,
    tutti_mapped_scatter, tutti_one_shot_allreduce, tutti_stored_broadcast;

/* With lines each rank sends what it has to all that need it. With direct accesses each rank works
 * on the buffers of all, or through windows if it cannot use these buffers. The driver copies
 * through windows. A scan through windows moves the same bytes between ranks as a direct one; its
 * form lacks only the copies within each rank. */
static const struct {
    const struct tutti_algorithm *lines, *direct, *copies, *windows;
} forms[TUTTI_COLLECTIVE_COUNT] = {
    [TUTTI_ALLREDUCE] = {&tutti_one_shot_allreduce, &tutti_mapped_allreduce, NULL,
                         &tutti_two_shot_allreduce},
    [TUTTI_REDUCE] = {&tutti_direct_one_shot_reduce, &tutti_mapped_reduce, NULL,
                      &tutti_direct_reduce},
    [TUTTI_BROADCAST] = {&tutti_direct_broadcast, &tutti_stored_broadcast, &tutti_direct_broadcast,
                         &tutti_direct_broadcast},
    [TUTTI_ALLGATHER] = {&tutti_direct_allgather, &tutti_mapped_allgather, &tutti_direct_allgather,
                         &tutti_direct_allgather},
    [TUTTI_REDUCE_SCATTER] = {&tutti_direct_reduce_scatter, &tutti_mapped_reduce_scatter, NULL,
                              &tutti_direct_reduce_scatter},
    [TUTTI_ALLTOALL] = {&tutti_direct_alltoall, &tutti_mapped_alltoall, &tutti_direct_alltoall,
                        &tutti_direct_alltoall},
    [TUTTI_GATHER] = {&tutti_direct_gather, &tutti_mapped_gather, &tutti_direct_gather,
                      &tutti_direct_gather},
    [TUTTI_SCATTER] = {&tutti_direct_scatter, &tutti_mapped_scatter, &tutti_direct_scatter,
                       &tutti_direct_scatter},
    [TUTTI_BARRIER] = {&tutti_direct_barrier, NULL, NULL, NULL},
    [TUTTI_SCAN] = {&tutti_linear_scan, &tutti_mapped_scan, NULL, &tutti_mapped_scan},
    [TUTTI_EXCLUSIVE_SCAN] = {&tutti_linear_exclusive_scan, &tutti_mapped_exclusive_scan, NULL,
                              &tutti_mapped_exclusive_scan},
};

static const struct tutti_protocol_cost costs[TUTTI_PROTOCOL_COUNT] = {
    [TUTTI_PROTOCOL_STEPS] = {.bytes = 1, .flights = 3},
    [TUTTI_PROTOCOL_LL] = {.bytes = 2, .flights = 1},
    [TUTTI_PROTOCOL_LL128] = {.bytes = 128.0 / 120, .flights = 2},
    [TUTTI_PROTOCOL_DIRECT] = {.bytes = 1, .flights = 3},
    [TUTTI_PROTOCOL_COPIES] = {.bytes = 1, .flights = 4},
};

const char *tutti_protocol_name(enum tutti_protocol protocol)
{
    tutti_assert((unsigned)protocol < TUTTI_PROTOCOL_COUNT);
    return names[protocol];
}

const struct tutti_algorithm *tutti_protocol_form(enum tutti_protocol protocol,
                                                  enum tutti_collective collective)
{
    switch (protocol) {
    case TUTTI_PROTOCOL_LL:
    case TUTTI_PROTOCOL_LL128: return forms[collective].lines;
    case TUTTI_PROTOCOL_DIRECT: return forms[collective].direct;
    case TUTTI_PROTOCOL_COPIES: return forms[collective].copies;
    default: return NULL;
    }
}

const struct tutti_algorithm *tutti_protocol_window_form(enum tutti_collective collective)
{
    return forms[collective].windows;
}

struct tutti_protocol_cost tutti_protocol_cost(enum tutti_protocol protocol)
{
    tutti_assert((unsigned)protocol < TUTTI_PROTOCOL_COUNT);
    return costs[protocol];
}
