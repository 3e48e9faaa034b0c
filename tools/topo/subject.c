/* SPDX-License-Identifier: Apache-2.0
 * Opens the machine that a command is about, compares its hosts, and writes texts about it. */
#include "topo/subject.h"

#include "base/result.h"
#include "common/memory.h"
#include "common/rates.h"
#include "common/units.h"
#include "topology/detect/detect.h"
#include "topology/formats/load.h"
#include "topology/inventory/cpu_mask.h"
#include "topology/search/search.h"

#include <math.h>
#include <string.h>

enum { NAME_CHARS = 100 }; /* most bytes of --from in the subject's name */

/* Reads the devices that --from names, or detects those of this machine. */
static int read_inventory(const struct request *request, struct tutti_inventory **ret_inventory)
{
    const struct tutti_detect_options options = {.root = NULL};

    if (request->from != NULL)
        return tutti_formats_load(request->from, ret_inventory);
    return tutti_detect(&options, ret_inventory);
}

/* Sets the name of the subject: one short line. */
static void name_subject(const struct request *request, struct subject *subject)
{
    const char *from = request->from == NULL ? "this machine" : request->from;
    const char *slash = strrchr(from, '/');
    bool is_long;

    /* Shorten a path to the name of its file. A text with blanks is a description, not a path. */
    if (slash != NULL && strchr(from, ' ') == NULL)
        from = slash + 1;
    is_long = strlen(from) > NAME_CHARS;
    snprintf(subject->name, sizeof subject->name, "%.*s%s", NAME_CHARS, from, is_long ? "..." : "");
    for (char *at = subject->name; *at != '\0'; at++)
        if ((unsigned char)*at < ' ')
            *at = ' ';
}

int subject_open(const struct request *request, bool with_paths, struct subject *ret_subject)
{
    struct subject subject = {.paths = NULL};
    struct tutti_inventory *inventory;
    int rc = read_inventory(request, &inventory);

    if (rc != TUTTI_OK)
        return failure(request, rc);
    name_subject(request, &subject);
    rc = rates_apply_hints(request->command, &request->hints, inventory);
    if (rc == TUTTI_OK)
        rc = tutti_graph_build(inventory, &subject.graph);
    tutti_inventory_destroy(inventory);
    if (rc == TUTTI_OK)
        rates_print_guesses(request->command, subject.graph);
    if (rc == TUTTI_OK)
        rc = tutti_graph_parts_find(subject.graph, &subject.parts);
    if (rc == TUTTI_OK && with_paths)
        rc = tutti_paths_find(subject.graph, &subject.paths);
    if (rc != TUTTI_OK) {
        tutti_graph_parts_fini(&subject.parts);
        tutti_graph_destroy(subject.graph);
        return failure(request, rc);
    }
    subject.node_of = must_calloc(subject.graph->inventory->count, sizeof *subject.node_of);
    for (uint32_t i = 0; i < subject.graph->inventory->count; i++)
        subject.node_of[i] = TUTTI_NO_NODE;
    for (uint32_t i = 0; i < subject.graph->nnodes; i++)
        if (subject.graph->nodes[i].device != TUTTI_NO_DEVICE)
            subject.node_of[subject.graph->nodes[i].device] = i;
    *ret_subject = subject;
    return REQUEST_GO;
}

void subject_close(struct subject *subject)
{
    tutti_paths_destroy(subject->paths);
    tutti_graph_parts_fini(&subject->parts);
    tutti_graph_destroy(subject->graph);
    free(subject->node_of);
    *subject = (struct subject){.graph = NULL};
}

/* ---- hosts ----------------------------------------------------------------------------------- */

uint32_t subject_first(const struct subject *subject, uint32_t host,
                       enum tutti_graph_node_kind kind, uint32_t *ret_count)
{
    const struct tutti_graph *graph = subject->graph;
    uint32_t first = TUTTI_NO_NODE, count = 0;

