/* SPDX-License-Identifier: Apache-2.0
 * Finds the best paths. Each class of paths (paths.h) has a rule about which links may follow each
 * other. Classes are tried in order, from the best; an end gets its path from the first class that
 * reaches it.
 *
 * A rule is a finite automaton. A path is in a stage, and each link takes it to a next stage or is
 * forbidden. Every path begins in stage 0. What the other stages mean depends on the rule. For
 * example, PIX allows one PCI switch, and its stage is the number of switches passed:
 *
 *   gpu --pci--> switch A --pci--> nic --port--> net           allowed
 *   stage 0      stage 1           stage 1       stage 1
 *
 *   gpu --pci--> switch A --pci--> switch B                    forbidden by PIX, allowed by PXB
 *   stage 0      stage 1           (stage 2)
 *
 * The search is that of Bellman and Ford, on states. A state is a node with a stage, because a path
 * may go on differently from one node in different stages. The width of a path is the rate of its
 * narrowest link. For one class and one start, width[h][state] is the width of the widest path of
 * at most h links to the state. Row h begins as a copy of row h - 1. Then each link from a state s
 * to a state t gives t a path as wide as the smaller of width[h - 1][s] and the rate of the link.
 * Of the widest paths to an end, one with the fewest links is taken.
 */
#include "topology/graph/paths.h"

#include "base/array.h"
#include "base/result.h"
#include "topology/graph/speeds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    STAGES = 3,   /* number of stages of a rule: 0, 1 and 2 */
    LONGEST = 32, /* most links of a path */
    NO_STAGE = -1 /* the result of a forbidden step */
};

static const char *const class_names[TUTTI_PATH_CLASSES] = {
    "LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS", "NET", "DIS",
};

const char *tutti_path_class_name(enum tutti_path_class class)
{
    return class_names[class];
}

/* ---- rules ----------------------------------------------------------------------------------- */

/* One step along a path, over one link. The functions step_...() are the rules: each returns the
 * stage after the step, or NO_STAGE if the rule forbids the step. Paths between gpus and nets are
 * searched from the gpu and from the net, so rules that depend on the direction check at which kind
 * of node the path starts. */
struct step {
    enum tutti_graph_link_kind kind;     /* of the link */
    enum tutti_graph_node_kind from, to; /* kinds of the link's nodes */
    int stage;                           /* before the step */
    bool is_start;                       /* `from` is the start of the path */
    bool touches_cpu;                    /* `from` or `to` is a cpu */
    bool enters_switch;                  /* `to` is a PCI switch */
};

/* Returns true for links of PCI, and between a card and its port. */
static bool is_bus(const struct step *step)
{
    return step->kind == TUTTI_LINK_PCI || step->kind == TUTTI_LINK_PORT;
}

/* Returns true if a path would pass through a gpu or net, which most rules forbid. */
static bool goes_through_end(const struct step *step)
{
    return !step->is_start && (step->from == TUTTI_NODE_GPU || step->from == TUTTI_NODE_NET);
}

/* Allows NVLinks, with at most `most_gpus` gpus in between. The stage is the number of gpus that
 * the path has passed. */
static int step_nvlink(const struct step *step, int most_gpus)
{
    /* A CPU with NVLinks may be an end of the path, but not a node in between. */
    if (step->kind != TUTTI_LINK_NVLINK || (step->from == TUTTI_NODE_CPU && !step->is_start))
        return NO_STAGE;
    if (!goes_through_end(step))
        return step->stage;
    return step->stage < most_gpus ? step->stage + 1 : NO_STAGE;
}

/* Allows PCI switches without a CPU. The stage is the number of switches that the path has passed,
 * 2 for two or more. */
static int step_switches(const struct step *step, int most_switches)
{
    int stage = step->stage;

    if (!is_bus(step) || step->touches_cpu || goes_through_end(step))
        return NO_STAGE;
    if (step->enters_switch && stage < 2)
        stage++;
    return stage > most_switches ? NO_STAGE : stage;
}

/* Allows the coherent link and then the bus, or the reverse. In stage 1 the path has passed the
 * coherent link. */
static int step_coherent(const struct step *step)
{
    if (goes_through_end(step))
        return NO_STAGE;
    if (step->kind == TUTTI_LINK_C2C)
        return step->stage == 0 ? 1 : NO_STAGE;
    return is_bus(step) ? step->stage : NO_STAGE;
}

/* The stages of step_relay. From a gpu a path goes through stages 0 and 1, from a net through 1
 * and 2:
 *
 *   gpu ==nvlink==> relay --pci--> nic --port--> net        stage 0 up to the relay, then 1
 *   net --port--> nic --pci--> relay ==nvlink==> gpu        stage 1 up to the relay, then 2
 */
