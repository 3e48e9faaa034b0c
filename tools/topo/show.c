/* SPDX-License-Identifier: Apache-2.0
 * tutti-topo without a command: prints the machine as a tree, one line per device. */
#include "common/memory.h"
#include "common/table.h"
#include "common/topo_remarks.h"
#include "common/units.h"
#include "topo/commands.h"
#include "topo/sources.h"
#include "topo/subject.h"
#include "topology/detect/detect.h"

#include <math.h>
#include <string.h>

static const char help[] =
    "usage: tutti-topo [--from WHAT] [--sources]\n"
    "       tutti-topo [--from WHAT] [--svg FILE] [--dot FILE] [--xml FILE] [--graph FILE]\n"
    "       tutti-topo COMMAND [arguments]\n"
    "       tutti-topo --measure [options]\n"
    "\n"
    "Without a command it shows this machine as a tree, or the machine that --from names.\n"
    "\n"
    "  matrix   show how gpus and nets reach each other\n"
    "  search   find the rings and trees that carry most\n"
    "  explain  show the links that limit them\n"
    "  draw     draw the machine and its rings or trees\n"
    "  export   write NCCL's files: the machine, and the rings and trees\n"
    "  machine  write a description for --topo of the other tools; with --measure, measure it\n"
    "\n"
    "  -f, --from WHAT    a file (NCCL's or hwloc's XML, or lines), a known name such as dgx-2,\n"
    "                     or a line such as \"8 gpus h100 nvswitch, 8 nics 400G, 2 cpus\"\n"
    "      --gpu MODEL    the model of the gpus, such as b200, if the file does not tell it\n"
    "      --nic RATE     the rate of the ports, such as 400G, or of one: mlx5_bond_0=25G,400G\n"
    "      --cpu MODEL    the model of the CPUs, such as sapphire\n"
    "      --sources      show the source of each fact\n"
    "      --svg FILE, --dot FILE, --plain, --pattern WHICH    see tutti-topo draw --help\n"
    "      --xml FILE, --graph FILE                            see tutti-topo export --help\n"
    "\n"
    "Commands that take --from take --gpu, --nic and --cpu too. They replace guesses, never what\n"
    "is told; a line on stderr says which rates are guesses.\n"
    "\n"
    "tutti-topo COMMAND --help says more. Exit status: 0 done, 1 failed, 2 a mistake in the\n"
    "command line or in what --from says.\n";

/* The table of devices. Its columns are the device, its bus id, the form and the rate of its link,
 * a mark for the source of the rate, the description, and with --sources the sources. */
struct view {
    const struct subject *subject;
    struct table table;
    bool wants_sources;
    bool has_assumed, has_product; /* marks that must be explained */
};

enum { DESCRIPTION = 5 }; /* index of the column of descriptions */

/* ---- links ----------------------------------------------------------------------------------- */

/* Returns the first PCI or port link from a node to a device above it, or TUTTI_NO_NODE. */
static uint32_t link_up(const struct subject *subject, uint32_t node)
{
    const struct tutti_graph *graph = subject->graph;
    const struct tutti_inventory *inventory = graph->inventory;
    const struct tutti_graph_node *at = &graph->nodes[node];

    for (uint32_t above = inventory->devices[at->device].parent; above != TUTTI_NO_DEVICE;
         above = inventory->devices[above].parent)
        for (uint32_t i = 0; i < at->nlinks; i++) {
            const struct tutti_graph_link *link = &graph->links[at->first_link + i];

            if (link->to == subject->node_of[above] &&
                (link->kind == TUTTI_LINK_PCI || link->kind == TUTTI_LINK_PORT))
                return at->first_link + i;
        }
    return TUTTI_NO_NODE;
}

/* Returns the slowest link from a NUMA node to another, or TUTTI_NO_NODE. All these links have the
 * same rate, unless some of them were measured. */
static uint32_t slowest_sys_link(const struct subject *subject, uint32_t node)
{
    const struct tutti_graph *graph = subject->graph;
    const struct tutti_graph_node *at = &graph->nodes[node];
    uint32_t narrowest = TUTTI_NO_NODE;

    for (uint32_t i = at->first_link; i < at->first_link + at->nlinks; i++)
        if (graph->links[i].kind == TUTTI_LINK_SYS &&
            (narrowest == TUTTI_NO_NODE ||
             graph->links[i].bytes_per_s < graph->links[narrowest].bytes_per_s))
            narrowest = i;
    return narrowest;
}

