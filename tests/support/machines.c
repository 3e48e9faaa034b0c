/* SPDX-License-Identifier: Apache-2.0
 * Verifies the result of a search, without using any part of the search. */
#include "support/machines.h"

#include "base/result.h"
#include "topology/formats/load.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

struct machine open_machine(const char *what)
{
    struct machine machine = {0};
    int rc = tutti_formats_load(what, &machine.inventory);

    if (rc == 0)
        rc = tutti_graph_build(machine.inventory, &machine.graph);
    if (rc == 0)
        rc = tutti_paths_find(machine.graph, &machine.paths);
    if (rc != 0)
        fail_msg("%s: %s", what, tutti_message_last());
    return machine;
}

void close_machine(struct machine *machine)
{
    tutti_paths_destroy(machine->paths);
    tutti_graph_destroy(machine->graph);
    tutti_inventory_destroy(machine->inventory);
}

static uint32_t node_of(const struct tutti_graph *graph, const struct tutti_channels *plan,
                        uint32_t index)
{
    return tutti_graph_gpu(graph, plan->gpus[index]);
}

static void load_path(const struct tutti_paths *paths, uint32_t from, uint32_t to, double times,
                      double *load)
{
    const struct tutti_path *path = tutti_paths_between(paths, from, to);

    assert_true(path->class < TUTTI_PATH_NET);
    for (uint32_t h = 0; h < path->nhops; h++)
        load[paths->hop[path->first + h].link] += times * paths->hop[path->first + h].demand;
}

static void load_ring(const struct tutti_paths *paths, const struct tutti_channels *plan,
                      const struct tutti_channel *channel, double *load)
{
    const struct tutti_graph *graph = paths->graph;
    bool is_seen[256] = {false}, has_net = channel->net_in != TUTTI_NO_NODE;
    uint32_t first = node_of(graph, plan, channel->gpu[0]);
    uint32_t last = node_of(graph, plan, channel->gpu[plan->ngpus - 1]);

    for (uint32_t i = 0; i < plan->ngpus; i++) {
        assert_true(channel->gpu[i] < plan->ngpus && !is_seen[channel->gpu[i]]);
        is_seen[channel->gpu[i]] = true;
        if (i > 0)
            load_path(paths, node_of(graph, plan, channel->gpu[i - 1]),
                      node_of(graph, plan, channel->gpu[i]), 1, load);
    }
    if (has_net) {
        load_path(paths, tutti_graph_net(graph, channel->net_in), first, 1, load);
        load_path(paths, last, tutti_graph_net(graph, channel->net_out), 1, load);
    } else if (plan->ngpus > 1) {
        load_path(paths, last, first, 1, load);
    }
}

static void load_tree(const struct tutti_paths *paths, const struct tutti_channels *plan,
                      const struct tutti_channel *channel, double *load)
{
    const struct tutti_graph *graph = paths->graph;
    bool is_both_ways = plan->pattern == TUTTI_PATTERN_TREE;
    double times = is_both_ways ? plan->joint_load : 1; /* through the nets */
    uint32_t nroots = 0;

    for (uint32_t i = 0; i < plan->ngpus; i++) {
        uint32_t gpu = node_of(graph, plan, i), at = i, parent = channel->gpu[i];

        for (uint32_t depth = 0; at != TUTTI_NO_NODE; depth++) {
            assert_true(at < plan->ngpus && depth < plan->ngpus); /* no cycle */
            at = channel->gpu[at];
        }
        if (parent != TUTTI_NO_NODE) {
            load_path(paths, node_of(graph, plan, parent), gpu, 1, load);
            if (is_both_ways)
                load_path(paths, gpu, node_of(graph, plan, parent), 1, load);
            continue;
        }
        nroots++;
        if (channel->net_in == TUTTI_NO_NODE)
            continue;
        load_path(paths, tutti_graph_net(graph, channel->net_in), gpu, times, load);
        load_path(paths, gpu, tutti_graph_net(graph, channel->net_out), times, load);
    }
    assert_int_equal(nroots, 1);
}

void check_channels(const char *what, const struct tutti_paths *paths,
                    const struct tutti_channels *plan)
{
    const struct tutti_graph *graph = paths->graph;
    double *load = calloc(graph->nlinks + 1, sizeof *load), share = 0;

    assert_true(plan->nchannels > 0);
    for (uint32_t c = 0; c < plan->nchannels; c++)
        (plan->pattern == TUTTI_PATTERN_RING ? load_ring : load_tree)(paths, plan,
                                                                      &plan->channel[c], load);
    for (uint32_t i = 0; i < graph->nlinks && isfinite(plan->bytes_per_s); i++)
        if (load[i] * plan->channel_bytes_per_s > graph->links[i].bytes_per_s * (1 + 1e-9)) {
            char name[256];

            tutti_graph_link_name(graph, i, name, sizeof name);
            fail_msg("%s: %s: %s carries %g of %g GB/s", what, tutti_pattern_name(plan->pattern),
                     name, load[i] * plan->channel_bytes_per_s / 1e9,
                     graph->links[i].bytes_per_s / 1e9);
        }
    for (uint32_t i = 0; i < plan->nbounds; i++)
        share += plan->bound_share[i];
    assert_true(plan->nbounds == 0 || fabs(share - 1) < 1e-3);
    if (plan->bytes_per_s > plan->bound_bytes_per_s * (1 + 1e-6))
        fail_msg("%s: %s: %g GB/s, but the bound is %g", what, tutti_pattern_name(plan->pattern),
                 plan->bytes_per_s / 1e9, plan->bound_bytes_per_s / 1e9);
    free(load);
}

void check_taste(const char *what, const struct tutti_paths *paths, enum tutti_pattern pattern,
                 struct tutti_search_options options, const struct tutti_channels *plan)
{
    struct tutti_channels *most;
    double gain = 0;

    options.for_rate_only = true;
    assert_int_equal(tutti_search(paths, pattern, &options, &most), TUTTI_OK);
    for (uint32_t i = 0; i < plan->nleft_out; i++)
        gain += plan->left_out[i].gain;
    if (gain > 0.04 + 1e-6)
        fail_msg("%s: %s: weak ports would add %g", what, tutti_pattern_name(pattern), gain);
    if (isfinite(most->bytes_per_s) &&
        plan->bytes_per_s <
            (1 - gain) * most->bytes_per_s - (0.02 + 1e-5) * most->bound_bytes_per_s)
        fail_msg("%s: %s: %g GB/s, where %g can be and weak ports would add %g", what,
                 tutti_pattern_name(pattern), plan->bytes_per_s / 1e9, most->bytes_per_s / 1e9,
                 gain);
    if (plan->nchannels > most->nchannels)
        fail_msg("%s: %s: %u channels, where %u are enough", what, tutti_pattern_name(pattern),
                 plan->nchannels, most->nchannels);
    tutti_channels_destroy(most);
}
