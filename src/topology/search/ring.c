/* SPDX-License-Identifier: Apache-2.0
 * Finds the cheapest ring at given costs. A ring is a cycle through all gpus, or a path through all
 * gpus from a net to a net. Both are treated as a path with a cost for its first gpu and a cost for
 * its last gpu.
 */
#include "topology/search/assignment.h"
#include "topology/search/pricing.h"

#include "base/result.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Limits for the number of additions in an exact search, with effort and without. The search does
 * several additions per nanosecond. */
#define EXACT_WORK 4e8
#define EASY_WORK 1e6
/* The heuristic search makes up to ATTEMPTS attempts from each gpu, until a ring costs less than
 * PAYS. With more than MANY_GPUS gpus it makes one attempt. */
#define PAYS 0.999
enum { ATTEMPTS = 8, MANY_GPUS = 24 };

struct tour {
    const struct tutti_pricing *pricing;
    const double *cost;    /* per pair of places */
    uint32_t n;            /* gpus */
    double *begin, *end;   /* per gpu: cost of entering at this gpu, and of leaving from it */
    uint32_t *begin_net, *end_net;
    uint32_t *order, *best_order;
    uint32_t best_in, best_out;
    double best_cost;
};

static double cost_of(const struct tour *tour, uint32_t from, uint32_t to)
{
    return tour->cost[from * tour->pricing->nplaces + to];
}

static double cost_of_order(const struct tour *tour, const uint32_t *order)
{
    double sum = tour->begin[order[0]] + tour->end[order[tour->n - 1]];

    for (uint32_t i = 0; i + 1 < tour->n; i++)
        sum += cost_of(tour, order[i], order[i + 1]);
    return sum;
}

/* A ring within the host is a cycle, so it may be written from gpu 0 on. */
static void set_ends_of_cycle(struct tour *tour)
{
    for (uint32_t gpu = 0; gpu < tour->n; gpu++) {
        tour->begin[gpu] = gpu == 0 ? 0 : INFINITY;
        tour->end[gpu] = tour->n == 1 ? 0 : cost_of(tour, gpu, 0);
        tour->begin_net[gpu] = tour->end_net[gpu] = TUTTI_NO_NODE;
    }
}

/* Enters and leaves by `net`, or with may_cross by the cheapest net for each gpu. */
static void set_ends_of_net(struct tour *tour, uint32_t net, bool may_cross)
{
    const struct tutti_pricing *pricing = tour->pricing;

    for (uint32_t gpu = 0; gpu < tour->n; gpu++) {
        uint32_t in = net, out = net;

        for (uint32_t other = pricing->ngpus; may_cross && other < pricing->nplaces; other++) {
            in = cost_of(tour, other, gpu) < cost_of(tour, in, gpu) ? other : in;
            out = cost_of(tour, gpu, other) < cost_of(tour, gpu, out) ? other : out;
        }
        tour->begin[gpu] = cost_of(tour, in, gpu);
        tour->end[gpu] = cost_of(tour, gpu, out);
        tour->begin_net[gpu] = in;
        tour->end_net[gpu] = out;
    }
}

static void keep(struct tour *tour, const uint32_t *order, double cost)
{
    if (cost >= tour->best_cost)
        return;
    tour->best_cost = cost;
    memcpy(tour->best_order, order, tour->n * sizeof *order);
    tour->best_in = tour->begin_net[order[0]];
    tour->best_out = tour->end_net[order[tour->n - 1]];
}

/* ---- heuristic search ------------------------------------------------------------------------ */

/* Returns a pseudo-random factor from 1 to 2 that depends only on the attempt and the edge. The
 * factor is 1 in attempt 0. */
static double blur(uint32_t attempt, uint32_t from, uint32_t to)
{
    uint32_t mixed = (attempt * 0x9e3779b1u) ^ (from * 0x85ebca6bu) ^ (to * 0xc2b2ae35u);

    mixed ^= mixed >> 15;
    mixed *= 0x2c1b3c6du;
    mixed ^= mixed >> 13;
    return attempt == 0 ? 1 : 1 + (double)(mixed >> 8) / (1 << 24);
}

/* Makes a tour that always goes on to the nearest gpu; among equally near gpus, it takes the next
 * by number. Later attempts distort the distances, so that they start from other tours. */
static void go_to_nearest(struct tour *tour, uint32_t first, uint32_t attempt)
{
    bool is_used[TUTTI_SEARCH_GPUS] = {false};
    uint32_t at = first;

    for (uint32_t i = 0; i < tour->n; i++) {
        uint32_t nearest = TUTTI_NO_NODE;
        double least = INFINITY;

        tour->order[i] = at;
        is_used[at] = true;
        for (uint32_t step = 1; step < tour->n; step++) {
            uint32_t gpu = (at + step) % tour->n;
            double distance = cost_of(tour, at, gpu) * blur(attempt, at, gpu);

            if (!is_used[gpu] && (nearest == TUTTI_NO_NODE || distance < least)) {
                nearest = gpu;
                least = distance;
            }
        }
        at = nearest;
    }
}

