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
#define WORK_WITH_EFFORT 4e8
#define WORK_WITHOUT_EFFORT 1e6
/* The heuristic search makes up to ATTEMPTS attempts from each gpu, until a ring costs less than
 * GOOD_COST. A ring that costs less than 1 improves the linear program. With more than MANY_GPUS
 * gpus it makes one attempt. */
#define GOOD_COST 0.999
/* A tour is cheaper only if its edges cost less by this part, so that rounding makes no endless
 * loop. */
#define EQUAL_TOLERANCE 1e-12
enum { ATTEMPTS = 8, MANY_GPUS = 24 };
/* A quick search makes one attempt, and improves only the tours from every fourth gpu. */
enum { QUICK_STEP = 4 };
/* Upper bound for the rounds that improve one tour, per gpu. */
enum { MOST_ROUNDS_PER_GPU = 4 };

/* The state of a search for the cheapest ring. A tour is an order of all gpus. */
struct tour {
    const struct tutti_pricing *pricing;
    const double *cost;    /* per pair of places */
    uint32_t n;            /* gpus */
    double *begin, *end;   /* per gpu: cost of entering at this gpu, and of leaving from it */
    uint32_t *begin_net, *end_net; /* per gpu: the net of this cost; TUTTI_NO_NODE: none */
    uint32_t *order;               /* the current tour */
    uint32_t *best_order;          /* the cheapest tour so far */
    uint32_t best_in, best_out;    /* nets of the cheapest tour */
    double best_cost;              /* infinite: no tour yet */
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

/* Sets the ends for a ring without nets. Such a ring is a cycle, so it may be written from gpu 0
 * on. */
static void set_ends_of_cycle(struct tour *tour)
{
    for (uint32_t gpu = 0; gpu < tour->n; gpu++) {
        tour->begin[gpu] = gpu == 0 ? 0 : INFINITY;
        tour->end[gpu] = tour->n == 1 ? 0 : cost_of(tour, gpu, 0);
        tour->begin_net[gpu] = tour->end_net[gpu] = TUTTI_NO_NODE;
    }
}

/* Sets the ends for a ring that enters and leaves by `net`, or with may_cross by the cheapest net
 * for each gpu. */
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

/* Keeps a tour as the best one if it costs less than the best one so far. */
static void keep_if_better(struct tour *tour, const uint32_t *order, double cost)
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
static double distortion(uint32_t attempt, uint32_t from, uint32_t to)
{
    uint32_t mixed = (attempt * 0x9e3779b1u) ^ (from * 0x85ebca6bu) ^ (to * 0xc2b2ae35u);

    mixed ^= mixed >> 15;
    mixed *= 0x2c1b3c6du;
    mixed ^= mixed >> 13;
    return attempt == 0 ? 1 : 1 + (double)(mixed >> 8) / (1 << 24);
}

/* Makes a tour that always goes on to the nearest gpu; among equally near gpus, it takes the next
 * by number. Later attempts distort the distances, so that they start from other tours. */
static void make_nearest_tour(struct tour *tour, uint32_t first, uint32_t attempt)
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
            double distance = cost_of(tour, at, gpu) * distortion(attempt, at, gpu);

            if (!is_used[gpu] && (nearest == TUTTI_NO_NODE || distance < least)) {
                nearest = gpu;
                least = distance;
            }
        }
        at = nearest;
    }
}

/* Returns the cost from order[at] to order[next]; TUTTI_NO_NODE as `at` and n as `next` stand for
 * the outside. */
static double edge_cost(const struct tour *tour, uint32_t at, uint32_t next)
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

/* Swaps adjacent runs of gpus while that lowers the cost (the exchange of three edges that is
 * called or-opt). No run is reversed, so costs may depend on the direction. */
static void improve(struct tour *tour, bool is_cycle)
{
    bool has_changed = true;

    for (uint32_t round = 0; has_changed && round < MOST_ROUNDS_PER_GPU * tour->n; round++) {
        has_changed = false;
        for (uint32_t i = is_cycle; i + 1 < tour->n; i++)
            for (uint32_t j = i + 1; j < tour->n; j++)
                for (uint32_t k = j + 1; k <= tour->n; k++) {
                    uint32_t before = i == 0 ? TUTTI_NO_NODE : i - 1;
                    double now = edge_cost(tour, before, i) + edge_cost(tour, j - 1, j) +
                                 edge_cost(tour, k - 1, k);
                    double then = edge_cost(tour, before, j) + edge_cost(tour, k - 1, i) +
                                  edge_cost(tour, j - 1, k);

                    if (then < now * (1 - EQUAL_TOLERANCE)) {
                        swap_runs(tour, i, j, k);
                        has_changed = true;
                    }
                }
    }
}

