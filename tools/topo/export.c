/* SPDX-License-Identifier: Apache-2.0
 * tutti-topo export: writes a machine, and its rings and trees, as files for NCCL and RCCL. */
#include "base/result.h"
#include "common/file.h"
#include "common/memory.h"
#include "common/topo_remarks.h"
#include "describe/nccl_graph.h"
#include "topo/commands.h"
#include "topo/plans.h"
#include "topology/formats/nccl_xml.h"

#include <math.h>
#include <string.h>

static const char help[] =
    "usage: tutti-topo export [--from WHAT] --xml FILE [--graph FILE] [options]\n"
    "\n"
    "Writes files for NCCL and RCCL: the machine, for NCCL_TOPO_FILE, and the rings and trees of\n"
    "a host that tutti-topo search finds, for NCCL_GRAPH_FILE. NCCL's trees are chains of a\n"
    "host's gpus. If Tutti's trees branch, the file has the orders of the rings as chains, with\n"
    "the rates that they reach as chains.\n"
    "\n"
    "  -f, --from WHAT      a machine; see tutti-topo --help (default: this machine)\n"
    "      --xml FILE       the machine\n"
    "      --graph FILE     rings and trees\n"
    "  -g, --gpus LIST      some gpus of a host, such as 0,1,4 or 0-3 (default: all of host 0)\n"
    "      --peers          other hosts take part: channels enter and leave by nets (default\n"
    "                       where NVLinks do not join all hosts)\n"
    "      --cross          ... and may leave by another net than they enter by\n"
    "  -c, --channels N     channels at most (default 32)\n";

#define UNLIMITED_GB_PER_S 5000

/* ---- trees as chains ------------------------------------------------------------------------- */

/* Stores the gpus of a tree that is a chain, from its root on. Returns false if a gpu has more than
 * one child. */
static bool read_chain(const struct tutti_channels *plan, const struct tutti_channel *channel,
                       uint32_t *ret_order)
{
    uint32_t at = plans_root(plan, channel), count = 0;

    while (at != TUTTI_NO_NODE) {
        uint32_t child = TUTTI_NO_NODE;

        ret_order[count++] = at;
        for (uint32_t i = 0; i < plan->ngpus; i++)
            if (channel->gpu[i] == at) {
                if (child != TUTTI_NO_NODE)
                    return false;
                child = i;
            }
        at = child;
    }
    return count == plan->ngpus;
}

/* Replaces the trees by chains with the orders of the rings. A chain is used in both directions.
 * Computes the highest rate that the links allow for these chains. */
static void make_chains(const struct subject *subject, const struct tutti_channels *ring,
                        struct tutti_channels *tree)
{
    const struct tutti_graph *graph = subject->graph;
    double *load, rate = INFINITY;

    for (uint32_t c = 0; c < tree->nchannels; c++)
        free(tree->channel[c].gpu);
    tree->nchannels = ring->nchannels;
    for (uint32_t c = 0; c < ring->nchannels; c++) {
        const struct tutti_channel *from = &ring->channel[c];
        struct tutti_channel *to = &tree->channel[c];

        *to = *from;
        to->net_out = from->net_in; /* a tree uses one net for both directions */
        to->gpu = must_calloc(ring->ngpus, sizeof *to->gpu);
        for (uint32_t i = 0; i < ring->ngpus; i++)
            to->gpu[from->gpu[i]] = i == 0 ? TUTTI_NO_NODE : from->gpu[i - 1];
    }
    tree->channel_bytes_per_s = 1; /* so that the load of a link is the traffic per rate */
    load = plans_load(subject, tree);
    for (uint32_t i = 0; i < graph->nlinks; i++)
        if (load[i] > 0)
            rate = fmin(rate, graph->links[i].bytes_per_s / load[i]);
    free(load);
    tree->channel_bytes_per_s = rate;
    tree->bytes_per_s = rate * tree->nchannels;
}

/* ---- NCCL's graph ---------------------------------------------------------------------------- */

