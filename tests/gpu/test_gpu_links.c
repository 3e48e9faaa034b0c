/* SPDX-License-Identifier: Apache-2.0
 * On simulated machines with known links, large all-reduces load the links as the search claims,
 * and links that no plan uses stay empty. The simulated driver counts the bytes between devices,
 * and the machine's graph says which links they cross. A table in docs/gpu.md has these figures. A
 * second one has the time that the simulator gives for the same call, and the load of the links if
 * the data went along rings that NCCL is known to have chosen on such a machine. With LINKS_TABLE=1
 * the test prints the rows of the first table, and with LINKS_TABLE=2 those of the second. */
#include "gpu/numbers.h"

#include "base/result.h"
#include "common/topo_machine.h"
#include "simcuda/cuda/traffic.h"
#include "simulator/stage.h"
#include "topology/cluster/cluster.h"
#include "topology/formats/load.h"
#include "topology/formats/nccl_xml.h"

#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { COUNT = 1 << 20 }; /* int32: 4 MiB */

/* Rings that a communicator of NCCL had on such a machine, or was told to use. */
struct recording {
    const char *source; /* in the table */
    int nrings;
    int order[6][8]; /* of each ring: the GPUs */
};

struct machine {
    const char *name;      /* in the table */
    const char *from;      /* as tutti-topo --from takes it */
    int nranks, ndevices;
    const char *algorithm; /* that runs the call */
    bool avoids_pci;       /* nothing but greetings may cross PCIe */
    bool has_lost_link;    /* the first NVLink of its first gpu is broken */
    const struct recording *nccl; /* NULL: none is known */
    char xml[64];          /* file with the machine */
};

/* ---- links ----------------------------------------------------------------------------------- */

/* The loads of all links of a graph. */
struct loads {
    struct tutti_graph *graph;
    struct tutti_paths *paths;
    double *bytes; /* per link */
};

static void loads_open(const char *xml, struct loads *loads)
{
    struct tutti_inventory *inventory;

    if (tutti_formats_load(xml, &inventory) != TUTTI_OK ||
        tutti_graph_build(inventory, &loads->graph) != TUTTI_OK ||
        tutti_paths_find(loads->graph, &loads->paths) != TUTTI_OK)
        abort();
    tutti_inventory_destroy(inventory);
    loads->bytes = calloc(loads->graph->nlinks, sizeof *loads->bytes);
}

static void loads_close(struct loads *loads)
{
    free(loads->bytes);
    tutti_paths_destroy(loads->paths);
    tutti_graph_destroy(loads->graph);
}

/* Adds bytes that go from a device to another. */
static void load_pair(struct loads *loads, int from, int to, double bytes)
{
    const struct tutti_path *path =
        tutti_paths_between(loads->paths, tutti_graph_gpu(loads->graph, (uint32_t)from),
                            tutti_graph_gpu(loads->graph, (uint32_t)to));

    for (uint32_t i = 0; i < path->nhops; i++) {
        const struct tutti_hop *hop = &loads->paths->hop[path->first + i];

        loads->bytes[hop->link] += bytes * hop->demand;
    }
}

/* Returns the link that takes longest; *ret_seconds is its time. Of links that take equally long it
 * is the first: a few bytes of signals, whose number differs from run to run, do not count. */
static uint32_t busiest(const struct loads *loads, double *ret_seconds)
{
    uint32_t found = 0;

    *ret_seconds = 0;
    for (uint32_t i = 0; i < loads->graph->nlinks; i++) {
        double seconds = loads->bytes[i] / loads->graph->links[i].bytes_per_s;

        if (seconds > 1.001 * *ret_seconds) {
            *ret_seconds = seconds;
            found = i;
        }
    }
    return found;
}

/* Writes the busiest link's kind, its bytes and its rate, and returns its time. */
static double tell_busiest(const struct loads *loads, char text[80])
{
    double seconds;
    uint32_t number = busiest(loads, &seconds);
    const struct tutti_graph_link *link = &loads->graph->links[number];
    const char *kind = link->kind == TUTTI_LINK_NVLINK ? "NVLink"
                       : link->kind == TUTTI_LINK_SYS  ? "between sockets" : "PCIe";

    snprintf(text, 80, "%s, %.1f MB at %.0f GB/s", kind, loads->bytes[number] / 1e6,
             link->bytes_per_s / 1e9);
    return seconds;
}

