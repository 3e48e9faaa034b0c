/* SPDX-License-Identifier: Apache-2.0
 * Tries every way to form a communicator and every way to end one. All calls are right in each of
 * them. */
#include "suites.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

enum { ALONE_RANKS = 5, PLACE_BYTES = 64, RECORD_BYTES = 1 << 16 };

static void run_everywhere(member_fn fn, void *context)
{
    static const int sizes[] = {1, 2, 3, 8};

    for (int launch = 0; launch < LAUNCH_COUNT; launch++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            crowd_run(launch, sizes[i], fn, context);
}

/* The communicator knows who it is, and works. */
static void use(struct member *member)
{
    int count = -1, rank = -1;
    tuttiResult_t state = tuttiInternalError;

    EXPECT_OK(member, tuttiCommCount(member->comm, &count));
    EXPECT_OK(member, tuttiCommUserRank(member->comm, &rank));
    EXPECT_OK(member, tuttiCommGetAsyncError(member->comm, &state));
    EXPECT(member, count == member->nranks && rank == member->rank && state == tuttiSuccess);
    suite_every_act(member);
}

static void use_and_destroy(struct member *member)
{
    use(member);
    EXPECT_OK(member, tuttiCommDestroy(member->comm));
}

/* A directory, or an address of this host at which no process listens. */
static void find_directory(char place[PLACE_BYTES])
{
    snprintf(place, PLACE_BYTES, "file:/tmp/tutti-test-XXXXXX");
    assert_non_null(mkdtemp(place + strlen("file:")));
}

static void find_address(const char *prefix, char place[PLACE_BYTES])
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    close(fd);
    snprintf(place, PLACE_BYTES, "%s127.0.0.1:%u", prefix, ntohs(address.sin_port));
}

/* ---- by an id -------------------------------------------------------------------------------- */

static void join_by_id(struct member *member)
{
    tuttiUniqueId id;

    /* Twice: an id is for one communicator, a process for many. */
    for (int turn = 0; turn < 2; turn++) {
        member_share_id(member, &id);
        if (!EXPECT_OK(member, tuttiCommInitRank(&member->comm, member->nranks, id, member->rank)))
            return;
        use_and_destroy(member);
    }
}

static void an_id_joins_all_ranks(void **state)
{
    (void)state;
    run_everywhere(join_by_id, NULL);
}

static void join_slowly(struct member *member)
{
    tuttiConfig_t config = crowd_config();
    tuttiResult_t state = tuttiInProgress;
    tuttiUniqueId id;

    config.blocking = 0;
    config.commName = "slow";
    member_share_id(member, &id);
    if (!EXPECT_RESULT(member, member->nranks == 1 ? tuttiSuccess : tuttiInProgress,
                       tuttiCommInitRankConfig(&member->comm, member->nranks, id, member->rank,
                                               &config)))
        return;
    while (state == tuttiInProgress) {
        if (!EXPECT_OK(member, tuttiCommGetAsyncError(member->comm, &state)))
            return;
        sched_yield();
    }
    EXPECT_RESULT(member, tuttiSuccess, state);
    use_and_destroy(member);
}

static void initialization_may_go_on_in_queries(void **state)
{
    (void)state;
    run_everywhere(join_slowly, NULL);
}

static void join_in_group(struct member *member)
{
    struct member members[ALONE_RANKS];
    tuttiConfig_t config = crowd_config();
    tuttiUniqueId id;
    int32_t one = 1, sums[ALONE_RANKS] = {0};

    member_share_id(member, &id);
    EXPECT_OK(member, tuttiGroupStart());
    for (int i = 0; i < ALONE_RANKS; i++) {
        members[i] = (struct member){.rank = i, .nranks = ALONE_RANKS, .crowd = member->crowd};
        EXPECT_OK(member, tuttiCommInitRankConfig(&members[i].comm, ALONE_RANKS, id, i, &config));
    }
    if (!EXPECT_OK(member, tuttiGroupEnd()))
        return;
    EXPECT_OK(member, tuttiGroupStart());
    for (int i = 0; i < ALONE_RANKS; i++)
        EXPECT_OK(member, tuttiAllReduce(&one, &sums[i], 1, tuttiInt32, tuttiSum, members[i].comm,
                                         NULL));
    EXPECT_OK(member, tuttiGroupEnd());
    for (int i = 0; i < ALONE_RANKS; i++) {
        EXPECT(member, sums[i] == ALONE_RANKS);
        EXPECT_OK(member, tuttiCommDestroy(members[i].comm));
    }
}

static void one_thread_joins_all_ranks_in_a_group(void **state)
{
    (void)state;
    crowd_run(LAUNCH_PROCESSES, 1, join_in_group, NULL);
}

static void *use_in_thread(void *context)
{
    use_and_destroy(context);
    return NULL;
}