/* Rotates a cycle so that it begins at gpu 0. */
static void rotate_to_gpu_0(struct tour *tour)
{
    uint32_t first = 0;

    while (tour->order[first] != 0)
        first++;
    if (first > 0)
        swap_runs(tour, 0, first, tour->n);
}

/* Searches heuristically until a ring costs less than GOOD_COST. */
static void search_heuristically(struct tour *tour, bool is_cycle)
{
    bool is_quick = tour->pricing->is_quick;
    uint32_t attempts = tour->n <= MANY_GPUS && !is_quick ? ATTEMPTS : 1;

    for (uint32_t attempt = 0; attempt < attempts; attempt++) {
        bool is_first = true;

        for (uint32_t first = 0; first < tour->n; first++) {
            /* A net may reach few of many gpus, and no tour begins at the others. */
            if (!is_cycle && isinf(tour->begin[first]))
                continue;
            make_nearest_tour(tour, first, attempt);
            if (is_cycle)
                rotate_to_gpu_0(tour);
            /* With many gpus there are too many runs to improve every tour. */
            if (is_first || (tour->n <= MANY_GPUS && (!is_quick || first % QUICK_STEP == 0)))
                improve(tour, is_cycle);
            keep_if_better(tour, tour->order, cost_of_order(tour, tour->order));
            is_first = false;
        }
        if (tour->best_cost < GOOD_COST)
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

/* Returns the gpu that gives the least of `least[i] + cost[i]`: the gpu before the last one on the
 * cheapest path through a set. */
static uint32_t gpu_before(const double *least, const double *cost)
{
    uint32_t best = 0;

    for (uint32_t i = 1; i < TUTTI_SEARCH_EXACT_GPUS; i++)
        if (least[i] + cost[i] < least[best] + cost[best])
            best = i;
    return best;
}

/* Searches exactly (Held and Karp, 1962). least[set][last] is the cost of the cheapest path through
 * a set of gpus that ends at `last`. */
static int search_exactly(struct tour *tour, double *ret_least)
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
        uint32_t at = gpu_before(least[full], end);

        for (uint32_t i = n; i-- > 0;) {
            tour->order[i] = at;
            set &= ~(1u << at);
            at = gpu_before(least[set], cost[at]);
        }
        keep_if_better(tour, tour->order, cost_of_order(tour, tour->order));
    }
    free(least);
    return TUTTI_OK;
}

/* Puts places that reach each other at no cost into one group. `group` gets the group of each
 * place. Returns the number of groups. */
static uint32_t find_groups(const double *cost, uint32_t n, uint32_t *group)
{
    uint32_t ngroups = 0;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t same = 0;

        while (same < i && (cost[same * n + i] > 0 || cost[i * n + same] > 0))
            same++;
        group[i] = same < i ? group[same] : ngroups++;
    }
    return ngroups;
}

/* Fills in the least costs from group to group, through other groups too. */
static void cost_groups(const double *cost, uint32_t n, const uint32_t *group, uint32_t ngroups,
                        double *ret_least)
{
    for (uint32_t i = 0; i < ngroups * ngroups; i++)
        ret_least[i] = INFINITY;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++) {
            double *least = &ret_least[group[i] * ngroups + group[j]];

            *least = cost[i * n + j] < *least ? cost[i * n + j] : *least;
        }
    for (uint32_t k = 0; k < ngroups; k++)
        for (uint32_t i = 0; i < ngroups; i++)
            for (uint32_t j = 0; j < ngroups; j++) {
                double sum = ret_least[i * ngroups + k] + ret_least[k * ngroups + j];
                double *least = &ret_least[i * ngroups + j];

                *least = sum < *least ? sum : *least;
            }
    for (uint32_t i = 0; i < ngroups; i++)
        ret_least[i * ngroups + i] = INFINITY;
}

/* Raises a lower bound on the cost of any ring. Cycles within one device may be free, so a set of
 * cycles may be, too. A ring visits all groups of such places, and its way from group to group
 * costs at least as much as the cheapest set of cycles through all groups. */
