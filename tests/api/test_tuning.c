/* SPDX-License-Identifier: Apache-2.0
 * Tunes a communicator. The arguments of rank 0 apply to all ranks, and measurements are used and
 * stored. */
#include "tune/tune.h"
#include "fault/crew.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The algorithm by which the communicator would run the collective. */
static void chosen(tuttiComm_t handle, enum tutti_collective collective, size_t bytes,
                   char text[64])
{
    struct tutti_tuner_query query = {.collective = collective, .block_bytes = bytes};
    enum tutti_authority by;
    struct tutti_choice choice;
    struct tutti_comm *comm = crew_look_inside(handle);

    snprintf(text, 64, "nothing");
    if (comm != NULL &&
        tutti_tuner_choose(&comm->view, &query, &choice, &by) == TUTTI_OK)
        snprintf(text, 64, "%s %u %d", choice.algorithm->name,
                 choice.options.value[TUTTI_DOUBLINGS], (int)by);
}

/* All ranks make the same choice, and the result is right. */
static tuttiResult_t all_agree(tuttiComm_t comm, int nranks)
{
    static const size_t counts[] = {1, 3000, 200000};
    float *vector = malloc(200000 * sizeof *vector);
    char mine[64], *all = malloc(64 * (size_t)nranks);
    tuttiResult_t result = tuttiSuccess;

    for (size_t i = 0; i < 3 && result == tuttiSuccess; i++) {
        for (size_t k = 0; k < counts[i]; k++)
            vector[k] = 1;
        result = tuttiAllReduce(vector, vector, counts[i], tuttiFloat32, tuttiSum, comm, NULL);
        if (result == tuttiSuccess &&
            (vector[0] != (float)nranks || vector[counts[i] - 1] != (float)nranks))
            result = tuttiInternalError;
        chosen(comm, TUTTI_ALLREDUCE, counts[i] * sizeof *vector, mine);
        if (result == tuttiSuccess)
            result = tuttiAllGather(mine, all, sizeof mine, tuttiChar, comm, NULL);
        for (int rank = 0; rank < nranks && result == tuttiSuccess; rank++)
            if (memcmp(all + 64 * rank, mine, strlen(mine) + 1) != 0)
                result = tuttiInternalError;
    }
    free(vector);
    free(all);
    return result;
}

static void check_all(struct crew_board *board, int nranks, tuttiResult_t expected,
                      const char *word)
{
    for (int rank = 0; rank < nranks; rank++) {
        const struct crew_report *report = &board->reports[rank];

        if (report->result != expected || strstr(report->text, word) == NULL ||
            strchr(report->text, '\n') != NULL)
            fail_msg("rank %d got %d: %s", rank, (int)report->result, report->text);
    }
    crew_clear(board);
}

static const char *const by_tcp[] = {"TUTTI_TRANSPORTS", "tcp", NULL};
static const char *const by_memory[] = {"TUTTI_TRANSPORTS", "shm", NULL};
static const char *const *const ways[] = {by_tcp, by_memory};

/* ---- environments that differ -------------------------------------------------------------- */

/* NAME and value of rank 0, NAME and value of the others, and the choice of all ranks. */
struct difference {
    const char *first[2], *others[2];
    const char *choice; /* of an all-reduce of 4 KiB; NULL: the same as without any variable */
};

static tuttiResult_t form(struct crew_seat *seat)
{
    tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;

    config.initTimeoutMs = 20000;
    return tuttiCommInitRankConfig(&seat->comm, seat->nranks, crew_share_id(seat), seat->rank,
                                   &config);
}

static tuttiResult_t form_and_agree(struct crew_seat *seat)
{
    const struct difference *difference = seat->crew->context;
    const char *const *mine = seat->rank == 0 ? difference->first : difference->others;
    tuttiResult_t result;
    tuttiComm_t child;
    char text[64];

    if (mine[0] != NULL)
        setenv(mine[0], mine[1], 1);
    result = form(seat);
    if (result == tuttiSuccess)
        result = all_agree(seat->comm, seat->nranks);
    if (result != tuttiSuccess)
        return result;
    chosen(seat->comm, TUTTI_ALLREDUCE, 4096, text);
    if (difference->choice != NULL && strcmp(text, difference->choice) != 0)
        return tuttiInternalError;

    /* A split has its parent's policy, whoever is its rank 0. */
    result = tuttiCommSplit(seat->comm, 0, -seat->rank, &child, NULL);
    if (result == tuttiSuccess)
        result = all_agree(child, seat->nranks);
    chosen(child, TUTTI_ALLREDUCE, 4096, text);
    if (result == tuttiSuccess && difference->choice != NULL &&
        strcmp(text, difference->choice) != 0)
        result = tuttiInternalError;
    tuttiCommDestroy(child);
    return result;
}

