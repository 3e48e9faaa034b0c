/* SPDX-License-Identifier: Apache-2.0
 * Graphs: a capture makes one, and it can be launched any number of times. */
#include "simcuda/cuda/graph.h"

#include "simcuda/cuda/api.h"
#include "simcuda/cuda/stream.h"
#include "simcuda/die.h"

#include <stdlib.h>
#include <string.h>

struct node {
    struct sim_work *work; /* held */
    uint32_t nearlier;
    uint32_t *earlier;
};

struct tutti_cu_graph {
    uint32_t nnodes;
    struct node *nodes;
    bool is_users; /* handed out; else a capture's */
    struct tutti_cu_graph *next;
};

struct tutti_cu_exec {
    uint32_t nrefs; /* the user until it is destroyed, each launch */
    struct tutti_cu_graph *graph; /* its own */
    struct tutti_cu_context *context;
    struct sim_op *newest; /* held: launches follow each other; NULL: none yet */
    struct tutti_cu_exec *next;
};

static struct tutti_cu_graph *graphs; /* the users' and others */
static struct tutti_cu_exec *execs;   /* that are not destroyed */

/* ---- graphs ---------------------------------------------------------------------------------- */

struct tutti_cu_graph *sim_graph_create(void)
{
    struct tutti_cu_graph *graph = calloc(1, sizeof *graph);

    if (graph == NULL)
        sim_die("no memory for a graph");
    graph->next = graphs;
    graphs = graph;
    return graph;
}

void sim_graph_destroy(struct tutti_cu_graph *graph)
{
    struct tutti_cu_graph **link = &graphs;

    while (*link != graph)
        link = &(*link)->next;
    *link = graph->next;
    for (uint32_t i = 0; i < graph->nnodes; i++) {
        sim_work_drop(graph->nodes[i].work);
        free(graph->nodes[i].earlier);
    }
    free(graph->nodes);
    free(graph);
}

uint32_t sim_graph_add(struct tutti_cu_graph *graph, struct sim_work *work,
                       const uint32_t *earlier, uint32_t nearlier)
{
    struct node node = {.work = work, .nearlier = nearlier};

    graph->nodes = realloc(graph->nodes, (graph->nnodes + 1) * sizeof *graph->nodes);
    node.earlier = calloc(nearlier + 1, sizeof *node.earlier);
    if (graph->nodes == NULL || node.earlier == NULL)
        sim_die("no memory for a graph");
    for (uint32_t i = 0; i < nearlier; i++)
        node.earlier[i] = earlier[i];
    graph->nodes[graph->nnodes] = node;
    return graph->nnodes++;
}

bool sim_graph_leads(const struct tutti_cu_graph *graph, uint32_t node, const uint32_t *ends,
                     uint32_t nends)
{
    bool *is_before = calloc(graph->nnodes, sizeof *is_before), leads;

    if (is_before == NULL)
        sim_die("no memory for a graph");
    for (uint32_t i = 0; i < nends; i++)
        is_before[ends[i]] = true;
    for (uint32_t i = graph->nnodes; i-- > node;)
        for (uint32_t e = 0; is_before[i] && e < graph->nodes[i].nearlier; e++)
            is_before[graph->nodes[i].earlier[e]] = true;
    leads = is_before[node];
    free(is_before);
    return leads;
}

static bool is_graph(const struct tutti_cu_graph *graph)
{
    const struct tutti_cu_graph *at = graphs;

    while (at != NULL && at != graph)
        at = at->next;
    return at != NULL;
}

int cuGraphDestroy(struct tutti_cu_graph *graph)
{
    int code = sim_enter(__func__, SIM_NEEDS_NOTHING);

    if (code != 0)
        return code;
    if (!is_graph(graph))
        return sim_leave(TUTTI_CU_INVALID_VALUE);
    sim_graph_destroy(graph);
    return sim_leave(0);
}

/* ---- what can be launched -------------------------------------------------------------------- */

static bool is_exec(const struct tutti_cu_exec *exec)
{
    const struct tutti_cu_exec *at = execs;

    while (at != NULL && at != exec)
        at = at->next;
    return at != NULL;
}

void sim_exec_drop(struct tutti_cu_exec *exec)
{
    if (--exec->nrefs > 0)
        return;
    sim_graph_destroy(exec->graph);
    free(exec);
}

int cuGraphInstantiateWithFlags(struct tutti_cu_exec **ret_exec, struct tutti_cu_graph *graph,
                                unsigned long long flags)
{
    struct tutti_cu_exec *exec;
    int code = sim_enter(__func__, SIM_NEEDS_CONTEXT);

    if (code != 0)
        return code;
    if (!is_graph(graph) || flags != 0)
        return sim_leave(TUTTI_CU_INVALID_VALUE);
    exec = calloc(1, sizeof *exec);
    if (exec == NULL)
        sim_die("no memory for a graph");
    *exec = (struct tutti_cu_exec){.nrefs = 1, .graph = sim_graph_create(),
                                   .context = sim_current(), .next = execs};
    execs = exec;
    for (uint32_t i = 0; i < graph->nnodes; i++) {
        const struct node *node = &graph->nodes[i];

        node->work->nrefs++;
        sim_graph_add(exec->graph, node->work, node->earlier, node->nearlier);
    }
    *ret_exec = exec;
    return sim_leave(0);
}

