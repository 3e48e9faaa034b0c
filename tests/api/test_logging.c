/* SPDX-License-Identifier: Apache-2.0
 * Verifies the log lines about a communicator, as users read them on stderr. */
#include "fault/crew.h"
#include "support/no_cma.h"
#include "support/stderr_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

/* Let ranks with this environment run `fn`; gives what they said. */
static const char *run(int nranks, const char *const *environment,
                       tuttiResult_t (*fn)(struct crew_seat *seat))
{
    struct crew_board *board;
    const char *said;

    stderr_text_begin();
    board = crew_run(&(struct crew){.nranks = nranks, .environment = environment,
                                    .forms_itself = true, .run = fn});
    said = stderr_text_end();
    for (int rank = 0; rank < nranks; rank++)
        if (board->reports[rank].result != tuttiSuccess)
            fail_msg("rank %d: %d: %s\n%s", rank, (int)board->reports[rank].result,
                     board->reports[rank].text, said);
    crew_clear(board);
    return said;
}

/* As many lines as said have each of these words: words, count, ..., NULL. */
struct expected {
    const char *words;
    size_t count;
};

static void expect(const char *said, const struct expected *expected)
{
    for (; expected->words != NULL; expected++)
        if (count_lines_with(said, expected->words) != expected->count)
            fail_msg("\"%s\" is in %zu lines, not %zu, of:\n%s", expected->words,
                     count_lines_with(said, expected->words), expected->count, said);
}

static tuttiResult_t form(struct crew_seat *seat)
{
    tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;

    config.commName = "gradients";
    return tuttiCommInitRankConfig(&seat->comm, seat->nranks, crew_share_id(seat), seat->rank,
                                   &config);
}

/* ---- forming --------------------------------------------------------------------------------- */

static void info_tells_once_what_a_communicator_is_in_ten_lines_at_most(void **state)
{
    static const char *const environment[] = {"TUTTI_DEBUG", "INFO", "TUTTI_WINDOW_BYTES", "64K",
                                              "TUTTI_FIFO_BYTES", "8192", "TUTTI_SECRET", "hush",
                                              "TUTTI_CMA_THRESHOLD", "1M", NULL};
    const char *said = run(4, environment, form);

    (void)state;
    expect(said, (struct expected[]){
        {"INFO rank 0/4 comm 'gradients': Tutti 0.", 1},
        {"4 ranks on 1 host, formed in ", 1},
        {"has ranks 0-3", 1},
        {"transports: within a host by ", 1},
        {"addresses of rank 0: ", 1},
        {"windows of 64 KiB a rank, FIFOs of 8 KiB a pair; CMA ", 1},
        {"TUTTI_WINDOW_BYTES=64K", 1},
        {"TUTTI_SECRET=(set, not shown)", 1},
        {"hush", 0},
        {"rank 1/4", 0},
        {"destroyed after ", 1},
        {NULL, 0}});
    assert_true(count_lines_with(said, "INFO") <= 11); /* with that of its end */
}

static tuttiResult_t form_on_two_hosts(struct crew_seat *seat)
{
    setenv("TUTTI_HOST_ID", seat->rank < 2 ? "one" : "two", 1);
    return form(seat);
}

static void the_first_rank_of_each_host_tells_of_that_host(void **state)
{
    static const char *const environment[] = {"TUTTI_DEBUG", "info", NULL};

    (void)state;
    expect(run(4, environment, form_on_two_hosts), (struct expected[]){
        {"4 ranks on 2 hosts", 1},
        {" has ranks 0-1; host 1 ", 1},
        {"between hosts by tcp", 1},
        {"rank 0/4 comm 'gradients': host 0 ", 3},
        {"rank 2/4 comm 'gradients': host 1 ", 2},
        {"rank 1/4", 0},
        {"rank 3/4", 0},
        {NULL, 0}});
}

