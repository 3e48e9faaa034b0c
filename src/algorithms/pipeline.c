/* SPDX-License-Identifier: Apache-2.0
 * Segments that move through trees, round by round: up to the top, where they are complete, and
 * down again at once.
 *
 *   round             -2   -1    0    1    2    3    4     a chain, the top at depth 0: the edges
 *   depth 2 -> 1       a    b    c                         have delays 1 and 2, the period is 1;
 *   depth 1 -> 0            a    b    c                    letters are segments
 *   depth 0 -> 1                      a    b    c
 *   depth 1 -> 2                           a    b    c
 *
 * Every rank emits its steps round by round. So there is one order of all messages, consistent with
 * the order in every lane, even where several trees send both ways between the same two ranks: no
 * step waits for a later one. Rounds only give the order; a segment moves on as soon as it can.
 */
#include "algorithms/pipeline.h"

#include "base/result.h"

/* How this rank handles segments: `kept` is where sums are kept on the way up, `source` is where
 * segments are sent from on the way down. */
struct flow {
    struct tutti_build *build;
    const struct tutti_pipeline *pipeline;
    bool goes_up, goes_down;
    enum tutti_buffer kept, source;
};

static struct flow flow_of(struct tutti_build *build, const struct tutti_pipeline *pipeline)
{
    const struct tutti_schedule *schedule = build->schedule;
    bool is_allreduce = schedule->collective == TUTTI_ALLREDUCE;
    bool is_root = schedule->rank == schedule->root;

    return (struct flow){
        .build = build,
        .pipeline = pipeline,
        .goes_up = tutti_collective_reduces(schedule->collective),
        .goes_down = (tutti_collective_output(schedule->collective) & TUTTI_AT_ROOT) == 0,
        .kept = is_allreduce || is_root ? TUTTI_BUF_OUTPUT : TUTTI_BUF_SCRATCH,
        .source = is_root && !is_allreduce ? TUTTI_BUF_INPUT : TUTTI_BUF_OUTPUT,
    };
}

/* The chunk of a tree that is due after `rounds` rounds, counted from its first segment; false if
 * none is. */
static bool find_chunk(const struct tutti_pipeline *pipeline, uint32_t tree, int64_t rounds,
                       uint32_t *ret_chunk)
{
    if (rounds < 0 || rounds % pipeline->period != 0 ||
        rounds / pipeline->period >= pipeline->segments)
        return false;
    *ret_chunk = tree * pipeline->segments + (uint32_t)(rounds / pipeline->period);
    return true;
}

/* Selects the channel of a tree. */
static void take_channel(const struct flow *flow, uint32_t tree)
{
    const struct tutti_pipeline *pipeline = flow->pipeline;

    flow->build->channel =
        (uint8_t)(pipeline->has_channels ? pipeline->first_channel + tree : 0);
}

/* Emit the steps of a round on the way up one tree. Children send in reverse order, so the data of
 * the last child is added to this rank's input first. */
static int go_up(const struct flow *flow, uint32_t tree, int64_t round)
{
    const struct tutti_pipeline_node *node = &flow->pipeline->nodes[tree];
    uint32_t chunk;

    take_channel(flow, tree);
    if (node->parent.delay > 0 &&
        find_chunk(flow->pipeline, tree, round + node->parent.delay, &chunk)) {
        enum tutti_buffer sum = node->nchildren > 0 ? flow->kept : TUTTI_BUF_INPUT;

        TUTTI_TRY(tutti_build_send(flow->build, node->parent.rank, tutti_span(sum, chunk, 1)));
    }
    for (uint32_t i = node->nchildren; i-- > 0;) {
        enum tutti_buffer sum = i + 1 == node->nchildren ? TUTTI_BUF_INPUT : flow->kept;

        if (find_chunk(flow->pipeline, tree, round + node->children[i].delay, &chunk))
            TUTTI_TRY(tutti_build_recv_reduce(flow->build, node->children[i].rank,
                                              tutti_span(sum, chunk, 1),
                                              tutti_span(flow->kept, chunk, 1)));
    }
    return TUTTI_OK;
}

