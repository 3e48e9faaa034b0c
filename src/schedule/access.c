/* SPDX-License-Identifier: Apache-2.0
 * Lists the spans that a step touches, and numbers the chunks of a rank as cells of one memory.
 */
#include "schedule/access.h"

struct list {
    struct tutti_touch *at;
    uint32_t count;
};

static void add(struct list *list, int32_t rank, bool is_write, struct tutti_span span)
{
    if (span.buffer != TUTTI_BUF_NONE && span.count > 0)
        list->at[list->count++] = (struct tutti_touch){rank, is_write, span};
}

uint32_t tutti_step_accesses(const struct tutti_step *step,
                             struct tutti_touch accesses[TUTTI_STEP_ACCESSES])
{
    struct list list = {.at = accesses};

    switch (step->kind) {
    case TUTTI_STEP_SEND:
    case TUTTI_STEP_RECV_REDUCE_SEND:
        add(&list, TUTTI_NO_RANK, false, step->src);
        break;
    case TUTTI_STEP_RECV:
    case TUTTI_STEP_RECV_COPY_SEND:
        add(&list, TUTTI_NO_RANK, true, step->dst);
        break;
    case TUTTI_STEP_RECV_REDUCE:
    case TUTTI_STEP_RECV_REDUCE_COPY_SEND:
    case TUTTI_STEP_COPY:
        add(&list, TUTTI_NO_RANK, false, step->src);
        add(&list, TUTTI_NO_RANK, true, step->dst);
        break;
    case TUTTI_STEP_REDUCE:
        add(&list, TUTTI_NO_RANK, false, step->src);
        add(&list, TUTTI_NO_RANK, false, step->dst);
        add(&list, TUTTI_NO_RANK, true, step->dst);
        break;
    case TUTTI_STEP_PUT:
        add(&list, TUTTI_NO_RANK, false, step->src);
        add(&list, TUTTI_NO_RANK, true, step->dst);
        add(&list, step->to, true, step->remote);
        break;
    case TUTTI_STEP_GET:
        add(&list, step->from, false, step->remote);
        add(&list, TUTTI_NO_RANK, true, step->dst);
        break;
    case TUTTI_STEP_GATHER_REDUCE:
        add(&list, TUTTI_NO_RANK, false, step->src);
        add(&list, TUTTI_ALL_RANKS, false, step->remote);
        add(&list, TUTTI_NO_RANK, true, step->dst);
        add(&list, TUTTI_NO_RANK, true, step->also);
        if (step->to != TUTTI_NO_RANK)
            add(&list, step->to, true, step->remote_dst);
        break;
    default:
        break;
    }
    return list.count;
}

bool tutti_step_has_valid_stores(const struct tutti_step *step)
{
    const struct tutti_span *remote =
        step->kind == TUTTI_STEP_PUT ? &step->remote : &step->remote_dst;
    bool has_dst = step->dst.buffer != TUTTI_BUF_NONE && step->dst.count > 0;
    bool has_remote = remote->buffer != TUTTI_BUF_NONE && remote->count > 0;

    if (step->to >= 0)
        return has_remote && step->dst.buffer == TUTTI_BUF_NONE &&
               step->also.buffer == TUTTI_BUF_NONE;
    return has_dst && has_remote == (step->to == TUTTI_ALL_RANKS);
}

uint32_t tutti_buffer_chunks(const struct tutti_schedule *schedule, uint32_t rank,
                             enum tutti_buffer buffer)
{
    enum tutti_collective collective = (enum tutti_collective)schedule->collective;

    switch (buffer) {
    case TUTTI_BUF_INPUT:
        if (!tutti_collective_has_input(collective, rank, schedule->root))
            return 0;
        return tutti_input_blocks(collective, schedule->nranks) * schedule->chunks_per_block;
    case TUTTI_BUF_OUTPUT:
        if (!tutti_collective_has_output(collective, rank, schedule->root))
            return 0;
        return tutti_output_blocks(collective, schedule->nranks) * schedule->chunks_per_block;
    case TUTTI_BUF_SCRATCH:
        return schedule->scratch_chunks;
    case TUTTI_BUF_WINDOW:
        return schedule->window_chunks;
    default:
        return 0;
    }
}

const char *tutti_buffer_name(enum tutti_buffer buffer)
{
    static const char *const names[TUTTI_BUF_COUNT] = {"none", "input", "output", "scratch",
                                                       "window"};

    return (unsigned)buffer < TUTTI_BUF_COUNT ? names[buffer] : "unknown";
}

void tutti_chunk_space_init(struct tutti_chunk_space *cells, const struct tutti_schedule *schedule,
                            uint32_t rank, bool is_overlaid)
{
    enum tutti_collective collective = (enum tutti_collective)schedule->collective;
    uint32_t input, output, shared;
    int64_t shift;

    *cells = (struct tutti_chunk_space){.count = 0};
    for (int buffer = TUTTI_BUF_INPUT; buffer < TUTTI_BUF_COUNT; buffer++) {
        cells->chunks[buffer] = tutti_buffer_chunks(schedule, rank, (enum tutti_buffer)buffer);
        cells->base[buffer] = cells->count;
        cells->count += cells->chunks[buffer];
    }
    if (!is_overlaid || !tutti_collective_in_place_shift(collective, rank, schedule->root,
                                                         schedule->chunks_per_block, &shift))
        return;

    /* The smaller buffer lies inside the larger one; the cells after the two move down. */
    input = cells->chunks[TUTTI_BUF_INPUT];
    output = cells->chunks[TUTTI_BUF_OUTPUT];
    shared = input <= output ? input : output;
    cells->base[TUTTI_BUF_INPUT] = input <= output ? shift : 0;
    cells->base[TUTTI_BUF_OUTPUT] = input <= output ? 0 : -shift;
    cells->base[TUTTI_BUF_SCRATCH] -= shared;
    cells->base[TUTTI_BUF_WINDOW] -= shared;
    cells->count -= shared;
}
