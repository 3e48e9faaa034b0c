/* SPDX-License-Identifier: Apache-2.0
 * Converts a graph to a machine. Nodes, rings and trees are written as a description and parsed, so
 * that they are checked like any other description. Links and paths are set directly.
 *
 * A cluster of like parts becomes a machine of like parts (machine.h): it has the paths within the
 * first part of each kind, and those from there to one other part. */
#include "topology/search/costs.h"

#include "base/array.h"
#include "base/result.h"
#include "topology/search/joint.h"
#include "topology/search/like.h"
#include "topology/search/ways.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The rate between gpus without a link, such as several gpus on one device. The value is the rate
 * of the fastest links. */
#define LOCAL_BYTES_PER_S 1e12

/* The links and paths of the machine that is made from a graph. Gpus are counted in the graph, and
 * ranks in the cluster; they differ only if parts stand for others. */
struct costs {
    const struct tutti_paths *paths;
    const struct tutti_graph *graph;
    struct tutti_search_ways *ways;
    enum tutti_search_rates rates;
    const struct tutti_graph_parts *parts; /* those of `ways` */
    uint32_t ngpus;
    uint32_t *used;   /* the links of the graph that are links of the machine, in its order */
    uint32_t nkinds;  /* like parts of the machine; 0: no part stands for others */
    struct tutti_machine_parts kinds[TUTTI_MACHINE_KINDS];
    struct tutti_machine_link *links;
    uint32_t nlinks;
    struct tutti_machine_path *machine_paths;
    uint32_t npaths;
    struct tutti_machine_crossing *crossings;
    uint32_t ncrossings, crossing_capacity;
};

/* The way from a rank to another: paths that follow each other (ways.h), and their sums. */
struct way {
    const struct tutti_path *parts[TUTTI_PORTS_PARTS];
    uint32_t nparts, nhops;
    double latency_s;
    double bytes_per_s; /* of a single flow; INFINITY: there are no links */
    bool is_there;
};

static double rate_of(const struct costs *costs, uint32_t link)
{
    const struct tutti_graph_link *at = &costs->graph->links[link];

    return costs->rates == TUTTI_RATES_REACHED ? at->reached_bytes_per_s : at->bytes_per_s;
}

/* Sums up the parts of a way. */
static void add_up(const struct costs *costs, struct way *way)
{
    way->bytes_per_s = INFINITY;
    way->is_there = true;
    for (uint32_t i = 0; i < way->nparts; i++) {
        const struct tutti_path *part = way->parts[i];

        way->is_there = way->is_there && part->class != TUTTI_PATH_DIS;
        way->nhops += part->nhops;
        way->latency_s += part->latency_s;
        for (uint32_t h = 0; h < part->nhops; h++) {
            const struct tutti_hop *hop = &costs->paths->hop[part->first + h];

            way->bytes_per_s = fmin(way->bytes_per_s, rate_of(costs, hop->link) / hop->demand);
        }
    }
}

static struct way way_of(const struct costs *costs, uint32_t from, uint32_t to)
{
    struct way way = {.nparts = 0};

    way.nparts = tutti_search_ways_between(costs->ways, from, to, way.parts);
    add_up(costs, &way);
    return way;
}

static uint32_t part_of(const struct costs *costs, uint32_t gpu)
{
    return tutti_graph_part_of_gpu(costs->parts, gpu);
}

/* Returns the rank of a gpu. */
static uint32_t rank_of(const struct costs *costs, uint32_t gpu)
{
    const struct tutti_graph_part *part = &costs->parts->part[part_of(costs, gpu)];

    return part->first_rank + gpu - part->first_gpu;
}

/* Rounds to a picosecond, because sums of tenths of microseconds are inexact. */
static double round_time(double seconds)
{
    return round(seconds * 1e12) / 1e12;
}

/* ---- links and paths ------------------------------------------------------------------------- */

/* Writes a node's name without the characters that are not allowed in a link's name. */
static void write_node_name(const struct tutti_graph *graph, uint32_t node, char *ret_name,
                            size_t size_bytes)
{
    char name[128];
    size_t length = 0;

    tutti_graph_node_name(graph, node, name, sizeof name);
    for (const char *at = name; *at != '\0' && *at != '(' && length + 1 < size_bytes; at++)
        if (*at > ' ' && *at <= '~' && *at != ';' && *at != '#')
            ret_name[length++] = *at;
    ret_name[length] = '\0';
}