/* Returns the most bytes on a link that is no NVLink. */
static double most_on_others(const struct loads *loads)
{
    double most = 0;

    for (uint32_t i = 0; i < loads->graph->nlinks; i++)
        if (loads->graph->links[i].kind != TUTTI_LINK_NVLINK)
            most = fmax(most, loads->bytes[i]);
    return most;
}

/* Returns the rate that a search claims for rings over all gpus that ranks use. */
static double claimed_rate(const struct loads *loads, int ndevices)
{
    uint32_t gpus[SIM_DEVICES];
    struct tutti_search_options options = {.host = TUTTI_ALL_HOSTS, .gpus = gpus,
                                           .ngpus = (uint32_t)ndevices};
    struct tutti_channels *plan;
    double rate;

    for (int i = 0; i < ndevices; i++)
        gpus[i] = (uint32_t)i;
    if (tutti_search(loads->paths, TUTTI_PATTERN_RING, &options, &plan) != TUTTI_OK)
        abort();
    rate = plan->bytes_per_s;
    tutti_channels_destroy(plan);
    return rate;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Takes the counted traffic, and starts anew. */
static void take_traffic(uint64_t bytes[SIM_TRAFFIC_SIDES][SIM_TRAFFIC_SIDES])
{
    void *library = dlopen(getenv("TUTTI_CUDA_LIBRARY"), RTLD_LAZY | RTLD_NOLOAD);
    void *found = library != NULL ? dlsym(library, "cuSimTraffic") : NULL;
    void (*take)(uint64_t bytes[SIM_TRAFFIC_SIDES][SIM_TRAFFIC_SIDES]);

    if (found == NULL) {
        fprintf(stderr, "%s does not count traffic\n", getenv("TUTTI_CUDA_LIBRARY"));
        abort();
    }
    memcpy(&take, &found, sizeof take);
    take(bytes);
    dlclose(library);
}

/* Returns true if the page about GPUs has that line. */
static bool is_in_page(const char *row)
{
    FILE *page = fopen(GPU_PAGE, "re");
    char line[512];
    bool is_there = false;

    while (page != NULL && fgets(line, sizeof line, page) != NULL)
        is_there = is_there || strncmp(line, row, strlen(row)) == 0;
    if (page != NULL)
        fclose(page);
    return is_there;
}

/* Prints a row of that table, or tells whether it is in the page. */
static bool has_row(const char *table, const char *row)
{
    const char *printed = getenv("LINKS_TABLE");

    if (printed == NULL)
        return is_in_page(row);
    if (strcmp(printed, table) == 0)
        fprintf(stderr, "%s\n", row);
    return true;
}

/* Fails unless the traffic is what the machine's row says. */
static void judge(struct member *member, const struct machine *machine, const char *algorithm,
                  uint64_t bytes[SIM_TRAFFIC_SIDES][SIM_TRAFFIC_SIDES])
{
    double seconds, claimed, others, size_bytes = COUNT * sizeof(int32_t);
    char link[80], row[256];
    struct loads loads;

    loads_open(machine->xml, &loads);
    for (int from = 0; from < machine->ndevices; from++)
        for (int to = 0; to < machine->ndevices; to++)
            if (from != to)
                load_pair(&loads, from, to, (double)bytes[from + 1][to + 1]);
    seconds = tell_busiest(&loads, link);
    others = most_on_others(&loads);
    claimed = 2.0 * (machine->nranks - 1) / machine->nranks * size_bytes /
              claimed_rate(&loads, machine->ndevices);
    snprintf(row, sizeof row, "| %s | `%s` | %s | %.0f us | %.0f us | %.1f MB |", machine->name,
             algorithm, link, 1e6 * seconds, 1e6 * claimed, others / 1e6);
    if (!has_row("1", row))
        member_complain(member, "docs/gpu.md lacks the row: %s", row);
    if (strncmp(algorithm, machine->algorithm, strlen(machine->algorithm)) != 0)
        member_complain(member, "%s: runs by %s, not %s", machine->name, algorithm,
                        machine->algorithm);
    if (seconds > 1.1 * claimed || seconds < 0.9 * claimed)
        member_complain(member, "%s: the busiest link takes %.1f us, claimed are %.1f",
                        machine->name, 1e6 * seconds, 1e6 * claimed);
    if (machine->avoids_pci && others > 0.001 * size_bytes)
        member_complain(member, "%s: %.0f bytes over links that are no NVLinks", machine->name,
                        others);
    loads_close(&loads);
}

static void sum(struct member *member)
{
    const struct machine *machine = member->context;
    uint64_t bytes[SIM_TRAFFIC_SIDES][SIM_TRAFFIC_SIDES];
    tuttiExplanation_t explanation = {.size = sizeof explanation};
    int32_t *numbers = numbers_make(member, COUNT, member->rank, 1);

    EXPECT_OK(member, tuttiCommExplain(member->comm, "allreduce", numbers, COUNT, tuttiInt32,
                                       tuttiSum, 0, &explanation));
    EXPECT_OK(member, tuttiBarrier(member->comm, numbers_stream(member)));
    member_meet(member);
    if (member->rank == 0)
        take_traffic(bytes);
    member_meet(member);
    EXPECT_OK(member, tuttiAllReduce(numbers, numbers, COUNT, tuttiInt32, tuttiSum, member->comm,
                                     NULL));
    member_meet(member);
    if (member->rank == 0) {
        take_traffic(bytes);
        judge(member, machine, explanation.algorithm, bytes);
    }
    member_meet(member);
    numbers_expect(member, numbers, COUNT, member->nranks * (member->nranks - 1) / 2,
                   member->nranks, "the sum");
    numbers_drop(member, numbers, COUNT);
}

/* ---- other ways ------------------------------------------------------------------------------ */

/* Writes the time that the simulator gives for the call, on the machine that tutti-sim makes. */
static void simulate(const struct loads *loads, const struct machine *machine, char text[32])
{
    int length = (int)strcspn(machine->algorithm, "/");
    struct tutti_sim_report report;
    struct stage stage = {.machine = NULL};
    char name[32];

    snprintf(name, sizeof name, "%.*s", length, machine->algorithm);
    assert_int_equal(topo_machine_make(loads->paths, &stage.machine), TUTTI_OK);
    stage_play(&stage, TUTTI_ALLREDUCE, name, COUNT * sizeof(int32_t), &report);
    snprintf(text, 32, "%.0f us", 1e6 * report.seconds);
    tutti_sim_report_fini(&report);
    stage_close(&stage);
}

/* Adds what an all-reduce puts on the links along the rings, of which each has an equal part. */
static void load_rings(struct loads *loads, const struct recording *rings, int ndevices)
{
    double size_bytes = COUNT * sizeof(int32_t);
    double hop_bytes = 2.0 * (ndevices - 1) / ndevices * size_bytes / rings->nrings;

    for (int ring = 0; ring < rings->nrings; ring++)
        for (int i = 0; i < ndevices; i++)
            load_pair(loads, rings->order[ring][i], rings->order[ring][(i + 1) % ndevices],
                      hop_bytes);
}

/* Fails unless the machine's row in the second table is what the simulator and NCCL's rings give. */
static void compare(const struct machine *machine)
{
    const char *source = "no recording";
    char simulated[32], link[80] = "-", time[32] = "-", row[256];
    struct loads loads;

    loads_open(machine->xml, &loads);
    simulate(&loads, machine, simulated);
    if (machine->nccl != NULL) {
        load_rings(&loads, machine->nccl, machine->ndevices);
        source = machine->nccl->source;
        snprintf(time, sizeof time, "%.0f us", 1e6 * tell_busiest(&loads, link));
    }
    snprintf(row, sizeof row, "| %s | %s | %s | %s | %s |", machine->name, simulated, source,
             link, time);
    if (!has_row("2", row))
        fail_msg("docs/gpu.md lacks the row: %s", row);
    loads_close(&loads);
}

/* ---- machines -------------------------------------------------------------------------------- */

/* Removes an NVLink between the first gpu and another one, at both ends. */
static void break_link(struct tutti_inventory *inventory)
{
    uint32_t link =
        tutti_inventory_next_of(inventory, TUTTI_NO_DEVICE, TUTTI_DEVICE_NVLINK);
    int64_t target = tutti_device_number(inventory, link, TUTTI_PROPERTY_TARGET, 0);
    uint32_t pci = tutti_inventory_above(inventory, link, TUTTI_DEVICE_PCI);
    int64_t own = tutti_device_number(inventory, pci, TUTTI_PROPERTY_BUSID, 0);
    uint32_t other = TUTTI_NO_DEVICE;

    tutti_inventory_remove(inventory, link);
    while ((other = tutti_inventory_next_of(inventory, other, TUTTI_DEVICE_NVLINK)) !=
           TUTTI_NO_DEVICE) {
        uint32_t end = tutti_inventory_above(inventory, other, TUTTI_DEVICE_PCI);

        if (tutti_device_number(inventory, other, TUTTI_PROPERTY_TARGET, 0) == own &&
            tutti_device_number(inventory, end, TUTTI_PROPERTY_BUSID, 0) == target)
            break;
    }
    assert_int_not_equal(other, TUTTI_NO_DEVICE);
    tutti_inventory_remove(inventory, other);
}

/* Writes the machine into a file, for the simulated driver and for the library. */
static void write_machine(struct machine *machine)
{
    struct tutti_inventory *inventory;
    char *text;
    int file;

    snprintf(machine->xml, sizeof machine->xml, "/tmp/tutti_links_XXXXXX");
    file = mkstemp(machine->xml);
    assert_true(file >= 0);
    assert_int_equal(tutti_formats_load(machine->from, &inventory), TUTTI_OK);
    if (machine->has_lost_link)
        break_link(inventory);
    assert_int_equal(tutti_xml_write_nccl(inventory, &text), TUTTI_OK);
    assert_int_equal(write(file, text, strlen(text)), strlen(text));
    close(file);
    free(text);
    tutti_inventory_destroy(inventory);
}

static void run_on(struct machine machine)
{
    write_machine(&machine);
    setenv("TUTTI_SIM_TOPOLOGY", machine.xml, 1);
    setenv("TUTTI_TOPO_FILE", machine.xml, 1);
    setenv("SIMCUDA_TRAFFIC", "1", 1);
    setenv("TUTTI_GPU_MEMORY_BYTES", "64M", 1); /* the default, which decides the size of slots */
    gpus_use(machine.ndevices, -1, GPU_MEMORY_PLAIN);
    world_run(LAUNCH_THREADS, machine.nranks, sum, &machine);
    compare(&machine);
    unlink(machine.xml);
}

/* NCCL 2.29 on a node of Perlmutter: two channels along each of these rings. */
static const struct recording mesh = {
    "6, from its search", 6, {{0, 3, 2, 1}, {0, 3, 1, 2}, {0, 2, 1, 3}, {0, 2, 3, 1},
                              {0, 1, 3, 2}, {0, 1, 2, 3}}};

/* The graph file that Azure gives to users of its machines with 4 A100 and two NVLink pairs. */
static const struct recording pairs = {
    "2, from the cloud's graph file", 2, {{0, 1, 2, 3}, {0, 3, 2, 1}}};

/* A log in issue 307 of nccl-tests. There NCCL went through host memory. */
static const struct recording sockets = {"1, from its search", 1, {{0, 1, 2, 3, 4, 5, 6, 7}}};

static void links_are_loaded_as_claimed(void **state)
{
    static const struct machine machines[] = {
        {"DGX-1, 8 V100", "dgx-1v", 8, 8, "multi_ring", true, false, NULL, ""},
        {"DGX-1, one NVLink broken", "dgx-1v", 8, 8, "multi_ring", true, true, NULL, ""},
        {"4 A100 in two NVLink pairs", "4xa100-pcie", 4, 4, "multi_ring", false, false, &pairs, ""},
        {"4 A100, each joined to each", "4xa100-mesh", 4, 4, "mapped/direct", true, false, &mesh,
         ""},
        {"8 RTX 4090 on two sockets", "8xrtx4090-pcie", 8, 8, "multi_ring", false, false, &sockets,
         ""},
        {"DGX-2, 16 V100", "dgx-2", 16, 16, "mapped/direct", true, false, NULL, ""},
        {"HGX H100, 8 GPUs", "dgx-h100", 8, 8, "mapped/direct", true, false, NULL, ""},
        {"GB200, two trays of a rack",
         "2 hosts: 4 gpus gb200 nvswitch 18 fabric 1 c2c 225GB/s, 4 nics 400G rails, "
         "2 cpus grace cores 72", 8, 8, "mapped/direct", true, false, NULL, ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof machines / sizeof machines[0]; i++)
        run_on(machines[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(links_are_loaded_as_claimed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