enum { NVLINKS_TO_RELAY = 0, SWITCHES = 1, NVLINKS_FROM_RELAY = 2 };

/* Allows NVLinks to another gpu, the relay, and then switches to a net, or the reverse. */
static int step_relay(const struct step *step)
{
    bool is_nvlink = step->kind == TUTTI_LINK_NVLINK && !step->touches_cpu;
    bool is_switch_link = is_bus(step) && !step->touches_cpu;

    if (step->is_start && step->from == TUTTI_NODE_NET)
        return is_bus(step) ? SWITCHES : NO_STAGE;
    if ((!is_nvlink && !is_switch_link) || step->from == TUTTI_NODE_NET)
        return NO_STAGE;
    if (step->is_start)
        return is_nvlink ? NVLINKS_TO_RELAY : NO_STAGE;
    if (step->from == TUTTI_NODE_GPU) {
        /* This gpu is the relay, where the path changes between NVLinks and the bus. */
        if (step->stage == NVLINKS_TO_RELAY && !is_nvlink)
            return SWITCHES;
        if (step->stage == SWITCHES && is_nvlink)
            return NVLINKS_FROM_RELAY;
        return NO_STAGE;
    }
    /* Elsewhere the kind of link does not change. */
    return is_nvlink == (step->stage != SWITCHES) ? step->stage : NO_STAGE;
}

/* Returns true for the links of a host on the way between a device and a CPU: the bus, the coherent
 * link of a gpu, and NVLinks of a CPU. */
static bool is_host_link(const struct step *step)
{
    return is_bus(step) || step->kind == TUTTI_LINK_C2C ||
           (step->kind == TUTTI_LINK_NVLINK && step->touches_cpu);
}

/* Allows paths through CPUs, and links between CPUs only if may_cross. The stage is the number of
 * CPUs that the path has left, 2 for two or more; a CPU at its start does not count. */
static int step_cpus(const struct step *step, bool may_cross)
{
    bool is_crossing = step->kind == TUTTI_LINK_SYS;
    int stage = step->stage;

    if (goes_through_end(step) || !(is_host_link(step) || (may_cross && is_crossing)))
        return NO_STAGE;
    if (step->from == TUTTI_NODE_CPU && !step->is_start && stage < 2)
        stage++;
    return stage > 1 && !may_cross ? NO_STAGE : stage;
}

/* Allows the fabric once. In stage 1 the path has reached the fabric. */
static int step_fabric(const struct step *step)
{
    if (step->from == TUTTI_NODE_GPU && !step->is_start)
        return NO_STAGE;
    if (step->kind == TUTTI_LINK_FABRIC) {
        if (step->to != TUTTI_NODE_FABRIC) /* the way from the fabric to a port */
            return step->stage;
        return step->stage == 0 ? 1 : NO_STAGE;
    }
    /* A port may be passed only on the way to the fabric or from it. */
    if (step->from == TUTTI_NODE_NET && !step->is_start && step->stage == 0)
        return NO_STAGE;
    return is_host_link(step) || step->kind == TUTTI_LINK_SYS ? step->stage : NO_STAGE;
}

/* Applies the rule of a class. */
static int next_stage(enum tutti_path_class class, const struct step *step)
{
    switch (class) {
    case TUTTI_PATH_NVL: return step_nvlink(step, 0);
    case TUTTI_PATH_NVB: return step_nvlink(step, 1);
    case TUTTI_PATH_C2C: /* the path is this one link */
        return step->kind == TUTTI_LINK_C2C && step->is_start ? 0 : NO_STAGE;
    case TUTTI_PATH_PIX: return step_switches(step, 1);
    case TUTTI_PATH_PXB: return step_switches(step, 2);
    case TUTTI_PATH_P2C: return step_coherent(step);
    case TUTTI_PATH_PXN: return step_relay(step);
    case TUTTI_PATH_PHB: return step_cpus(step, false);
    case TUTTI_PATH_SYS: return step_cpus(step, true);
    case TUTTI_PATH_NET: return step_fabric(step);
    default: return NO_STAGE;
    }
}

/* Returns true if a path of this class may end in this stage: a P2C path must have passed the
 * coherent link. */
static bool is_complete(enum tutti_path_class class, uint32_t stage)
{
    return class != TUTTI_PATH_P2C || stage == 1;
}

/* Returns true for the classes on which two devices access each other over the bus, without the
 * CPU's memory in between. may_join requires that both devices permit this. */
