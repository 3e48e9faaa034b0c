/* SPDX-License-Identifier: Apache-2.0
 * tuttiCommTune measures calls on the memory of GPUs, and they use its choices from then on. Ranks
 * whose kernels do not reach each other are told so, and stay usable. */
#include "gpu/ranks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { COUNT = 4096 };

/* Checks the sum of the inputs of all ranks. */
static tuttiResult_t sum(struct rank *rank)
{
    int32_t numbers[COUNT];
    tuttiResult_t result;

    for (int i = 0; i < COUNT; i++)
        numbers[i] = rank->seat->rank + i;
    upload(rank, numbers, sizeof numbers);
    result = tuttiAllReduce(rank->numbers, rank->numbers, COUNT, tuttiInt32, tuttiSum,
                            rank->seat->comm, NULL);
    must(driver()->copy((uintptr_t)numbers, (uintptr_t)rank->numbers, sizeof numbers));
    for (int i = 0; result == tuttiSuccess && i < COUNT; i++)
        if (numbers[i] != NRANKS * (NRANKS - 1) / 2 + NRANKS * i)
            return tuttiInternalError;
    return result;
}

static tuttiTuneConfig_t small_order(void)
{
    tuttiTuneConfig_t config = TUTTI_TUNE_CONFIG_INITIALIZER;

    config.collectives = "allreduce";
    config.minBytes = COUNT * sizeof(int32_t);
    config.maxBytes = COUNT * sizeof(int32_t);
    config.budgetMs = 2000;
    config.onDevice = 1;
    return config;
}

static bool is_by_table(struct rank *rank, const char *collective, const void *buffer)
{
    tuttiExplanation_t explanation = {.size = sizeof explanation};

    if (tuttiCommExplain(rank->seat->comm, collective, buffer, COUNT, tuttiInt32, tuttiSum, 0,
                         &explanation) != tuttiSuccess)
        _exit(8);
    return strncmp(explanation.reason, "by TUTTI_TUNE_TABLE", 19) == 0;
}

/* The choices are those of calls on device memory, and of the collectives that were tuned. */
static tuttiResult_t tune_and_sum(struct rank *rank)
{
    const tuttiTuneConfig_t config = small_order();
    tuttiResult_t result = tuttiCommTune(rank->seat->comm, NULL, &config);
    int on_host;

    if (result == tuttiSuccess &&
        (!is_by_table(rank, "allreduce", rank->numbers) ||
         is_by_table(rank, "allgather", rank->numbers) ||
         is_by_table(rank, "allreduce", &on_host)))
        return tuttiInternalError;
    return result == tuttiSuccess ? sum(rank) : result;
}

static void calls_use_what_was_measured(void **state)
{
    const struct script script = {tune_and_sum, 0, COUNT, NULL};

    (void)state;
    for (int is_threads = 0; is_threads < 2; is_threads++) {
        struct crew_board *board = play(&script, is_threads, LONG_MS, (const char *const[]){NULL});

        for (int rank = 0; rank < NRANKS; rank++)
            expect_report(board, rank, tuttiSuccess, "");
        crew_clear(board);
    }
}

/* ---- tables in files ------------------------------------------------------------------------- */

static char table_path[] = "/tmp/tutti-table-XXXXXX";

static tuttiResult_t tune_into_file(struct rank *rank)
{
    const tuttiTuneConfig_t config = small_order();

    return tuttiCommTune(rank->seat->comm, table_path, &config);
}

static tuttiResult_t expect_table(struct rank *rank)
{
    return is_by_table(rank, "allreduce", rank->numbers) ? sum(rank) : tuttiInternalError;
}

static tuttiResult_t expect_no_table(struct rank *rank)
{
    return is_by_table(rank, "allreduce", rank->numbers) ? tuttiInternalError : sum(rank);
}

/* Runs on a simulated machine. */
static void run(tuttiResult_t (*function)(struct rank *rank), const char *machine,
                const char *table)
{
    const struct script script = {function, 0, COUNT, NULL};
    struct crew_board *board = play(
        &script, 0, LONG_MS,
        (const char *const[]){"TUTTI_SIM_TOPOLOGY", machine, "TUTTI_TOPO_FILE", machine,
                              table != NULL ? "TUTTI_TUNE_TABLE" : NULL, table, NULL});

    for (int rank = 0; rank < NRANKS; rank++)
        expect_report(board, rank, tuttiSuccess, "");
    crew_clear(board);
}

static void a_table_is_of_one_kind_of_hosts(void **state)
{
    static const char mesh[] = SIM_TOPOLOGIES "/mesh-4.xml";
    static const char cliques[] = SIM_TOPOLOGIES "/cliques-4.xml";
    int fd = mkstemp(table_path);

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    run(tune_into_file, mesh, NULL);
    run(expect_table, mesh, table_path);
    run(expect_no_table, cliques, table_path);
    unlink(table_path);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static tuttiResult_t try_to_tune(struct rank *rank)
{
    const tuttiTuneConfig_t config = small_order();

    if (tuttiCommTune(rank->seat->comm, NULL, &config) != tuttiInvalidUsage ||
        strstr(tuttiGetLastError(rank->seat->comm), "config.onDevice") == NULL)
        return tuttiInternalError;
    return sum(rank);
}

static tuttiResult_t tune_on_device_two(struct rank *rank)
{
    tuttiTuneConfig_t config = small_order();

    config.onDevice = 2;
    if (tuttiCommTune(rank->seat->comm, NULL, &config) != tuttiInvalidArgument)
        return tuttiInternalError;
    return sum(rank);
}

static void ranks_that_cannot_tune_on_gpus_stay_usable(void **state)
{
    static const char *const without_kernels[] = {"TUTTI_CUDA_KERNELS", "/dev/null", NULL};
    static const char *const nothing[] = {NULL};
    const struct script scripts[] = {{try_to_tune, 0, COUNT, NULL},
                                     {tune_on_device_two, 0, COUNT, NULL}};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct crew_board *board =
            play(&scripts[i], false, LONG_MS, i == 0 ? without_kernels : nothing);

        for (int rank = 0; rank < NRANKS; rank++)
            expect_report(board, rank, tuttiSuccess, "");
        crew_clear(board);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_use_what_was_measured),
        cmocka_unit_test(a_table_is_of_one_kind_of_hosts),
        cmocka_unit_test(ranks_that_cannot_tune_on_gpus_stay_usable),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