static void init_all(struct member *member)
{
    struct member members[ALONE_RANKS];
    tuttiComm_t comms[ALONE_RANKS];
    pthread_t threads[ALONE_RANKS];

    if (!EXPECT_OK(member, tuttiCommInitAll(comms, ALONE_RANKS, NULL)))
        return;
    for (int i = 0; i < ALONE_RANKS; i++) {
        members[i] = (struct member){.rank = i, .nranks = ALONE_RANKS, .comm = comms[i],
                                     .crowd = member->crowd};
        EXPECT(member, pthread_create(&threads[i], NULL, use_in_thread, &members[i]) == 0);
    }
    for (int i = 0; i < ALONE_RANKS; i++)
        pthread_join(threads[i], NULL);
}

static void ranks_of_one_call_serve_threads(void **state)
{
    (void)state;
    crowd_run(LAUNCH_PROCESSES, 1, init_all, NULL);
}

/* ---- by a store ------------------------------------------------------------------------------ */

static void join_by_store(struct member *member)
{
    tuttiConfig_t config = crowd_config();

    if (EXPECT_OK(member, tuttiCommInitStore(&member->comm, member->nranks, member->rank,
                                             member->context, "our secret", &config)))
        use_and_destroy(member);
}

static void a_directory_joins_all_ranks_and_is_left_empty(void **state)
{
    static const int sizes[] = {1, 2, 5};
    char place[PLACE_BYTES];

    (void)state;
    for (int launch = 0; launch < LAUNCH_COUNT; launch++) {
        find_directory(place);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            crowd_run(launch, sizes[i], join_by_store, place);
        assert_int_equal(rmdir(place + strlen("file:")), 0);
    }
}

static void an_address_joins_all_ranks(void **state)
{
    static const int sizes[] = {1, 2, 5};
    char place[PLACE_BYTES];

    (void)state;
    for (int launch = 0; launch < LAUNCH_COUNT; launch++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            find_address("tcp:", place);
            crowd_run(launch, sizes[i], join_by_store, place);
        }
}

/* ---- by the caller's all-gather -------------------------------------------------------------- */

static uint8_t *records;

static int gather(void *context, const void *input, void *output, size_t bytes)
{
    struct member *member = context;

    if (bytes * (size_t)member->nranks > RECORD_BYTES)
        return 1;
    memcpy(records + (size_t)member->rank * bytes, input, bytes);
    member_meet(member);
    memcpy(output, records, (size_t)member->nranks * bytes);
    member_meet(member);
    return 0;
}

static void join_by_callback(struct member *member)
{
    tuttiConfig_t config = crowd_config();

    if (EXPECT_OK(member, tuttiCommInitCallback(&member->comm, member->nranks, member->rank, gather,
                                                member, &config)))
        use_and_destroy(member);
}

static void an_all_gather_of_the_caller_joins_all_ranks(void **state)
{
    (void)state;
    records = mmap(NULL, RECORD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(records != MAP_FAILED);
    run_everywhere(join_by_callback, NULL);
    munmap(records, RECORD_BYTES);
}

static int refuse(void *context, const void *input, void *output, size_t bytes)
{
    (void)context, (void)input, (void)output, (void)bytes;
    return 1;
}

static void join_by_refusal(struct member *member)
{
    tuttiResult_t result = tuttiCommInitCallback(&member->comm, 2, member->rank, refuse, NULL,
                                                 NULL);

    EXPECT(member, result != tuttiSuccess && result != tuttiInProgress);
    EXPECT(member, member->comm == NULL);
}

static void an_all_gather_that_fails_is_an_error(void **state)
{
    (void)state;
    crowd_run(LAUNCH_PROCESSES, 1, join_by_refusal, NULL);
}

/* ---- by the environment ---------------------------------------------------------------------- */

static void join_from_env(struct member *member)
{
    tuttiConfig_t config = crowd_config();
    char text[16];

    snprintf(text, sizeof text, "%d", member->rank);
    setenv("TUTTI_RANK", text, 1);
    snprintf(text, sizeof text, "%d", member->nranks);
    setenv("TUTTI_NRANKS", text, 1);
    setenv("TUTTI_ROOT", member->context, 1);
    setenv("TUTTI_SECRET", "our secret", 1);
    if (EXPECT_OK(member, tuttiCommInitFromEnv(&member->comm, &config)))
        use_and_destroy(member);
}

static void the_environment_joins_all_ranks(void **state)
{
    static const int sizes[] = {1, 2, 5};
    char place[PLACE_BYTES];

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        find_address("", place);
        crowd_run(LAUNCH_PROCESSES, sizes[i], join_from_env, place);
        find_directory(place);
        crowd_run(LAUNCH_PROCESSES, sizes[i], join_from_env, place);
        assert_int_equal(rmdir(place + strlen("file:")), 0);
    }
}

static void join_nobody(struct member *member)
{
    if (EXPECT_OK(member, tuttiCommInitFromEnv(&member->comm, NULL)))
        use_and_destroy(member);
}

static void join_nonsense(struct member *member)
{
    setenv("TUTTI_RANK", "many", 1);
    setenv("TUTTI_NRANKS", "2", 1);
    EXPECT_RESULT(member, tuttiInvalidUsage, tuttiCommInitFromEnv(&member->comm, NULL));
    EXPECT(member, strstr(tuttiGetLastError(NULL), "TUTTI_RANK") != NULL);
}

