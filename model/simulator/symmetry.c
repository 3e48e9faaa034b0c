/* SPDX-License-Identifier: Apache-2.0
 * Finds shifts that map a machine onto itself, and checks that schedules repeat with such a
 * shift. */
#include "simulator/symmetry.h"

#include "base/result.h"
#include "schedule/access.h"
#include "schedule/bind.h"

#include <stdlib.h>

/* ---- the machine ----------------------------------------------------------------------------- */

/* The parts of one kind (nodes, groups, ...), and the links that each of them has. */
struct parts {
    const uint32_t *part; /* per rank: its part; NULL: `size` consecutive ranks are a part */
    uint32_t size;
    uint32_t count;       /* number of parts */
    uint32_t first, ways; /* the kind's first link, or TUTTI_SIM_NONE; links of each part */
    bool matters;         /* false: all ranks are in one part, which has no links */
};

enum { KINDS = 9 };

static struct parts make_parts(const uint32_t *part, uint32_t count, uint32_t first, uint32_t ways)
{
    return (struct parts){.part = part, .size = 1, .count = count, .first = first, .ways = ways,
                          .matters = count > 1 || first != TUTTI_SIM_NONE};
}

/* Lists the like parts that have links of their own. Other machines with paths are not mapped onto
 * themselves by any shift that is looked for (may_shift_paths). */
static struct parts make_like_parts(const struct tutti_sim_network *network)
{
    const struct tutti_machine_links *links = &network->machine->links;
    struct parts parts = {.matters = false};

    if (links->nkinds > 0) {
        parts = make_parts(NULL, links->kinds[0].nparts, network->path_links,
                           links->kinds[0].nlinks);
        parts.size = links->kinds[0].nranks;
    }
    return parts;
}

/* Returns true if a shift by `period` maps the paths of the machine onto themselves, or if it has
 * none. Like parts of one kind have the same paths. */
static bool may_shift_paths(const struct tutti_sim_network *network, uint32_t period)
{
    const struct tutti_machine_links *links = &network->machine->links;

    return links->npaths == 0 || (links->nkinds == 1 && period % links->kinds[0].nranks == 0);
}

/* Lists all kinds of parts of a network. */
static void list_parts(const struct tutti_sim_network *network, struct parts kinds[KINDS])
{
    const struct tutti_placement *places = &network->machine->places;
    uint32_t n = network->nranks, nnodes = tutti_sim_node_count(network);
    uint32_t ngroups = places->group != NULL ? places->ngroups : 1;
    uint32_t ncells = places->cell != NULL ? places->ncells : 1;

    kinds[0] = make_parts(NULL, n, network->ports, 2);
    kinds[1] = make_parts(NULL, n, network->rank_cores, 1);
    kinds[2] = make_parts(places->node, nnodes, network->memories, 1);
    kinds[3] = make_parts(places->node, nnodes, network->node_cores, 1);
    kinds[4] = make_parts(places->cell, ncells, network->cells, 2);
    kinds[5] = make_parts(places->group, ngroups, network->trunks, 2);
    kinds[6] = make_parts(network->nic, network->nics == TUTTI_SIM_NONE ? 1 : network->nnics,
                          network->nics, 2);
    kinds[7] = make_parts(NULL, n, network->torus, 2 * places->ndims);
    kinds[8] = make_like_parts(network);
}

static uint32_t part_of(const struct parts *parts, uint32_t rank)
{
    return parts->part != NULL ? parts->part[rank] : rank / parts->size;
}

/* Finds the part to which a shift of all ranks by `period` maps each part. Returns false if ranks
 * of one part are mapped to different parts. */
static bool find_images(const struct parts *parts, uint32_t nranks, uint32_t period,
                        uint32_t *image)
{
    for (uint32_t i = 0; i < parts->count; i++)
        image[i] = TUTTI_SIM_NONE;
    for (uint32_t rank = 0; rank < nranks; rank++) {
        uint32_t *at = &image[part_of(parts, rank)];
        uint32_t to = part_of(parts, (rank + period) % nranks);

        if (*at != TUTTI_SIM_NONE && *at != to)
            return false;
        *at = to;
    }
    return true;
}

/* Replaces the image of each part by the lowest part to which repeated shifts map it. Returns false
 * if a part does not have `length` images, itself among them. */
static bool find_lowest(const struct parts *parts, uint32_t length, uint32_t *image, bool *is_found)
{
    for (uint32_t i = 0; i < parts->count; i++)
        is_found[i] = false;
    for (uint32_t i = 0; i < parts->count; i++) {
        uint32_t count = 0;

        for (uint32_t at = i, next; !is_found[at]; at = next) {
            next = image[at];
            image[at] = i;
            is_found[at] = true;
            count++;
        }
        if (count != 0 && count != length)
            return false;
    }
    return true;
}

/* Scratch memory of the functions below. It has an entry for each part of any kind. */
struct scratch {
    uint32_t *image;
    bool *is_found;
};