static void the_environment_of_rank_0_counts(void **state)
{
    static const struct difference differences[] = {
        {{"TUTTI_ALGORITHM", "allreduce:ring"}, {NULL}, "ring 0 0"},
        {{"TUTTI_ALGORITHM", "allreduce:hybrid[doublings=1]"},
         {"TUTTI_ALGORITHM", "allreduce:ring"}, "hybrid 1 0"},
        {{NULL}, {"TUTTI_ALGORITHM", "allreduce:ring"}, NULL},
        {{NULL}, {"TUTTI_ALGORITHM", "no sense at all"}, NULL},
        {{"TUTTI_TUNE", "allreduce 0-8K swing; allreduce pat"}, {"TUTTI_TUNE", "/no/such/file"},
         "swing 0 1"},
        {{NULL}, {"TUTTI_TUNE", "allreduce ring"}, NULL},
        {{"TUTTI_MACHINE", "ethernet"}, {"TUTTI_MACHINE", "flat"}, NULL},
        /* Its links are those of these ranks: a split has none. */
        {{"TUTTI_MACHINE", "level top bandwidth 9GB/s; link 9GB/s; path 0 1 via 0; path 2 1 via 0"},
         {NULL}, NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof differences / sizeof *differences; i++)
        for (size_t way = 0; way < 2; way++)
            check_all(crew_run(&(struct crew){.nranks = 3, .forms_itself = true,
                                              .environment = ways[way], .timeout_ms = 30000,
                                              .run = form_and_agree,
                                              .context = &differences[i]}),
                      3, tuttiSuccess, "");
}

static void what_rank_0_gets_wrong_is_told_to_all(void **state)
{
    static const struct {
        struct difference difference;
        const char *word;
    } cases[] = {
        {{{"TUTTI_ALGORITHM", "allreduce:nonesuch"}, {NULL}, NULL}, "nonesuch"},
        {{{"TUTTI_TUNE", "allreduce 9-8 ring"}, {NULL}, NULL}, "rank 0: TUTTI_TUNE:1:11: "},
        {{{"TUTTI_TUNE", "/no/such/rules"}, {NULL}, NULL}, "/no/such/rules"},
        {{{"TUTTI_TUNE_TABLE", "/no/such/table"}, {NULL}, NULL}, "/no/such/table"},
        {{{"TUTTI_MACHINE", "nonesuch"}, {NULL}, NULL}, "rank 0: TUTTI_MACHINE: "},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t way = 0; way < 2; way++)
            check_all(crew_run(&(struct crew){.nranks = 3, .forms_itself = true,
                                              .environment = ways[way], .run = form_and_agree,
                                              .context = &cases[i].difference}),
                      3, tuttiInvalidUsage, cases[i].word);
}

/* ---- places -------------------------------------------------------------------------------- */

static tuttiResult_t look_at_places(struct crew_seat *seat)
{
    struct tutti_comm *comm;
    char host[16];

    snprintf(host, sizeof host, "host %d", seat->rank % 2);
    setenv("TUTTI_HOST_ID", host, 1);
    if (form(seat) != tuttiSuccess || (comm = crew_look_inside(seat->comm)) == NULL)
        return tuttiInternalError;
    if (comm->places.nnodes != 2 || comm->places.nranks != 5)
        return tuttiInvalidArgument;
    for (uint32_t rank = 0; rank < 5; rank++)
        if (comm->places.node[rank] != rank % 2)
            return tuttiInvalidArgument;
    return all_agree(seat->comm, seat->nranks);
}

static void places_are_the_hosts(void **state)
{
    (void)state;
    check_all(crew_run(&(struct crew){.nranks = 5, .forms_itself = true, .timeout_ms = 30000,
                                      .run = look_at_places}),
              5, tuttiSuccess, "");
}

/* ---- measuring ----------------------------------------------------------------------------- */

/* Where the table goes. */
struct task {
    const char *file;
    bool loads; /* do not measure: the environment names the table */
};

/* The first size of the first collective is measured, however slow the machine is just now. */
static tuttiTuneConfig_t small_order(void)
{
    tuttiTuneConfig_t config = TUTTI_TUNE_CONFIG_INITIALIZER;

    config.collectives = "allreduce,broadcast,barrier";
    config.minBytes = 4096;
    config.maxBytes = 1 << 16;
    config.budgetMs = 2000;
    return config;
}

static tuttiResult_t tune_and_agree(struct crew_seat *seat)
{
    const struct task *task = seat->crew->context;
    tuttiTuneConfig_t config = small_order();
    tuttiResult_t result = tuttiSuccess;
    char text[64];
    size_t length;

    if (task->loads) {
        if (seat->rank == 0)
            setenv("TUTTI_TUNE_TABLE", task->file, 1);
        result = form(seat);
    } else {
        /* The arguments of the others are not looked at. */
        result = tuttiCommTune(seat->comm, seat->rank == 0 ? task->file : "/no/such/file",
                               seat->rank == 0 ? &config : NULL);
    }
    if (result == tuttiSuccess)
        result = all_agree(seat->comm, seat->nranks);
    if (result != tuttiSuccess)
        return result;
    chosen(seat->comm, TUTTI_ALLREDUCE, 4096, text);
    length = strlen(text);
    /* By the table, between the sizes that were measured; not beyond. */
    if (text[length - 1] != '0' + TUTTI_BY_TABLE)
        return tuttiInvalidArgument;
    chosen(seat->comm, TUTTI_ALLREDUCE, 1 << 20, text);
    return text[strlen(text) - 1] != '0' + TUTTI_BY_TABLE ? tuttiSuccess : tuttiInvalidArgument;
}

static void run_task(int nranks, bool is_threads, const char *const *way, const struct task *task)
{
    check_all(crew_run(&(struct crew){.nranks = nranks, .is_threads = is_threads,
                                      .forms_itself = task->loads, .environment = way,
                                      .timeout_ms = 60000, .run = tune_and_agree,
                                      .context = task}),
              nranks, tuttiSuccess, "");
}

static size_t count_lines(const char *path, const char *word)
{
    FILE *file = fopen(path, "r");
    char line[1024];
    size_t count = 0;

    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL)
        count += strncmp(line, word, strlen(word)) == 0;
    fclose(file);
    return count;
}