/* Makes the machine's link of a link of the graph. */
static struct tutti_machine_link make_link(const struct costs *costs, uint32_t index)
{
    const struct tutti_graph_link *link = &costs->graph->links[index];
    struct tutti_machine_link made = {.bytes_per_s = rate_of(costs, index)};
    char from_name[TUTTI_MACHINE_NAME_BYTES / 2], to_name[TUTTI_MACHINE_NAME_BYTES / 2];

    write_node_name(costs->graph, link->from, from_name, sizeof from_name);
    write_node_name(costs->graph, link->to, to_name, sizeof to_name);
    snprintf(made.name, sizeof made.name, "%s>%s", from_name, to_name);
    return made;
}

/* Adds a path to the machine. `path` has its gpus in place of its ranks, and its channel. Until
 * number_links() its crossings have the links of the graph. */
static int add_path(struct costs *costs, struct tutti_machine_path path, const struct way *way)
{
    if (!way->is_there)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "there is no path from gpu %u to gpu %u; "
                          "describe a link or a CPU that joins them", path.from, path.to);
    path.from = rank_of(costs, path.from);
    path.to = rank_of(costs, path.to);
    TUTTI_TRY(TUTTI_ARRAY_RESERVE(costs->crossings, costs->ncrossings + way->nhops,
                                  costs->crossing_capacity, "crossings"));
    path.first = costs->ncrossings;
    path.count = way->nhops;
    path.latency_s = round_time(way->latency_s);
    costs->machine_paths[costs->npaths++] = path;
    for (uint32_t p = 0; p < way->nparts; p++)
        for (uint32_t i = 0; i < way->parts[p]->nhops; i++) {
            const struct tutti_hop *hop = &costs->paths->hop[way->parts[p]->first + i];

            costs->crossings[costs->ncrossings++] =
                (struct tutti_machine_crossing){.link = hop->link, .weight = hop->demand};
        }
    return TUTTI_OK;
}