    for (uint32_t i = 0; i < graph->count[kind]; i++)
        if (graph->nodes[graph->first[kind] + i].host == host) {
            if (count++ == 0)
                first = graph->first[kind] + i;
        }
    *ret_count = count;
    return first;
}

/* Returns the position of a node among the nodes of its kind in its host. */
static uint32_t place_in_host(const struct subject *subject, uint32_t node)
{
    const struct tutti_graph_node *at = &subject->graph->nodes[node];
    uint32_t count;

    return node - subject_first(subject, at->host, at->kind, &count);
}

/* Returns true if two links of different hosts have the same form, rate and end. */
static bool is_same_link(const struct subject *subject, const struct tutti_graph_link *a,
                         const struct tutti_graph_link *b)
{
    const struct tutti_graph_node *to = &subject->graph->nodes[a->to];
    const struct tutti_graph_node *other = &subject->graph->nodes[b->to];

    return a->kind == b->kind && a->count == b->count && to->kind == other->kind &&
           fabs(a->bytes_per_s - b->bytes_per_s) <= 1e-9 * a->bytes_per_s &&
           (a->to == b->to || /* several hosts share this node */
            place_in_host(subject, a->to) == place_in_host(subject, b->to));
}

/* Returns true if two nodes of different hosts are of the same model and have the same links. */
static bool is_same_node(const struct subject *subject, uint32_t a, uint32_t b)
{
    const struct tutti_graph *graph = subject->graph;
    const struct tutti_graph_node *left = &graph->nodes[a], *right = &graph->nodes[b];

    if (left->nlinks != right->nlinks)
        return false;
    for (uint32_t i = 0; i < left->nlinks; i++)
        if (!is_same_link(subject, &graph->links[left->first_link + i],
                          &graph->links[right->first_link + i]))
            return false;
    return strcmp(subject_model(subject, a), subject_model(subject, b)) == 0 ||
           left->kind == TUTTI_NODE_NET; /* the names of nets may differ between hosts */
}

bool subject_is_alike(const struct subject *subject, uint32_t a, uint32_t b)
{
    static const enum tutti_graph_node_kind kinds[] = {
        TUTTI_NODE_GPU, TUTTI_NODE_PCI, TUTTI_NODE_CPU, TUTTI_NODE_NIC, TUTTI_NODE_NET};

    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        uint32_t count, other_count;
        uint32_t first = subject_first(subject, a, kinds[k], &count);
        uint32_t other = subject_first(subject, b, kinds[k], &other_count);

        if (count != other_count)
            return false;
        for (uint32_t i = 0; i < count; i++)
            if (!is_same_node(subject, first + i, other + i))
                return false;
    }
    return true;
}

uint32_t subject_first_alike(const struct subject *subject, uint32_t host)
{
    for (uint32_t before = 0; before < host; before++)
        if (subject_is_alike(subject, before, host))
            return before;
    return host;
}

uint32_t subject_planned_hosts(const struct subject *subject, uint32_t host)
{
    const struct tutti_graph_part *part;

    if (host == TUTTI_ALL_HOSTS)
        return subject->graph->nhosts;
    part = &subject->parts.part[tutti_graph_part_of_host(&subject->parts, host)];
    return part->first_host == host && !tutti_graph_is_one_domain(&subject->parts) ? part->nhosts
                                                                                   : 1;
}

uint32_t subject_copies(const struct subject *subject, uint32_t host)
{
    return subject->parts.part[tutti_graph_part_of_host(&subject->parts, host)].copies;
}

void subject_print_copies(const struct subject *subject)
{
    for (uint32_t i = 0; i < subject->parts.nparts; i++) {
        const struct tutti_graph_part *part = &subject->parts.part[i];
        char copies[UNITS_TEXT];

        if (part->copies == 1)
            continue;
        units_count(part->copies, copies);
        if (part->nhosts == 1)
            printf("host %u stands for %s like hosts\n", part->first_host, copies);
        else
            printf("hosts %u-%u stand for %s like racks\n", part->first_host,
                   part->first_host + part->nhosts - 1, copies);
    }
}