/* Returns the driver's number of a device, because NCCL identifies devices by these numbers. */
static int64_t dev_of(const struct subject *subject, uint32_t node)
{
    return tutti_device_number(subject->graph->inventory, subject->graph->nodes[node].device,
                               TUTTI_PROPERTY_DEV, subject->graph->nodes[node].number);
}

/* Adds a net to the current channel, or nothing if `net` is TUTTI_NO_NODE. */
static int add_net(struct tutti_nccl_graphs *graphs, const struct subject *subject, uint32_t net)
{
    struct tutti_nccl_stop stop = {.is_net = true, .rank = TUTTI_NCCL_NO_RANK};

    if (net == TUTTI_NO_NODE)
        return TUTTI_OK;
    stop.dev = dev_of(subject, tutti_graph_net(subject->graph, net));
    return tutti_nccl_graphs_add_stop(graphs, stop);
}

/* Adds a channel: its first net, its gpus in order, and its last net. */
static int add_channel(struct tutti_nccl_graphs *graphs, const struct subject *subject,
                       const struct tutti_channels *plan, const struct tutti_channel *channel)
{
    uint32_t *order = must_calloc(plan->ngpus, sizeof *order);
    int rc;

    if (plan->pattern == TUTTI_PATTERN_RING)
        memcpy(order, channel->gpu, plan->ngpus * sizeof *order);
    else
        read_chain(plan, channel, order);
    TUTTI_TRY_OR(leave, rc, tutti_nccl_graphs_add_channel(graphs));
    TUTTI_TRY_OR(leave, rc, add_net(graphs, subject, channel->net_in));
    for (uint32_t i = 0; i < plan->ngpus; i++) {
        struct tutti_nccl_stop stop = {.rank = TUTTI_NCCL_NO_RANK};

        stop.dev = dev_of(subject, tutti_graph_gpu(subject->graph, plan->gpus[order[i]]));
        TUTTI_TRY_OR(leave, rc, tutti_nccl_graphs_add_stop(graphs, stop));
    }
    rc = add_net(graphs, subject, channel->net_out);

leave:
    free(order);
    return rc;
}

/* Returns the latency of the network in microseconds, or 0 if it is not known. */
static double latency_us(const struct subject *subject, const struct tutti_channels *plan)
{
    uint32_t net = plan->channel[0].net_in;

    if (net == TUTTI_NO_NODE)
        return 0;
    return tutti_device_real(subject->graph->inventory,
                             subject->graph->nodes[tutti_graph_net(subject->graph, net)].device,
                             TUTTI_PROPERTY_LATENCY, 0);
}

/* Adds the graph of one plan with all its channels. */
static int add_graph(struct tutti_nccl_graphs *graphs, const struct subject *subject,
                     const struct tutti_channels *plan)
{
    bool is_ring = plan->pattern == TUTTI_PATTERN_RING, has_crossed = false;
    enum tutti_path_class intra = TUTTI_PATH_LOC, inter = TUTTI_PATH_LOC;
    /* No link limits the rate of a single gpu. NCCL writes this rate in that case. */
    double gigabytes = fmin(plan->channel_bytes_per_s / 1e9, UNLIMITED_GB_PER_S);
    struct tutti_nccl_graph graph = {.id = is_ring ? 0 : 1,
                                     .pattern = is_ring ? TUTTI_NCCL_RING : TUTTI_NCCL_TREE,
                                     .speedintra = gigabytes, .speedinter = gigabytes,
                                     .latencyinter = latency_us(subject, plan)};

    for (uint32_t c = 0; c < plan->nchannels; c++) {
        const struct tutti_channel *channel = &plan->channel[c];

        intra = channel->intra > intra ? channel->intra : intra;
        inter = channel->inter > inter ? channel->inter : inter;
        has_crossed = has_crossed || channel->net_in != channel->net_out;
    }
    graph.crossnic = has_crossed;
    snprintf(graph.typeintra, sizeof graph.typeintra, "%s", tutti_path_class_name(intra));
    snprintf(graph.typeinter, sizeof graph.typeinter, "%s", tutti_path_class_name(inter));
    TUTTI_TRY(tutti_nccl_graphs_add(graphs, &graph));
    for (uint32_t c = 0; c < plan->nchannels; c++)
        TUTTI_TRY(add_channel(graphs, subject, plan, &plan->channel[c]));
    return TUTTI_OK;
}

