/* SPDX-License-Identifier: Apache-2.0
 * On simulated hosts with several GPUs and ports each, a large all-reduce leaves the hosts by all
 * ports. Each rank's proxy logs the bytes that it has sent. The second table in docs/gpu.md has
 * these figures; with LINKS_TABLE set, the test prints its rows. */
#include "gpu/numbers.h"

#include "base/result.h"
#include "topology/formats/load.h"
#include "topology/formats/nccl_xml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { COUNT = 1 << 20, RANKS = 16 }; /* int32: 4 MiB */

struct cluster {
    const char *name, *from; /* in the table; a host, as tutti-topo --from takes it */
    const char *hosts;       /* TEST_HOSTS */
    int nranks, nfirst;      /* ranks; those of the first host */
    double most_over_least;  /* of the bytes that ports send */
    char directory[48], xml[64], log[64];
};

/* ---- what was sent --------------------------------------------------------------------------- */

/* Reads from the log how many bytes each rank has sent to other hosts, and by which algorithm. */
static void read_log(const struct cluster *cluster, double ret_bytes[RANKS],
                     char ret_algorithm[64])
{
    static const char runs_by[] = " runs by ", has_sent[] = " has sent ", rank_is[] = ": rank ";
    char line[1024];
    FILE *log = fopen(cluster->log, "re");

    if (log == NULL)
        fail_msg("there is no log %s", cluster->log);
    while (fgets(line, sizeof line, log) != NULL) {
        const char *sent = strstr(line, has_sent), *rank = strstr(line, rank_is);
        const char *by = strstr(line, runs_by);

        if (sent != NULL && rank != NULL)
            ret_bytes[atoi(rank + strlen(rank_is)) % RANKS] +=
                strtod(sent + strlen(has_sent), NULL);
        if (by != NULL && strstr(line, "allreduce of ") != NULL)
            sscanf(by + strlen(runs_by), "%63[a-z_]", ret_algorithm);
    }
    fclose(log);
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

/* Finds the least and the most bytes that ranks have sent, and fails unless the table says so. */
static void judge(const struct cluster *cluster)
{
    double bytes[RANKS] = {0}, least = 1e18, most = 0, first = 0, second = 0;
    char algorithm[64] = "", row[256];

    read_log(cluster, bytes, algorithm);
    for (int rank = 0; rank < cluster->nranks; rank++) {
        least = bytes[rank] < least ? bytes[rank] : least;
        most = bytes[rank] > most ? bytes[rank] : most;
        *(rank < cluster->nfirst ? &first : &second) += bytes[rank];
    }
    snprintf(row, sizeof row, "| %s | `%s` | %.2f MB, %.2f MB | %.2f MB | %.2f MB |",
             cluster->name, algorithm, first / 1e6, second / 1e6, least / 1e6, most / 1e6);
    if (getenv("LINKS_TABLE") != NULL)
        fprintf(stderr, "%s\n", row);
    else if (!is_in_page(row))
        fail_msg("docs/gpu.md lacks the row: %s", row);
    if (most > cluster->most_over_least * least)
        fail_msg("%s: ports send %.0f to %.0f bytes", cluster->name, least, most);
    /* Each half of the ranks must give the other the sum of its inputs, and hardly more. */
    if (first < COUNT * sizeof(int32_t) || first > 1.05 * COUNT * sizeof(int32_t))
        fail_msg("%s: the first host sends %.0f bytes", cluster->name, first);
}

/* ---- the call -------------------------------------------------------------------------------- */

static void sum(struct member *member)
{
    int32_t *numbers = numbers_make(member, COUNT, member->rank, 1);

    EXPECT_OK(member, tuttiAllReduce(numbers, numbers, COUNT, tuttiInt32, tuttiSum, member->comm,
                                     NULL));
    numbers_expect(member, numbers, COUNT, member->nranks * (member->nranks - 1) / 2,
                   member->nranks, "the sum");
    numbers_drop(member, numbers, COUNT);
}

static void write_host(struct cluster *cluster)
{
    struct tutti_inventory *inventory;
    char *text;
    FILE *file;

    snprintf(cluster->directory, sizeof cluster->directory, "/tmp/tutti_rails_XXXXXX");
    assert_non_null(mkdtemp(cluster->directory));
    snprintf(cluster->xml, sizeof cluster->xml, "%s/host.xml", cluster->directory);
    assert_int_equal(tutti_formats_load(cluster->from, &inventory), TUTTI_OK);
    assert_int_equal(tutti_xml_write_nccl(inventory, &text), TUTTI_OK);
    file = fopen(cluster->xml, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    fclose(file);
    free(text);
    tutti_inventory_destroy(inventory);
}

static void run_on(struct cluster cluster)
{
    write_host(&cluster);
    snprintf(cluster.log, sizeof cluster.log, "%s/log", cluster.directory);
    setenv("TUTTI_SIM_TOPOLOGY", cluster.xml, 1);
    setenv("TUTTI_TOPO_FILE", cluster.xml, 1);
    setenv("TEST_HOSTS", cluster.hosts, 1);
    setenv("TUTTI_DEBUG", "debug", 1);
    setenv("TUTTI_DEBUG_FILE", cluster.log, 1);
    gpus_use(8, -1, GPU_MEMORY_PLAIN);
    world_run(LAUNCH_PROCESSES, cluster.nranks, sum, &cluster);
    judge(&cluster);
    unlink(cluster.xml);
    unlink(cluster.log);
    rmdir(cluster.directory);
}

static void hosts_are_left_by_all_ports(void **state)
{
    static const struct cluster clusters[] = {
        {"2 x 8 H100, 8 ports each", "dgx-h100", "2", RANKS, 8, 1.05, "", "", ""},
        {"3 and 5 H100 of two hosts", "dgx-h100", "3+5", 8, 3, 3, "", "", ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof clusters / sizeof clusters[0]; i++)
        run_on(clusters[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_are_left_by_all_ports),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
