/* SPDX-License-Identifier: Apache-2.0
 * Tests malformed environments, and processes after fork. */
#include "fault/crew.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static tuttiResult_t form_and_barrier(struct crew_seat *seat)
{
    tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
    tuttiResult_t result;

    config.initTimeoutMs = 5000;
    result = tuttiCommInitRankConfig(&seat->comm, seat->nranks, crew_share_id(seat), seat->rank,
                                     &config);
    return result == tuttiSuccess ? tuttiBarrier(seat->comm, NULL) : result;
}

static tuttiResult_t form_from_environment(struct crew_seat *seat)
{
    return tuttiCommInitFromEnv(&seat->comm, NULL);
}

struct environment {
    const char *const variables[10];
    tuttiResult_t expected;
    const char *word;
};

/* Rank 1 alone has a variable that is wrong: all ranks hear of it. */
static tuttiResult_t form_with_one_mistake(struct crew_seat *seat)
{
    if (seat->rank == 1)
        setenv("TUTTI_TRANSPORTS", "carrier-pigeon", 1);
    return form_and_barrier(seat);
}

static void check(const struct environment *environment, int nranks,
                  tuttiResult_t (*run)(struct crew_seat *seat))
{
    struct crew_board *board = crew_run(&(struct crew){
        .nranks = nranks, .forms_itself = true, .run = run, .environment = environment->variables});

    for (int rank = 0; rank < nranks; rank++) {
        const struct crew_report *report = &board->reports[rank];

        if (report->result != environment->expected ||
            strstr(report->text, environment->word) == NULL || strchr(report->text, '\n') != NULL)
            fail_msg("%s=%s: rank %d got %d: %s", environment->variables[0],
                     environment->variables[1], rank, (int)report->result, report->text);
    }
    crew_clear(board);
}