/* Returns true if all trees of a plan are chains. */
static bool are_chains(const struct tutti_channels *tree)
{
    uint32_t *order = must_calloc(tree->ngpus, sizeof *order);
    bool is_chain = true;

    for (uint32_t c = 0; c < tree->nchannels && is_chain; c++)
        is_chain = read_chain(tree, &tree->channel[c], order);
    free(order);
    return is_chain;
}

/* Searches for rings and trees and writes them as NCCL's XML. The caller frees *ret_text. */
static int make_graphs(const struct subject *subject, const struct wish *wish, char **ret_text)
{
    struct tutti_channels *ring = NULL, *tree = NULL;
    struct tutti_nccl_graphs *graphs = NULL;
    int rc;

    TUTTI_TRY_OR(leave, rc, plans_search(subject, wish, wish->host, TUTTI_PATTERN_RING, &ring));
    TUTTI_TRY_OR(leave, rc, plans_search(subject, wish, wish->host, TUTTI_PATTERN_TREE, &tree));
    if (!are_chains(tree))
        make_chains(subject, ring, tree);
    TUTTI_TRY_OR(leave, rc, tutti_nccl_graphs_create(&graphs));
    TUTTI_TRY_OR(leave, rc, add_graph(graphs, subject, ring));
    TUTTI_TRY_OR(leave, rc, add_graph(graphs, subject, tree));
    rc = tutti_nccl_graphs_write(graphs, ret_text);

leave:
    tutti_nccl_graphs_destroy(graphs);
    tutti_channels_destroy(ring);
    tutti_channels_destroy(tree);
    return rc;
}

/* ---- files ----------------------------------------------------------------------------------- */

static int write_text(const struct request *request, const char *file, const char *text)
{
    int error = file_write(file, text);

    return error == 0 ? REQUEST_GO : write_failure(request, file, error);
}

static int export_machine(const struct request *request, const struct subject *subject)
{
    char *text;
    int rc = tutti_xml_write_nccl(subject->graph->inventory, &text), status;

    if (rc != TUTTI_OK)
        return failure(request, rc);
    status = write_text(request, request->xml, text);
    free(text);
    return status;
}

static int export_graphs(const struct request *request, const struct subject *subject)
{
    struct wish wish;
    char *text;
    int rc, status = wish_read(request, subject, "all", &wish);

    if (status != REQUEST_GO)
        return status;
    rc = make_graphs(subject, &wish, &text);
    wish_fini(&wish);
    if (rc != TUTTI_OK)
        return failure(request, rc);
    status = write_text(request, request->graph, text);
    free(text);
    return status;
}

static int run(const struct request *request)
{
    struct subject subject;
    int status;

    if (request->nwords > 0)
        return mistake(request, "\"%s\" is one word too many; see tutti-topo export --help",
                       request->words[0]);
    if (request->xml == NULL && request->graph == NULL)
        return mistake(request, "no file is given; add --xml FILE, --graph FILE or both");
    status = subject_open(request, request->graph != NULL, &subject);
    if (status != REQUEST_GO)
        return status;
    if (request->xml != NULL)
        status = export_machine(request, &subject);
    if (status == REQUEST_GO && request->graph != NULL)
        status = export_graphs(request, &subject);
    topo_remarks_print(subject.graph, stderr);
    subject_close(&subject);
    return status == REQUEST_GO ? EXIT_SUCCESS : status;
}

const struct command topo_export = {
    .name = "tutti-topo export",
    .options = "from gpu nic cpu xml graph gpus peers cross channels",
    .help = help,
    .run = run,
};