static bool is_direct(enum tutti_path_class class)
{
    return class == TUTTI_PATH_PIX || class == TUTTI_PATH_PXB || class == TUTTI_PATH_PXN ||
           class == TUTTI_PATH_P2C;
}

/* Returns true if the end `node` permits direct access. Devices permit it unless the inventory says
 * otherwise. */
static bool permits(const struct tutti_graph *graph, uint32_t node, enum tutti_property permission)
{
    return tutti_device_number(graph->inventory, graph->nodes[node].device, permission, 1) != 0;
}

/* Returns true if two ends may have a path of this class. */
static bool may_join(const struct tutti_graph *graph, enum tutti_path_class class, uint32_t from,
                     uint32_t to)
{
    enum tutti_graph_node_kind a = graph->nodes[from].kind, b = graph->nodes[to].kind;
    bool is_gpu_gpu = a == TUTTI_NODE_GPU && b == TUTTI_NODE_GPU;
    bool is_gpu_net = (a == TUTTI_NODE_GPU && b == TUTTI_NODE_NET) ||
                      (a == TUTTI_NODE_NET && b == TUTTI_NODE_GPU);
    enum tutti_property permission = is_gpu_gpu ? TUTTI_PROPERTY_P2P : TUTTI_PROPERTY_GDR;

    if ((class == TUTTI_PATH_PXN || class == TUTTI_PATH_P2C) && !is_gpu_net)
        return false;
    if (!is_direct(class) || !(is_gpu_gpu || is_gpu_net))
        return true;
    /* If one end does not permit direct access, the data goes through the CPU's memory, on a path
     * of a later class. */
    return permits(graph, from, permission) && permits(graph, to, permission);
}

/* ---- the widest paths from one end by one rule ----------------------------------------------- */

/* The search for the widest paths from one start under one rule. Each array has a row for each
 * number of links, array[hops * nstates + state]. */
struct walk {
    const struct tutti_graph *graph;
    size_t nstates; /* number of states; state_of() numbers them */
    uint32_t depth; /* the last row that is filled in; no width grows with more links */
    double *width;  /* the widest path of at most `hops` links, in B/s; 0: not reached */
    /* The last link of that path. TUTTI_NO_NODE: a path with one link less is as wide. Row 0 is not
     * used. */
    uint32_t *link;
    uint8_t *stage; /* stage of the path before its last link */
};

static size_t state_of(uint32_t node, uint32_t stage)
{
    return (size_t)node * STAGES + stage;
}

/* Extends the widest path that reaches `node` in `stage` with at most hops - 1 links, by each link
 * of the node. */
static void extend(struct walk *walk, enum tutti_path_class class, uint32_t start, uint32_t hops,
                   uint32_t node, uint32_t stage)
{
    const struct tutti_graph *graph = walk->graph;
    const double *before = walk->width + (size_t)(hops - 1) * walk->nstates;
    size_t row = (size_t)hops * walk->nstates;
    double width = before[state_of(node, stage)];

    for (uint32_t i = 0; i < graph->nodes[node].nlinks; i++) {
        uint32_t index = graph->nodes[node].first_link + i;
        const struct tutti_graph_link *link = &graph->links[index];
        struct step step = {
            .kind = link->kind,
            .from = graph->nodes[node].kind,
            .to = graph->nodes[link->to].kind,
            .stage = (int)stage,
            .is_start = node == start,
            .enters_switch = graph->nodes[link->to].kind == TUTTI_NODE_PCI &&
                             !graph->nodes[link->to].is_shared,
        };
        double narrower = link->bytes_per_s < width ? link->bytes_per_s : width;
        size_t at;
        int next;

        step.touches_cpu = step.from == TUTTI_NODE_CPU || step.to == TUTTI_NODE_CPU;
        next = next_stage(class, &step);
        if (next == NO_STAGE || link->to == start)
            continue;
        at = row + state_of(link->to, (uint32_t)next);
        if (narrower <= walk->width[at])
            continue;
        walk->width[at] = narrower;
        walk->link[at] = index;
        walk->stage[at] = (uint8_t)stage;
    }
}

/* Finds the widest paths of a class from `start` to all states. */
static void walk_from(struct walk *walk, enum tutti_path_class class, uint32_t start)
{
    size_t nstates = walk->nstates;

    memset(walk->width, 0, nstates * sizeof *walk->width);
    walk->width[state_of(start, 0)] = INFINITY; /* a path without links has no limit */
    for (uint32_t hops = 1; hops <= LONGEST; hops++) {
        const double *before = walk->width + (hops - 1) * nstates;
        double *now = walk->width + hops * nstates;

        memcpy(now, before, nstates * sizeof *now);
        for (size_t state = 0; state < nstates; state++)
            walk->link[hops * nstates + state] = TUTTI_NO_NODE;
        for (uint32_t node = 0; node < walk->graph->nnodes; node++)
            for (uint32_t stage = 0; stage < STAGES; stage++)
                if (before[state_of(node, stage)] > 0)
                    extend(walk, class, start, hops, node, stage);
        walk->depth = hops;
        if (memcmp(now, before, nstates * sizeof *now) == 0)
            return;
    }
}

