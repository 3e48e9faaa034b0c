/* SPDX-License-Identifier: Apache-2.0
 * Loads machines by their devices, and passes all other descriptions to tutti_machine_load. */
#include "common/topo_machine.h"

#include "base/result.h"
#include "common/memory.h"
#include "common/rates.h"
#include "common/topo_remarks.h"
#include "common/tuner_view.h"
#include "common/units.h"
#include "topology/detect/detect.h"
#include "topology/formats/known.h"
#include "topology/formats/load.h"
#include "topology/graph/parts.h"
#include "topology/search/costs.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

int topo_machine_make(const struct tutti_paths *paths, struct tutti_machine **ret_machine)
{
    struct tutti_search_options options = {.host = TUTTI_ALL_HOSTS};
    struct tutti_channels *ring = NULL, *tree = NULL;
    struct tutti_graph_parts parts = {.nparts = 0};
    const struct tutti_graph_part *first;
    int rc;

    TUTTI_TRY_OR(leave, rc, tutti_graph_parts_find(paths->graph, &parts));
    first = tutti_graph_first_part(&parts);
    if (first != NULL && !tutti_graph_is_one_domain(&parts)) {
        options.host = first->first_host;
        options.nhosts = first->nhosts;
        options.has_peers = paths->graph->nhosts > 1;
        options.nparts = parts.nall;
    }
    TUTTI_TRY_OR(leave, rc, tutti_search(paths, TUTTI_PATTERN_RING, &options, &ring));
    TUTTI_TRY_OR(leave, rc, tutti_search(paths, TUTTI_PATTERN_TREE, &options, &tree));
    rc = tutti_search_machine(paths, ring, tree, TUTTI_RATES_REACHED, ret_machine);

leave:
    tutti_graph_parts_fini(&parts);
    tutti_channels_destroy(ring);
    tutti_channels_destroy(tree);
    return rc;
}

/* Fails unless the machine has the ranks that the user wants. */
static int check_ranks(const char *what, const struct tutti_graph *graph, uint32_t nranks)
{
    struct tutti_graph_parts parts;
    uint32_t ngpus;

    TUTTI_TRY(tutti_graph_parts_find(graph, &parts));
    ngpus = parts.nranks;
    tutti_graph_parts_fini(&parts);
    if (ngpus == 0)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%s has no gpus, and each rank would be a gpu", what);
    if (nranks > 0 && nranks != ngpus)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "--ranks %u: %s has a rank for each of its %u gpus; "
                          "leave --ranks out", nranks, what, ngpus);
    return TUTTI_OK;
}

/* Makes the machine of all gpus of a graph. */
static int make_of_graph(const struct tutti_graph *graph, struct tutti_machine **ret_machine)
{
    struct tutti_paths *paths;
    int rc;

    TUTTI_TRY(tutti_paths_find(graph, &paths));
    rc = topo_machine_make(paths, ret_machine);
    tutti_paths_destroy(paths);
    return rc;
}

/* Builds the graph of `what`, with the hints of the user. */
static int build_graph(const char *command, const char *what, const struct tutti_hints *hints,
                       struct tutti_graph **ret_graph)
{
    struct tutti_inventory *inventory;
    int rc;

    TUTTI_TRY(tutti_formats_load(what, &inventory));
    rc = rates_apply_hints(command, hints, inventory);
    if (rc == TUTTI_OK)
        rc = tutti_graph_build(inventory, ret_graph);
    tutti_inventory_destroy(inventory);
    return rc;
}

/* ---- this machine ---------------------------------------------------------------------------- */

static uint32_t count_gpus(const struct tutti_inventory *inventory)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < inventory->count; i++)
        count += inventory->devices[i].kind == TUTTI_DEVICE_GPU;
    return count;
}

int topo_machine_here(uint32_t nranks, struct tutti_machine **ret_machine,
                      char ret_about[TOPO_MACHINE_ABOUT])
{
    const struct tutti_detect_options options = {.root = NULL};
    struct tutti_inventory *inventory;
    struct tutti_graph *graph = NULL;
    uint32_t ngpus, cores = usable_cores();
    char text[UNITS_TEXT];
    bool is_given = false;
    int rc;

    TUTTI_TRY(tutti_detect(&options, &inventory));
    ngpus = count_gpus(inventory);
    if (ngpus > 1) {
        rc = tutti_graph_build(inventory, &graph);
        if (rc == TUTTI_OK)
            rc = check_ranks("this machine", graph, nranks);
        if (rc == TUTTI_OK)
            rc = make_of_graph(graph, ret_machine);
        tutti_graph_destroy(graph);
        snprintf(ret_about, TOPO_MACHINE_ABOUT, "a rank for each of its %u gpus", ngpus);
    } else {
        nranks = nranks > 0 ? nranks : cores;
        rc = host_machine_load(nranks, ret_machine, &is_given);
        snprintf(ret_about, TOPO_MACHINE_ABOUT, "%s rank%s on %u core%s, %s",
                 units_count(nranks, text), nranks == 1 ? "" : "s", cores, cores == 1 ? "" : "s",
                 is_given ? "rates of TUTTI_MACHINE"
                          : "rates assumed; tutti-topo --measure finds them");
    }
    tutti_inventory_destroy(inventory);
    return rc;
}

/* ---- any machine ----------------------------------------------------------------------------- */

/* Fails if `what` can only be a file and there is none, and names all forms of a machine. */
static int check_exists(const char *what)
{
    const struct tutti_machine_example *example;

    for (size_t i = 0; (example = tutti_machine_example_at(i)) != NULL; i++)
        if (strcmp(example->name, what) == 0)
            return TUTTI_OK;
    if (strpbrk(what, " ;") != NULL || strcmp(what, "-") == 0 || access(what, R_OK) == 0)
        return TUTTI_OK;
    return tutti_fail(TUTTI_ERR_ARGUMENT, "open %s: %s; give a file, a name such as flat or "
                      "dgx-h100, or a line such as \"4 hosts: 8 gpus h100 nvswitch, 8 nics 400G, 2 "
                      "cpus\" or \"ranks 8; level top overhead 5us bandwidth 50GB/s\"", what,
                      strerror(errno));
}

int topo_machine_load(const char *command, const char *what, const struct tutti_hints *hints,
                      uint32_t nranks, struct tutti_machine **ret_machine)
{
    struct tutti_graph *graph;
    char about[TOPO_MACHINE_ABOUT];
    int rc;

    if (strcmp(what, TOPO_MACHINE_HERE) == 0 && !tutti_hints_are_given(hints))
        return topo_machine_here(nranks, ret_machine, about);
    if (!has_devices(what) && tutti_hints_are_given(hints))
        return tutti_fail(TUTTI_ERR_ARGUMENT, "--gpu, --nic and --cpu replace guesses about "
                          "devices, and --topo %s gives rates, not devices; leave them out", what);
    if (!has_devices(what)) {
        TUTTI_TRY(check_exists(what));
        return tutti_machine_load(what, nranks, ret_machine);
    }
    TUTTI_TRY(build_graph(command, what, hints, &graph));
    rc = check_ranks(what, graph, nranks);
    if (rc == TUTTI_OK) {
        topo_remarks_print(graph, stderr);
        rates_print_guesses(command, graph);
        rc = make_of_graph(graph, ret_machine);
    }
    tutti_graph_destroy(graph);
    return rc;
}