/* Adds the columns of a link: its form, its rate, and a mark for the source of the rate, unless the
 * machine or the file tells it. */
static void add_link(struct view *view, uint32_t index)
{
    const struct tutti_graph_link *link;
    char form[NAME_BYTES], rate[UNITS_TEXT];

    if (index == TUTTI_NO_NODE) {
        for (int column = 0; column < 3; column++)
            table_add(&view->table, "%s", "");
        return;
    }
    link = &view->subject->graph->links[index];
    subject_link_form(view->subject, index, form, sizeof form);
    table_add(&view->table, "%s%s", link->kind == TUTTI_LINK_SYS ? "to other cpus" : "", form);
    if (subject_is_own_link(view->subject, index)) { /* its rate is no limit, and no fact */
        table_add(&view->table, "%s", "");
        table_add(&view->table, "%s", "");
        return;
    }
    table_add(&view->table, "%s", units_rate(link->bytes_per_s, rate));
    table_add(&view->table, "%s", link->found_by == TUTTI_SOURCE_ASSUMED    ? "*"
                                  : link->found_by == TUTTI_SOURCE_PRODUCT  ? "p"
                                  : link->found_by == TUTTI_SOURCE_MEASURED ? "m"
                                                                            : "");
    view->has_assumed = view->has_assumed || link->found_by == TUTTI_SOURCE_ASSUMED;
    view->has_product = view->has_product || link->found_by == TUTTI_SOURCE_PRODUCT;
}

/* ---- descriptions of devices ----------------------------------------------------------------- */

/* A description is a list of notes. This function writes the comma between two notes. */
static void begin_note(FILE *out)
{
    fputs(ftell(out) > 0 ? ", " : "", out);
}

/* note_text and note_number add a property of a device, if the device has it. */
static void note_text(FILE *out, const struct tutti_inventory *inventory, uint32_t device,
                      enum tutti_property property, const char *format)
{
    if (*tutti_device_text(inventory, device, property) == '\0')
        return;
    begin_note(out);
    fprintf(out, format, tutti_device_text(inventory, device, property));
}

static void note_number(FILE *out, const struct tutti_inventory *inventory, uint32_t device,
                        enum tutti_property property, const char *format)
{
    if (!tutti_device_has(inventory, device, property))
        return;
    begin_note(out);
    fprintf(out, format, (long long)tutti_device_number(inventory, device, property, 0));
}

static bool is_same_form(const struct tutti_graph *graph, uint32_t a, uint32_t b)
{
    const struct tutti_graph_link *x = &graph->links[a], *y = &graph->links[b];

    return x->kind == y->kind && x->count == y->count &&
           graph->nodes[x->to].kind == graph->nodes[y->to].kind;
}

/* Writes a blank and the bus id of a pci node. */
static void list_busid(FILE *out, const struct tutti_graph *graph, uint32_t node)
{
    char busid[32];

    tutti_busid_write(tutti_device_number(graph->inventory, graph->nodes[node].device,
                                          TUTTI_PROPERTY_BUSID, 0), busid, sizeof busid);
    fprintf(out, " %s", busid);
}

/* Lists the other ends of all links that have the form of link `first`, such as "gpu 1", "each of
 * gpu 1 2" or "nvswitch". */
static void list_ends(FILE *out, const struct tutti_graph *graph, uint32_t first, uint32_t last)
{
    enum tutti_graph_node_kind kind = graph->nodes[graph->links[first].to].kind;
    uint32_t count = 0;

    for (uint32_t i = first; i < last; i++)
        count += is_same_form(graph, first, i);
    fprintf(out, "%s%s", count > 1 ? "each of " : "", tutti_graph_node_kind_name(kind));
    for (uint32_t i = first; i < last; i++)
        if (is_same_form(graph, first, i) && kind == TUTTI_NODE_PCI)
            list_busid(out, graph, graph->links[i].to);
        else if (is_same_form(graph, first, i) && kind != TUTTI_NODE_NVSWITCH)
            fprintf(out, " %u", graph->nodes[graph->links[i].to].number);
}