/* Emit the steps of a round on the way down one tree. */
static int go_down(const struct flow *flow, uint32_t tree, int64_t round)
{
    const struct tutti_pipeline_node *node = &flow->pipeline->nodes[tree];
    uint32_t chunk;

    take_channel(flow, tree);
    for (uint32_t i = 0; i < node->nchildren; i++)
        if (find_chunk(flow->pipeline, tree, round - node->children[i].delay, &chunk))
            TUTTI_TRY(tutti_build_send(flow->build, node->children[i].rank,
                                       tutti_span(flow->source, chunk, 1)));
    if (node->parent.delay > 0 &&
        find_chunk(flow->pipeline, tree, round - node->parent.delay, &chunk))
        TUTTI_TRY(tutti_build_recv(flow->build, node->parent.rank,
                                   tutti_span(TUTTI_BUF_OUTPUT, chunk, 1)));
    return TUTTI_OK;
}

/* The latest round in which an edge of this rank carries its first segment; also tells whether this
 * rank has children. */
static uint32_t find_last(const struct tutti_pipeline *pipeline, bool *ret_has_children)
{
    uint32_t last = 0;

    *ret_has_children = false;
    for (uint32_t t = 0; t < pipeline->ntrees; t++) {
        const struct tutti_pipeline_node *node = &pipeline->nodes[t];
        uint32_t delay =
            node->nchildren > 0 ? node->children[node->nchildren - 1].delay : node->parent.delay;

        last = delay > last ? delay : last;
        *ret_has_children = *ret_has_children || node->nchildren > 0;
    }
    return last;
}

int tutti_pipeline_emit(struct tutti_build *build, const struct tutti_pipeline *pipeline)
{
    struct flow flow = flow_of(build, pipeline);
    uint32_t nchunks = pipeline->ntrees * pipeline->segments;
    bool has_children;
    int64_t last = find_last(pipeline, &has_children);
    int64_t end = (int64_t)(pipeline->segments - 1) * pipeline->period + last;

    tutti_build_chunks(build, nchunks);
    if (flow.goes_up && flow.kept == TUTTI_BUF_SCRATCH && has_children)
        tutti_build_scratch(build, TUTTI_SCRATCH_VECTOR, nchunks);
    if (pipeline->ntrees == 1 && !flow.goes_down)
        tutti_build_one_tree(build);
    for (int64_t round = -last; round <= end; round++) {
        for (uint32_t t = 0; flow.goes_up && t < pipeline->ntrees; t++)
            TUTTI_TRY(go_up(&flow, t, round));
        for (uint32_t t = 0; flow.goes_down && t < pipeline->ntrees; t++)
            TUTTI_TRY(go_down(&flow, t, round));
    }
    if (flow.source == TUTTI_BUF_OUTPUT || !flow.goes_down)
        return TUTTI_OK;
    return tutti_build_copy(build, tutti_span(TUTTI_BUF_INPUT, 0, nchunks),
                            tutti_span(TUTTI_BUF_OUTPUT, 0, nchunks));
}

void tutti_pipeline_cost(const struct tutti_shape *shape, uint32_t height, uint32_t fan,
                         uint32_t ntrees, double block_bytes, struct tutti_cost *ret_cost)
{
    bool is_allreduce = shape->collective == TUTTI_ALLREDUCE;
    bool reduces = tutti_collective_reduces(shape->collective);
    double segments = shape->options.value[TUTTI_SEGMENTS];
    double segment_bytes = block_bytes / (segments * ntrees);
    double first = (is_allreduce ? 2.0 : 1.0) * fan * height;
    /* All-reduce: messages up to the parents share the port with messages down to the children. */
    double next = is_allreduce ? fan + ntrees : fan;
    double rounds = first + (segments - 1) * next;

    tutti_cost_flat(shape, rounds, rounds * segment_bytes,
                    reduces ? fan * segments * segment_bytes : 0, reduces ? 0 : block_bytes,
                    ret_cost);
}
