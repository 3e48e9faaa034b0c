/* SPDX-License-Identifier: Apache-2.0
 * Measures what the plan of a communicator costs each rank: the time from the records of all ranks
 * to the rings and trees, and the memory that this takes at most. It prints the times, which are
 * those of this machine, and checks the memory and that the plan is whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/result.h"
#include "device/cuda/work.h"
#include "topology/cluster/cluster.h"
#include "topology/formats/load.h"

enum { MOST_BYTES = 64 << 20 };

/* ---- the records of all ranks ---------------------------------------------------------------- */

/* The ranks of `nhosts` hosts that `line` describes, one on each GPU. */
struct crew {
    struct tutti_cluster_record *records;
    char *text; /* of all hosts */
    uint32_t nranks;
};

/* Returns the bus id of the GPU that follows `gpu`, which is updated; false: there is none. */
static bool next_gpu(const struct tutti_inventory *inventory, uint32_t *gpu, int64_t *ret_busid)
{
    *gpu = tutti_inventory_next_of(inventory, *gpu, TUTTI_DEVICE_GPU);
    if (*gpu == TUTTI_NO_DEVICE)
        return false;
    *ret_busid = tutti_device_number(inventory, inventory->devices[*gpu].parent,
                                     TUTTI_PROPERTY_BUSID, 0);
    return true;
}

static struct crew make_crew(const char *line, uint32_t nhosts)
{
    struct crew crew = {.records = NULL};
    struct tutti_inventory *inventory;
    uint32_t gpu = TUTTI_NO_DEVICE, ngpus = 0;
    int64_t busid;

    if (tutti_formats_load(line, &inventory) != 0)
        fail_msg("%s: %s", line, tutti_message_last());
    while (next_gpu(inventory, &gpu, &busid)) {
        crew.records = realloc(crew.records, (ngpus + 1) * nhosts * sizeof *crew.records);
        assert_non_null(crew.records);
        free(crew.text);
        assert_int_equal(tutti_cluster_describe(inventory, 1, busid, &crew.records[ngpus],
                                                &crew.text), TUTTI_OK);
        ngpus++;
    }
    tutti_inventory_destroy(inventory);
    crew.nranks = ngpus * nhosts;
    for (uint32_t rank = ngpus; rank < crew.nranks; rank++) {
        crew.records[rank] = crew.records[rank % ngpus];
        crew.records[rank].host = 1 + rank / ngpus;
    }
    return crew;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* The resident memory of this process at its largest, in bytes. */
static size_t peak_bytes(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    unsigned long kib = 0;
    char line[256];

    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "VmHWM: %lu", &kib) == 1)
            break;
    fclose(file);
    return (size_t)kib << 10;
}

/* ---- a plan ---------------------------------------------------------------------------------- */

/* Does at least what a rank does in src/gpu/plan.c. There, more ranks than a domain has, on several
 * hosts, search no rings, and have no machine. Here they search. */
static void make_plan(const struct crew *crew)
{
    struct tutti_cluster_orders orders;
    struct tutti_machine *machine = NULL;
    struct tutti_cluster *cluster;

    assert_int_equal(tutti_cluster_open(crew->records, crew->nranks, &cluster), TUTTI_OK);
    assert_int_equal(cluster->ntexts, 1);
    assert_int_equal(tutti_cluster_put(cluster, 0, crew->text, strlen(crew->text)), TUTTI_OK);
    assert_int_equal(tutti_cluster_build(cluster), TUTTI_OK);
    assert_int_equal(tutti_cluster_search(cluster, 0, &orders), TUTTI_OK);
    assert_true(orders.places.nrings > 0 && orders.places.ntrees > 0);
    if (crew->nranks <= TUTTI_KERNEL_RANKS)
        assert_int_equal(tutti_cluster_machine(cluster, &orders, &machine), TUTTI_OK);
    tutti_machine_destroy(machine);
    tutti_cluster_orders_fini(&orders);
    tutti_cluster_destroy(cluster);
}

/* In a process of its own, because only the first plan of a process shows its whole memory. */
static void measure(const char *line, uint32_t nhosts)
{
    struct crew crew = make_crew(line, nhosts);
    size_t before, taken;
    uint64_t start_ns;

#ifdef __GLIBC__
    malloc_trim(0); /* the plan must not use what the crew has left */
#endif
    before = peak_bytes();
    start_ns = tutti_now_ns();
    make_plan(&crew);
    start_ns = tutti_now_ns() - start_ns;
    taken = peak_bytes() - before;
    print_message("%5u x %-40s %6u ranks %8.1f ms %6.1f MB\n", nhosts, line, crew.nranks,
                  (double)start_ns / 1e6, (double)taken / 1e6);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    assert_true(taken <= MOST_BYTES);
#endif
    free(crew.records);
    free(crew.text);
}

static void plans_take_little_memory(void **state)
{
    static const struct {
        const char *line;
        uint32_t nhosts;
    } cases[] = {
        {"dgx-1v", 1}, {"dgx-2", 1}, {"dgx-h100", 1}, {"8 gpus rtx4090 pcie, 2 cpus", 1},
        {"4 gpus a100 mesh 4, 4 nics 200G, 1 cpu", 1}, {"dgx-h100", 8}, {"dgx-1v", 8},
        {"dgx-h100", 2048}, {"dgx-1v", 2048},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int status;
        pid_t child = fork();

        assert_true(child >= 0);
        if (child == 0) {
            measure(cases[i].line, cases[i].nhosts);
            fflush(NULL);
            _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_take_little_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