static void a_communicator_of_one_rank_tells_what_it_is_too(void **state)
{
    static const char *const environment[] = {"TUTTI_DEBUG", "info", NULL};

    (void)state;
    expect(run(1, environment, form), (struct expected[]){
        {"INFO rank 0/1 comm 'gradients': Tutti 0.", 1},
        {"1 rank on 1 host", 1},
        {"has ranks 0", 1},
        {"transports: none, there is one rank", 1},
        {"destroyed after ", 1},
        {NULL, 0}});
}

static void transports_that_were_excluded_are_told(void **state)
{
    static const char *const tcp[] = {"TUTTI_DEBUG", "info", "TUTTI_TRANSPORTS", "tcp", NULL};
    static const char *const shm[] = {"TUTTI_DEBUG", "info", "TUTTI_TRANSPORTS", "shm", NULL};

    (void)state;
    expect(run(2, tcp, form), (struct expected[]){
        {"transports: within a host by tcp", 1},
        {"shared memory: none: excluded by TUTTI_TRANSPORTS", 1},
        {NULL, 0}});
    expect(run(2, shm, form), (struct expected[]){
        {"transports: within a host by shm", 1},
        {"CMA no, excluded by TUTTI_TRANSPORTS on rank 0", 1},
        {"addresses of rank 0: none", 1},
        {NULL, 0}});
}

static tuttiResult_t form_without_cma(struct crew_seat *seat)
{
    return forbid_cma() ? form(seat) : tuttiInternalError;
}

static void why_ranks_cannot_read_each_others_memory_is_told(void **state)
{
    static const char *const environment[] = {"TUTTI_DEBUG", "info", NULL};

    (void)state;
    expect(run(2, environment, form_without_cma), (struct expected[]){
        {"transports: within a host by shm", 1},
        {"CMA no, the memory of rank 1 cannot be read: Operation not permitted; tutti-info", 1},
        {NULL, 0}});
}

static void version_prints_the_version_alone(void **state)
{
    static const char *const environment[] = {"TUTTI_DEBUG", "VERSION", "TUTTI_ALGORITM", "x",
                                              NULL};
    const char *said = run(2, environment, form);

    (void)state;
    expect(said, (struct expected[]){{"VERSION rank 0/2", 1}, {": Tutti 0.", 1}, {"tutti[", 1},
                                     {NULL, 0}});
}

static void a_misspelled_variable_is_told_by_rank_0(void **state)
{
    static const char *const environment[] = {"TUTTI_DEBUG", "warn", "TUTTI_ALGORITM", "x", NULL};

    (void)state;
    expect(run(3, environment, form), (struct expected[]){
        {"WARN rank 0/3 comm 'gradients': TUTTI_ALGORITM is not a variable of this library and has "
         "no effect; did you mean TUTTI_ALGORITHM?", 1},
        {"TUTTI_ALGORITM", 1},
        {NULL, 0}});
}

/* ---- missing ranks --------------------------------------------------------------------------- */

static tuttiResult_t come_late(struct crew_seat *seat)
{
    /* Rank 2 comes when the others have told that they wait for it. */
    if (seat->rank == 2 && !crew_await(&seat->board->marks[0], 1))
        return tuttiInternalError;
    return form(seat);
}