static int reserve(struct costs *costs)
{
    size_t npaths = (size_t)costs->ngpus * costs->ngpus + costs->ways->nchannel_ways;

    costs->used = calloc((size_t)costs->graph->nlinks + 1, sizeof *costs->used);
    costs->links = calloc(costs->graph->nlinks + 1, sizeof *costs->links);
    costs->machine_paths = calloc(npaths, sizeof *costs->machine_paths);
    if (costs->used == NULL || costs->links == NULL || costs->machine_paths == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the paths of %u gpus", costs->ngpus);
    return TUTTI_OK;
}

static int add_paths(struct costs *costs)
{
    for (uint32_t from = 0; from < costs->ngpus; from++)
        for (uint32_t to = 0; to < costs->ngpus; to++) {
            struct way way;

            if (from == to || !tutti_search_is_described(costs->parts, from, to))
                continue;
            way = way_of(costs, from, to);
            TUTTI_TRY(add_path(costs, (struct tutti_machine_path){.from = from, .to = to}, &way));
        }
    return TUTTI_OK;
}

/* Returns true if both ways cross the same links. */
static bool is_same_way(const struct way *a, const struct way *b)
{
    bool is_same = a->nparts == b->nparts;

    for (uint32_t i = 0; i < a->nparts && is_same; i++)
        is_same = a->parts[i] == b->parts[i];
    return is_same;
}

/* Adds the ways of channels that differ from the way of their pair. */
static int add_channel_paths(struct costs *costs)
{
    for (uint32_t i = 0; i < costs->ways->nchannel_ways; i++) {
        const struct tutti_search_channel_way *own = &costs->ways->channel_ways[i];
        struct way way = {.nparts = 0}, usual = way_of(costs, own->from, own->to);

        if (!tutti_search_is_described(costs->parts, own->from, own->to))
            continue;
        way.nparts = tutti_search_ways_of_channel(costs->ways, own, way.parts);
        add_up(costs, &way);
        if (!is_same_way(&way, &usual))
            TUTTI_TRY(add_path(costs,
                               (struct tutti_machine_path){.from = own->from, .to = own->to,
                                                           .has_channel = true,
                                                           .channel = own->channel},
                               &way));
    }
    return TUTTI_OK;
}

/* Numbers the links that paths cross in the order in which they are crossed. */
static int number_as_crossed(struct costs *costs)
{
    uint32_t *number = malloc((costs->graph->nlinks + 1) * sizeof *number);

    if (number == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %u links", costs->graph->nlinks);
    for (uint32_t i = 0; i < costs->graph->nlinks; i++)
        number[i] = TUTTI_NO_NODE;
    for (uint32_t i = 0; i < costs->ncrossings; i++) {
        uint32_t *link = &costs->crossings[i].link;

        if (number[*link] == TUTTI_NO_NODE) {
            costs->used[costs->nlinks] = *link;
            number[*link] = costs->nlinks++;
        }
        *link = number[*link];
    }
    free(number);
    return TUTTI_OK;
}

/* Numbers the links that paths cross, and makes them links of the machine. */
static int number_links(struct costs *costs)
{
    if (costs->parts->has_copies)
        TUTTI_TRY(tutti_search_number_like(costs->graph, costs->parts, costs->crossings,
                                           costs->ncrossings, costs->used, &costs->nlinks,
                                           costs->kinds, &costs->nkinds));
    else
        TUTTI_TRY(number_as_crossed(costs));
    for (uint32_t i = 0; i < costs->nlinks; i++)
        costs->links[i] = make_link(costs, costs->used[i]);
    return TUTTI_OK;
}

/* ---- levels ---------------------------------------------------------------------------------- */

/* Finds the greatest latency and the lowest rate of all pairs at this distance. Pairs with a path
 * use the values of the path instead. Returns false if there is no such pair. */
static bool level_of(const struct costs *costs, bool is_between_parts, double *ret_latency_s,
                     double *ret_bytes_per_s)
{
    double latency_s = 0, bytes_per_s = INFINITY;
    bool is_there = false;

    for (uint32_t from = 0; from < costs->ngpus; from++)
        for (uint32_t to = 0; to < costs->ngpus; to++) {
            struct way way;

            if (from == to || (part_of(costs, from) != part_of(costs, to)) != is_between_parts)
                continue;
            way = way_of(costs, from, to);
            is_there = true;
            latency_s = fmax(latency_s, round_time(way.latency_s));
            bytes_per_s = fmin(bytes_per_s, way.bytes_per_s);
        }
    *ret_latency_s = latency_s;
    *ret_bytes_per_s = isfinite(bytes_per_s) ? bytes_per_s : LOCAL_BYTES_PER_S;
    return is_there;
}

/* A level without pairs gets the costs of the other level. */
static void set_levels(const struct costs *costs, struct tutti_machine *machine)
{
    struct tutti_rate node = {.latency_s = 0}, top = node;
    bool has_node = level_of(costs, false, &node.latency_s, &node.bytes_per_s);
    bool has_top = level_of(costs, true, &top.latency_s, &top.bytes_per_s);

    machine->level[0] = has_node || !has_top ? node : top;
    machine->level[1] = machine->level[2] = has_top ? top : node;
}

/* ---- orders ---------------------------------------------------------------------------------- */

/* Writes a line `ring`: the order of the channel within each part, part after part. */
static void write_ring(FILE *out, const struct costs *costs, const struct tutti_channels *plan,
                       uint32_t c)
{
    fputs("ring", out);
    for (uint32_t part = 0; part < costs->parts->nranks / plan->ngpus; part++)
        for (uint32_t i = 0; i < plan->ngpus; i++)
            fprintf(out, " %u", part * plan->ngpus + plan->channel[c].gpu[i]);
    fputc('\n', out);
}

/* Writes a line `tree`: the tree of the channel within each part; binary tree number `which` joins
 * the roots. */
static void write_tree(FILE *out, const struct costs *costs, const struct tutti_channels *plan,
                       uint32_t c, uint32_t which)
{
    const struct tutti_channel *channel = &plan->channel[c];
    uint32_t root = tutti_search_tree_root(plan, channel), per_part = plan->ngpus;
    uint32_t nparts = costs->parts->nranks / per_part;

    fputs("tree", out);
    for (uint32_t part = 0; part < nparts; part++) {
        uint32_t parent = tutti_search_parent_part(part, nparts, which);

        for (uint32_t i = 0; i < per_part; i++) {
            if (i != root)
                fprintf(out, " %u", part * per_part + channel->gpu[i]);
            else if (parent == TUTTI_NO_NODE)
                fputs(" -1", out);
            else
                fprintf(out, " %u", parent * per_part + root);
        }
    }
    fputc('\n', out);
}

static void write_orders(FILE *out, const struct costs *costs, const struct tutti_channels *plan)
{
    uint32_t ntrees;

    if (tutti_search_repeated_gpus(costs->ways, plan) == 0)
        return;
    ntrees = tutti_search_orders_per_tree(costs->ways, plan);
    for (uint32_t c = 0; c < plan->nchannels && c < TUTTI_MACHINE_ORDERS; c++) {
        if (plan->pattern == TUTTI_PATTERN_RING)
            write_ring(out, costs, plan, c);
        else
            for (uint32_t which = 0; which < ntrees; which++)
                write_tree(out, costs, plan, c, which);
    }
}

/* ---- the machine ----------------------------------------------------------------------------- */

/* Writes the node of each rank. A node is a part: a host, or all hosts that an NVSwitch joins,
 * because their gpus reach each other as fast as gpus of one host. Parts without gpus have no
 * ranks, so nodes are numbered again. */
static void write_nodes(FILE *out, const struct costs *costs)
{
    uint32_t node = 0;

    fprintf(out, "ranks %u\nnode of", costs->parts->nranks);
    for (uint32_t i = 0; i < costs->parts->nparts; i++) {
        const struct tutti_graph_part *part = &costs->parts->part[i];

        for (uint32_t copy = 0; copy < part->copies && part->ngpus > 0; copy++, node++)
            for (uint32_t gpu = 0; gpu < part->ngpus; gpu++)
                fprintf(out, " %u", node);
    }
    fputc('\n', out);
}

static int write_text(const struct costs *costs, const struct tutti_channels *ring,
                      const struct tutti_channels *tree, char **ret_text)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (out == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a description of %u ranks",
                          costs->parts->nranks);
    write_nodes(out, costs);
    fputs("level node bandwidth 1GB/s\n", out); /* a placeholder until set_levels() */
    write_orders(out, costs, ring);
    write_orders(out, costs, tree);
    if (fclose(out) != 0) {
        free(text);
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a description of %u ranks",
                          costs->parts->nranks);
    }
    *ret_text = text;
    return TUTTI_OK;
}

