/* SPDX-License-Identifier: Apache-2.0
 * Loads machines by their devices, and passes all other descriptions to tutti_machine_load. */
#include "common/topo_machine.h"

#include "base/result.h"
#include "common/rates.h"
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

bool topo_machine_is_joined(const struct tutti_graph *graph)
{
    for (uint32_t i = 0; i < graph->count[TUTTI_NODE_NVSWITCH]; i++) {
        const struct tutti_graph_node *at = &graph->nodes[graph->first[TUTTI_NODE_NVSWITCH] + i];

        for (uint32_t l = 0; l < at->nlinks; l++)
            if (graph->nodes[graph->links[at->first_link + l].to].host !=
                graph->nodes[graph->links[at->first_link].to].host)
                return true;
    }
    return false;
}

int topo_machine_make(const struct tutti_paths *paths, struct tutti_machine **ret_machine)
{
    const struct tutti_graph *graph = paths->graph;
    struct tutti_search_options options = {.host = TUTTI_ALL_HOSTS};
    struct tutti_channels *ring = NULL, *tree = NULL;
    int rc;

    if (graph->count[TUTTI_NODE_GPU] > 0 && !topo_machine_is_joined(graph)) {
        options.host = graph->nodes[tutti_graph_gpu(graph, 0)].host;
        options.has_peers = graph->nhosts > 1;
    }
    TUTTI_TRY_OR(leave, rc, tutti_search(paths, TUTTI_PATTERN_RING, &options, &ring));
    TUTTI_TRY_OR(leave, rc, tutti_search(paths, TUTTI_PATTERN_TREE, &options, &tree));
    rc = tutti_search_machine(paths, ring, tree, TUTTI_RATES_REACHED, ret_machine);

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

int topo_machine_load(const char *command, const char *what, const struct tutti_hints *hints,
                      uint32_t nranks, struct tutti_machine **ret_machine)
{
    struct tutti_inventory *inventory = NULL;
    struct tutti_graph *graph = NULL;
    struct tutti_paths *paths = NULL;
    int rc;

    if (!has_devices(what) && tutti_hints_are_given(hints))
        return tutti_fail(TUTTI_ERR_ARGUMENT, "--gpu, --nic and --cpu replace guesses about "
                          "devices, and --topo %s gives rates, not devices; leave them out", what);
    if (!has_devices(what))
        return tutti_machine_load(what, nranks, ret_machine);
    TUTTI_TRY_OR(leave, rc, tutti_formats_load(what, &inventory));
    TUTTI_TRY_OR(leave, rc, rates_apply_hints(command, hints, inventory));
    TUTTI_TRY_OR(leave, rc, tutti_graph_build(inventory, &graph));
    TUTTI_TRY_OR(leave, rc, check_ranks(what, graph, nranks));
    rates_print_guesses(command, graph);
    TUTTI_TRY_OR(leave, rc, tutti_paths_find(graph, &paths));
    rc = topo_machine_make(paths, ret_machine);

leave:
    tutti_paths_destroy(paths);
    tutti_graph_destroy(graph);
    tutti_inventory_destroy(inventory);
    return rc;
}
