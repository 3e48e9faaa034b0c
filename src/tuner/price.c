/* SPDX-License-Identifier: Apache-2.0
 * Prices. Sharing is what the counts leave out: ranks of a node take turns on its cores and its
 * network ports, ranks of a group on the group's trunk. A rank whose core moves its messages is
 * taken to receive as much as it sends. Nodes and groups are taken to be equal. */
#include "tuner/price.h"

#include <math.h>

/* How many of `all` share each of `parts`, at least one. */
static double share(double all, double parts)
{
    return parts > 0 && all > parts ? all / parts : 1;
}

/* Ranks of a node, or of a group, on average. */
static double crowd(const struct tutti_tuner_view *view, uint32_t count)
{
    return count > 0 ? share(view->nranks, count) : 1;
}

static double over(double amount, double per_second)
{
    return amount > 0 && per_second > 0 ? amount / per_second : 0;
}

static double seconds(const struct tutti_tuner_view *view, const struct tutti_machine *machine,
                      const struct tutti_cost *cost)
{
    const struct tutti_places *places = view->places;
    double in_node = crowd(view, places ? places->nnodes : 0);
    double turns = share(in_node, machine->cores);
    double of_level[TUTTI_LEVEL_COUNT];

    if (isinf(cost->reduced)) /* TUTTI_COST_UNKNOWN */
        return INFINITY;
    for (int level = 0; level < TUTTI_LEVEL_COUNT; level++) {
        const struct tutti_rate *rate = &machine->level[level];
        double rounds = cost->level[level].rounds, posted = cost->level[level].posted;
        double bytes = cost->level[level].bytes, wire = over(bytes, rate->bytes_per_s);

        if (level != TUTTI_LEVEL_NODE && machine->nics > 0)
            wire *= share(in_node, machine->nics);
        if (level == TUTTI_LEVEL_TOP && places != NULL && places->ngroups > 1)
            wire = fmax(wire, over(bytes * crowd(view, places->ngroups),
                                   machine->trunk_bytes_per_s));
        wire = fmax(wire, turns * over(2 * bytes, rate->core_bytes_per_s));
        of_level[level] =
            rounds * rate->latency_s + (rounds + posted) * turns * rate->overhead_s + wire;
    }
    return tutti_cost_sum(cost, of_level) +
           turns * over(cost->reduced, machine->reduce_bytes_per_s) +
           turns * over(cost->copied, machine->copy_bytes_per_s) +
           over(cost->memory, machine->memory_bytes_per_s);
}

/* The machine as this call finds it; loads and stores have their own speed. */
static void look_at(const struct tutti_tuner_view *view, const struct tutti_tuner_query *query,
                    bool is_two_sided, struct tutti_machine *ret_machine)
{
    struct tutti_rate *node = &ret_machine->level[TUTTI_LEVEL_NODE];

    tutti_machine_at(view->machine,
                     tutti_machine_footprint(query->collective, view->nranks,
                                             (double)query->block_bytes), ret_machine);
    if (is_two_sided)
        return;
    node->core_bytes_per_s = 0;
    if (ret_machine->load_bytes_per_s > 0)
        node->bytes_per_s = ret_machine->load_bytes_per_s;
}

double tutti_price(const struct tutti_tuner_view *view, const struct tutti_tuner_query *query,
                   const struct tutti_choice *choice)
{
    const struct tutti_algorithm *algorithm = choice->algorithm;
    struct tutti_shape shape = {.nranks = view->nranks, .root = query->root,
                                .options = choice->options, .places = view->places};
    bool is_two_sided = algorithm->needs == 0;
    double factor = 1, bytes, larger, pieces = 0, sum = 0;
    struct tutti_machine machine;
    struct tutti_cost cost;

    if (algorithm->cost == NULL || view->machine == NULL)
        return NAN;
    if (view->nranks == 1)
        return 0;
    if (is_two_sided && tutti_collective_reduces(query->collective) && query->widening > 1)
        factor = query->widening;
    look_at(view, query, is_two_sided, &machine);
    bytes = factor * (double)query->block_bytes;
    larger = factor * (double)tutti_tuner_bytes(view, query);

    /* The whole schedule once per piece: the full ones, then the rest. */
    if (is_two_sided && !query->is_vector && view->stage_bytes > 0 &&
        larger > (double)view->stage_bytes) {
        double full = bytes * (double)view->stage_bytes / larger;

        pieces = ceil(larger / (double)view->stage_bytes) - 1;
        algorithm->cost(&shape, full, &cost);
        sum = pieces * seconds(view, &machine, &cost);
        bytes -= pieces * full;
    }
    algorithm->cost(&shape, bytes, &cost);
    return sum + seconds(view, &machine, &cost);
}
