/* SPDX-License-Identifier: Apache-2.0
 * Tests the name of a communicator, and the report of where its ranks run. TUTTI_HOST_ID makes
 * several hosts of one. */
#include "fault/crew.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <cmocka.h>

/* A false claim ends the rank's function with its line as the result's text. */
#define CLAIM(claim)                                             \
    do {                                                         \
        if (!(claim)) {                                          \
            fprintf(stderr, "line %d: %s\n", __LINE__, #claim);  \
            return tuttiInternalError;                           \
        }                                                        \
    } while (0)

static void run(int nranks, bool is_threads, tuttiResult_t (*fn)(struct crew_seat *seat))
{
    struct crew_board *board = crew_run(&(struct crew){
        .nranks = nranks, .is_threads = is_threads, .forms_itself = true, .run = fn});

    for (int rank = 0; rank < nranks; rank++)
        if (board->reports[rank].result != tuttiSuccess)
            fail_msg("rank %d: %d: %s", rank, (int)board->reports[rank].result,
                     board->reports[rank].text);
    crew_clear(board);
}

static tuttiResult_t form(struct crew_seat *seat, const char *name)
{
    tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;

    config.commName = name;
    config.initTimeoutMs = 30000;
    return tuttiCommInitRankConfig(&seat->comm, seat->nranks, crew_share_id(seat), seat->rank,
                                   &config);
}

static tuttiRankInfo_t info_of(tuttiComm_t comm, int rank)
{
    tuttiRankInfo_t info = {.size = sizeof info, .host = -1};

    if (tuttiCommGetRankInfo(comm, rank, &info) != tuttiSuccess)
        info.host = -2;
    return info;
}

static bool is_at(tuttiComm_t comm, int rank, int host, int local_rank, int local_count)
{
    tuttiRankInfo_t info = info_of(comm, rank);

    return info.host == host && info.localRank == local_rank && info.localCount == local_count;
}

/* ---- places ---------------------------------------------------------------------------------- */

/* Ranks 0, 2 and 4 on one host, 1 and 3 on another. */
static tuttiResult_t run_on_two_hosts(struct crew_seat *seat)
{
    static const int hosts[] = {0, 1, 0, 1, 0}, locals[] = {0, 0, 1, 1, 2}, counts[] = {3, 2};
    tuttiComm_t halves;
    int count = 0;

    setenv("TUTTI_HOST_ID", seat->rank % 2 == 0 ? "even" : "odd", 1);
    CLAIM(form(seat, NULL) == tuttiSuccess);
    CLAIM(tuttiCommHostCount(seat->comm, &count) == tuttiSuccess && count == 2);
    for (int rank = 0; rank < 5; rank++)
        CLAIM(is_at(seat->comm, rank, hosts[rank], locals[rank], counts[hosts[rank]]));
    CLAIM(info_of(seat->comm, seat->rank).pid == getpid());
    CLAIM(info_of(seat->comm, (seat->rank + 1) % 5).pid != getpid());

    /* Ranks 3 and 4, in this order reversed: the host of 4 is then the first. */
    CLAIM(tuttiCommSplit(seat->comm, seat->rank >= 3, -seat->rank, &halves, NULL) == tuttiSuccess);
    if (seat->rank >= 3) {
        CLAIM(tuttiCommHostCount(halves, &count) == tuttiSuccess && count == 2);
        CLAIM(is_at(halves, 0, 0, 0, 1) && is_at(halves, 1, 1, 0, 1));
    }
    CLAIM(tuttiCommDestroy(halves) == tuttiSuccess);
    return tuttiSuccess;
}

static void hosts_are_numbered_by_their_first_ranks_and_ranks_within_them(void **state)
{
    (void)state;
    run(5, false, run_on_two_hosts);
}

static tuttiResult_t run_on_one_host(struct crew_seat *seat)
{
    struct utsname names;
    int count = 0;

    CLAIM(uname(&names) == 0);
    names.nodename[strcspn(names.nodename, ".")] = '\0';
    names.nodename[TUTTI_HOST_NAME_MAX - 1] = '\0';
    CLAIM(form(seat, NULL) == tuttiSuccess);
    CLAIM(tuttiCommHostCount(seat->comm, &count) == tuttiSuccess && count == 1);
    for (int rank = 0; rank < seat->nranks; rank++) {
        CLAIM(is_at(seat->comm, rank, 0, rank, seat->nranks));
        CLAIM(strcmp(info_of(seat->comm, rank).hostName, names.nodename) == 0);
    }
    return tuttiSuccess;
}

static void ranks_of_one_host_know_its_name(void **state)
{
    (void)state;
    run(1, false, run_on_one_host);
    run(3, false, run_on_one_host);
    run(3, true, run_on_one_host);
}

static tuttiResult_t ask_with_an_old_struct(struct crew_seat *seat)
{
    tuttiRankInfo_t info;

    memset(&info, 0x55, sizeof info);
    info.size = offsetof(tuttiRankInfo_t, localRank);
    CLAIM(form(seat, NULL) == tuttiSuccess);
    CLAIM(tuttiCommGetRankInfo(seat->comm, 0, &info) == tuttiSuccess);
    CLAIM(info.host == 0 && info.size == offsetof(tuttiRankInfo_t, localRank));
    CLAIM(info.localRank == 0x55555555 && info.hostName[0] == 0x55);
    return tuttiSuccess;
}

static void a_caller_who_knows_fewer_fields_gets_those(void **state)
{
    (void)state;
    run(1, false, ask_with_an_old_struct);
}

/* ---- names ----------------------------------------------------------------------------------- */

static tuttiResult_t ask_for_names(struct crew_seat *seat)
{
    tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
    const char *name = NULL;
    tuttiComm_t child;

    CLAIM(form(seat, "gradients") == tuttiSuccess);
    CLAIM(tuttiCommGetName(seat->comm, &name) == tuttiSuccess && strcmp(name, "gradients") == 0);
    config.commName = "a part";
    CLAIM(tuttiCommSplit(seat->comm, 0, 0, &child, &config) == tuttiSuccess);
    CLAIM(tuttiCommGetName(child, &name) == tuttiSuccess && strcmp(name, "a part") == 0);
    CLAIM(tuttiCommDestroy(child) == tuttiSuccess);
    CLAIM(tuttiCommSplit(seat->comm, 0, 0, &child, NULL) == tuttiSuccess);
    CLAIM(tuttiCommGetName(child, &name) == tuttiSuccess && strcmp(name, "") == 0);
    return tuttiCommDestroy(child);
}

static void a_communicator_has_the_name_that_it_was_given(void **state)
{
    (void)state;
    run(2, false, ask_for_names);
}

static tuttiResult_t ask_for_versions(struct crew_seat *seat)
{
    char text[32];
    int version = 0;

    (void)seat;
    snprintf(text, sizeof text, "%d.%d.%d", TUTTI_MAJOR, TUTTI_MINOR, TUTTI_PATCH);
    CLAIM(strncmp(tuttiGetVersionString(), text, strlen(text)) == 0);
    CLAIM(tuttiGetVersion(&version) == tuttiSuccess && version == TUTTI_VERSION_CODE);
    return tuttiSuccess;
}

static void the_version_as_text_begins_with_that_of_the_header(void **state)
{
    (void)state;
    run(1, false, ask_for_versions);
}

/* ---- mistakes -------------------------------------------------------------------------------- */

static tuttiResult_t ask_wrongly(struct crew_seat *seat)
{
    tuttiRankInfo_t info = {.size = sizeof info}, unset = {.size = 0};
    const char *name;
    int hosts;

    CLAIM(form(seat, NULL) == tuttiSuccess);
    CLAIM(tuttiCommGetRankInfo(seat->comm, 1, &info) == tuttiInvalidArgument);
    CLAIM(strstr(tuttiGetLastError(NULL), "rank 1 is not one of 0 to 0") != NULL);
    CLAIM(tuttiCommGetRankInfo(seat->comm, -1, &info) == tuttiInvalidArgument);
    CLAIM(tuttiCommGetRankInfo(seat->comm, 0, NULL) == tuttiInvalidArgument);
    CLAIM(tuttiCommGetRankInfo(seat->comm, 0, &unset) == tuttiInvalidArgument);
    CLAIM(strstr(tuttiGetLastError(NULL), "set it to sizeof(tuttiRankInfo_t)") != NULL);
    CLAIM(tuttiCommGetRankInfo(NULL, 0, &info) == tuttiInvalidArgument);
    CLAIM(tuttiCommHostCount(seat->comm, NULL) == tuttiInvalidArgument);
    CLAIM(tuttiCommHostCount(NULL, &hosts) == tuttiInvalidArgument);
    CLAIM(tuttiCommGetName(seat->comm, NULL) == tuttiInvalidArgument);
    CLAIM(tuttiCommGetName(NULL, &name) == tuttiInvalidArgument);
    CLAIM(is_at(seat->comm, 0, 0, 0, 1));
    return tuttiSuccess;
}

static void wrong_arguments_are_named_and_change_nothing(void **state)
{
    (void)state;
    run(1, false, ask_wrongly);
}

static tuttiResult_t ask_too_early(struct crew_seat *seat)
{
    tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
    tuttiResult_t state = tuttiInProgress;
    const char *name = NULL;
    int hosts = -1;

    config.blocking = 0;
    config.commName = "slow";
    if (seat->rank == 1)
        CLAIM(crew_await(&seat->board->marks[0], 1));
    state = tuttiCommInitRankConfig(&seat->comm, 2, crew_share_id(seat), seat->rank, &config);
    if (seat->rank == 0) {
        CLAIM(state == tuttiInProgress);
        CLAIM(tuttiCommHostCount(seat->comm, &hosts) == tuttiInvalidUsage && hosts == -1);
        CLAIM(strstr(tuttiGetLastError(NULL), "still being formed") != NULL);
        CLAIM(tuttiCommGetName(seat->comm, &name) == tuttiSuccess && strcmp(name, "slow") == 0);
        crew_add(&seat->board->marks[0]);
    }
    while (state == tuttiInProgress)
        CLAIM(tuttiCommGetAsyncError(seat->comm, &state) == tuttiSuccess);
    CLAIM(state == tuttiSuccess);
    CLAIM(tuttiCommHostCount(seat->comm, &hosts) == tuttiSuccess && hosts == 1);
    CLAIM(tuttiCommFinalize(seat->comm) == tuttiSuccess);
    CLAIM(is_at(seat->comm, 1, 0, 1, 2));
    return tuttiSuccess;
}

static void places_are_known_from_the_end_of_forming_on(void **state)
{
    (void)state;
    run(2, false, ask_too_early);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_are_numbered_by_their_first_ranks_and_ranks_within_them),
        cmocka_unit_test(ranks_of_one_host_know_its_name),
        cmocka_unit_test(a_caller_who_knows_fewer_fields_gets_those),
        cmocka_unit_test(a_communicator_has_the_name_that_it_was_given),
        cmocka_unit_test(the_version_as_text_begins_with_that_of_the_header),
        cmocka_unit_test(wrong_arguments_are_named_and_change_nothing),
        cmocka_unit_test(places_are_known_from_the_end_of_forming_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
