/* SPDX-License-Identifier: Apache-2.0
 * Prices (price.h). The counts of an algorithm do not include the effects of sharing, which this
 * file adds. Ranks of a node share its cores and its network ports, ranks of a group share the
 * group's trunk, and traffic between the cells of a node shares their bridges. Nodes, groups and
 * cells are assumed to be of equal size. A rank whose core moves its messages is assumed to receive
 * as much as it sends. Rings along paths of the machine have the joint rate of its links. All other
 * traffic has the rates of the machine's levels. */
#include "tuner/price.h"

#include <math.h>

/* Returns how many of `all` share each of `parts`. The result is at least 1. */
static double share(double all, double parts)
{
    return parts > 0 && all > parts ? all / parts : 1;
}

/* Returns the average number of ranks of a node, group or cell, of which there are `count`. The
 * result is 1 if there are none. */
static double ranks_per(const struct tutti_tuner_view *view, uint32_t count)
{
    return count > 0 ? share(view->nranks, count) : 1;
}

/* Returns the seconds for an amount at a rate. A rate of 0 means that the rate is unbounded. */
static double time_of(double amount, double per_second)
{
    return amount > 0 && per_second > 0 ? amount / per_second : 0;
}

/* Returns the seconds that the bytes within a node take longer because cells share bridges. `wire`
 * is the seconds that a rank alone takes for all of these bytes. */
static double bridge_of(const struct tutti_tuner_view *view, const struct tutti_machine *machine,
                        const struct tutti_cost *cost, double wire)
{
    double in_node = ranks_per(view, view->places->nnodes);
    double in_cell = ranks_per(view, view->places->ncells), elsewhere, own;

    if (cost->bridge.rounds > 0) {
        own = time_of(cost->bridge.bytes / in_cell, machine->level[TUTTI_LEVEL_NODE].bytes_per_s);
        return fmax(time_of(cost->bridge.bytes, machine->bridge_bytes_per_s) - own, 0);
    }
    elsewhere = in_node > 1 ? (in_node - in_cell) / (in_node - 1) : 0;
    own = elsewhere * fmax(in_cell * cost->level[TUTTI_LEVEL_NODE].bytes, cost->served);
    return fmax(time_of(own, machine->bridge_bytes_per_s) - wire, 0);
}

/* Returns the number of rounds that cross from cell to cell. */
static double bridge_rounds(const struct tutti_tuner_view *view, const struct tutti_cost *cost)
{
    if (view->places == NULL || view->places->cell == NULL)
        return 0;
    return cost->bridge.rounds > 0 ? cost->bridge.rounds : cost->level[TUTTI_LEVEL_NODE].rounds;
}

/* Returns the seconds that the bytes of a level take. One-sided algorithms have bytes at one level
 * only. */
static double wire_of(const struct tutti_tuner_view *view, const struct tutti_machine *machine,
                      const struct tutti_cost *cost, int level)
{
    const struct tutti_placement *places = view->places;
    double in_node = cost->is_alone ? 1 : ranks_per(view, places ? places->nnodes : 0);
    double in_group = cost->is_alone ? 1 : ranks_per(view, places ? places->ngroups : 0);
    double bytes = cost->level[level].bytes, wire;

    if (bytes > 0 && machine->memory_bytes_per_s == 0)
        bytes = fmax(bytes, cost->served);
    wire = time_of(bytes, machine->level[level].bytes_per_s);
    if (level != TUTTI_LEVEL_NODE && machine->nics > 0)
        wire *= share(in_node, machine->nics);
    if (level == TUTTI_LEVEL_TOP && places != NULL && places->ngroups > 1)
        wire = fmax(wire, time_of(bytes * in_group, machine->trunk_bytes_per_s));
    if (level == TUTTI_LEVEL_NODE && places != NULL && places->cell != NULL)
        wire += bridge_of(view, machine, cost, wire);
    return wire;
}

/* Returns the seconds of the messages on the links of a torus. A core moves all messages of a rank,
 * whichever link they cross. */
static double torus_of(const struct tutti_machine *machine, const struct tutti_cost *cost,
                       double ranks_per_core)
{
    const struct tutti_rate *rate = &machine->level[TUTTI_LEVEL_TOP];
    double all_bytes = 0;

    for (int level = 0; level < TUTTI_LEVEL_COUNT; level++)
        all_bytes += cost->level[level].bytes;
    return cost->torus.hops * rate->latency_s +
           cost->torus.rounds * ranks_per_core * rate->overhead_s +
           fmax(time_of(cost->torus.bytes, rate->bytes_per_s),
                ranks_per_core * time_of(2 * all_bytes, rate->core_bytes_per_s));
}

