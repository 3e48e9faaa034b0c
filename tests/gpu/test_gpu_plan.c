/* SPDX-License-Identifier: Apache-2.0
 * Communicators on GPUs know the links of their host: from a description that the user gives, which
 * may differ from rank to rank, and after a split. Wrong descriptions are refused, and a host that
 * cannot be described still works. */
#include "gpu/ranks.h"
#include "support/stderr_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { COUNT = 3000 };

static const char found[] = "GPUs of 1 host: ";

static tuttiResult_t sum_on(struct rank *rank, tuttiComm_t comm, int nranks)
{
    static const int32_t first = 7;
    int32_t numbers[COUNT];
    tuttiResult_t result;

    for (int i = 0; i < COUNT; i++)
        numbers[i] = first + i;
    upload(rank, numbers, sizeof numbers);
    result = tuttiAllReduce(rank->numbers, rank->numbers, COUNT, tuttiInt32, tuttiSum, comm, NULL);
    must(driver()->copy((uintptr_t)numbers, (uintptr_t)rank->numbers, sizeof numbers));
    for (int i = 0; result == tuttiSuccess && i < COUNT; i++)
        if (numbers[i] != nranks * (first + i))
            return tuttiInternalError;
    return result;
}

static tuttiResult_t sum(struct rank *rank)
{
    return sum_on(rank, rank->seat->comm, NRANKS);
}

/* Ranks 0 and 2 are a communicator of their own, too. */
static tuttiResult_t sum_and_split(struct rank *rank)
{
    int me = rank->seat->rank;
    tuttiComm_t child;
    tuttiResult_t result = sum(rank);

    if (result == tuttiSuccess)
        result = tuttiCommSplit(rank->seat->comm, me % 2, me, &child, NULL);
    if (result == tuttiSuccess && me % 2 == 0)
        result = sum_on(rank, child, 2);
    if (result == tuttiSuccess)
        result = tuttiCommDestroy(child);
    return result;
}

static const char *const mesh[] = {"TUTTI_SIM_TOPOLOGY", SIM_TOPOLOGIES "/mesh-4.xml",
                                   "TUTTI_TOPO_FILE", SIM_TOPOLOGIES "/mesh-4.xml",
                                   "TUTTI_DEBUG", "info", NULL};

static void links_are_known_and_a_split_searches_anew(void **state)
{
    const struct script script = {sum_and_split, 0, COUNT, NULL};

    (void)state;
    for (int is_threads = 0; is_threads < 2; is_threads++)
        /* Of three ranks, and of the two of the split. The rank that is left is alone. */
        assert_int_equal(count_lines_with(play_aloud(&script, is_threads, mesh), found), 2);
}

/* An NVSwitch joins the two hosts, but data between them goes through ports of 48 GB/s. */
static void nvlinks_between_hosts_are_not_counted(void **state)
{
    static const char *const environment[] = {
        "TUTTI_SIM_TOPOLOGY", SIM_TOPOLOGIES "/tray-gb200.xml", "TUTTI_TOPO_FILE",
        SIM_TOPOLOGIES "/tray-gb200.xml", "TEST_HOSTS", "2", "TUTTI_DEBUG", "info", NULL};
    const struct script script = {sum, 0, COUNT, NULL};
    const char *said = play_aloud(&script, false, environment);

    (void)state;
    assert_int_equal(count_lines_with(said, "GPUs of 2 hosts: 1 rings of 48.0 GB/s together"), 1);
}

/* ---- descriptions that differ ---------------------------------------------------------------- */

static char other_file[] = "/tmp/tutti_mesh_XXXXXX";

/* Rank 1 describes the host by another file. */
static void describe_otherwise(struct rank *rank)
{
    if (rank->seat->rank == 1)
        setenv("TUTTI_TOPO_FILE", other_file, 1);
}

/* Writes the file of the mesh with another width of PCIe. */
static void write_other_file(void)
{
    FILE *from = fopen(SIM_TOPOLOGIES "/mesh-4.xml", "re");
    int file = mkstemp(other_file);
    char line[1024];

    assert_true(from != NULL && file >= 0);
    while (fgets(line, sizeof line, from) != NULL) {
        char *width = strstr(line, "link_width=\"16\"");

        if (width != NULL)
            memcpy(width, "link_width=\"08\"", 15);
        assert_int_equal(write(file, line, strlen(line)), strlen(line));
    }
    fclose(from);
    close(file);
}

static void descriptions_of_one_host_are_merged(void **state)
{
    const struct script script = {sum, 0, COUNT, describe_otherwise};

    (void)state;
    write_other_file();
    assert_int_equal(count_lines_with(play_aloud(&script, false, mesh), found), 1);
    unlink(other_file);
}

/* ---- what is wrong --------------------------------------------------------------------------- */

/* All ranks refuse the file. */
static void expect_refusal(const char *file, const char *said)
{
    const char *environment[] = {"TUTTI_TOPO_FILE", file, NULL};
    const struct script script = {sum, 0, COUNT, NULL};
    struct crew_board *board = play(&script, false, LONG_MS, environment);

    for (int rank = 0; rank < NRANKS; rank++)
        expect_report(board, rank, tuttiInvalidUsage, said);
    crew_clear(board);
}

static void wrong_descriptions_are_refused(void **state)
{
    (void)state;
    expect_refusal("/nowhere/to/be.xml", "TUTTI_TOPO_FILE on rank ");
    expect_refusal("-", "ranks do not read standard input");
    expect_refusal("1 cpu", "is not in the description of its host");
    expect_refusal("3 gpus of nothing", "TUTTI_TOPO_FILE on rank ");
}

static void hosts_that_cannot_be_described_work(void **state)
{
    static const char *const environment[] = {"TUTTI_DEBUG", "info", NULL};
    const struct script script = {sum, 0, COUNT, NULL};
    const char *said;

    (void)state;
    for (int is_threads = 0; is_threads < 2; is_threads++) {
        said = play_aloud(&script, is_threads, environment);
        assert_int_equal(count_lines_with(said, found), 0);
        assert_int_equal(count_lines_with(said, "the links between GPUs are not known"), 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(links_are_known_and_a_split_searches_anew),
        cmocka_unit_test(nvlinks_between_hosts_are_not_counted),
        cmocka_unit_test(descriptions_of_one_host_are_merged),
        cmocka_unit_test(wrong_descriptions_are_refused),
        cmocka_unit_test(hosts_that_cannot_be_described_work),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