static void what_was_measured_is_used_and_kept(void **state)
{
    char path[] = "/tmp/tutti-tuning-XXXXXX";
    int fd = mkstemp(path);
    struct task measures = {.file = path}, loads = {.file = path, .loads = true},
                forgets = {.file = NULL};

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    run_task(2, false, by_tcp, &measures);
    run_task(2, false, by_tcp, &loads);
    run_task(3, false, by_memory, &measures);
    run_task(4, true, NULL, &measures);
    assert_int_equal(count_lines(path, "on "), 3);
    assert_int_equal(count_lines(path, "allreduce 4096-"), 3);
    /* A second measurement replaces the first one of this machine. */
    run_task(3, false, by_memory, &measures);
    run_task(3, false, by_memory, &loads);
    run_task(2, false, by_tcp, &loads);
    assert_int_equal(count_lines(path, "on "), 3);
    assert_int_equal(count_lines(path, "allreduce 4096-"), 3);
    run_task(2, false, by_tcp, &forgets);
    unlink(path);
}

/* A table says nothing beyond the greatest size that was measured. */
static tuttiResult_t tune_to_an_odd_size(struct crew_seat *seat)
{
    tuttiTuneConfig_t config = small_order();
    tuttiResult_t result;
    char text[64];

    config.minBytes = config.maxBytes = 24000;
    result = tuttiCommTune(seat->comm, NULL, &config);
    if (result != tuttiSuccess)
        return result;
    chosen(seat->comm, TUTTI_ALLREDUCE, 24000, text);
    if (text[strlen(text) - 1] != '0' + TUTTI_BY_TABLE)
        return tuttiInvalidArgument;
    chosen(seat->comm, TUTTI_ALLREDUCE, 24004, text);
    return text[strlen(text) - 1] != '0' + TUTTI_BY_TABLE ? tuttiSuccess : tuttiInvalidArgument;
}

static void the_greatest_size_is_the_last(void **state)
{
    (void)state;
    check_all(crew_run(&(struct crew){.nranks = 2, .environment = by_memory, .timeout_ms = 60000,
                                      .run = tune_to_an_odd_size}),
              2, tuttiSuccess, "");
}

/* Two ranks: a ring and a circulant all-gather are one exchange. Three: they are not. */
static tuttiResult_t compare_schedules(struct crew_seat *seat)
{
    static const char *const names[] = {"circulant", "ring", "direct", "circulant"};
    uint32_t twins[4], ring = seat->nranks == 2 ? 0 : 1;
    struct tutti_choice choices[4];
    struct tutti_comm *comm;

    comm = crew_look_inside(seat->comm);
    if (comm == NULL)
        return tuttiInternalError;
    for (int i = 0; i < 4; i++) {
        choices[i] = (struct tutti_choice){
            .algorithm = tutti_algorithm_find(TUTTI_ALLGATHER, names[i])};
        if (tutti_algorithm_options(choices[i].algorithm, &choices[i].options,
                                    &choices[i].options) != TUTTI_OK)
            return tuttiInternalError;
    }
    if (tutti_trial_find_equal(comm, choices, 4, twins) != TUTTI_OK)
        return tuttiInternalError;
    return twins[0] == 0 && twins[1] == ring && twins[2] == 2 && twins[3] == 0
               ? tuttiSuccess : tuttiInvalidArgument;
}