/* Adds the NVLinks and C2C links of a node. Links of the same form are described together. */
static void note_nvlinks(FILE *out, const struct subject *subject, uint32_t node)
{
    const struct tutti_graph *graph = subject->graph;
    uint32_t first = graph->nodes[node].first_link, last = first + graph->nodes[node].nlinks;
    char form[NAME_BYTES], rate[UNITS_TEXT];

    for (uint32_t i = first; i < last; i++) {
        const struct tutti_graph_link *link = &graph->links[i];
        bool is_noted = false;

        for (uint32_t before = first; before < i; before++)
            is_noted = is_noted || is_same_form(graph, before, i);
        if (is_noted || (link->kind != TUTTI_LINK_NVLINK && link->kind != TUTTI_LINK_C2C) ||
            subject_is_own_link(subject, i))
            continue;
        subject_link_form(subject, i, form, sizeof form);
        begin_note(out);
        fprintf(out, "%s to ", form);
        list_ends(out, graph, i, last);
        fprintf(out, ": %s%s", units_rate(link->bytes_per_s, rate),
                link->found_by == TUTTI_SOURCE_ASSUMED ? " (a guess)" : "");
    }
}

static void note_gpu(FILE *out, const struct subject *subject, uint32_t node)
{
    const struct tutti_inventory *inventory = subject->graph->inventory;
    uint32_t gpu = subject->graph->nodes[node].device;

    note_text(out, inventory, gpu, TUTTI_PROPERTY_MODEL_NAME, "%s");
    if (tutti_device_has(inventory, gpu, TUTTI_PROPERTY_GCN))
        note_text(out, inventory, gpu, TUTTI_PROPERTY_GCN, "gcn %s");
    else
        note_number(out, inventory, gpu, TUTTI_PROPERTY_SM, "sm %lld");
    note_nvlinks(out, subject, node);
    if (tutti_device_number(inventory, gpu, TUTTI_PROPERTY_GDR, 1) == 0) {
        begin_note(out);
        fputs("nics do not reach its memory", out);
    }
}

/* Adds the CPUs of a mask in the form "CPUs 0-3,8". */
static void note_cpus(FILE *out, const char *mask)
{
    char *text = subject_cpus(mask);

    if (*text != '\0') {
        begin_note(out);
        fprintf(out, "CPUs %s", text);
    }
    free(text);
}

/* Adds a measured rate, if there is one. */
static void note_rate(FILE *out, const struct tutti_inventory *inventory, uint32_t device,
                      enum tutti_property property, const char *what)
{
    char rate[UNITS_TEXT];

    if (!tutti_device_has(inventory, device, property))
        return;
    begin_note(out);
    units_rate(tutti_device_real(inventory, device, property, 0), rate);
    fprintf(out, "%s %s measured", what, rate);
}

static void note_cpu(FILE *out, const struct tutti_inventory *inventory, uint32_t cpu)
{
    const char *caches = tutti_device_text(inventory, cpu, TUTTI_PROPERTY_CACHES);
    unsigned count = *caches != '\0';

    if (tutti_device_has(inventory, cpu, TUTTI_PROPERTY_MODEL_NAME))
        note_text(out, inventory, cpu, TUTTI_PROPERTY_MODEL_NAME, "%s");
    else
        note_text(out, inventory, cpu, TUTTI_PROPERTY_CPU_VENDOR, "%s");
    note_number(out, inventory, cpu, TUTTI_PROPERTY_PACKAGE, "package %lld");
    note_cpus(out, tutti_device_text(inventory, cpu, TUTTI_PROPERTY_AFFINITY));
    for (; *caches != '\0'; caches++)
        count += *caches == ';';
    if (count > 0) {
        begin_note(out);
        fprintf(out, "%u last-level cache%s", count, count == 1 ? "" : "s");
    }
    note_rate(out, inventory, cpu, TUTTI_PROPERTY_MEMORY_RATE, "memory");
    note_rate(out, inventory, cpu, TUTTI_PROPERTY_MESSAGE_RATE, "messages");
}

static void note_net(FILE *out, const struct tutti_inventory *inventory, uint32_t net)
{
    note_text(out, inventory, net, TUTTI_PROPERTY_LAYER, "%s");
    if (tutti_device_number(inventory, net, TUTTI_PROPERTY_PORT, 1) > 1)
        note_number(out, inventory, net, TUTTI_PROPERTY_PORT, "port %lld");
    note_number(out, inventory, net, TUTTI_PROPERTY_RAIL, "rail %lld");
    if (tutti_device_number(inventory, net, TUTTI_PROPERTY_GDR, 1) == 0) {
        begin_note(out);
        fputs("does not reach gpus' memory", out);
    }
}