static int make_machine(struct costs *costs, const struct tutti_channels *ring,
                        const struct tutti_channels *tree, struct tutti_machine **ret_machine)
{
    struct tutti_machine *machine = NULL;
    struct tutti_machine_links links;
    char *text;
    int rc;

    TUTTI_TRY(tutti_search_ways_plan(costs->paths, ring, tree, &costs->ways));
    costs->parts = &costs->ways->parts;
    TUTTI_TRY(reserve(costs));
    TUTTI_TRY(add_paths(costs));
    TUTTI_TRY(add_channel_paths(costs));
    TUTTI_TRY(number_links(costs));
    TUTTI_TRY(write_text(costs, ring, tree, &text));
    TUTTI_TRY_OR(drop_text, rc, tutti_machine_parse("graph", text, 0, &machine));
    links = (struct tutti_machine_links){
        .links = costs->links, .nlinks = costs->nlinks, .paths = costs->machine_paths,
        .npaths = costs->npaths, .crossings = costs->crossings, .ncrossings = costs->ncrossings,
        .kinds = costs->kinds, .nkinds = costs->nkinds};
    TUTTI_TRY_OR(drop_text, rc, tutti_machine_set_links(machine, &links));
    set_levels(costs, machine);
    *ret_machine = machine;

drop_text:
    free(text);
    if (rc != TUTTI_OK)
        tutti_machine_destroy(machine);
    return rc;
}

int tutti_search_machine(const struct tutti_paths *paths, const struct tutti_channels *ring,
                         const struct tutti_channels *tree, enum tutti_search_rates rates,
                         struct tutti_machine **ret_machine)
{
    struct costs costs = {.paths = paths, .graph = paths->graph, .rates = rates,
                          .ngpus = paths->graph->count[TUTTI_NODE_GPU]};
    int rc;

    if (costs.ngpus == 0)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "the machine has no gpus, and each rank is a gpu; "
                                              "describe at least one");
    rc = make_machine(&costs, ring, tree, ret_machine);
    tutti_search_ways_destroy(costs.ways);
    free(costs.used);
    free(costs.links);
    free(costs.machine_paths);
    free(costs.crossings);
    return rc;
}