/* Returns the seconds of one piece. The memory of a node works at the same time as transfers,
 * reductions and copies, so the slower of both counts. */
static double seconds(const struct tutti_tuner_view *view, const struct tutti_machine *machine,
                      const struct tutti_cost *cost)
{
    double in_node = ranks_per(view, view->places ? view->places->nnodes : 0);
    double ranks_per_core = share(in_node, machine->cores);
    double work = ranks_per_core * time_of(cost->reduced, machine->reduce_bytes_per_s) +
                  ranks_per_core * time_of(cost->copied, machine->copy_bytes_per_s);
    double memory = time_of(cost->memory, machine->memory_bytes_per_s), busy = work;
    double of_level[TUTTI_LEVEL_COUNT];
    double by_core = 0; /* what a core does for all levels, which only ports can work on at once */

    if (isinf(cost->reduced)) /* TUTTI_COST_UNKNOWN */
        return INFINITY;
    if (cost->torus.rounds > 0)
        return torus_of(machine, cost, ranks_per_core) + work;
    for (int level = 0; level < TUTTI_LEVEL_COUNT; level++) {
        const struct tutti_rate *rate = &machine->level[level];
        double rounds = cost->level[level].rounds, posted = cost->level[level].posted;
        double wire = wire_of(view, machine, cost, level);
        double core =
            ranks_per_core * time_of(2 * cost->level[level].bytes, rate->core_bytes_per_s);
        double overhead = (rounds + posted) * ranks_per_core * rate->overhead_s;

        wire = fmax(wire, core);
        busy += wire;
        of_level[level] = rounds * rate->latency_s + overhead + wire;
        if (rate->core_bytes_per_s > 0)
            by_core += overhead + core;
    }
    of_level[TUTTI_LEVEL_NODE] += bridge_rounds(view, cost) * machine->bridge_latency_s;
    return fmax(tutti_cost_sum(cost, of_level), by_core) + work + fmax(memory - busy, 0);
}

/* Returns the bytes that messages carry, per byte of the call. */
static double widening(const struct tutti_tuner_query *query,
                       const struct tutti_algorithm *algorithm)
{
    bool is_wide = (algorithm->needs == 0 || algorithm->sums_in_stages) &&
                   tutti_collective_reduces(query->collective);

    return is_wide && query->widening > 1 ? query->widening : 1;
}

double tutti_price_pieces(const struct tutti_tuner_view *view,
                          const struct tutti_tuner_query *query,
                          const struct tutti_algorithm *algorithm)
{
    double wide = widening(query, algorithm);
    double bytes = wide * (double)tutti_tuner_bytes(view, query);
    bool is_staged = wide > 1 || query->is_scaled;
    /* An all-to-all in place is not lean, and the query does not tell if the call is in place. */
    bool is_lean = algorithm->is_lean &&
                   tutti_collective_in_place(query->collective) != TUTTI_AFTER_COPY;
    size_t most = is_staged ? view->stage_bytes : view->scratch_bytes;

    if (algorithm->needs != 0 || query->is_vector || most == 0 ||
        (is_lean && !is_staged))
        return 1;
    return fmax(1, ceil(bytes / (double)most));
}

/* Gets the machine's rates for the footprint of this call (topology/machine/machine.h). One-sided
 * calls have the rates of loads, stores and signals within the node. */
static void rates_at(const struct tutti_tuner_view *view, const struct tutti_tuner_query *query,
                     bool is_two_sided, struct tutti_machine *ret_machine)
{
    struct tutti_rate *node = &ret_machine->level[TUTTI_LEVEL_NODE];

    tutti_machine_for_footprint(view->machine,
                     tutti_machine_footprint(query->collective, view->nranks,
                                             (double)query->block_bytes), ret_machine);
    if (is_two_sided)
        return;
    node->core_bytes_per_s = 0;
    if (ret_machine->signal_s > 0) {
        node->latency_s = ret_machine->signal_s;
        node->overhead_s = 0;
    }
    if (ret_machine->load_bytes_per_s > 0)
        node->bytes_per_s = ret_machine->load_bytes_per_s;
}