static void add_notes(struct view *view, uint32_t node)
{
    const struct tutti_graph *graph = view->subject->graph;
    const struct tutti_graph_node *at = &graph->nodes[node];
    char *text = NULL;
    size_t size;
    FILE *out = must_have(open_memstream(&text, &size));

    switch (at->kind) {
    case TUTTI_NODE_GPU: note_gpu(out, view->subject, node); break;
    case TUTTI_NODE_CPU: note_cpu(out, graph->inventory, at->device); break;
    case TUTTI_NODE_NET: note_net(out, graph->inventory, at->device); break;
    case TUTTI_NODE_PCI: note_nvlinks(out, view->subject, node); break;
    default: break;
    }
    if (fclose(out) != 0)
        must_have(NULL);
    table_add(&view->table, "%s", text);
    free(text);
}

/* ---- the tree -------------------------------------------------------------------------------- */

/* Returns the number of devices above a device that have a line of their own. */
static int depth_of(const struct subject *subject, uint32_t device)
{
    const struct tutti_inventory *inventory = subject->graph->inventory;
    int depth = 0;

    for (uint32_t at = inventory->devices[device].parent; at != TUTTI_NO_DEVICE;
         at = inventory->devices[at].parent)
        depth += subject->node_of[at] != TUTTI_NO_NODE;
    return depth;
}

static void add_device(struct view *view, uint32_t device)
{
    const struct tutti_graph *graph = view->subject->graph;
    uint32_t node = view->subject->node_of[device], pci;
    const struct tutti_graph_node *at = &graph->nodes[node];
    int depth = depth_of(view->subject, device) + (graph->nhosts > 1);
    char name[NAME_BYTES], busid[40] = "";

    switch (at->kind) {
    case TUTTI_NODE_GPU:
        snprintf(name, sizeof name, "gpu %u", at->number);
        break;
    case TUTTI_NODE_NET:
        snprintf(name, sizeof name, "net %u %s", at->number, subject_model(view->subject, node));
        break;
    case TUTTI_NODE_CPU:
        snprintf(name, sizeof name, "cpu %lld",
                 (long long)tutti_device_number(graph->inventory, device, TUTTI_PROPERTY_NUMA,
                                                at->number));
        break;
    default:
        snprintf(name, sizeof name, "%s", tutti_graph_node_kind_name(at->kind));
    }
    pci = tutti_inventory_above(graph->inventory, device, TUTTI_DEVICE_PCI);
    if (at->kind != TUTTI_NODE_NET && pci != TUTTI_NO_DEVICE)
        tutti_busid_write(tutti_device_number(graph->inventory, pci, TUTTI_PROPERTY_BUSID, 0),
                          busid, sizeof busid);
    table_add(&view->table, "%*s%s", 2 * depth, "", name);
    table_add(&view->table, "%s", busid);
    add_link(view, at->kind == TUTTI_NODE_CPU ? slowest_sys_link(view->subject, node)
                                              : link_up(view->subject, node));
    add_notes(view, node);
    if (view->wants_sources) {
        char *sources = sources_text(view->subject, node);

        table_add(&view->table, "%s", sources);
        free(sources);
    }
}

/* Adds a row that has only a name and a description. */
static void add_row(struct view *view, const char *name, const char *note)
{
    table_add(&view->table, "%s", name);
    for (size_t i = 1; i < view->table.ncolumns; i++)
        table_add(&view->table, "%s", i == DESCRIPTION ? note : "");
}

/* Adds the rows of a host. If an earlier host is alike, one row refers to it. */
static void add_host(struct view *view, uint32_t host)
{
    const struct tutti_inventory *inventory = view->subject->graph->inventory;
    uint32_t alike = subject_first_alike(view->subject, host);
    char name[NAME_BYTES], note[NAME_BYTES];

    snprintf(name, sizeof name, "host %u", host);
    snprintf(note, sizeof note, "alike: see host %u", alike);
    if (view->subject->graph->nhosts > 1)
        add_row(view, name, alike < host ? note : "");
    for (uint32_t device = 0; device != TUTTI_NO_DEVICE && alike == host;
         device = tutti_inventory_next(inventory, device)) {
        uint32_t node = view->subject->node_of[device];

        if (node != TUTTI_NO_NODE && view->subject->graph->nodes[node].host == host)
            add_device(view, device);
    }
}

