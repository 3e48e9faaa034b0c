/* SPDX-License-Identifier: Apache-2.0
 * Prices. Sharing is what the counts leave out: ranks of a node take turns on its cores and its
 * network ports, ranks of a group on the group's trunk. Nodes and groups are taken to be equal. */
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

/* What the bytes of a level take. One-sided costs are of one level. */
static double wire_of(const struct tutti_tuner_view *view, const struct tutti_cost *cost, int level)
{
    const struct tutti_machine *machine = view->machine;
    const struct tutti_places *places = view->places;
    double in_node = cost->is_alone ? 1 : crowd(view, places ? places->nnodes : 0);
    double in_group = cost->is_alone ? 1 : crowd(view, places ? places->ngroups : 0);
    double bytes = cost->level[level].bytes, wire;

    if (bytes > 0 && machine->memory_bytes_per_s == 0)
        bytes = fmax(bytes, cost->served);
    wire = over(bytes, machine->level[level].bytes_per_s);
    if (level != TUTTI_LEVEL_NODE && machine->nics > 0)
        wire *= share(in_node, machine->nics);
    if (level == TUTTI_LEVEL_TOP && places != NULL && places->ngroups > 1)
        wire = fmax(wire, over(bytes * in_group, machine->trunk_bytes_per_s));
    return wire;
}

/* Memory is busy while bytes are on their way, reduced and copied: the slower of both counts. */
static double seconds(const struct tutti_tuner_view *view, const struct tutti_cost *cost)
{
    const struct tutti_machine *machine = view->machine;
    double turns = share(crowd(view, view->places ? view->places->nnodes : 0), machine->cores);
    double work = turns * over(cost->reduced, machine->reduce_bytes_per_s) +
                  turns * over(cost->copied, machine->copy_bytes_per_s);
    double memory = over(cost->memory, machine->memory_bytes_per_s), busy = work;
    double of_level[TUTTI_LEVEL_COUNT];

    if (isinf(cost->reduced)) /* TUTTI_COST_UNKNOWN */
        return INFINITY;
    for (int level = 0; level < TUTTI_LEVEL_COUNT; level++) {
        const struct tutti_rate *rate = &machine->level[level];
        double rounds = cost->level[level].rounds, posted = cost->level[level].posted;
        double wire = wire_of(view, cost, level);

        busy += wire;
        of_level[level] =
            rounds * rate->latency_s + (rounds + posted) * turns * rate->overhead_s + wire;
    }
    return tutti_cost_sum(cost, of_level) + work + fmax(memory - busy, 0);
}

double tutti_price(const struct tutti_tuner_view *view, const struct tutti_tuner_query *query,
                   const struct tutti_choice *choice)
{
    const struct tutti_algorithm *algorithm = choice->algorithm;
    struct tutti_shape shape = {.nranks = view->nranks, .root = query->root,
                                .options = choice->options, .places = view->places};
    bool is_two_sided = algorithm->needs == 0;
    double factor = 1, bytes, larger, pieces = 0, sum = 0;
    struct tutti_cost cost;

    if (view->machine == NULL)
        return NAN;
    if (view->nranks == 1)
        return 0;
    if (is_two_sided && tutti_collective_reduces(query->collective) && query->widening > 1)
        factor = query->widening;
    bytes = factor * (double)query->block_bytes;
    larger = factor * (double)tutti_tuner_bytes(view, query);

    /* The whole schedule once per piece: the full ones, then the rest. */
    if (is_two_sided && !query->is_vector && view->stage_bytes > 0 &&
        larger > (double)view->stage_bytes) {
        double full = bytes * (double)view->stage_bytes / larger;

        pieces = ceil(larger / (double)view->stage_bytes) - 1;
        algorithm->cost(&shape, full, &cost);
        sum = pieces * seconds(view, &cost);
        bytes -= pieces * full;
    }
    algorithm->cost(&shape, bytes, &cost);
    return sum + seconds(view, &cost);
}
