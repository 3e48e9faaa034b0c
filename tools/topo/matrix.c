/* SPDX-License-Identifier: Apache-2.0
 * tutti-topo matrix: shows for each pair of devices how one reaches the other, like
 * `nvidia-smi topo -m`. */
#include "common/memory.h"
#include "common/table.h"
#include "common/topo_remarks.h"
#include "topo/between.h"
#include "topo/commands.h"
#include "topo/subject.h"

#include <math.h>
#include <string.h>

static const char help[] =
    "usage: tutti-topo matrix [--from WHAT] [--bandwidth] [--cpus]\n"
    "\n"
    "Shows how gpus and nets reach each other: the class of the path, or the rate of a single\n"
    "flow. It also shows the CPUs that are near, and of several hosts the nets between them.\n"
    "\n"
    "  -f, --from WHAT    a machine; see tutti-topo --help (default: this machine)\n"
    "  -b, --bandwidth    GB/s instead of classes\n"
    "      --cpus         NUMA nodes, too\n";

/* The classes of paths, in the order of the legend. */
static const struct {
    enum tutti_path_class class;
    const char *about;
} legend[] = {
    {TUTTI_PATH_NVL, "so many NVLinks or xGMI links, direct or through NVSwitches"},
    {TUTTI_PATH_NVB, "NVLinks, through one gpu between"},
    {TUTTI_PATH_C2C, "a gpu's coherent link"},
    {TUTTI_PATH_PIX, "one PCIe switch"},
    {TUTTI_PATH_PXB, "several PCIe switches"},
    {TUTTI_PATH_P2C, "a coherent link to the CPU, from there PCIe"},
    {TUTTI_PATH_PXN, "NVLinks to a gpu near the nic, from there PCIe switches"},
    {TUTTI_PATH_PHB, "a CPU's root complex"},
    {TUTTI_PATH_SYS, "between NUMA nodes"},
    {TUTTI_PATH_NET, "between hosts"},
    {TUTTI_PATH_DIS, "no way"},
};

struct matrix {
    const struct subject *subject;
    uint32_t *node;                   /* the node of each row, and of each column; owned */
    uint32_t count;                   /* number of rows */
    bool wants_bandwidth;             /* true: rates of paths; false: their classes */
    bool is_seen[TUTTI_PATH_CLASSES]; /* the classes of the paths in the matrix, for the legend */
};

/* Chooses the devices of the matrix: gpus and nets, and NUMA nodes if wants_cpus is true. */
static void choose_nodes(struct matrix *matrix, bool wants_cpus)
{
    const struct tutti_graph *graph = matrix->subject->graph;

    matrix->node = must_calloc(matrix->subject->paths->nends, sizeof *matrix->node);
    for (uint32_t i = 0; i < matrix->subject->paths->nends; i++) {
        uint32_t node = matrix->subject->paths->end[i];

        /* A machine without gpus and nets shows its NUMA nodes instead. */
        if (graph->nodes[node].kind != TUTTI_NODE_CPU || wants_cpus ||
            graph->count[TUTTI_NODE_GPU] + graph->count[TUTTI_NODE_NET] == 0)
            matrix->node[matrix->count++] = node;
    }
}

static void name_of(const struct matrix *matrix, uint32_t node, char text[NAME_BYTES])
{
    static const char *const names[TUTTI_NODE_COUNT] = {
        [TUTTI_NODE_GPU] = "GPU", [TUTTI_NODE_NET] = "NET", [TUTTI_NODE_CPU] = "CPU"};
    const struct tutti_graph_node *at = &matrix->subject->graph->nodes[node];

    snprintf(text, NAME_BYTES, "%s%u", names[at->kind], at->number);
}

/* Returns the least number of parallel NVLinks on any hop of a path outside a device. */
static uint32_t links_of(const struct matrix *matrix, const struct tutti_path *path)
{
    uint32_t least = UINT32_MAX;

    for (uint32_t i = 0; i < path->nhops; i++) {
        const struct tutti_hop *hop = &matrix->subject->paths->hop[path->first + i];
        uint32_t count = matrix->subject->graph->links[hop->link].count;

        if (!subject_is_own_link(matrix->subject, hop->link))
            least = count < least ? count : least;
    }
    return least == UINT32_MAX ? 0 : least;
}