static double edge(const struct tour *tour, uint32_t at, uint32_t next)
{
    if (at == TUTTI_NO_NODE)
        return tour->begin[tour->order[next]];
    if (next == tour->n)
        return tour->end[tour->order[at]];
    return cost_of(tour, tour->order[at], tour->order[next]);
}

/* Swaps order[i..j) and order[j..k): ... B C ... becomes ... C B ... */
static void swap_runs(struct tour *tour, uint32_t i, uint32_t j, uint32_t k)
{
    uint32_t run[TUTTI_SEARCH_GPUS];

    memcpy(run, tour->order + i, (j - i) * sizeof *run);
    memmove(tour->order + i, tour->order + j, (k - j) * sizeof *run);
    memcpy(tour->order + i + (k - j), run, (j - i) * sizeof *run);
}

/* Swaps adjacent runs while that lowers the cost. No run is reversed, so costs may depend on the
 * direction. */
static void improve(struct tour *tour, bool is_cycle)
{
    bool has_changed = true;

    for (uint32_t round = 0; has_changed && round < 4 * tour->n; round++) {
        has_changed = false;
        for (uint32_t i = is_cycle; i + 1 < tour->n; i++)
            for (uint32_t j = i + 1; j < tour->n; j++)
                for (uint32_t k = j + 1; k <= tour->n; k++) {
                    uint32_t before = i == 0 ? TUTTI_NO_NODE : i - 1;
                    double now = edge(tour, before, i) + edge(tour, j - 1, j) +
                                 edge(tour, k - 1, k);
                    double then = edge(tour, before, j) + edge(tour, k - 1, i) +
                                  edge(tour, j - 1, k);

                    if (then < now * (1 - 1e-12)) {
                        swap_runs(tour, i, j, k);
                        has_changed = true;
                    }
                }
    }
}

/* Rotates a cycle so that it begins at gpu 0. */
static void turn(struct tour *tour)
{
    uint32_t first = 0;

    while (tour->order[first] != 0)
        first++;
    if (first > 0)
        swap_runs(tour, 0, first, tour->n);
}

/* Searches heuristically until a ring costs less than PAYS. A ring that costs less than 1 improves
 * the linear program. */
static void look_near(struct tour *tour, bool is_cycle)
{
    uint32_t attempts = tour->n <= MANY_GPUS ? ATTEMPTS : 1;

    for (uint32_t attempt = 0; attempt < attempts; attempt++) {
        for (uint32_t first = 0; first < tour->n; first++) {
            go_to_nearest(tour, first, attempt);
            if (is_cycle)
                turn(tour);
            /* With many gpus there are too many runs to improve every tour. */
            if (tour->n <= MANY_GPUS || first == 0)
                improve(tour, is_cycle);
            keep(tour, tour->order, cost_of_order(tour, tour->order));
        }
        if (tour->best_cost < PAYS)
            break;
    }
}

/* ---- exact search ---------------------------------------------------------------------------- */

/* Returns the least of `least[i] + cost[i]`. The loop keeps four independent minima, so that a
 * processor can compute them in parallel. */
static double least_sum(const double *least, const double *cost)
{
    double best[4] = {INFINITY, INFINITY, INFINITY, INFINITY};

    for (uint32_t i = 0; i < TUTTI_SEARCH_EXACT_GPUS; i += 4)
        for (uint32_t lane = 0; lane < 4; lane++) {
            double sum = least[i + lane] + cost[i + lane];

            best[lane] = sum < best[lane] ? sum : best[lane];
        }
    best[0] = best[1] < best[0] ? best[1] : best[0];
    best[2] = best[3] < best[2] ? best[3] : best[2];
    return best[2] < best[0] ? best[2] : best[0];
}

/* Returns the gpu before the last gpu on the cheapest path through a set. */
static uint32_t step_back(const double *least, const double *cost)
{
    uint32_t best = 0;

    for (uint32_t i = 1; i < TUTTI_SEARCH_EXACT_GPUS; i++)
        if (least[i] + cost[i] < least[best] + cost[best])
            best = i;
    return best;
}

/* Searches exactly (Held and Karp, 1962). least[set][last] is the cost of the cheapest path through
 * a set of gpus that ends at `last`. */
