/* SPDX-License-Identifier: Apache-2.0
 * Computes size classes. Chunks of one class have equal sizes for all counts of a call.
 */
#include "schedule/check/model.h"

uint32_t tutti_check_class(const struct tutti_check *check, uint32_t rank, uint32_t buffer,
                           uint32_t chunk)
{
    const struct tutti_schedule *schedule = check->schedules[rank];
    enum tutti_collective collective = (enum tutti_collective)schedule->collective;
    uint32_t k = schedule->chunks_per_block, p = check->nranks, blocks;

    if (buffer == TUTTI_BUF_WINDOW || !tutti_collective_has_data(collective) ||
        (buffer == TUTTI_BUF_SCRATCH && schedule->scratch_like != TUTTI_SCRATCH_VECTOR))
        return TUTTI_CHECK_NONE;
    if (!check->options.is_vector)
        return chunk % k;

    /* An all-to-all has a block from each rank to each rank, so p * p blocks. SCRATCH has the sizes
     * of INPUT. */
    if (tutti_collective_is_pairwise(collective) && buffer == TUTTI_BUF_OUTPUT)
        return ((chunk / k) * p + rank) * k + chunk % k;
    if (tutti_collective_is_pairwise(collective))
        return (rank * p + chunk / k) * k + chunk % k;

    /* Else one buffer has a block per rank, and a buffer of a single block holds the rank's own. If
     * both buffers have one block, all blocks are equal. */
    blocks = buffer == TUTTI_BUF_INPUT    ? tutti_input_blocks(collective, p)
             : buffer == TUTTI_BUF_OUTPUT ? tutti_output_blocks(collective, p)
                                          : p;
    if (tutti_input_blocks(collective, p) == tutti_output_blocks(collective, p))
        return chunk % k;
    return blocks == 1 && p > 1 ? rank * k + chunk : chunk;
}

struct tutti_span tutti_check_sized_span(const struct tutti_check *check, uint32_t step)
{
    const struct tutti_step *own = tutti_check_step(check, step);
    uint32_t rank = check->step_rank[step];

    if (own->kind == TUTTI_STEP_SEND || own->kind == TUTTI_STEP_RECV_REDUCE_SEND)
        return own->src;
    if (own->kind == TUTTI_STEP_RECV || own->kind == TUTTI_STEP_RECV_COPY_SEND)
        return own->dst;
    return tutti_check_class(check, rank, own->dst.buffer, own->dst.first) != TUTTI_CHECK_NONE
               ? own->dst
               : own->src;
}

uint32_t tutti_check_classes_differ(const struct tutti_check *check, uint32_t rank_a,
                                    const struct tutti_span *a, uint32_t rank_b,
                                    const struct tutti_span *b, uint32_t count, bool is_lenient)
{
    uint32_t k = check->schedules[0]->chunks_per_block, stride;

    /* Within a block the class grows by one from chunk to chunk, so compare only where a block
     * begins. */
    for (uint32_t i = 0; i < count; i += stride) {
        uint32_t left_a = k - (a->first + i) % k, left_b = k - (b->first + i) % k;
        uint32_t class_a = tutti_check_class(check, rank_a, a->buffer, a->first + i);
        uint32_t class_b = tutti_check_class(check, rank_b, b->buffer, b->first + i);
        bool has_both = class_a != TUTTI_CHECK_NONE && class_b != TUTTI_CHECK_NONE;

        if (class_a != class_b && (has_both || !is_lenient))
            return i;
        stride = left_a < left_b ? left_a : left_b;
    }
    return count;
}