bool subject_plans_host(const struct subject *subject, uint32_t planned, uint32_t host)
{
    return planned == TUTTI_ALL_HOSTS ||
           (host >= planned && host - planned < subject_planned_hosts(subject, planned));
}

/* ---- texts ----------------------------------------------------------------------------------- */

const char *subject_model(const struct subject *subject, uint32_t node)
{
    const struct tutti_graph_node *at = &subject->graph->nodes[node];
    const struct tutti_inventory *inventory = subject->graph->inventory;

    switch (at->kind) {
    case TUTTI_NODE_CPU:
    case TUTTI_NODE_GPU: return tutti_device_text(inventory, at->device, TUTTI_PROPERTY_MODEL_NAME);
    case TUTTI_NODE_NET: return tutti_device_text(inventory, at->device, TUTTI_PROPERTY_NET_NAME);
    default: return "";
    }
}

const char *subject_host(const struct subject *subject, uint32_t host, char text[NAME_BYTES])
{
    *text = '\0';
    if (host == TUTTI_ALL_HOSTS)
        snprintf(text, NAME_BYTES, "all hosts together, ");
    else if (subject_planned_hosts(subject, host) > 1)
        snprintf(text, NAME_BYTES, "hosts %u-%u, ", host,
                 host + subject_planned_hosts(subject, host) - 1);
    else if (subject->graph->nhosts > 1)
        snprintf(text, NAME_BYTES, "host %u, ", host);
    return text;
}

const char *subject_count(uint32_t count, const char *what, char text[NAME_BYTES])
{
    size_t length = strlen(what);
    bool ends_in_ch = length > 1 && strcmp(what + length - 2, "ch") == 0; /* "switches" */

    snprintf(text, NAME_BYTES, "%u %s%s", count, what, count == 1 ? "" : ends_in_ch ? "es" : "s");
    return text;
}

char *subject_cpus(const char *text)
{
    struct tutti_cpumask mask = {{0}};
    char *list = NULL;
    size_t size;
    FILE *out = must_have(open_memstream(&list, &size));
    const char *comma = "";

    if (!tutti_cpumask_parse(text, &mask))
        mask = (struct tutti_cpumask){{0}};
    for (uint32_t first = tutti_cpumask_next(&mask, 0), last; first < TUTTI_CPUS;
         first = tutti_cpumask_next(&mask, last + 1)) {
        last = first;
        while (tutti_cpumask_next(&mask, last + 1) == last + 1 && last + 1 < TUTTI_CPUS)
            last++;
        fprintf(out, "%s%u", comma, first);
        if (last > first)
            fprintf(out, "-%u", last);
        comma = ",";
    }
    if (fclose(out) != 0)
        must_have(NULL);
    return list;
}

/* Returns the PCI device at the lower end of a link. This device has the properties of the link. */
static uint32_t pci_of_link(const struct subject *subject, const struct tutti_graph_link *link)
{
    const struct tutti_graph *graph = subject->graph;
    const struct tutti_graph_node *from = &graph->nodes[link->from], *to = &graph->nodes[link->to];
    const struct tutti_graph_node *lower = from->kind == TUTTI_NODE_CPU ? to : from;

    if (lower->kind == TUTTI_NODE_PCI && to->kind != TUTTI_NODE_CPU &&
        from->kind != TUTTI_NODE_CPU) {
        /* If both ends are PCI switches, the lower one is the child. If the other end is a gpu or
         * a nic, that end is the lower one. */
        if (to->kind != TUTTI_NODE_PCI ||
            tutti_inventory_above(graph->inventory, graph->inventory->devices[to->device].parent,
                                  TUTTI_DEVICE_PCI) == from->device)
            lower = to;
    }
    return tutti_inventory_above(graph->inventory, lower->device, TUTTI_DEVICE_PCI);
}