static void print_summary(const struct subject *subject)
{
    static const struct {
        enum tutti_graph_node_kind kind;
        const char *what;
    } counted[] = {
        {TUTTI_NODE_CPU, "cpu"},           {TUTTI_NODE_PCI, "pci switch"}, {TUTTI_NODE_GPU, "gpu"},
        {TUTTI_NODE_NVSWITCH, "nvswitch"}, {TUTTI_NODE_NIC, "nic"},        {TUTTI_NODE_NET, "net"},
    };
    char text[NAME_BYTES];

    printf("%s: %s", subject->name, subject_count(subject->graph->nhosts, "host", text));
    for (size_t i = 0; i < sizeof counted / sizeof counted[0]; i++) {
        uint32_t count = 0;

        for (uint32_t node = 0; node < subject->graph->nnodes; node++)
            count += subject->graph->nodes[node].kind == counted[i].kind &&
                     !subject->graph->nodes[node].is_shared;
        if (count > 0)
            printf(", %s", subject_count(count, counted[i].what, text));
    }
    puts("");
    subject_print_copies(subject);
}

/* Prints the part of the machine that this process may use. */
static void print_confines(void)
{
    struct tutti_confines confines;
    char mask[TUTTI_CPUMASK_BYTES], *cpus;

    tutti_detect_confines(NULL, &confines);
    tutti_cpumask_write(&confines.cpus, mask);
    cpus = subject_cpus(mask);
    printf("this process: CPUs %s%s%s\n", cpus, confines.is_container ? ", in a container" : "",
           confines.is_vm ? ", in a virtual machine" : "");
    free(cpus);
}

static int show(const struct request *request)
{
    struct subject subject;
    struct view view = {.subject = &subject, .wants_sources = request->wants_sources};
    int status = subject_open(request, false, &subject);

    if (status != REQUEST_GO)
        return status;
    table_init(&view.table, view.wants_sources
                                ? "device|bus id|link up|>carries| |description|source"
                                : "device|bus id|link up|>carries| |description");
    for (uint32_t host = 0; host < subject.graph->nhosts; host++)
        add_host(&view, host);
    table_print(&view.table, stdout);
    table_fini(&view.table);
    puts("");
    print_summary(&subject);
    if (request->from == NULL)
        print_confines();
    if (view.has_product)
        puts("p known by the product: a PCI id or a name tells the rate");
    if (view.has_assumed)
        puts("* assumed: no source gives this rate, so it is what such links usually reach");
    topo_remarks_print(subject.graph, stdout);
    subject_close(&subject);
    return EXIT_SUCCESS;
}

/* Reports a mistake if an option has no effect. tutti-topo without a command accepts the options of
 * several commands, but some options need others. */
static int check_options(const struct request *request)
{
    bool is_drawn = request->svg != NULL || request->dot != NULL;

    if (request->nranks > 0 || request->output != NULL || request->transport != NULL ||
        request->wants_quick)
        return mistake(request, "%s is about measuring; add --measure, or say tutti-topo machine",
                       request->nranks > 0          ? "--ranks"
                       : request->output != NULL    ? "--output"
                       : request->transport != NULL ? "--transport"
                                                    : "--quick");
    if (!is_drawn && (request->wants_plain || request->pattern != NULL))
        return mistake(request, "%s is about pictures; add --svg FILE, or say tutti-topo search",
                       request->wants_plain ? "--plain" : "--pattern");
    if ((is_drawn || request->xml != NULL || request->graph != NULL) && request->wants_sources)
        return mistake(request, "files do not show sources; leave out --sources");
    return REQUEST_GO;
}

static int run(const struct request *request)
{
    bool is_drawn = request->svg != NULL || request->dot != NULL;
    bool is_exported = request->xml != NULL || request->graph != NULL;
    int status;

    if (request->nwords > 0)
        return mistake(request, "\"%s\" is no command; see tutti-topo --help", request->words[0]);
    if (request->wants_measure)
        return topo_machine.run(request);
    status = check_options(request);
    if (status != REQUEST_GO)
        return status;
    if (!is_drawn && !is_exported)
        return show(request);
    status = is_drawn ? topo_draw.run(request) : EXIT_SUCCESS;
    return status == EXIT_SUCCESS && is_exported ? topo_export.run(request) : status;
}

const struct command topo_show = {
    .name = "tutti-topo",
    .options = "from gpu nic cpu sources svg dot plain pattern xml graph measure ranks output "
               "transport quick",
    .help = help,
    .run = run,
};
