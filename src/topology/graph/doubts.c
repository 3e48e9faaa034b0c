/* SPDX-License-Identifier: Apache-2.0
 * Finds rates that no device has, links that two gpus describe differently, gpus with fewer links
 * than others, and SXM gpus without NVLinks. */
#include "topology/graph/doubts.h"

#include "topology/graph/graph_links.h"

#include <math.h>
#include <string.h>

#define GB 1e9

/* The most that devices carry, several times the fastest of today. Ports: 3.2 Tbit/s. */
#define MOST_PORT_BYTES_PER_S   (400 * GB)
#define MOST_NVLINK_BYTES_PER_S (4000 * GB)
#define MOST_C2C_BYTES_PER_S    (4000 * GB)
#define MOST_PCI_GTS            128.0

/* Two measured rates of one link that differ by more than this part are two descriptions. */
#define NOISE 0.1

/* The sort of doubts that is being written. */
struct sort {
    const struct tutti_graph *graph;
    FILE *out;
    uint32_t count;
};

/* Counts a doubt. Returns true if its line is to be written. */
static bool begin_doubt(struct sort *sort)
{
    return sort->count++ < TUTTI_GRAPH_DOUBTS_SHOWN;
}

/* Ends a sort of doubts with the number of those that were not written. */
static void end_sort(struct sort *sort, const char *what)
{
    if (sort->count > TUTTI_GRAPH_DOUBTS_SHOWN)
        fprintf(sort->out, "%u more %s\n", sort->count - TUTTI_GRAPH_DOUBTS_SHOWN, what);
    sort->count = 0;
}

/* ---- rates ----------------------------------------------------------------------------------- */

/* Writes a rate, such as "400 GB/s" or "25 TB/s". */
static void write_rate(FILE *out, double bytes_per_s)
{
    if (bytes_per_s < 1000 * GB)
        fprintf(out, "%.4g GB/s", bytes_per_s / GB);
    else
        fprintf(out, "%.4g TB/s", bytes_per_s / (1000 * GB));
}

/* What a file calls the rate of a kind of link, and the highest rate that is believed. */
struct believed {
    const char *attribute, *unit, *element, *device;
    double most_bytes_per_s;
};

static const struct believed *believed_of(enum tutti_graph_link_kind kind)
{
    static const struct believed port = {"speed", "Mbit/s", "net", "port", MOST_PORT_BYTES_PER_S};
    static const struct believed nvlink = {"count", "links", "nvlink", "gpu",
                                           MOST_NVLINK_BYTES_PER_S};
    static const struct believed c2c = {"bw", "MB/s", "c2c", "coherent link", MOST_C2C_BYTES_PER_S};

    return kind == TUTTI_LINK_PORT     ? &port
           : kind == TUTTI_LINK_NVLINK ? &nvlink
           : kind == TUTTI_LINK_C2C    ? &c2c
                                       : NULL;
}

static void doubt_link(struct sort *sort, uint32_t index)
{
    const struct tutti_graph *graph = sort->graph;
    const struct tutti_graph_link *link = &graph->links[index];
    const struct believed *believed = believed_of(link->kind);
    char name[256];

    if (believed == NULL || link->from > link->to || /* the reverse is the same link */
        link->found_by == TUTTI_SOURCE_ASSUMED || link->found_by == TUTTI_SOURCE_MEASURED ||
        link->bytes_per_s <= believed->most_bytes_per_s)
        return;
    if (!begin_doubt(sort))
        return;
    if (link->kind == TUTTI_LINK_PORT)
        tutti_graph_node_name(graph,
                              graph->nodes[link->to].kind == TUTTI_NODE_NET ? link->to : link->from,
                              name, sizeof name);
    else
        tutti_graph_link_name(graph, index, name, sizeof name);
    fprintf(sort->out, "%s is said to carry ", name);
    write_rate(sort->out, link->bytes_per_s);
    fputs(", more than the ", sort->out);
    write_rate(sort->out, believed->most_bytes_per_s);
    fprintf(sort->out, " of any %s; correct %s (%s), or give <%s> measured=\"BYTES_PER_S\"\n",
            believed->device, believed->attribute, believed->unit, believed->element);
}