/* Until the wanted line is there: then the last rank may come. */
static void await_line(const struct crew *crew, struct crew_board *board, const pid_t *pids)
{
    const char *path = crew->context;

    (void)pids;
    for (int i = 0; i < 20000; i++) {
        char text[65536];
        FILE *file = fopen(path, "r");
        size_t length = file != NULL ? fread(text, 1, sizeof text - 1, file) : 0;

        if (file != NULL)
            fclose(file);
        text[length] = '\0';
        if (strstr(text, "rank 2 of 3 has not joined") != NULL)
            break;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    crew_add(&board->marks[0]);
}

static void ranks_that_are_missing_are_named_while_the_others_wait(void **state)
{
    char path[] = "/tmp/tutti-test-XXXXXX", text[65536];
    const char *const environment[] = {"TUTTI_DEBUG", "warn", "TUTTI_INIT_NOTICE_MS", "20",
                                       "TUTTI_DEBUG_FILE", path, NULL};
    int fd = mkstemp(path);
    struct crew_board *board;
    ssize_t length;

    (void)state;
    assert_true(fd >= 0);
    board = crew_run(&(struct crew){.nranks = 3, .environment = environment, .forms_itself = true,
                                    .run = come_late, .meddle = await_line, .context = path});
    length = read(fd, text, sizeof text - 1);
    close(fd);
    unlink(path);
    assert_true(length > 0);
    text[length] = '\0';
    for (int rank = 0; rank < 3; rank++)
        if (board->reports[rank].result != tuttiSuccess)
            fail_msg("rank %d: %s\n%s", rank, board->reports[rank].text, text);
    crew_clear(board);
    if (strstr(text, "WARN rank 0/3 comm 'gradients': still forming after ") == NULL ||
        strstr(text, "rank 2 of 3 has not joined at ") == NULL)
        fail_msg("%s", text);
    /* Once it has reached the root, rank 1 knows only that the root waits: that is no warning. */
    assert_null(strstr(text, "waits for other ranks"));
}

static void without_notices_nothing_is_said(void **state)
{
    static const char *const environment[] = {"TUTTI_DEBUG", "warn", "TUTTI_INIT_NOTICE_MS", "0",
                                              NULL};

    (void)state;
    assert_string_equal(run(3, environment, form), "");
}

/* ---- calls ----------------------------------------------------------------------------------- */

static tuttiResult_t reduce_some_sizes(struct crew_seat *seat)
{
    static const size_t counts[] = {1, 1, 2, 3, 4, 5, 6, 7, 8, 1, 16, 17};
    float values[32] = {0};
    tuttiResult_t result = form(seat);

    for (size_t i = 0; i < sizeof counts / sizeof *counts && result == tuttiSuccess; i++)
        result = tuttiAllReduce(values, values, counts[i], tuttiFloat, tuttiSum, seat->comm, NULL);
    return result;
}

static void what_calls_run_by_is_told_once_for_each_power_of_two_of_sizes(void **state)
{
    static const char *const info[] = {"TUTTI_DEBUG", "info", NULL};
    static const char *const trace[] = {"TUTTI_DEBUG", "trace", NULL};

    (void)state;
    /* Of 4, of 8 and 12, of 16 to 28, of 32, of 64 and 68 bytes. */
    expect(run(2, info, reduce_some_sizes), (struct expected[]){
        {"INFO rank 0/2 comm 'gradients': allreduce of ", 5},
        {"allreduce of 4 bytes a block runs by ", 1},
        {"allreduce of 68 bytes a block runs by ", 0},
        {", chosen by the built-in table", 5},
        {"rank 1/2", 0},
        {NULL, 0}});
    expect(run(2, trace, reduce_some_sizes), (struct expected[]){
        {"INFO rank 0/2 comm 'gradients': allreduce of ", 5},
        {"TRACE rank 0/2 comm 'gradients': allreduce of ", 5},
        {NULL, 0}});
}

static void who_chose_an_algorithm_is_told(void **state)
{
    static const struct {
        const char *environment[8], *words;
    } cases[] = {
        {{"TUTTI_DEBUG", "info", "TUTTI_ALGORITHM", "allreduce:ring", NULL},
         "runs by ring, chosen by TUTTI_ALGORITHM"},
        {{"TUTTI_DEBUG", "info", "TUTTI_TUNE", "allreduce 0-inf recursive_doubling", NULL},
         "runs by recursive_doubling, chosen by the rules of TUTTI_TUNE"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect(run(2, cases[i].environment, reduce_some_sizes),
               (struct expected[]){{cases[i].words, 5}, {NULL, 0}});
}

/* A file and its limits decide which calls it serves. The log names the file either way. */
static void why_a_schedule_file_serves_a_call_or_not_is_told(void **state)
{
    static const char exchange[] =
        "tutti-schedule 1\ncollective allreduce\nranks 2\nscratch vector 1\n"
        "rank 0\ncopy src input[0] dst output[0]\nsend to 1 src input[0]\n"
        "recv from 1 dst scratch[0]\nreduce src scratch[0] dst output[0]\n"
        "rank 1\ncopy src input[0] dst output[0]\nsend to 0 src input[0]\n"
        "recv from 0 dst scratch[0]\nreduce src scratch[0] dst output[0]\n";
    char path[] = "/tmp/tutti_schedule_XXXXXX", value[64], served[96], below[96], above[96];
    const char *environment[] = {"TUTTI_DEBUG", "info", "TUTTI_SCHEDULE", value, NULL};
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, exchange, strlen(exchange)), strlen(exchange));
    close(fd);
    snprintf(value, sizeof value, "allreduce[8-16]=%s", path);
    snprintf(served, sizeof served, "runs by %s, chosen by TUTTI_SCHEDULE", path);
    snprintf(below, sizeof below, "since %s serves buffers from 8 bytes on, not of 4", path);
    snprintf(above, sizeof above, "since %s serves buffers up to 16 bytes, not of ", path);
    /* Of 4, of 8 and 12, of 16, of 20 to 28, of 32, of 64 and 68 bytes. */
    expect(run(2, environment, reduce_some_sizes), (struct expected[]){
        {"INFO rank 0/2 comm 'gradients': allreduce of ", 6},
        {served, 2}, {below, 1}, {above, 3}, {"rank 1/2", 0}, {NULL, 0}});
    unlink(path);
}

static tuttiResult_t make_a_mistake(struct crew_seat *seat)
{
    float value = 0;
    tuttiResult_t result = form(seat);
    tuttiUniqueId *nowhere = NULL;

    if (result != tuttiSuccess)
        return result;
    if (tuttiAllReduce(NULL, &value, 1, tuttiFloat, tuttiSum, seat->comm, NULL) !=
            tuttiInvalidArgument ||
        tuttiGetUniqueId(nowhere) != tuttiInvalidArgument)
        return tuttiInternalError;
    return tuttiSuccess;
}

static void warnings_name_rank_and_communicator_where_there_is_one(void **state)
{
    static const char *const environment[] = {"TUTTI_DEBUG", "warn", NULL};

    (void)state;
    expect(run(2, environment, make_a_mistake), (struct expected[]){
        {"WARN rank 0/2 comm 'gradients': tuttiAllReduce: sendbuff is NULL", 1},
        {"WARN rank 1/2 comm 'gradients': tuttiAllReduce: sendbuff is NULL", 1},
        {"WARN tuttiGetUniqueId: uniqueId is NULL", 2},
        {NULL, 0}});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(info_tells_once_what_a_communicator_is_in_ten_lines_at_most),
        cmocka_unit_test(the_first_rank_of_each_host_tells_of_that_host),
        cmocka_unit_test(a_communicator_of_one_rank_tells_what_it_is_too),
        cmocka_unit_test(transports_that_were_excluded_are_told),
        cmocka_unit_test(why_ranks_cannot_read_each_others_memory_is_told),
        cmocka_unit_test(version_prints_the_version_alone),
        cmocka_unit_test(a_misspelled_variable_is_told_by_rank_0),
        cmocka_unit_test(ranks_that_are_missing_are_named_while_the_others_wait),
        cmocka_unit_test(without_notices_nothing_is_said),
        cmocka_unit_test(what_calls_run_by_is_told_once_for_each_power_of_two_of_sizes),
        cmocka_unit_test(who_chose_an_algorithm_is_told),
        cmocka_unit_test(why_a_schedule_file_serves_a_call_or_not_is_told),
        cmocka_unit_test(warnings_name_rank_and_communicator_where_there_is_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
