/* SPDX-License-Identifier: Apache-2.0
 * Describes a cluster of many like hosts by levels. */
#include "common/topo_levels.h"

#include "base/result.h"
#include "common/memory.h"
#include "common/topo_machine.h"
#include "common/units.h"
#include "topology/formats/load.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads "N hosts:". Returns what follows, or NULL if the line has another form, or has several kinds
 * of hosts. */
static const char *read_hosts(const char *line, uint64_t *ret_nhosts)
{
    static const char word[] = "hosts:";
    size_t digits;
    char *count;
    bool is_count;

    line += strspn(line, " ");
    digits = strspn(line, "0123456789");
    count = must_have(strndup(line, digits));
    is_count = units_read_count(count, 1, TUTTI_MACHINE_RANKS, ret_nhosts);
    free(count);
    line += digits + strspn(line + digits, " ");
    if (!is_count || strncmp(line, word, strlen(word)) != 0 || strpbrk(line, ";\n") != NULL)
        return NULL;
    return line + strlen(word);
}

/* Makes the graph and the machine of a line. The caller destroys them, whatever the result. */
static int make_small(const char *line, struct tutti_graph **ret_graph,
                      struct tutti_machine **ret_machine)
{
    struct tutti_inventory *inventory;
    struct tutti_paths *paths = NULL;
    int rc;

    TUTTI_TRY(tutti_formats_load(line, &inventory));
    rc = tutti_graph_build(inventory, ret_graph);
    tutti_inventory_destroy(inventory);
    if (rc == TUTTI_OK)
        rc = tutti_paths_find(*ret_graph, &paths);
    if (rc == TUTTI_OK)
        rc = topo_machine_make(paths, ret_machine);
    tutti_paths_destroy(paths);
    return rc;
}

/* Returns the costs of the fastest path from one of the hosts to the other. The machine's level top
 * has the slowest one, which the algorithms for several hosts do not use. */
static struct tutti_rate between_hosts(const struct tutti_machine *machine)
{
    uint32_t ngpus = machine->places.nranks / 2;
    struct tutti_rate top = machine->level[2];

    for (uint32_t from = 0; from < ngpus; from++)
        for (uint32_t to = ngpus; to < 2 * ngpus; to++) {
            const struct tutti_machine_path *path = tutti_machine_path(machine, from, to);
            double bytes_per_s = path == NULL ? 0 : tutti_machine_path_rate(machine, path);
            double latency_s = path == NULL ? 0 : tutti_machine_path_latency_s(machine, path);

            if (bytes_per_s > top.bytes_per_s ||
                (bytes_per_s == top.bytes_per_s && latency_s < top.latency_s)) {
                top.bytes_per_s = bytes_per_s;
                top.latency_s = latency_s;
            }
        }
    return top;
}

/* Writes the description of `nhosts` hosts like the two of this machine. Returns false if they are
 * too many. */
static bool write_levels(const struct tutti_graph *graph, const struct tutti_machine *machine,
                         uint64_t nhosts, char **ret_text)
{
    const struct tutti_rate *node = &machine->level[0];
    struct tutti_rate top = between_hosts(machine);
    uint32_t ngpus = graph->count[TUTTI_NODE_GPU] / 2, nnets = graph->count[TUTTI_NODE_NET] / 2;
    char nics[32] = "";

    if (ngpus == 0 || nhosts > TUTTI_MACHINE_RANKS / ngpus)
        return false;
    if (nnets > 0 && nnets < ngpus)
        snprintf(nics, sizeof nics, "nics %u; ", nnets);
    if (asprintf(ret_text,
                 "ranks %u; node %u; %slevel node latency %.4gus overhead %.4gus bandwidth "
                 "%.4gGB/s; level top latency %.4gus overhead %.4gus bandwidth %.4gGB/s",
                 (uint32_t)nhosts * ngpus, ngpus, nics, 1e6 * node->latency_s,
                 1e6 * node->overhead_s, 1e-9 * node->bytes_per_s, 1e6 * top.latency_s,
                 1e6 * top.overhead_s, 1e-9 * top.bytes_per_s) < 0)
        must_have(NULL);
    return true;
}

bool topo_levels_write(const char *line, char **ret_text)
{
    struct tutti_graph *graph = NULL;
    struct tutti_machine *machine = NULL;
    uint64_t nhosts;
    const char *rest = read_hosts(line, &nhosts);
    char *small;
    bool is_written;

    if (rest == NULL)
        return false;
    if (asprintf(&small, "2 hosts:%s", rest) < 0)
        small = must_have(NULL);
    is_written = make_small(small, &graph, &machine) == TUTTI_OK &&
                 write_levels(graph, machine, nhosts, ret_text);
    free(small);
    tutti_graph_destroy(graph);
    tutti_machine_destroy(machine);
    return is_written;
}
