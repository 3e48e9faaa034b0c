/* SPDX-License-Identifier: Apache-2.0
 * Finds the parts of a cluster from the links of its gpus to NVSwitches. */
#include "topology/graph/parts.h"

#include "base/result.h"

#include <stdlib.h>

/* Returns the NVSwitch to which a node has a link; TUTTI_NO_NODE: none. */
static uint32_t linked_switch(const struct tutti_graph *graph, uint32_t node)
{
    const struct tutti_graph_node *at = &graph->nodes[node];

    for (uint32_t i = at->first_link; i < at->first_link + at->nlinks; i++)
        if (graph->nodes[graph->links[i].to].kind == TUTTI_NODE_NVSWITCH)
            return graph->links[i].to;
    return TUTTI_NO_NODE;
}

/* Returns the NVSwitch of a gpu, or of the device that it shares with other gpus. */
static uint32_t switch_of_gpu(const struct tutti_graph *graph, uint32_t gpu)
{
    uint32_t found = linked_switch(graph, gpu);
    uint32_t pci = tutti_graph_find(graph,
                                    graph->inventory->devices[graph->nodes[gpu].device].parent);

    return found != TUTTI_NO_NODE || pci == TUTTI_NO_NODE || !graph->nodes[pci].is_shared
               ? found
               : linked_switch(graph, pci);
}

/* Returns the NVSwitch that joins all gpus of a host. TUTTI_NO_NODE: they have none in common, or
 * the host has no gpus. */
static uint32_t switch_of_host(const struct tutti_graph *graph, uint32_t host)
{
    uint32_t found = TUTTI_NO_NODE;
    bool is_first = true;

    for (uint32_t i = 0; i < graph->count[TUTTI_NODE_GPU]; i++) {
        uint32_t gpu = tutti_graph_gpu(graph, i), other;

        if (graph->nodes[gpu].host != host)
            continue;
        other = switch_of_gpu(graph, gpu);
        if (!is_first && other != found)
            return TUTTI_NO_NODE;
        found = other;
        is_first = false;
    }
    return found;
}

/* Returns for how many like hosts a host stands, itself included. A file may say anything. */
static int64_t copies_of_host(const struct tutti_graph *graph, uint32_t host)
{
    for (uint32_t i = 0; i < graph->count[TUTTI_NODE_CPU]; i++) {
        const struct tutti_graph_node *cpu = &graph->nodes[graph->first[TUTTI_NODE_CPU] + i];

        if (cpu->host == host)
            return tutti_device_number(graph->inventory, cpu->device, TUTTI_PROPERTY_COPIES, 1);
    }
    return 1;
}

/* Checks what a host says of its copies: hosts of a part agree. */
static int check_copies(const struct tutti_graph *graph, uint32_t host, bool begins_part)
{
    int64_t copies = copies_of_host(graph, host);

    if (copies < 1 || copies > TUTTI_GRAPH_RANKS)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "host %u has copies=\"%lld\"; give 1 to %u, the like "
                          "hosts for which it stands", host, (long long)copies, TUTTI_GRAPH_RANKS);
    if (!begins_part && copies != copies_of_host(graph, host - 1))
        return tutti_fail(TUTTI_ERR_ARGUMENT, "host %u has copies=\"%lld\", and host %u of the "
                          "same NVLink domain has another number; give the same", host,
                          (long long)copies, host - 1);
    return TUTTI_OK;
}

/* A part that stands for others follows the first part of its kind, which is like it. */
static int check_second(const struct tutti_graph_parts *parts, uint32_t part)
{
    const struct tutti_graph_part *at = &parts->part[part], *before = at - 1;

    if (at->copies == 1)
        return TUTTI_OK;
    if (part == 0 || before->copies > 1 || before->nhosts != at->nhosts ||
        before->ngpus != at->ngpus)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "host %u has copies=\"%u\", and the host before it "
                          "is not like it; describe two like hosts, of which the second has copies",
                          at->first_host, at->copies);
    return TUTTI_OK;
}

