/* SPDX-License-Identifier: Apache-2.0
 * Segments on their way through trees, as a heart would pump them: at every beat each edge carries
 * one segment. Up they go to the top, where they are complete, and down again at once.
 *
 *   beat              -2   -1    0    1    2    3       a chain, the top at depth 0; letters are
 *   depth 2 -> 1       a    b    c                      segments. Between depth d and d - 1 segment
 *   depth 1 -> 0            a    b    c                 j goes up at beat j - d, down at beat j + d
 *   depth 0 -> 1                      a    b    c
 *   depth 1 -> 2                           a    b ...
 *
 * Every rank emits its steps beat by beat. So there is one order of all messages that all lanes
 * agree with, also where several trees send both ways between the same two ranks: nothing ever
 * waits for something later. Beats are only the order; a segment moves on when it can.
 */
#include "algorithms/pipeline.h"

#include "base/result.h"

/* What a rank of a collective does with a segment: where its sum is kept on the way up, and where
 * it is sent from on the way down. */
struct flow {
    struct tutti_build *build;
    uint32_t segments;
    bool goes_up, goes_down;
    enum tutti_buffer kept, source;
};

static struct flow flow_of(struct tutti_build *build, uint32_t segments)
{
    const struct tutti_schedule *schedule = build->schedule;
    bool is_allreduce = schedule->collective == TUTTI_ALLREDUCE;
    bool is_root = schedule->rank == schedule->root;

    return (struct flow){
        .build = build,
        .segments = segments,
        .goes_up = schedule->collective != TUTTI_BROADCAST,
        .goes_down = schedule->collective != TUTTI_REDUCE,
        .kept = is_allreduce || is_root ? TUTTI_BUF_OUTPUT : TUTTI_BUF_SCRATCH,
        .source = is_root && !is_allreduce ? TUTTI_BUF_INPUT : TUTTI_BUF_OUTPUT,
    };
}

static bool is_segment(const struct flow *flow, int64_t segment)
{
    return segment >= 0 && segment < flow->segments;
}

/* `first`: the chunk of this tree's first segment. */
static int send_beat(const struct flow *flow, const struct pipeline_node *node, uint32_t first,
                     int64_t beat)
{
    int64_t up = beat + node->depth, down = beat - node->depth - 1;

    if (flow->goes_up && node->depth > 0 && is_segment(flow, up)) {
        enum tutti_buffer sum = node->nchildren > 0 ? flow->kept : TUTTI_BUF_INPUT;

        TUTTI_TRY(tutti_build_send(flow->build, node->parent,
                                   tutti_span(sum, first + (uint32_t)up, 1)));
    }
    if (!flow->goes_down || !is_segment(flow, down))
        return TUTTI_OK;
    for (uint32_t i = 0; i < node->nchildren; i++)
        TUTTI_TRY(tutti_build_send(flow->build, node->children[i],
                                   tutti_span(flow->source, first + (uint32_t)down, 1)));
    return TUTTI_OK;
}

static int recv_beat(const struct flow *flow, const struct pipeline_node *node, uint32_t first,
                     int64_t beat)
{
    int64_t up = beat + node->depth + 1, down = beat - node->depth;

    if (flow->goes_up && is_segment(flow, up)) {
        struct tutti_span sum = tutti_span(TUTTI_BUF_INPUT, first + (uint32_t)up, 1);

        for (uint32_t i = 0; i < node->nchildren; i++) {
            struct tutti_span next = tutti_span(flow->kept, first + (uint32_t)up, 1);

            TUTTI_TRY(tutti_build_recv_reduce(flow->build, node->children[i], sum, next));
            sum = next;
        }
    }
    if (!flow->goes_down || node->depth == 0 || !is_segment(flow, down))
        return TUTTI_OK;
    return tutti_build_recv(flow->build, node->parent,
                            tutti_span(TUTTI_BUF_OUTPUT, first + (uint32_t)down, 1));
}

static int beat(const struct flow *flow, const struct pipeline_node *nodes, uint32_t ntrees,
                int64_t at)
{
    for (uint32_t t = 0; t < ntrees; t++)
        TUTTI_TRY(send_beat(flow, &nodes[t], t * flow->segments, at));
    for (uint32_t t = 0; t < ntrees; t++)
        TUTTI_TRY(recv_beat(flow, &nodes[t], t * flow->segments, at));
    return TUTTI_OK;
}

int tutti_pipeline_emit(struct tutti_build *build, const struct pipeline_node *nodes,
                        uint32_t ntrees, uint32_t segments)
{
    struct flow flow = flow_of(build, segments);
    uint32_t nchunks = ntrees * segments, nchildren = 0;
    int64_t depth = 0;

    for (uint32_t t = 0; t < ntrees; t++) {
        nchildren += nodes[t].nchildren;
        depth = nodes[t].depth > depth ? nodes[t].depth : depth;
    }
    tutti_build_chunks(build, nchunks);
    if (flow.goes_up && flow.kept == TUTTI_BUF_SCRATCH && nchildren > 0)
        tutti_build_scratch(build, TUTTI_SCRATCH_VECTOR, nchunks);
    for (int64_t at = -depth - 1; at <= segments + depth; at++)
        TUTTI_TRY(beat(&flow, nodes, ntrees, at));
    if (flow.source == TUTTI_BUF_OUTPUT || !flow.goes_down)
        return TUTTI_OK;
    return tutti_build_copy(build, tutti_span(TUTTI_BUF_INPUT, 0, nchunks),
                            tutti_span(TUTTI_BUF_OUTPUT, 0, nchunks));
}

void tutti_pipeline_cost(const struct tutti_shape *shape, enum tutti_collective collective,
                         uint32_t height, uint32_t fan, uint32_t ntrees, double block_bytes,
                         struct tutti_cost *ret_cost)
{
    bool is_allreduce = collective == TUTTI_ALLREDUCE;
    double segments = shape->options.value[TUTTI_SEGMENTS];
    double segment_bytes = block_bytes / (segments * ntrees);
    double first = (is_allreduce ? 2.0 : 1.0) * fan * height;
    /* All-reduce: what goes up to the parents shares the port with what goes down. */
    double next = is_allreduce ? fan + ntrees : fan;
    double rounds = first + (segments - 1) * next;

    tutti_cost_flat(shape, rounds, rounds * segment_bytes,
                    collective == TUTTI_BROADCAST ? 0 : fan * segments * segment_bytes,
                    collective == TUTTI_BROADCAST ? block_bytes : 0, ret_cost);
}
