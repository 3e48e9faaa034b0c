/* SPDX-License-Identifier: Apache-2.0
 * Loads machines by their devices, and passes all other descriptions to tutti_machine_load. */
#include "common/topo_machine.h"

#include "base/result.h"
#include "common/topo_remarks.h"
#include "topology/formats/known.h"
#include "topology/formats/load.h"
#include "topology/search/costs.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Returns true if the file's first character that is not blank begins a description of devices: '<'
 * of XML, the digit of a line such as "8 gpus h100", or the G of nvidia-smi's column GPU0. No line
 * of a machine's description begins like that. */
static bool is_file_of_devices(const char *name)
{
    struct stat about;
    FILE *file;
    int first;

    /* What is read from a pipe cannot be read again. */
    if (stat(name, &about) != 0 || !S_ISREG(about.st_mode))
        return false;
    file = fopen(name, "re");
    if (file == NULL)
        return false;
    do
        first = getc(file);
    while (first != EOF && isspace(first));
    fclose(file);
    return first == '<' || first == 'G' || isdigit(first);
}

static bool has_devices(const char *what)
{
    const struct tutti_known_machine *known;

    for (size_t i = 0; (known = tutti_known_machine(i)) != NULL; i++)
        if (strcmp(known->name, what) == 0)
            return true;
    if (strpbrk(what, " ;") != NULL)
        return isdigit((unsigned char)what[strspn(what, " ")]);
    return is_file_of_devices(what);
}

/* Returns true if a node has a link to another one. */
static bool has_link(const struct tutti_graph *graph, uint32_t from, uint32_t to)
{
    const struct tutti_graph_node *at = &graph->nodes[from];

    for (uint32_t i = at->first_link; i < at->first_link + at->nlinks; i++)
        if (graph->links[i].to == to)
            return true;
    return false;
}

/* Returns true if a gpu, or the device that it shares with other gpus, has a link to a node. */
static bool leads_to(const struct tutti_graph *graph, uint32_t gpu, uint32_t to)
{
    uint32_t pci = tutti_graph_find(graph,
                                    graph->inventory->devices[graph->nodes[gpu].device].parent);

    return has_link(graph, gpu, to) ||
           (pci != TUTTI_NO_NODE && graph->nodes[pci].is_shared && has_link(graph, pci, to));
}

bool topo_machine_is_one_domain(const struct tutti_graph *graph)
{
    uint32_t first = tutti_graph_gpu(graph, 0), ngpus = graph->count[TUTTI_NODE_GPU];
    bool spans_hosts = false;

    if (graph->count[TUTTI_NODE_NVSWITCH] != 1)
        return false;
    for (uint32_t gpu = first; gpu < first + ngpus; gpu++) {
        if (!leads_to(graph, gpu, graph->first[TUTTI_NODE_NVSWITCH]))
            return false;
        spans_hosts = spans_hosts || graph->nodes[gpu].host != graph->nodes[first].host;
    }
    return spans_hosts;
}

int topo_machine_make(const struct tutti_paths *paths, struct tutti_machine **ret_machine)
{
    const struct tutti_graph *graph = paths->graph;
    struct tutti_search_options options = {.host = TUTTI_ALL_HOSTS};
    struct tutti_channels *ring = NULL, *tree = NULL;
    int rc;

    if (graph->count[TUTTI_NODE_GPU] > 0 && !topo_machine_is_one_domain(graph)) {
        options.host = graph->nodes[tutti_graph_gpu(graph, 0)].host;
        options.has_peers = graph->nhosts > 1;
    }
    TUTTI_TRY_OR(leave, rc, tutti_search(paths, TUTTI_PATTERN_RING, &options, &ring));
    TUTTI_TRY_OR(leave, rc, tutti_search(paths, TUTTI_PATTERN_TREE, &options, &tree));
    rc = tutti_search_machine(paths, ring, tree, ret_machine);

leave:
    tutti_channels_destroy(ring);
    tutti_channels_destroy(tree);
    return rc;
}

/* Fails unless the machine has the ranks that the user wants. */
static int check_ranks(const char *what, const struct tutti_graph *graph, uint32_t nranks)
{
    uint32_t ngpus = graph->count[TUTTI_NODE_GPU];

    if (ngpus == 0)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "--topo %s has no gpus, and each rank would be a gpu",
                          what);
    if (nranks > 0 && nranks != ngpus)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "--ranks %u: --topo %s has a rank for each of its %u "
                          "gpus; leave --ranks out", nranks, what, ngpus);
    return TUTTI_OK;
}

int topo_machine_load(const char *what, uint32_t nranks, struct tutti_machine **ret_machine)
{
    struct tutti_inventory *inventory = NULL;
    struct tutti_graph *graph = NULL;
    struct tutti_paths *paths = NULL;
    int rc;

    if (!has_devices(what))
        return tutti_machine_load(what, nranks, ret_machine);
    TUTTI_TRY_OR(leave, rc, tutti_formats_load(what, &inventory));
    TUTTI_TRY_OR(leave, rc, tutti_graph_build(inventory, &graph));
    TUTTI_TRY_OR(leave, rc, check_ranks(what, graph, nranks));
    TUTTI_TRY_OR(leave, rc, tutti_paths_find(graph, &paths));
    topo_remarks_print(graph, stderr);
    rc = topo_machine_make(paths, ret_machine);

leave:
    tutti_paths_destroy(paths);
    tutti_graph_destroy(graph);
    tutti_inventory_destroy(inventory);
    return rc;
}