static void equal_schedules_are_recognized(void **state)
{
    (void)state;
    for (int nranks = 2; nranks <= 3; nranks++)
        check_all(crew_run(&(struct crew){.nranks = nranks, .environment = by_memory,
                                          .timeout_ms = 30000, .run = compare_schedules}),
                  nranks, tuttiSuccess, "");
}

/* ---- what a user can get wrong ------------------------------------------------------------- */

struct wrong {
    const char *file;
    tuttiTuneConfig_t config;
    bool is_in_group;
    tuttiResult_t expected;
};

#define CONFIG(...) {.size = sizeof(tuttiTuneConfig_t), __VA_ARGS__}

static tuttiResult_t try_wrong(struct crew_seat *seat)
{
    const struct wrong *wrong = seat->crew->context;
    tuttiResult_t result;

    if (wrong->is_in_group)
        tuttiGroupStart();
    result = tuttiCommTune(seat->comm, wrong->file, &wrong->config);
    if (wrong->is_in_group)
        tuttiGroupEnd();
    if (result != wrong->expected || strlen(tuttiGetLastError(NULL)) == 0)
        return tuttiInternalError;
    /* The communicator is as before. */
    return all_agree(seat->comm, seat->nranks);
}

static void a_wrong_order_changes_nothing(void **state)
{
    static const struct wrong wrongs[] = {
        {NULL, CONFIG(.collectives = "allreduce,allfold"), false, tuttiInvalidArgument},
        {NULL, CONFIG(.collectives = ""), false, tuttiInvalidArgument},
        {NULL, CONFIG(.minBytes = 2, .maxBytes = 1), false, tuttiInvalidArgument},
        {NULL, CONFIG(.maxBytes = (size_t)2 << 30), false, tuttiInvalidArgument},
        {NULL, CONFIG(.budgetMs = -1), false, tuttiInvalidArgument},
        {NULL, {.size = 0}, false, tuttiInvalidArgument},
        {"", CONFIG(.budgetMs = 1), false, tuttiInvalidArgument},
        {"two words", CONFIG(.budgetMs = 1), false, tuttiInvalidArgument},
        {"/no/such/directory/table", CONFIG(.budgetMs = 1), false, tuttiInvalidUsage},
        {"/dev/null/table", CONFIG(.budgetMs = 1), false, tuttiInvalidUsage},
        {"/proc/self/status", CONFIG(.budgetMs = 1), false, tuttiInvalidUsage}, /* no table */
        {NULL, CONFIG(.budgetMs = 1), true, tuttiInvalidUsage},
    };

    (void)state;
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++)
        check_all(crew_run(&(struct crew){.nranks = 2, .environment = by_memory,
                                          .timeout_ms = 30000, .run = try_wrong,
                                          .context = &wrongs[i]}),
                  2, tuttiSuccess, "");
}

static tuttiResult_t tune_in_no_time(struct crew_seat *seat)
{
    tuttiTuneConfig_t config = TUTTI_TUNE_CONFIG_INITIALIZER;
    tuttiResult_t result;

    config.budgetMs = 1;
    config.maxBytes = 1 << 20;
    result = tuttiCommTune(seat->comm, NULL, &config);
    return result == tuttiSuccess ? all_agree(seat->comm, seat->nranks) : result;
}

/* Alone there is little to choose from, and without time nothing is measured. */
static void any_number_of_ranks_and_any_budget_will_do(void **state)
{
    (void)state;
    check_all(crew_run(&(struct crew){.nranks = 1, .timeout_ms = 30000, .run = tune_in_no_time}),
              1, tuttiSuccess, "");
    check_all(crew_run(&(struct crew){.nranks = 3, .timeout_ms = 30000, .run = tune_in_no_time}),
              3, tuttiSuccess, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_environment_of_rank_0_counts),
        cmocka_unit_test(what_rank_0_gets_wrong_is_told_to_all),
        cmocka_unit_test(places_are_the_hosts),
        cmocka_unit_test(what_was_measured_is_used_and_kept),
        cmocka_unit_test(the_greatest_size_is_the_last),
        cmocka_unit_test(equal_schedules_are_recognized),
        cmocka_unit_test(a_wrong_order_changes_nothing),
        cmocka_unit_test(any_number_of_ranks_and_any_budget_will_do),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