/* Counts the gpus of each part. Gpus are numbered host by host. */
static void count_gpus(const struct tutti_graph *graph, struct tutti_graph_parts *parts)
{
    uint32_t gpu = 0, ngpus = graph->count[TUTTI_NODE_GPU];

    for (uint32_t i = 0; i < parts->nparts; i++) {
        struct tutti_graph_part *part = &parts->part[i];

        part->first_gpu = gpu;
        while (gpu < ngpus && graph->nodes[tutti_graph_gpu(graph, gpu)].host <
                                  part->first_host + part->nhosts)
            gpu++;
        part->ngpus = gpu - part->first_gpu;
    }
}

static int count_ranks(struct tutti_graph_parts *parts)
{
    uint64_t nranks = 0, nall = 0;

    for (uint32_t i = 0; i < parts->nparts; i++) {
        TUTTI_TRY(check_second(parts, i));
        parts->part[i].first_rank = (uint32_t)nranks;
        nranks += (uint64_t)parts->part[i].copies * parts->part[i].ngpus;
        nall += parts->part[i].copies;
        parts->has_copies = parts->has_copies || parts->part[i].copies > 1;
        if (nranks > TUTTI_GRAPH_RANKS)
            return tutti_fail(TUTTI_ERR_ARGUMENT, "the cluster has %llu gpus; there may be %u",
                              (unsigned long long)nranks, TUTTI_GRAPH_RANKS);
    }
    parts->nranks = (uint32_t)nranks;
    parts->nall = (uint32_t)nall;
    return TUTTI_OK;
}

int tutti_graph_parts_find(const struct tutti_graph *graph, struct tutti_graph_parts *ret_parts)
{
    struct tutti_graph_parts parts = {.nparts = 0};
    uint32_t before = TUTTI_NO_NODE;
    int rc = TUTTI_OK;

    parts.part = calloc((size_t)graph->nhosts + 1, sizeof *parts.part);
    if (parts.part == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the parts of %u hosts", graph->nhosts);
    for (uint32_t host = 0; host < graph->nhosts && rc == TUTTI_OK; host++) {
        uint32_t nvswitch = switch_of_host(graph, host);
        bool begins_part = nvswitch == TUTTI_NO_NODE || nvswitch != before;

        rc = check_copies(graph, host, begins_part);
        if (begins_part)
            parts.part[parts.nparts++] = (struct tutti_graph_part){
                .first_host = host, .copies = (uint32_t)copies_of_host(graph, host)};
        parts.part[parts.nparts - 1].nhosts++;
        before = nvswitch;
    }
    count_gpus(graph, &parts);
    if (rc == TUTTI_OK)
        rc = count_ranks(&parts);
    if (rc != TUTTI_OK) {
        tutti_graph_parts_fini(&parts);
        return rc;
    }
    *ret_parts = parts;
    return TUTTI_OK;
}

void tutti_graph_parts_fini(struct tutti_graph_parts *parts)
{
    free(parts->part);
    *parts = (struct tutti_graph_parts){.nparts = 0};
}

uint32_t tutti_graph_part_of_host(const struct tutti_graph_parts *parts, uint32_t host)
{
    uint32_t part = 0;

    while (host >= parts->part[part].first_host + parts->part[part].nhosts)
        part++;
    return part;
}

uint32_t tutti_graph_part_of_gpu(const struct tutti_graph_parts *parts, uint32_t gpu)
{
    uint32_t part = 0;

    while (gpu >= parts->part[part].first_gpu + parts->part[part].ngpus)
        part++;
    return part;
}

const struct tutti_graph_part *tutti_graph_first_part(const struct tutti_graph_parts *parts)
{
    for (uint32_t i = 0; i < parts->nparts; i++)
        if (parts->part[i].ngpus > 0)
            return &parts->part[i];
    return NULL;
}

bool tutti_graph_is_one_domain(const struct tutti_graph_parts *parts)
{
    const struct tutti_graph_part *first = tutti_graph_first_part(parts);

    return first != NULL && first->nhosts > 1 && first->copies == 1 &&
           first->ngpus == parts->nranks;
}