static void an_environment_without_a_job_is_one_rank_and_a_wrong_one_an_error(void **state)
{
    (void)state;
    crowd_run(LAUNCH_PROCESSES, 1, join_nobody, NULL);
    crowd_run(LAUNCH_PROCESSES, 1, join_nonsense, NULL);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void finalize(struct member *member)
{
    int count = -1;

    use(member);
    EXPECT_OK(member, tuttiCommFinalize(member->comm));
    EXPECT_OK(member, tuttiCommCount(member->comm, &count));
    EXPECT(member, count == member->nranks);
    EXPECT_RESULT(member, tuttiInvalidUsage, tuttiBarrier(member->comm, NULL));
}

static void after_finalize_only_queries_are_allowed(void **state)
{
    (void)state;
    for (int launch = 0; launch < LAUNCH_COUNT; launch++)
        for (int nranks = 1; nranks < 5; nranks++)
            world_run(launch, nranks, finalize, NULL);
}

/* All but the last wait for what never comes. */
static void abort_waiters(struct member *member)
{
    tuttiResult_t state = tuttiSuccess, result;

    use(member);
    if (member->rank == member->nranks - 1) {
        EXPECT_OK(member, tuttiCommAbort(member->comm));
    } else {
        result = tuttiBarrier(member->comm, NULL);
        EXPECT(member, result == tuttiRemoteError || result == tuttiInvalidUsage);
    }
    EXPECT_OK(member, tuttiCommGetAsyncError(member->comm, &state));
    EXPECT(member, state == tuttiRemoteError || state == tuttiInvalidUsage);
    EXPECT(member, *tuttiGetLastError(member->comm) != '\0');
    EXPECT_RESULT(member, state, tuttiBarrier(member->comm, NULL));
}

static void abort_ends_the_waits_of_all_ranks(void **state)
{
    (void)state;
    for (int launch = 0; launch < LAUNCH_COUNT; launch++)
        for (int nranks = 1; nranks < 5; nranks++)
            world_run(launch, nranks, abort_waiters, NULL);
}

static void misuse(struct member *member)
{
    tuttiUniqueId id, zero = {{0}};
    tuttiComm_t comm = NULL;
    int version = 0;

    EXPECT_OK(member, tuttiGetVersion(&version));
    EXPECT(member, version == TUTTI_VERSION_CODE);
    EXPECT_RESULT(member, tuttiInvalidArgument, tuttiGetUniqueId(NULL));
    EXPECT_OK(member, tuttiGetUniqueId(&id));
    EXPECT_RESULT(member, tuttiInvalidArgument, tuttiCommInitRank(NULL, 1, id, 0));
    EXPECT_RESULT(member, tuttiInvalidArgument, tuttiCommInitRank(&comm, 0, id, 0));
    EXPECT_RESULT(member, tuttiInvalidArgument, tuttiCommInitRank(&comm, 2, id, 2));
    EXPECT_RESULT(member, tuttiInvalidArgument, tuttiCommInitRank(&comm, 2, id, -1));
    EXPECT_RESULT(member, tuttiInvalidArgument, tuttiCommInitRank(&comm, 1, zero, 0));
    EXPECT_RESULT(member, tuttiInvalidArgument, tuttiCommInitAll(NULL, 1, NULL));
    EXPECT_RESULT(member, tuttiInvalidArgument, tuttiCommInitAll(&comm, 0, NULL));
    EXPECT(member, comm == NULL);
    EXPECT_OK(member, tuttiCommDestroy(NULL));
    EXPECT_RESULT(member, tuttiInvalidArgument, tuttiBarrier(NULL, NULL));
    for (int i = -1; i <= tuttiNumResults; i++)
        EXPECT(member, *tuttiGetErrorString((tuttiResult_t)i) != '\0');
}

static void wrong_arguments_are_refused(void **state)
{
    (void)state;
    crowd_run(LAUNCH_PROCESSES, 1, misuse, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_id_joins_all_ranks),
        cmocka_unit_test(initialization_may_go_on_in_queries),
        cmocka_unit_test(one_thread_joins_all_ranks_in_a_group),
        cmocka_unit_test(ranks_of_one_call_serve_threads),
        cmocka_unit_test(a_directory_joins_all_ranks_and_is_left_empty),
        cmocka_unit_test(an_address_joins_all_ranks),
        cmocka_unit_test(an_all_gather_of_the_caller_joins_all_ranks),
        cmocka_unit_test(an_all_gather_that_fails_is_an_error),
        cmocka_unit_test(the_environment_joins_all_ranks),
        cmocka_unit_test(an_environment_without_a_job_is_one_rank_and_a_wrong_one_an_error),
        cmocka_unit_test(after_finalize_only_queries_are_allowed),
        cmocka_unit_test(abort_ends_the_waits_of_all_ranks),
        cmocka_unit_test(wrong_arguments_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