static void a_wrong_algorithm_is_an_error_when_the_communicator_is_made(void **state)
{
    static const struct environment environments[] = {
        {{"TUTTI_ALGORITHM", "ring", NULL}, tuttiInvalidUsage, "TUTTI_ALGORITHM"},
        {{"TUTTI_ALGORITHM", "allreduce:nonesuch", NULL}, tuttiInvalidUsage, "nonesuch"},
        {{"TUTTI_ALGORITHM", "allfold:ring", NULL}, tuttiInvalidUsage, "allfold"},
        {{"TUTTI_ALGORITHM", "allreduce:ring,broadcast:", NULL}, tuttiInvalidUsage, "broadcast"},
        {{"TUTTI_ALGORITHM", "allreduce:ring,", NULL}, tuttiSuccess, ""},
        {{"TUTTI_TRANSPORTS", "carrier-pigeon", NULL}, tuttiInvalidUsage, "carrier-pigeon"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof environments / sizeof *environments; i++)
        check(&environments[i], 2, form_and_barrier);
}

static void a_mistake_of_one_rank_is_told_to_all(void **state)
{
    enum { RANKS = 3 };
    struct crew_board *board = crew_run(&(struct crew){
        .nranks = RANKS, .forms_itself = true, .run = form_with_one_mistake});

    (void)state;
    for (int rank = 0; rank < RANKS; rank++) {
        const struct crew_report *report = &board->reports[rank];

        if (report->result != tuttiInvalidUsage ||
            strstr(report->text, "carrier-pigeon") == NULL ||
            (rank != 1 && strstr(report->text, "rank 1") == NULL))
            fail_msg("rank %d got %d: %s", rank, (int)report->result, report->text);
    }
    crew_clear(board);
}

static tuttiResult_t form_alone(struct crew_seat *seat)
{
    tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
    tuttiUniqueId id;

    config.initTimeoutMs = 500;
    tuttiGetUniqueId(&id);
    return tuttiCommInitRankConfig(&seat->comm, 2, id, 0, &config);
}

static void a_mistake_is_told_where_nobody_else_comes(void **state)
{
    static const struct environment environment = {
        {"TUTTI_TRANSPORTS", "carrier-pigeon", NULL}, tuttiInvalidUsage, "carrier-pigeon"};

    (void)state;
    check(&environment, 1, form_alone);
}

/* A warning on stderr, and the default. */
static void a_malformed_number_is_no_reason_to_fail(void **state)
{
    static const struct environment environments[] = {
        {{"TUTTI_SPIN_US", "soon", NULL}, tuttiSuccess, ""},
        {{"TUTTI_WINDOW_BYTES", "-1", NULL}, tuttiSuccess, ""},
        {{"TUTTI_FIFO_BYTES", "64Kb", NULL}, tuttiSuccess, ""},
        {{"TUTTI_DEBUG", "loud", NULL}, tuttiSuccess, ""},
        {{"TUTTI_TIMEOUT_MS", "99999999999999999999", NULL}, tuttiSuccess, ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof environments / sizeof *environments; i++)
        check(&environments[i], 2, form_and_barrier);
}

static void a_malformed_launch_names_the_variable(void **state)
{
    static const struct environment environments[] = {
        {{"TUTTI_RANK", "0", NULL}, tuttiInvalidUsage, "TUTTI_NRANKS"},
        {{"TUTTI_NRANKS", "2", NULL}, tuttiInvalidUsage, "TUTTI_RANK"},
        {{"TUTTI_RANK", "zero", "TUTTI_NRANKS", "2", NULL}, tuttiInvalidUsage, "TUTTI_RANK=zero"},
        {{"TUTTI_RANK", "2", "TUTTI_NRANKS", "2", NULL}, tuttiInvalidUsage, "TUTTI_RANK=2"},
        {{"TUTTI_RANK", "-1", "TUTTI_NRANKS", "2", NULL}, tuttiInvalidUsage, "TUTTI_RANK=-1"},
        {{"TUTTI_RANK", "0", "TUTTI_NRANKS", "0", NULL}, tuttiInvalidUsage, "TUTTI_NRANKS=0"},
        {{"TUTTI_RANK", "0", "TUTTI_NRANKS", "2x", NULL}, tuttiInvalidUsage, "TUTTI_NRANKS=2x"},
        {{"TUTTI_RANK", "0", "TUTTI_NRANKS", "2", NULL}, tuttiInvalidUsage, "TUTTI_ROOT"},
        {{"TUTTI_RANK", "0", "TUTTI_NRANKS", "2", "TUTTI_ROOT", "here", NULL}, tuttiInvalidUsage,
         "TUTTI_ROOT=here"},
        {{"RANK", "x", "WORLD_SIZE", "2", NULL}, tuttiInvalidUsage, "RANK=x"},
        {{"RANK", "0", "WORLD_SIZE", "2", NULL}, tuttiInvalidUsage, "MASTER_ADDR"},
        {{"RANK", "0", "WORLD_SIZE", "2", "MASTER_ADDR", "localhost", "MASTER_PORT", "http", NULL},
         tuttiInvalidUsage, "MASTER_PORT=http"},
        {{"PMI_RANK", "0", NULL}, tuttiInvalidUsage, "PMI_SIZE"},
        {{"OMPI_COMM_WORLD_RANK", "5", "OMPI_COMM_WORLD_SIZE", "5", NULL}, tuttiInvalidUsage,
         "OMPI_COMM_WORLD_RANK=5"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof environments / sizeof *environments; i++)
        check(&environments[i], 1, form_from_environment);
}

/* ---- fork ------------------------------------------------------------------------------------ */

struct made {
    tuttiComm_t comm;
    tuttiStream_t stream;
};

/* Exit status of a child: 0 when everything that the parent made is refused. */
static int use_what_the_parent_made(void *context)
{
    const struct made *made = context;
    tuttiComm_t comm = made->comm;
    tuttiStream_t stream = made->stream;
    tuttiResult_t state;
    tuttiComm_t own;
    int value = 1;

    if (tuttiAllReduce(&value, &value, 1, tuttiInt32, tuttiSum, comm, NULL) != tuttiInvalidUsage ||
        strstr(tuttiGetLastError(NULL), "fork") == NULL)
        return 1;
    if (tuttiCommCount(comm, &value) != tuttiInvalidUsage ||
        tuttiCommGetAsyncError(comm, &state) != tuttiInvalidUsage)
        return 2;
    if (tuttiCommAbort(comm) != tuttiInvalidUsage || tuttiCommDestroy(comm) != tuttiInvalidUsage)
        return 3;
    if (tuttiStreamSynchronize(stream) != tuttiInvalidUsage ||
        tuttiHostStreamDestroy(stream) != tuttiInvalidUsage ||
        strstr(tuttiGetLastError(NULL), "fork") == NULL)
        return 4;
    /* A communicator of its own is fine. */
    if (tuttiCommInitAll(&own, 1, NULL) != tuttiSuccess || tuttiBarrier(own, NULL) != tuttiSuccess)
        return 5;
    return tuttiCommDestroy(own) == tuttiSuccess ? 0 : 6;
}

static tuttiResult_t fork_and_go_on(struct crew_seat *seat)
{
    struct made made = {.comm = seat->comm};
    int status;

    if (tuttiBarrier(seat->comm, NULL) != tuttiSuccess ||
        tuttiHostStreamCreate(&made.stream) != tuttiSuccess)
        return tuttiInternalError;
    status = crew_fork(use_what_the_parent_made, &made);
    crew_add(&seat->board->marks[status == 0 ? 0 : 1]);
    tuttiHostStreamDestroy(made.stream);
    /* The child has touched nothing of ours. */
    return tuttiBarrier(seat->comm, NULL);
}

static void a_forked_child_is_refused_and_does_no_harm(void **state)
{
    struct crew_board *board;

    (void)state;
    board = crew_run(&(struct crew){.nranks = 2, .timeout_ms = 20000, .run = fork_and_go_on});
    assert_int_equal(board->marks[0], 2);
    for (int rank = 0; rank < 2; rank++)
        if (board->reports[rank].result != tuttiSuccess)
            fail_msg("rank %d: %s", rank, board->reports[rank].text);
    crew_clear(board);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wrong_algorithm_is_an_error_when_the_communicator_is_made),
        cmocka_unit_test(a_mistake_of_one_rank_is_told_to_all),
        cmocka_unit_test(a_mistake_is_told_where_nobody_else_comes),
        cmocka_unit_test(a_malformed_number_is_no_reason_to_fail),
        cmocka_unit_test(a_malformed_launch_names_the_variable),
        cmocka_unit_test(a_forked_child_is_refused_and_does_no_harm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