int cuGraphExecDestroy(struct tutti_cu_exec *exec)
{
    struct tutti_cu_exec **link = &execs;
    int code = sim_enter(__func__, SIM_NEEDS_NOTHING);

    if (code != 0)
        return code;
    if (!is_exec(exec))
        return sim_leave(TUTTI_CU_INVALID_VALUE);
    while (*link != exec)
        link = &(*link)->next;
    *link = exec->next;
    if (exec->newest != NULL)
        sim_op_drop(exec->newest);
    exec->newest = NULL;
    sim_exec_drop(exec);
    return sim_leave(0);
}

static int launch(struct tutti_cu_exec *exec, struct tutti_cu_stream *stream)
{
    struct sim_work *work = sim_work_create(SIM_WORK_GRAPH, stream->context);
    int code = sim_device_lost(stream->context->device);

    work->exec = exec;
    exec->nrefs++;
    if (code == 0 && stream->capture.capture != NULL)
        code = sim_capture_add(&stream->capture, work);
    else if (code == 0)
        code = sim_capture_legacy(stream);
    if (code != 0) {
        sim_work_drop(work);
        return code;
    }
    sim_stream_submit(stream, work, exec->newest);
    if (exec->newest != NULL)
        sim_op_drop(exec->newest);
    exec->newest = stream->newest;
    exec->newest->nrefs++;
    return TUTTI_CU_SUCCESS;
}

int cuGraphLaunch(struct tutti_cu_exec *exec, struct tutti_cu_stream *handle)
{
    struct tutti_cu_stream *stream;
    int code = sim_enter(__func__, SIM_NEEDS_CONTEXT);

    if (code != 0)
        return code;
    code = is_exec(exec) ? sim_stream_find(handle, &stream) : TUTTI_CU_INVALID_VALUE;
    return sim_leave(code != 0 ? code : launch(exec, stream));
}

uint32_t sim_graphs_left(void)
{
    uint32_t n = 0;

    for (const struct tutti_cu_graph *graph = graphs; graph != NULL; graph = graph->next)
        n++;
    return n;
}

/* ---- running --------------------------------------------------------------------------------- */

struct flow {
    const struct tutti_cu_graph *graph;
    pthread_mutex_t lock; /* of is_done */
    pthread_cond_t has_more;
    bool *is_done;
};

struct branch {
    struct flow *flow;
    uint32_t node;
    pthread_t thread;
};

static void *run_node(void *argument)
{
    struct branch *branch = argument;
    struct flow *flow = branch->flow;
    const struct node *node = &flow->graph->nodes[branch->node];

    pthread_mutex_lock(&flow->lock);
    for (uint32_t i = 0; i < node->nearlier; i++)
        while (!flow->is_done[node->earlier[i]])
            pthread_cond_wait(&flow->has_more, &flow->lock);
    pthread_mutex_unlock(&flow->lock);
    sim_work_run(node->work);
    pthread_mutex_lock(&flow->lock);
    flow->is_done[branch->node] = true;
    pthread_cond_broadcast(&flow->has_more);
    pthread_mutex_unlock(&flow->lock);
    return NULL;
}

/* Nodes that nothing orders run at once: each on a thread that waits for those before it. */
static void run_branches(const struct tutti_cu_graph *graph)
{
    struct flow flow = {.graph = graph, .lock = PTHREAD_MUTEX_INITIALIZER,
                        .has_more = PTHREAD_COND_INITIALIZER};
    struct branch *branches = calloc(graph->nnodes, sizeof *branches);

    flow.is_done = calloc(graph->nnodes, sizeof *flow.is_done);
    if (branches == NULL || flow.is_done == NULL)
        sim_die("no memory for a graph");
    for (uint32_t i = 0; i < graph->nnodes; i++) {
        branches[i] = (struct branch){.flow = &flow, .node = i};
        if (pthread_create(&branches[i].thread, NULL, run_node, &branches[i]) != 0)
            sim_die("no thread for a node of a graph");
    }
    for (uint32_t i = 0; i < graph->nnodes; i++)
        pthread_join(branches[i].thread, NULL);
    free(flow.is_done);
    free(branches);
}

static bool is_chain(const struct tutti_cu_graph *graph)
{
    for (uint32_t i = 1; i < graph->nnodes; i++)
        if (graph->nodes[i].nearlier != 1 || graph->nodes[i].earlier[0] != i - 1)
            return false;
    return true;
}

void sim_exec_run(const struct tutti_cu_exec *exec)
{
    const struct tutti_cu_graph *graph = exec->graph;

    if (!is_chain(graph)) {
        run_branches(graph);
        return;
    }
    for (uint32_t i = 0; i < graph->nnodes; i++)
        sim_work_run(graph->nodes[i].work);
}