static int look_everywhere(struct tour *tour, double *ret_least)
{
    enum { N = TUTTI_SEARCH_EXACT_GPUS };
    uint32_t n = tour->n, full = (1u << n) - 1, set = full;
    double (*least)[N] = malloc(((size_t)full + 1) * sizeof *least);
    double cost[N][N], end[N];

    if (least == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to search all rings of %u gpus", n);
    for (uint32_t last = 0; last < N; last++) {
        end[last] = last < n ? tour->end[last] : INFINITY;
        for (uint32_t i = 0; i < N; i++)
            cost[last][i] = i < n && last < n && i != last ? cost_of(tour, i, last) : INFINITY;
    }
    for (uint32_t last = 0; last < N; last++)
        least[0][last] = INFINITY;
    for (uint32_t here = 1; here <= full; here++)
        for (uint32_t last = 0; last < N; last++) {
            uint32_t before = here & ~(1u << last);

            least[here][last] = before == here ? INFINITY
                                : before == 0  ? tour->begin[last]
                                               : least_sum(least[before], cost[last]);
        }
    *ret_least = least_sum(least[full], end);
    if (isfinite(*ret_least)) {
        uint32_t at = step_back(least[full], end);

        for (uint32_t i = n; i-- > 0;) {
            tour->order[i] = at;
            set &= ~(1u << at);
            at = step_back(least[set], cost[at]);
        }
        keep(tour, tour->order, cost_of_order(tour, tour->order));
    }
    free(least);
    return TUTTI_OK;
}

/* Finds a lower bound on the cost of any ring: the cost of the cheapest set of cycles through all
 * places. */
static int bound_below(const struct tour *tour, bool is_cycle, double *ret_least)
{
    uint32_t n = tour->n + !is_cycle;
    double *cost = malloc((size_t)n * n * sizeof *cost);
    int rc;

    if (cost == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to bound rings of %u gpus", tour->n);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++)
            cost[i * n + j] = i == j         ? INFINITY
                              : i == tour->n ? tour->begin[j]
                              : j == tour->n ? tour->end[i]
                                             : cost_of(tour, i, j);
    rc = tutti_assignment(n, cost, ret_least);
    free(cost);
    return rc;
}

static bool may_look_everywhere(const struct tour *tour, bool with_effort, uint32_t nways)
{
    double work = ldexp(TUTTI_SEARCH_EXACT_GPUS * (double)tour->n, (int)tour->n) * nways;

    return tour->n <= TUTTI_SEARCH_EXACT_GPUS && work <= (with_effort ? EXACT_WORK : EASY_WORK);
}

/* Searches for one choice of nets, exactly if an exact search is not too much work. */
static int look(struct tour *tour, bool is_cycle, bool with_effort, uint32_t nways,
                double *ret_least)
{
    *ret_least = 0;
    if (may_look_everywhere(tour, with_effort, nways))
        return look_everywhere(tour, ret_least);
    look_near(tour, is_cycle);
    return with_effort ? bound_below(tour, is_cycle, ret_least) : TUTTI_OK;
}

static int look_by_all_ways(struct tour *tour, bool with_effort, double *ret_least)
{
    const struct tutti_pricing *pricing = tour->pricing;
    bool may_cross = pricing->may_cross;
    uint32_t nways = may_cross ? 1 : pricing->nnets;
    double least;

    if (pricing->nnets == 0) {
        set_ends_of_cycle(tour);
        return look(tour, true, with_effort, 1, ret_least);
    }
    *ret_least = INFINITY;
    for (uint32_t way = 0; way < nways; way++) {
        set_ends_of_net(tour, pricing->ngpus + way, may_cross);
        TUTTI_TRY(look(tour, false, with_effort, nways, &least));
        *ret_least = least < *ret_least ? least : *ret_least;
    }
    return TUTTI_OK;
}

int tutti_pricing_cheapest_ring(const struct tutti_pricing *pricing, const double *cost,
                                bool with_effort, struct tutti_search_column *column,
                                double *ret_cost, double *ret_least)
{
    uint32_t n = pricing->ngpus;
    struct tour tour = {.pricing = pricing, .cost = cost, .n = n, .best_cost = INFINITY};
    double *ends = calloc(2 * (size_t)n, sizeof *ends);
    uint32_t *numbers = calloc(4 * (size_t)n, sizeof *numbers);
    int rc;

    if (ends == NULL || numbers == NULL) {
        rc = tutti_fail(TUTTI_ERR_SYSTEM, "no memory to search rings of %u gpus", n);
        goto drop_tour;
    }
    tour.begin = ends;
    tour.end = ends + n;
    tour.begin_net = numbers;
    tour.end_net = numbers + n;
    tour.order = numbers + 2 * (size_t)n;
    tour.best_order = numbers + 3 * (size_t)n;
    TUTTI_TRY_OR(drop_tour, rc, look_by_all_ways(&tour, with_effort, ret_least));
    *ret_cost = tour.best_cost;
    if (!isinf(tour.best_cost)) {
        memcpy(column->gpu, tour.best_order, n * sizeof *column->gpu);
        column->net_in = tour.best_in;
        column->net_out = tour.best_out;
        tutti_column_measure(pricing, TUTTI_PATTERN_RING, column);
    }

drop_tour:
    free(ends);
    free(numbers);
    return rc;
}