/* The rates of PCI links come from a table of generations, so the speed itself is checked. */
static void doubt_pci(struct sort *sort, uint32_t pci)
{
    const struct tutti_inventory *inventory = sort->graph->inventory;
    double gts = tutti_device_real(inventory, pci, TUTTI_PROPERTY_LINK_SPEED, 0);
    char busid[32] = "without a bus id";

    if (gts <= MOST_PCI_GTS || tutti_device_has(inventory, pci, TUTTI_PROPERTY_MEASURED) ||
        !begin_doubt(sort))
        return;
    if (tutti_device_has(inventory, pci, TUTTI_PROPERTY_BUSID))
        tutti_device_write(inventory, pci, TUTTI_PROPERTY_BUSID, busid, sizeof busid);
    fprintf(sort->out,
            "pci %s is said to run at %g GT/s, more than the %g of any PCI link; correct "
            "link_speed, or give <pci> measured=\"BYTES_PER_S\"\n",
            busid, gts, MOST_PCI_GTS);
}

static void doubt_rates(struct sort *sort)
{
    const struct tutti_inventory *inventory = sort->graph->inventory;
    uint32_t pci = TUTTI_NO_DEVICE;

    for (uint32_t link = 0; link < sort->graph->nlinks; link++)
        doubt_link(sort, link);
    while ((pci = tutti_inventory_next_of(inventory, pci, TUTTI_DEVICE_PCI)) != TUTTI_NO_DEVICE)
        doubt_pci(sort, pci);
    end_sort(sort, "rates exceed what any such device carries");
}

/* ---- links between two gpus ------------------------------------------------------------------ */

/* Returns true if two gpus list the links between them differently. */
static bool disagree(const struct tutti_graph_listed *a, const struct tutti_graph_listed *b)
{
    double higher = fmax(a->bytes_per_s, b->bytes_per_s);

    if (a->is_listed != b->is_listed || a->count != b->count)
        return true;
    return a->is_measured && b->is_measured &&
           fabs(a->bytes_per_s - b->bytes_per_s) > NOISE * higher;
}

static void doubt_pair(struct sort *sort, uint32_t from, uint32_t to)
{
    const struct tutti_graph *graph = sort->graph;
    uint32_t gpu = graph->nodes[from].device, other = graph->nodes[to].device;
    struct tutti_graph_listed a = tutti_graph_listed_links(graph->inventory, gpu, other);
    struct tutti_graph_listed b = tutti_graph_listed_links(graph->inventory, other, gpu);
    char name[128], other_name[128];

    /* Of the gpus of one device, one describes the links of all. */
    if (tutti_graph_speaker(graph->inventory, gpu) != gpu ||
        tutti_graph_speaker(graph->inventory, other) != other)
        return;
    if (!disagree(&a, &b) || !begin_doubt(sort))
        return;
    tutti_graph_node_name(graph, from, name, sizeof name);
    tutti_graph_node_name(graph, to, other_name, sizeof other_name);
    fprintf(sort->out, "%s lists %lld links to %s (", name, (long long)a.count, other_name);
    write_rate(sort->out, a.bytes_per_s);
    fprintf(sort->out, "), which lists %lld back (", (long long)b.count);
    write_rate(sort->out, b.bytes_per_s);
    fprintf(sort->out, "); %s\n",
            a.is_listed && b.is_listed ? "the lower is used, and a link may be degraded"
                                       : "the one list is used, and a link may be degraded");
}

/* Compares what the two gpus of each pair of a host list. */
static void doubt_pairs(struct sort *sort)
{
    const struct tutti_graph *graph = sort->graph;
    uint32_t ngpus = graph->count[TUTTI_NODE_GPU], first = graph->first[TUTTI_NODE_GPU];

    for (uint32_t a = first; a < first + ngpus; a++)
        for (uint32_t b = a + 1; b < first + ngpus && graph->nodes[b].host == graph->nodes[a].host;
             b++)
            doubt_pair(sort, a, b);
    end_sort(sort, "pairs of gpus list different links to each other");
}

/* ---- links to an NVSwitch -------------------------------------------------------------------- */

/* Returns the number of links from a gpu to an NVSwitch; 0: none. */
static uint32_t count_to(const struct tutti_graph *graph, uint32_t gpu, uint32_t nvswitch)
{
    const struct tutti_graph_node *at = &graph->nodes[gpu];

    for (uint32_t i = at->first_link; i < at->first_link + at->nlinks; i++)
        if (graph->links[i].to == nvswitch)
            return graph->links[i].count;
    return 0;
}