static void add_cell(struct matrix *matrix, struct table *table, uint32_t from, uint32_t to)
{
    const struct tutti_path *path = tutti_paths_between(matrix->subject->paths, from, to);

    if (from == to) {
        table_add(table, "X");
        return;
    }
    matrix->is_seen[path->class] = true;
    if (matrix->wants_bandwidth && path->class != TUTTI_PATH_DIS && path->nhops > 0)
        table_add(table, "%.3g", path->bytes_per_s / 1e9);
    else if (path->class == TUTTI_PATH_NVL && links_of(matrix, path) > 0)
        table_add(table, "NV%u", links_of(matrix, path));
    else
        table_add(table, "%s", tutti_path_class_name(path->class));
}

/* Adds the CPUs, the NUMA node and the host that a device belongs to. */
static void add_place(const struct matrix *matrix, struct table *table, uint32_t node)
{
    const struct tutti_graph *graph = matrix->subject->graph;
    const struct tutti_inventory *inventory = graph->inventory;
    uint32_t cpu = graph->nodes[node].cpu;
    char *cpus = must_have(strdup(""));

    if (cpu != TUTTI_NO_NODE) {
        free(cpus);
        cpus = subject_cpus(tutti_device_text(inventory, graph->nodes[cpu].device,
                                              TUTTI_PROPERTY_AFFINITY));
    }
    table_add(table, "%s", *cpus == '\0' ? "-" : cpus);
    free(cpus);
    if (cpu != TUTTI_NO_NODE &&
        tutti_device_has(inventory, graph->nodes[cpu].device, TUTTI_PROPERTY_NUMA))
        table_add(table, "%lld", (long long)tutti_device_number(inventory, graph->nodes[cpu].device,
                                                                TUTTI_PROPERTY_NUMA, 0));
    else
        table_add(table, "-");
    if (graph->nhosts > 1)
        table_add(table, "%u", graph->nodes[node].host);
}

static void print_table(struct matrix *matrix)
{
    char *heads = NULL, name[NAME_BYTES];
    size_t size;
    FILE *out = must_have(open_memstream(&heads, &size));
    struct table table;

    fputc(' ', out); /* head of the column of names */
    for (uint32_t i = 0; i < matrix->count; i++) {
        name_of(matrix, matrix->node[i], name);
        fprintf(out, "|%s%s", matrix->wants_bandwidth ? ">" : "", name);
    }
    fprintf(out, "|CPU affinity|>NUMA%s", matrix->subject->graph->nhosts > 1 ? "|>host" : "");
    if (fclose(out) != 0)
        must_have(NULL);
    table_init(&table, heads);
    free(heads);
    for (uint32_t i = 0; i < matrix->count; i++) {
        name_of(matrix, matrix->node[i], name);
        table_add(&table, "%s", name);
        for (uint32_t j = 0; j < matrix->count; j++)
            add_cell(matrix, &table, matrix->node[i], matrix->node[j]);
        add_place(matrix, &table, matrix->node[i]);
    }
    table_print(&table, stdout);
    table_fini(&table);
}

static void print_legend(const struct matrix *matrix)
{
    const struct tutti_graph *graph = matrix->subject->graph;

    puts("");
    if (matrix->wants_bandwidth)
        puts("GB/s of one flow alone, from the device of the row to that of the column");
    for (size_t i = 0; i < sizeof legend / sizeof legend[0] && !matrix->wants_bandwidth; i++)
        if (matrix->is_seen[legend[i].class])
            printf("%-4s %s\n", legend[i].class == TUTTI_PATH_NVL
                                    ? "NVn"
                                    : tutti_path_class_name(legend[i].class),
                   legend[i].about);
    for (uint32_t i = 0; i < matrix->count; i++) {
        char name[NAME_BYTES];

        if (graph->nodes[matrix->node[i]].kind != TUTTI_NODE_NET ||
            *subject_model(matrix->subject, matrix->node[i]) == '\0')
            continue;
        name_of(matrix, matrix->node[i], name);
        printf("%-4s %s\n", name, subject_model(matrix->subject, matrix->node[i]));
    }
}

static int run(const struct request *request)
{
    struct subject subject;
    struct matrix matrix = {.subject = &subject, .wants_bandwidth = request->wants_bandwidth};
    int status;

    if (request->nwords > 0)
        return mistake(request, "\"%s\" is one word too many; see tutti-topo matrix --help",
                       request->words[0]);
    status = subject_open(request, true, &subject);
    if (status != REQUEST_GO)
        return status;
    choose_nodes(&matrix, request->wants_cpus);
    print_table(&matrix);
    print_legend(&matrix);
    between_print(&subject);
    free(matrix.node);
    topo_remarks_print(subject.graph, stderr);
    subject_close(&subject);
    return EXIT_SUCCESS;
}

const struct command topo_matrix = {
    .name = "tutti-topo matrix",
    .options = "from gpu nic cpu bandwidth cpus",
    .help = help,
    .run = run,
};