/* Changes the counts of algorithms that do not follow the given rings. The rate of a level is that
 * of a pair alone. Where the links between GPUs are known, the ranks share them: one-sided
 * algorithms run at the joint rate of all pairs, and rounds of messages at that of the slowest
 * round. */
static void adjust_exchange(const struct tutti_tuner_view *view,
                            const struct tutti_machine *machine, const struct tutti_choice *choice,
                            struct tutti_cost *cost)
{
    double node_rate = machine->level[TUTTI_LEVEL_NODE].bytes_per_s;
    bool is_one_sided =
        choice->algorithm->needs != 0 || choice->protocol != TUTTI_PROTOCOL_STEPS;
    double rate = is_one_sided ? view->exchange.pairs_bytes_per_s
                               : view->exchange.rounds_bytes_per_s;

    if (rate > 0 && node_rate > 0 &&
        (is_one_sided || (choice->algorithm->uses & TUTTI_USES_RINGS) == 0))
        cost->level[TUTTI_LEVEL_NODE].bytes *= node_rate / rate;
}

/* Replaces the waiting times of the form by those of the protocol, and adds the bytes of flags. */
static void adjust_protocol(const struct tutti_tuner_query *query,
                            const struct tutti_choice *choice, struct tutti_cost *cost)
{
    const struct tutti_protocol_cost own = tutti_protocol_cost(choice->protocol);

    if (query->protocols == 0)
        return;
    for (int level = 0; level < TUTTI_LEVEL_COUNT; level++) {
        cost->level[level].bytes *= own.bytes;
        if (choice->protocol == TUTTI_PROTOCOL_STEPS)
            cost->level[level].rounds *= own.flights;
        else if (cost->level[level].rounds > 0)
            cost->level[level].rounds = own.flights;
    }
}

/* Changes the counts of rings along paths of the machine. Such rings occupy no ports. They run side
 * by side, at the joint rate of their links. */
static void adjust_rings(const struct tutti_tuner_view *view, const struct tutti_machine *machine,
                         const struct tutti_choice *choice, struct tutti_cost *cost)
{
    uint32_t given = choice->options.value[TUTTI_CHANNELS], nrings;
    double together;

    if ((choice->algorithm->uses & TUTTI_USES_RINGS) == 0 || view->places == NULL ||
        view->places->rings != machine->places.rings)
        return;
    nrings = 2 * view->places->nrings;
    nrings = given != 0 && given < nrings ? given : nrings;
    together = tutti_machine_rings_rate(machine, nrings);
    if (together == 0)
        return;
    for (int level = 0; level < TUTTI_LEVEL_COUNT; level++) {
        const struct tutti_rate *rate = &machine->level[level];

        if (rate->core_bytes_per_s > 0)
            continue;
        cost->level[level].rounds /= nrings;
        cost->level[level].bytes *= rate->bytes_per_s / together;
    }
}

/* Returns the algorithm whose counts are those of the choice. */
static const struct tutti_algorithm *priced_form(const struct tutti_tuner_view *view,
                                                 const struct tutti_choice *choice)
{
    if (choice->protocol == TUTTI_PROTOCOL_DIRECT && !view->all_read)
        return tutti_protocol_window_form(choice->algorithm->collective);
    return choice->algorithm;
}

double tutti_price(const struct tutti_tuner_view *view, const struct tutti_tuner_query *query,
                   const struct tutti_choice *choice)
{
    const struct tutti_algorithm *algorithm = priced_form(view, choice);
    struct tutti_shape shape = {.nranks = view->nranks, .root = query->root,
                                .options = choice->options, .places = view->places};
    bool is_kernel = choice->protocol != TUTTI_PROTOCOL_STEPS; /* runs whole, and widens nothing */
    double pieces = is_kernel ? 1 : tutti_price_pieces(view, query, algorithm);
    double wide = is_kernel ? 1 : widening(query, algorithm);
    struct tutti_machine machine;
    struct tutti_cost cost;

    if (view->machine == NULL)
        return NAN;
    if (view->nranks == 1)
        return 0;
    rates_at(view, query, algorithm->needs == 0, &machine);
    tutti_algorithm_cost(algorithm, &shape, wide * (double)query->block_bytes / pieces, &cost);
    adjust_rings(view, &machine, choice, &cost);
    adjust_exchange(view, &machine, choice, &cost);
    adjust_protocol(query, choice, &cost);
    return pieces * seconds(view, &machine, &cost);
}