static int64_t generation_of(const struct tutti_graph *graph, uint32_t gpu)
{
    return tutti_device_number(graph->inventory, graph->nodes[gpu].device, TUTTI_PROPERTY_SM, 0);
}

/* Doubts a gpu if more gpus of its generation have the same greater number of links to the NVSwitch
 * than have no more links than the gpu. */
static void doubt_gpu(struct sort *sort, uint32_t gpu, uint32_t nvswitch)
{
    const struct tutti_graph *graph = sort->graph;
    uint32_t own = count_to(graph, gpu, nvswitch), most = 0, nmost = 0, nfew = 0;
    uint32_t first = graph->first[TUTTI_NODE_GPU];
    char name[128];

    if (own == 0)
        return;
    for (uint32_t other = first; other < first + graph->count[TUTTI_NODE_GPU]; other++) {
        uint32_t count = count_to(graph, other, nvswitch);

        if (count == 0 || generation_of(graph, other) != generation_of(graph, gpu))
            continue;
        nfew += count <= own;
        nmost = count > most ? 1 : nmost + (count == most);
        most = count > most ? count : most;
    }
    if (own >= most || nmost <= nfew || !begin_doubt(sort))
        return;
    tutti_graph_node_name(graph, gpu, name, sizeof name);
    fprintf(sort->out,
            "%s has %u links to its NVSwitch, and %u other gpus have %u; links may be "
            "down\n",
            name, own, nmost, most);
}

static void doubt_switches(struct sort *sort)
{
    const struct tutti_graph *graph = sort->graph;
    uint32_t first = graph->first[TUTTI_NODE_GPU], nvswitch = graph->first[TUTTI_NODE_NVSWITCH];

    for (uint32_t i = 0; i < graph->count[TUTTI_NODE_NVSWITCH]; i++)
        for (uint32_t gpu = first; gpu < first + graph->count[TUTTI_NODE_GPU]; gpu++)
            doubt_gpu(sort, gpu, nvswitch + i);
    end_sort(sort, "gpus have fewer links to their NVSwitch than others");
}

/* ---- SXM gpus without NVLinks ---------------------------------------------------------------- */

/* Returns true if the model name of the gpu is that of an SXM module, such as
 * "Tesla V100-SXM2-16GB", and the gpu has no NVLinks. */
static bool lacks_nvlinks(const struct tutti_graph *graph, uint32_t gpu)
{
    const struct tutti_graph_node *at = &graph->nodes[gpu];
    char model[128];

    if (!tutti_device_has(graph->inventory, at->device, TUTTI_PROPERTY_MODEL_NAME))
        return false;
    tutti_device_write(graph->inventory, at->device, TUTTI_PROPERTY_MODEL_NAME, model,
                       sizeof model);
    if (strstr(model, "SXM") == NULL)
        return false;
    for (uint32_t i = at->first_link; i < at->first_link + at->nlinks; i++)
        if (graph->links[i].kind == TUTTI_LINK_NVLINK)
            return false;
    return true;
}

/* Doubts that SXM gpus of one host have no NVLinks. The hwloc library does not find the NVLinks of
 * every system. A gpu alone in its host has no other gpu to link to. */
static void doubt_modules(const struct sort *sort)
{
    const struct tutti_graph *graph = sort->graph;
    uint32_t first = graph->first[TUTTI_NODE_GPU], end = first + graph->count[TUTTI_NODE_GPU];
    uint32_t nlacking = 0;

    for (uint32_t gpu = first; gpu < end; gpu++) {
        uint32_t host = graph->nodes[gpu].host;
        bool has_peer = (gpu > first && graph->nodes[gpu - 1].host == host) ||
                        (gpu + 1 < end && graph->nodes[gpu + 1].host == host);

        nlacking += has_peer && lacks_nvlinks(graph, gpu);
    }
    if (nlacking > 0)
        fprintf(sort->out,
                "SXM gpus without NVLinks: %u, though such modules usually have them; add <nvlink "
                "target=\"BUSID\" count=\"LINKS\"/> to each <gpu> of tutti-topo export's XML\n",
                nlacking);
}

void tutti_graph_write_doubts(const struct tutti_graph *graph, FILE *out)
{
    struct sort sort = {.graph = graph, .out = out};

    doubt_rates(&sort);
    doubt_pairs(&sort);
    doubt_switches(&sort);
    doubt_modules(&sort);
}
