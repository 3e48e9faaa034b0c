/* SPDX-License-Identifier: Apache-2.0
 * Calls and machines as the tuner sees them. */
#include "common/ground.h"

#include "base/param.h"
#include "schedule/bind.h"

size_t ground_block_bytes(enum tutti_collective collective, uint32_t nranks, double size_bytes)
{
    uint32_t input = tutti_input_blocks(collective, nranks);
    uint32_t output = tutti_output_blocks(collective, nranks);
    uint32_t blocks = input > output ? input : output;
    double block_bytes;

    if (blocks == 0)
        return 0;
    block_bytes = size_bytes / blocks;
    return block_bytes < 1 ? 1 : (size_t)block_bytes;
}

double ground_bus_factor(enum tutti_collective collective, uint32_t nranks)
{
    double part = (nranks - 1.0) / nranks;

    switch (collective) {
    case TUTTI_ALLREDUCE: return 2 * part;
    case TUTTI_REDUCE:
    case TUTTI_BROADCAST: return 1;
    default: return part;
    }
}

void ground_view(const struct tutti_machine *machine, struct tutti_tuner_view *ret_view)
{
    bool is_one_node = machine->places.node != NULL && machine->places.nnodes == 1;

    *ret_view = (struct tutti_tuner_view){
        .nranks = machine->places.nranks,
        .is_one_domain = is_one_node,
        .all_read = is_one_node,
        .all_store = is_one_node,
        .half_bytes = is_one_node ? (size_t)tutti_param_int(TUTTI_PARAM_WINDOW_BYTES) / 2 : 0,
        .stage_bytes = TUTTI_STAGE_BYTES,
        .scratch_bytes = TUTTI_SCRATCH_BYTES,
        .places = &machine->places,
        .machine = machine,
    };
}