/* Finds the smallest number of links with which a node is reached at its greatest width, and the
 * stage there. Returns false if the node is not reached. */
static bool find_best_state(const struct walk *walk, enum tutti_path_class class, uint32_t node,
                            uint32_t *ret_hops, uint32_t *ret_stage)
{
    const double *last_row = walk->width + walk->depth * walk->nstates;
    double widest = 0;

    for (uint32_t stage = 0; stage < STAGES; stage++)
        if (is_complete(class, stage) && last_row[state_of(node, stage)] > widest)
            widest = last_row[state_of(node, stage)];
    if (widest <= 0)
        return false;
    for (uint32_t hops = 1; hops <= walk->depth; hops++) {
        const double *row = walk->width + hops * walk->nstates;

        for (uint32_t stage = 0; stage < STAGES; stage++)
            if (is_complete(class, stage) && row[state_of(node, stage)] >= widest) {
                *ret_hops = hops;
                *ret_stage = stage;
                return true;
            }
    }
    return false;
}

/* ---- paths ----------------------------------------------------------------------------------- */

/* The paths found so far, and the current walk. */
struct finder {
    struct tutti_paths *paths;
    struct walk walk;
    uint32_t hop_capacity; /* hops for which `paths->hop` has memory */
};

/* Appends the hops of a path, each with a demand of 1 for now. */
static int add_hops(struct finder *finder, struct tutti_path *path, const uint32_t *links,
                    uint32_t nlinks)
{
    struct tutti_paths *paths = finder->paths;

    TUTTI_TRY(TUTTI_ARRAY_RESERVE(paths->hop, paths->nhops + nlinks, finder->hop_capacity, "hops"));
    path->first = paths->nhops;
    path->nhops = nlinks;
    for (uint32_t i = 0; i < nlinks; i++)
        paths->hop[paths->nhops++] = (struct tutti_hop){.link = links[i], .demand = 1};
    return TUTTI_OK;
}

/* Bytes on the link per byte of data; see tutti_speed_has_p2p_overhead(). */
#define INTEL_P2P_DEMAND 1.2

/* Sets the demand of each hop, and the rate and latency of the path. Intel's root complexes need
 * more bytes for the traffic between a gpu and another device. So on a PHB path from a gpu through
 * such a CPU, the demand of PCI links is higher from the link into the root complex onwards. */
static void weigh_hops(struct tutti_paths *paths, struct tutti_path *path, uint32_t from)
{
    const struct tutti_graph *graph = paths->graph;
    double demand = 1;

    for (uint32_t i = 0; i < path->nhops; i++) {
        struct tutti_hop *hop = &paths->hop[path->first + i];
        const struct tutti_graph_link *link = &graph->links[hop->link];
        const struct tutti_graph_node *to = &graph->nodes[link->to];
        bool is_last = i + 1 == path->nhops; /* a path that ends at the CPU has no overhead */
        double rate;

        if (path->class == TUTTI_PATH_PHB && graph->nodes[from].kind == TUTTI_NODE_GPU &&
            to->kind == TUTTI_NODE_CPU && !is_last &&
            tutti_speed_has_p2p_overhead(graph->inventory, to->device))
            demand = INTEL_P2P_DEMAND;
        if (link->kind == TUTTI_LINK_PCI)
            hop->demand = demand;
        rate = link->bytes_per_s / hop->demand;
        if (i == 0 || rate < path->bytes_per_s)
            path->bytes_per_s = rate;
        path->latency_s += link->latency_s;
    }
}

/* Fills in a path of the current walk from `from` to `to`, if the walk has reached `to`. The links
 * are collected from the last to the first, so they fill their array from its end. */
static int take_path(struct finder *finder, enum tutti_path_class class, uint32_t from, uint32_t to,
                     struct tutti_path *path)
{
    const struct walk *walk = &finder->walk;
    uint32_t links[LONGEST], nlinks = 0, node = to, hops, stage;

