/* SPDX-License-Identifier: Apache-2.0
 * Makes the machine of the ranks of a cluster: the paths between their gpus, and the rings and
 * trees that were found. */
#include "base/result.h"
#include "topology/cluster/cluster.h"
#include "topology/search/costs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The machine of all gpus of the domain, and the ranks that use them. */
struct seats {
    const struct tutti_cluster *cluster;
    const struct tutti_machine *gpus; /* a rank for each gpu of the graph */
    const uint32_t *used;             /* numbers of the gpus that ranks use */
};

static uint32_t gpu_of(const struct seats *seats, uint32_t rank)
{
    return seats->used[seats->cluster->slot[rank]];
}

static void write_list(FILE *out, const char *word, const uint32_t *list, uint32_t count)
{
    fputs(word, out);
    for (uint32_t i = 0; i < count; i++)
        fprintf(out, " %d", (int32_t)list[i]);
    fputc('\n', out);
}

/* Writes everything but links and paths as a description. */
static int write_text(const struct tutti_cluster_orders *orders, char **ret_text)
{
    const struct tutti_placement *places = &orders->places;
    uint32_t n = places->nranks;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (out == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a description of %u ranks", n);
    fprintf(out, "ranks %u\n", n);
    write_list(out, "node of", places->node, n);
    fputs("level node bandwidth 1GB/s\n", out); /* a placeholder until set_levels() */
    for (uint32_t i = 0; i < places->nrings && i < TUTTI_MACHINE_ORDERS; i++)
        write_list(out, "ring", places->rings + (size_t)i * n, n);
    for (uint32_t i = 0; i < places->ntrees && i < TUTTI_MACHINE_ORDERS; i++)
        write_list(out, "tree", (const uint32_t *)places->trees + (size_t)i * n, n);
    if (fclose(out) != 0) {
        free(text);
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a description of %u ranks", n);
    }
    *ret_text = text;
    return TUTTI_OK;
}

/* Gives each pair of ranks the path of its gpus. Ranks of one gpu have a path without links. */
static int set_paths(const struct seats *seats, struct tutti_machine *machine)
{
    uint32_t n = machine->places.nranks;
    struct tutti_machine_links links = seats->gpus->links;
    struct tutti_machine_path *paths = malloc((size_t)n * n * sizeof *paths);
    int rc;

    if (paths == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the paths of %u ranks", n);
    links.npaths = 0;
    for (uint32_t from = 0; from < n; from++)
        for (uint32_t to = 0; to < n; to++) {
            const struct tutti_machine_path *path =
                tutti_machine_path(seats->gpus, gpu_of(seats, from), gpu_of(seats, to));
            struct tutti_machine_path own = {.count = 0};

            if (from == to)
                continue;
            if (path != NULL)
                own = *path;
            own.from = from;
            own.to = to;
            paths[links.npaths++] = own;
        }
    links.paths = paths;
    rc = tutti_machine_set_links(machine, &links);
    free(paths);
    return rc;
}

/* Returns the greatest latency and the lowest rate of all pairs of ranks of a node, or of all pairs
 * of different nodes. */
static struct tutti_rate worst_rate(const struct tutti_machine *machine, bool is_within)
{
    const uint32_t *node = machine->places.node;
    struct tutti_rate rate = {.latency_s = 0, .bytes_per_s = INFINITY};

    for (uint32_t i = 0; i < machine->links.npaths; i++) {
        const struct tutti_machine_path *path = &machine->links.paths[i];
        double bytes_per_s = tutti_machine_path_rate(machine, path);

        if ((node[path->from] == node[path->to]) != is_within)
            continue;
        rate.latency_s = fmax(rate.latency_s, path->latency_s);
        if (bytes_per_s > 0)
            rate.bytes_per_s = fmin(rate.bytes_per_s, bytes_per_s);
    }
    return rate;
}

/* Sets the costs of the levels. A level to which no pair belongs costs the same as the other. */
static void set_levels(const struct seats *seats, struct tutti_machine *machine)
{
    struct tutti_rate within = worst_rate(machine, true), between = worst_rate(machine, false);

    if (!isfinite(within.bytes_per_s))
        within = isfinite(between.bytes_per_s) ? between : seats->gpus->level[0];
    if (!isfinite(between.bytes_per_s))
        between = within;
    machine->level[0] = within;
    for (int level = 1; level < TUTTI_MACHINE_LEVELS; level++)
        machine->level[level] = between;
}

/* Makes the machine of a cluster that is one domain. */
static int make_machine(const struct tutti_cluster *cluster,
                        const struct tutti_cluster_orders *orders,
                        struct tutti_machine **ret_machine)
{
    const struct tutti_cluster_kind *kind = cluster->kind;
    struct seats seats = {.cluster = cluster, .used = kind->gpu};
    struct tutti_machine *gpus, *machine = NULL;
    char *text;
    int rc;

    tutti_assert(cluster->ndomains == 1);
    for (uint32_t rank = 0; rank < cluster->nranks; rank++)
        if (cluster->slot[rank] == TUTTI_NO_NODE)
            return tutti_fail(TUTTI_ERR_ARGUMENT, "rank %u has no gpu", rank);
    TUTTI_TRY(tutti_search_machine(kind->paths, NULL, NULL, TUTTI_RATES_REACHED, &gpus));
    seats.gpus = gpus;
    TUTTI_TRY_OR(drop_gpus, rc, write_text(orders, &text));
    TUTTI_TRY_OR(drop_text, rc, tutti_machine_parse("cluster", text, 0, &machine));
    TUTTI_TRY_OR(drop_text, rc, set_paths(&seats, machine));
    set_levels(&seats, machine);
    *ret_machine = machine;

drop_text:
    free(text);
    if (rc != TUTTI_OK)
        tutti_machine_destroy(machine);
drop_gpus:
    tutti_machine_destroy(gpus);
    return rc;
}

int tutti_cluster_machine(const struct tutti_cluster *cluster,
                          const struct tutti_cluster_orders *orders,
                          struct tutti_machine **ret_machine)
{
    struct tutti_cluster *whole;
    int rc;

    if (cluster->ndomains == 1)
        return make_machine(cluster, orders, ret_machine);
    TUTTI_TRY(tutti_cluster_make_whole(cluster, &whole));
    rc = make_machine(whole, orders, ret_machine);
    tutti_cluster_destroy(whole);
    return rc;
}