static int raise_lower_bound(const double *cost, uint32_t n, double *least)
{
    uint32_t *group = calloc(n, sizeof *group), ngroups;
    double *between = malloc((size_t)n * n * sizeof *between), bound = 0;
    int rc = TUTTI_OK;

    if (group == NULL || between == NULL) {
        rc = tutti_fail(TUTTI_ERR_SYSTEM, "no memory to bound rings of %u places", n);
    } else {
        ngroups = find_groups(cost, n, group);
        cost_groups(cost, n, group, ngroups, between);
        if (ngroups > 1 && ngroups < n)
            rc = tutti_assignment(ngroups, between, &bound);
        if (rc == TUTTI_OK && bound > *least)
            *least = bound;
    }
    free(group);
    free(between);
    return rc;
}

/* Finds a lower bound on the cost of any ring: the cost of the cheapest set of cycles through all
 * places, or through all groups of places. */
static int find_lower_bound(const struct tour *tour, bool is_cycle, double *ret_least)
{
    uint32_t n = tour->n + (is_cycle ? 0 : 1); /* the outside is one more place */
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
    if (rc == TUTTI_OK)
        rc = raise_lower_bound(cost, n, ret_least);
    free(cost);
    return rc;
}

/* Returns true if an exact search is possible and not too much work for `nsearches` choices of
 * nets. */
static bool may_search_exactly(const struct tour *tour, bool with_effort, uint32_t nsearches)
{
    double work = ldexp(TUTTI_SEARCH_EXACT_GPUS * (double)tour->n, (int)tour->n) * nsearches;

    return tour->n <= TUTTI_SEARCH_EXACT_GPUS &&
           work <= (with_effort ? WORK_WITH_EFFORT : WORK_WITHOUT_EFFORT);
}

/* Returns false if some gpu has no finite way in or out, so that no ring has a finite cost. This is
 * the usual case when a ring is wanted for links that are full. */
static bool may_exist(const struct tour *tour)
{
    for (uint32_t gpu = 0; gpu < tour->n; gpu++) {
        bool has_in = isfinite(tour->begin[gpu]), has_out = isfinite(tour->end[gpu]);

        for (uint32_t i = 0; i < tour->n && !(has_in && has_out); i++) {
            has_in = has_in || (i != gpu && isfinite(cost_of(tour, i, gpu)));
            has_out = has_out || (i != gpu && isfinite(cost_of(tour, gpu, i)));
        }
        if (!has_in || !has_out)
            return false;
    }
    return true;
}

/* Returns true if some gpu can be entered and some gpu can be left, at finite costs. */
static bool has_ends(const struct tour *tour)
{
    bool has_begin = false, has_end = false;

    for (uint32_t gpu = 0; gpu < tour->n; gpu++) {
        has_begin = has_begin || isfinite(tour->begin[gpu]);
        has_end = has_end || isfinite(tour->end[gpu]);
    }
    return has_begin && has_end;
}

/* Searches for one choice of nets, exactly if an exact search is not too much work. */
static int search_with_ends(struct tour *tour, bool is_cycle, bool with_effort, uint32_t nsearches,
                            double *ret_least)
{
    *ret_least = INFINITY;
    if (!has_ends(tour) || !may_exist(tour))
        return TUTTI_OK;
    *ret_least = 0;
    if (may_search_exactly(tour, with_effort, nsearches))
        return search_exactly(tour, ret_least);
    search_heuristically(tour, is_cycle);
    return with_effort ? find_lower_bound(tour, is_cycle, ret_least) : TUTTI_OK;
}

/* Searches with each net, or once if a ring may leave by another net than it enters by. */
static int search_all_nets(struct tour *tour, bool with_effort, double *ret_least)
{
    const struct tutti_pricing *pricing = tour->pricing;
    bool may_cross = pricing->may_cross;
    uint32_t nsearches = may_cross ? 1 : pricing->nnets;
    double least;

    if (pricing->nnets == 0) {
        set_ends_of_cycle(tour);
        return search_with_ends(tour, true, with_effort, 1, ret_least);
    }
    *ret_least = INFINITY;
    for (uint32_t choice = 0; choice < nsearches; choice++) {
        set_ends_of_net(tour, pricing->ngpus + choice, may_cross);
        TUTTI_TRY(search_with_ends(tour, false, with_effort, nsearches, &least));
        *ret_least = least < *ret_least ? least : *ret_least;
        /* The hosts of a rack have many nets, and any ring that improves the program will do. */
        if (!with_effort && tour->n > MANY_GPUS && tour->best_cost < GOOD_COST)
            break;
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
    TUTTI_TRY_OR(drop_tour, rc, search_all_nets(&tour, with_effort, ret_least));
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