/* Writes the generation and the width of a PCI link, as far as they are known. */
static void pci_form(const struct subject *subject, const struct tutti_graph_link *link,
                     char *ret_text, size_t size)
{
    static const double gts[] = {2.5, 5, 8, 16, 32, 64}; /* GT/s of each generation */
    const struct tutti_inventory *inventory = subject->graph->inventory;
    uint32_t pci = pci_of_link(subject, link), generation = 0;
    double speed;
    int64_t lanes;

    *ret_text = '\0';
    if (pci == TUTTI_NO_DEVICE)
        return;
    speed = tutti_device_real(inventory, pci, TUTTI_PROPERTY_LINK_SPEED, 0);
    lanes = tutti_device_number(inventory, pci, TUTTI_PROPERTY_LINK_WIDTH, 0);
    while (generation < sizeof gts / sizeof gts[0] && gts[generation] <= speed + 0.01)
        generation++;
    if (generation > 0 && lanes > 0)
        snprintf(ret_text, size, "gen%u x%lld", generation, (long long)lanes);
    else if (lanes > 0)
        snprintf(ret_text, size, "x%lld", (long long)lanes);
    else if (generation > 0)
        snprintf(ret_text, size, "gen%u", generation);
}

/* Returns true for AMD's gpus, and for a device with several of them. */
static bool is_amd(const struct subject *subject, uint32_t node)
{
    const struct tutti_graph_node *at = &subject->graph->nodes[node];
    const struct tutti_inventory *inventory = subject->graph->inventory;
    uint32_t gpu = at->device;

    if (at->is_shared)
        for (gpu = inventory->devices[gpu].first_child;
             gpu != TUTTI_NO_DEVICE && inventory->devices[gpu].kind != TUTTI_DEVICE_GPU;
             gpu = inventory->devices[gpu].next)
            ;
    else if (at->kind != TUTTI_NODE_GPU)
        return false;
    return gpu != TUTTI_NO_DEVICE && tutti_device_has(inventory, gpu, TUTTI_PROPERTY_GCN);
}

bool subject_is_own_link(const struct subject *subject, uint32_t index)
{
    const struct tutti_graph *graph = subject->graph;
    const struct tutti_graph_link *link = &graph->links[index];
    uint32_t gpu = graph->nodes[link->from].is_shared ? link->to : link->from;
    uint32_t pci = graph->nodes[link->from].is_shared ? link->from : link->to;

    return graph->nodes[pci].is_shared && graph->nodes[gpu].kind == TUTTI_NODE_GPU &&
           graph->inventory->devices[graph->nodes[gpu].device].parent == graph->nodes[pci].device;
}

void subject_link_form(const struct subject *subject, uint32_t index, char *ret_text, size_t size)
{
    const struct tutti_graph_link *link = &subject->graph->links[index];
    const struct tutti_graph_node *to = &subject->graph->nodes[link->to];
    const struct tutti_graph_node *net =
        to->kind == TUTTI_NODE_NET ? to : &subject->graph->nodes[link->from];

    *ret_text = '\0';
    if (subject_is_own_link(subject, index)) {
        snprintf(ret_text, size, "same device");
        return;
    }
    switch (link->kind) {
    case TUTTI_LINK_PCI:
        pci_form(subject, link, ret_text, size);
        break;
    case TUTTI_LINK_NVLINK:
        snprintf(ret_text, size, "%u %s%s", link->count,
                 is_amd(subject, link->from) || is_amd(subject, link->to) ? "xGMI link" : "NVLink",
                 link->count == 1 ? "" : "s");
        break;
    case TUTTI_LINK_C2C:
        snprintf(ret_text, size, "C2C");
        break;
    case TUTTI_LINK_PORT:
    case TUTTI_LINK_FABRIC: {
        int64_t mbits = tutti_device_number(subject->graph->inventory, net->device,
                                            TUTTI_PROPERTY_SPEED, 0);

        if (mbits > 0)
            snprintf(ret_text, size, "%g Gbit/s", (double)mbits / 1000);
        break;
    }
    default: break;
    }
}