static void scratch_fini(struct scratch *scratch)
{
    free(scratch->image);
    free(scratch->is_found);
}

static int scratch_init(struct scratch *scratch, uint32_t nranks)
{
    scratch->image = calloc(nranks, sizeof *scratch->image);
    scratch->is_found = calloc(nranks, sizeof *scratch->is_found);
    if (scratch->image != NULL && scratch->is_found != NULL)
        return TUTTI_OK;
    scratch_fini(scratch);
    return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the symmetry of %u ranks", nranks);
}

/* Returns true if a shift by `period` maps neighbors in the torus to neighbors, or if there is no
 * torus. Such a shift moves all ranks along the last dimension, in which the rank numbers wrap
 * around like the links. */
static bool keeps_torus(const struct tutti_sim_network *network, uint32_t period)
{
    const struct tutti_placement *places = &network->machine->places;

    return places->ndims == 0 ||
           period % (network->nranks / places->dims[places->ndims - 1]) == 0;
}

/* Returns true if a shift by `period` maps the machine onto itself. Writes the representative of
 * each link to `fold` unless that is NULL. */
static bool is_shift(const struct tutti_sim_network *network, uint32_t period,
                     struct scratch *scratch, uint32_t *fold)
{
    struct parts kinds[KINDS];
    uint32_t n = network->nranks;

    if (period == 0 || period >= n || n % period != 0 || !may_shift_paths(network, period) ||
        !keeps_torus(network, period))
        return false;
    list_parts(network, kinds);
    for (size_t k = 0; k < KINDS; k++) {
        const struct parts *parts = &kinds[k];

        if (!parts->matters)
            continue;
        if (!find_images(parts, n, period, scratch->image) ||
            !find_lowest(parts, n / period, scratch->image, scratch->is_found))
            return false;
        for (uint32_t i = 0; fold != NULL && i < parts->ways * parts->count &&
                             parts->first != TUTTI_SIM_NONE; i++)
            fold[parts->first + i] =
                parts->first + scratch->image[i / parts->ways] * parts->ways + i % parts->ways;
    }
    return true;
}