    if (!find_best_state(walk, class, to, &hops, &stage))
        return TUTTI_OK;
    for (; hops > 0; hops--) {
        size_t at = hops * walk->nstates + state_of(node, stage);

        if (walk->link[at] == TUTTI_NO_NODE) /* the path is in the row before */
            continue;
        links[LONGEST - ++nlinks] = walk->link[at];
        stage = walk->stage[at];
        node = walk->graph->links[walk->link[at]].from;
    }
    path->class = class;
    TUTTI_TRY(add_hops(finder, path, links + LONGEST - nlinks, nlinks));
    weigh_hops(finder->paths, path, from);
    return TUTTI_OK;
}

/* Finds the paths from the end with index `from` to all ends. */
static int find_from(struct finder *finder, uint32_t from)
{
    struct tutti_paths *paths = finder->paths;
    uint32_t start = paths->end[from], nleft = paths->nends - 1; /* ends without a path so far */

    for (uint32_t to = 0; to < paths->nends; to++)
        paths->path[from * paths->nends + to] = (struct tutti_path){.class = TUTTI_PATH_DIS};
    paths->path[from * paths->nends + from].class = TUTTI_PATH_LOC;
    for (int class = TUTTI_PATH_NVL; class < TUTTI_PATH_DIS && nleft > 0; class++) {
        walk_from(&finder->walk, class, start);
        for (uint32_t to = 0; to < paths->nends; to++) {
            struct tutti_path *path = &paths->path[from * paths->nends + to];

            if (path->class != TUTTI_PATH_DIS ||
                !may_join(paths->graph, class, start, paths->end[to]))
                continue;
            TUTTI_TRY(take_path(finder, class, start, paths->end[to], path));
            nleft -= path->class != TUTTI_PATH_DIS;
        }
    }
    return TUTTI_OK;
}

/* Lists the ends, and allocates the paths between them. On errors the caller frees the arrays. */
static int collect_ends(struct tutti_paths *paths)
{
    static const enum tutti_graph_node_kind kinds[] = {TUTTI_NODE_GPU, TUTTI_NODE_NET,
                                                       TUTTI_NODE_CPU};
    const struct tutti_graph *graph = paths->graph;
    uint32_t count = 0;

    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
        count += graph->count[kinds[k]];
    paths->end = calloc(count + 1, sizeof *paths->end);
    paths->end_of = calloc(graph->nnodes + 1, sizeof *paths->end_of);
    paths->path = calloc((size_t)count * count + 1, sizeof *paths->path);
    if (paths->end == NULL || paths->end_of == NULL || paths->path == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the paths of %u ends", count);
    for (uint32_t i = 0; i < graph->nnodes; i++)
        paths->end_of[i] = TUTTI_NO_NODE;
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
        for (uint32_t i = 0; i < graph->count[kinds[k]]; i++) {
            paths->end_of[graph->first[kinds[k]] + i] = paths->nends;
            paths->end[paths->nends++] = graph->first[kinds[k]] + i;
        }
    return TUTTI_OK;
}

int tutti_paths_find(const struct tutti_graph *graph, struct tutti_paths **ret_paths)
{
    size_t nstates = (size_t)graph->nnodes * STAGES, all = (LONGEST + 1) * nstates + 1;
    struct finder finder = {.walk = {.graph = graph, .nstates = nstates}};
    int rc = TUTTI_OK;

    finder.paths = calloc(1, sizeof *finder.paths);
    finder.walk.width = calloc(all, sizeof *finder.walk.width);
    finder.walk.link = calloc(all, sizeof *finder.walk.link);
    finder.walk.stage = calloc(all, sizeof *finder.walk.stage);
    if (finder.paths == NULL || finder.walk.width == NULL || finder.walk.link == NULL ||
        finder.walk.stage == NULL) {
        rc = tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the paths of %u nodes", graph->nnodes);
        goto drop_walk;
    }
    finder.paths->graph = graph;
    TUTTI_TRY_OR(drop_walk, rc, collect_ends(finder.paths));
    for (uint32_t from = 0; from < finder.paths->nends && rc == TUTTI_OK; from++)
        rc = find_from(&finder, from);

drop_walk:
    free(finder.walk.width);
    free(finder.walk.link);
    free(finder.walk.stage);
    if (rc == TUTTI_OK)
        *ret_paths = finder.paths;
    else
        tutti_paths_destroy(finder.paths);
    return rc;
}

void tutti_paths_destroy(struct tutti_paths *paths)
{
    if (paths == NULL)
        return;
    free(paths->end);
    free(paths->end_of);
    free(paths->path);
    free(paths->hop);
    free(paths);
}

const struct tutti_path *tutti_paths_between(const struct tutti_paths *paths, uint32_t from,
                                             uint32_t to)
{
    return &paths->path[paths->end_of[from] * paths->nends + paths->end_of[to]];
}