int tutti_sim_network_fold(struct tutti_sim_network *network, uint32_t period)
{
    struct scratch scratch;
    bool is_valid;

    TUTTI_TRY(scratch_init(&scratch, network->nranks));
    network->fold = calloc((size_t)network->nlinks + 1, sizeof *network->fold);
    is_valid = network->fold != NULL && is_shift(network, period, &scratch, network->fold);
    scratch_fini(&scratch);
    if (network->fold == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %u links", network->nlinks);
    tutti_assert(is_valid);
    return TUTTI_OK;
}

/* Finds the smallest shift by least .. most ranks that maps the machine onto itself; 0: there is
 * none. */
static int find_shift(const struct tutti_machine *machine, uint32_t nranks, uint32_t least,
                      uint32_t most, uint32_t *ret_period)
{
    struct tutti_sim_network network;
    struct scratch scratch;
    int rc;

    *ret_period = 0;
    TUTTI_TRY(tutti_sim_network_init(&network, machine, nranks));
    TUTTI_TRY_OR(leave, rc, scratch_init(&scratch, nranks));
    for (uint32_t period = least; period <= most && *ret_period == 0; period++)
        if (is_shift(&network, period, &scratch, NULL))
            *ret_period = period;
    scratch_fini(&scratch);

leave:
    tutti_sim_network_fini(&network);
    return rc;
}

int tutti_sim_period_check(const struct tutti_machine *machine, uint32_t nranks, uint32_t period)
{
    uint32_t found;

    TUTTI_TRY(find_shift(machine, nranks, period, period, &found));
    return found == period ? TUTTI_OK
                           : tutti_fail(TUTTI_ERR_ARGUMENT, "a shift by %u ranks does not map the "
                                        "machine of %u ranks onto itself; play all ranks", period,
                                        nranks);
}

/* ---- schedules ------------------------------------------------------------------------------- */

/* Adds a number to a hash. The factor is 2^64 divided by the golden ratio. */
static uint64_t mix(uint64_t hash, uint64_t number)
{
    hash = (hash ^ number) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

/* Returns a peer's distance after the rank, or what stands for no rank. */
static uint64_t distance(const struct tutti_schedule *schedule, int32_t peer)
{
    if (peer < 0)
        return UINT64_MAX;
    return ((uint32_t)peer + schedule->nranks - schedule->rank) % schedule->nranks;
}

/* A schedule whose consecutive copies count as one, a run. A copy of blocks that wrap around the
 * end of a buffer is two steps, and whether they wrap depends on the rank. Any other step is a run
 * of its own. */
struct runs {
    uint32_t *run;    /* per step: the number of its run */
    uint32_t *on;     /* scratch: the runs that a run depends on */
    uint32_t room;    /* entries of `on` */
};

static void runs_fini(struct runs *runs)
{
    free(runs->run);
    free(runs->on);
}

static int runs_init(struct runs *runs, const struct tutti_schedule *schedule)
{
    uint32_t count = 0;

    *runs = (struct runs){.room = schedule->ndeps + 1};
    runs->run = calloc((size_t)schedule->nsteps + 1, sizeof *runs->run);
    runs->on = calloc(runs->room, sizeof *runs->on);
    if (runs->run == NULL || runs->on == NULL) {
        runs_fini(runs);
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to compare schedules of %u steps",
                          schedule->nsteps);
    }
    for (uint32_t i = 0; i < schedule->nsteps; i++) {
        bool continues = i > 0 && schedule->steps[i].kind == TUTTI_STEP_COPY &&
                         schedule->steps[i - 1].kind == TUTTI_STEP_COPY;

        count += i > 0 && !continues;
        runs->run[i] = count;
    }
    return TUTTI_OK;
}

static int by_number(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* Adds to a hash the runs on which the run of steps first .. end - 1 depends. */
static uint64_t mix_deps(const struct tutti_schedule *schedule, struct runs *runs, uint32_t first,
                         uint32_t end, uint64_t hash)
{
    uint32_t count = 0;

    for (uint32_t i = first; i < end; i++) {
        const uint32_t *deps = tutti_step_deps(schedule, &schedule->steps[i]);

        for (uint32_t d = 0; d < schedule->steps[i].dep_count; d++)
            if (runs->run[deps[d]] != runs->run[first])
                runs->on[count++] = runs->run[deps[d]];
    }
    qsort(runs->on, count, sizeof *runs->on, by_number);
    for (uint32_t i = 0; i < count; i++)
        if (i == 0 || runs->on[i] != runs->on[i - 1])
            hash = mix(hash, runs->on[i]);
    return hash;
}

/* Computes a hash of all that the simulator sees of a schedule, with distances in place of ranks.
 * *ret_is_valid is false if the schedule cannot be played by symmetry. */
static int digest(const struct tutti_sim_source *source, const struct tutti_schedule *schedule,
                  uint64_t *ret_hash, bool *ret_is_valid)
{
    struct runs runs;
    uint64_t hash = 0;

    TUTTI_TRY(runs_init(&runs, schedule));
    *ret_is_valid = true;
    for (uint32_t i = 0, first = 0; i < schedule->nsteps; first = i) {
        const struct tutti_step *step = &schedule->steps[first];
        uint64_t bytes = 0;

        for (; i < schedule->nsteps && runs.run[i] == runs.run[first]; i++)
            bytes += tutti_bind_step_bytes(schedule, &schedule->steps[i], source->element_bytes,
                                           source->block_count);
        *ret_is_valid = *ret_is_valid && !tutti_step_is_one_sided(step);
        hash = mix(mix(mix(hash, step->kind), step->channel), bytes);
        hash = mix(mix(hash, distance(schedule, step->from)), distance(schedule, step->to));
        hash = mix_deps(schedule, &runs, first, i, hash);
    }
    runs_fini(&runs);
    *ret_hash = hash;
    return TUTTI_OK;
}

static int digest_of_rank(const struct tutti_sim_source *source, uint32_t rank, uint64_t *ret_hash,
                          bool *ret_is_valid)
{
    const struct tutti_schedule *schedule;
    int rc;

    TUTTI_TRY(source->schedule(source->context, rank, &schedule));
    rc = digest(source, schedule, ret_hash, ret_is_valid);
    source->drop(source->context, schedule);
    return rc;
}

/* Compares the schedules of the first, the middle and the last of the played ranks with those of
 * three ranks that each of them stands for: the next one, one halfway, and the last one. */
static int compare_schedules(const struct tutti_sim_source *source, uint32_t period,
                             bool *ret_repeats)
{
    const uint32_t played[] = {0, period / 2, period - 1};
    uint32_t images = source->nranks / period;
    const uint32_t shifts[] = {1, images / 2, images - 1};

    for (size_t i = 0; i < sizeof played / sizeof played[0]; i++) {
        uint64_t expected, found;

        if (i > 0 && played[i] == played[i - 1])
            continue;
        TUTTI_TRY(digest_of_rank(source, played[i], &expected, ret_repeats));
        for (size_t s = 0; s < sizeof shifts / sizeof shifts[0] && *ret_repeats; s++) {
            TUTTI_TRY(digest_of_rank(source, played[i] + shifts[s] * period, &found, ret_repeats));
            *ret_repeats = *ret_repeats && found == expected;
        }
        if (!*ret_repeats)
            return TUTTI_OK;
    }
    return TUTTI_OK;
}

int tutti_sim_find_period(const struct tutti_sim_source *source,
                          const struct tutti_machine *machine, uint32_t *ret_period)
{
    uint32_t period;
    bool repeats = false;

    TUTTI_TRY(find_shift(machine, source->nranks, 1, source->nranks / 2, &period));
    if (period > 0)
        TUTTI_TRY(compare_schedules(source, period, &repeats));
    *ret_period = repeats ? period : 0;
    return TUTTI_OK;
}
