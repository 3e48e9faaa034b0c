/* SPDX-License-Identifier: Apache-2.0
 * tuttiCommExplain reports the algorithm and transport by which calls then run. */
#include "support/crowd.h"
#include "support/stderr_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* ---- explained and run ----------------------------------------------------------------------- */

struct calls {
    bool is_library_memory;
    const char *transport; /* that must be told; NULL: what this system allows */
};

#define LENT " of lent memory"

static const size_t counts[] = {2, 3000, 300000};
#define MOST 300000

/* True if a line of the log that names the collective names the algorithm behind it. */
static bool is_logged(const char *log, const char *collective, const char *memory,
                      const char *algorithm)
{
    size_t length = strcspn(algorithm, "[");
    char word[128];

    snprintf(word, sizeof word, "%s runs by %.*s", memory, (int)length, algorithm);
    for (const char *line = log; *line != '\0'; line = strchr(line, '\n') + 1) {
        const char *end = strchr(line, '\n');
        const char *what = strstr(line, collective), *by = strstr(line, word);

        if (end == NULL)
            return false;
        if (what != NULL && by != NULL && what < by && by < end)
            return true;
    }
    return false;
}

static void call_and_compare(struct member *member, const char *name, size_t count, float *buffer)
{
    const struct calls *calls = member->context;
    tuttiExplanation_t told = {.size = sizeof told};
    bool is_reduction = strcmp(name, "allreduce") == 0;
    const char *log, *memory = "";

    if (!EXPECT_OK(member, tuttiCommExplain(member->comm, name, buffer, count, tuttiFloat32,
                                            tuttiSum, 0, &told)))
        return;
    if ((calls->transport != NULL && strcmp(told.transport, calls->transport) != 0) ||
        told.reason[0] == '\0')
        member_complain(member, "%s of %zu by %s, %s", name, count, told.transport, told.reason);
    if (member->rank == 0)
        stderr_text_begin();
    /* Twice: memory is lent to peers who have seen it before. */
    for (int i = 0; i < 2; i++)
        EXPECT_OK(member, is_reduction
                              ? tuttiAllReduce(buffer, buffer, count, tuttiFloat32, tuttiSum,
                                               member->comm, NULL)
                              : tuttiBroadcast(buffer, buffer, count, tuttiFloat32, 0, member->comm,
                                               NULL));
    if (member->rank != 0)
        return;
    log = stderr_text_end();
    /* A call that has a better way with lent memory is logged with both. */
    if (calls->is_library_memory && strstr(log, LENT) != NULL)
        memory = LENT;
    if (!is_logged(log, name, memory, told.algorithm))
        member_complain(member, "%s of %zu was to run by %s, but:\n%s", name, count,
                        told.algorithm, log);
}

static void compare_all(struct member *member)
{
    const struct calls *calls = member->context;
    float *buffer = NULL;

    if (calls->is_library_memory)
        EXPECT_OK(member, tuttiMemAlloc((void **)&buffer, MOST * sizeof *buffer));
    else
        buffer = calloc(MOST, sizeof *buffer);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        call_and_compare(member, "allreduce", counts[i], buffer);
        call_and_compare(member, "broadcast", counts[i], buffer);
    }
    if (calls->is_library_memory)
        EXPECT_OK(member, tuttiMemFree(buffer));
    else
        free(buffer);
}

static void what_is_told_is_what_runs(void **state)
{
    static const struct {
        const char *transports, *algorithm;
        enum launch launch;
        int nranks;
        struct calls calls;
    } cases[] = {
        {"self,tcp", NULL, LAUNCH_PROCESSES, 3, {false, "tcp"}},
        {"self,shm", NULL, LAUNCH_PROCESSES, 3, {false, "shm"}},
        {"self,shm,cma", NULL, LAUNCH_THREADS, 4, {false, "threads"}},
        {"self,shm", NULL, LAUNCH_PROCESSES, 2, {true, "shm"}},
        {"self,shm,cma", NULL, LAUNCH_PROCESSES, 2, {true, NULL}},
        {"self,shm,cma", NULL, LAUNCH_PROCESSES, 2, {false, NULL}},
        {"self,tcp", "allreduce:hybrid[doublings=1],broadcast:chain", LAUNCH_PROCESSES, 4,
         {false, "tcp"}},
    };

    (void)state;
    setenv("TUTTI_DEBUG", "trace", 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct calls calls = cases[i].calls;

        setenv("TUTTI_TRANSPORTS", cases[i].transports, 1);
        if (cases[i].algorithm != NULL)
            setenv("TUTTI_ALGORITHM", cases[i].algorithm, 1);
        world_run(cases[i].launch, cases[i].nranks, compare_all, &calls);
        unsetenv("TUTTI_ALGORITHM");
    }
    unsetenv("TUTTI_TRANSPORTS");
    unsetenv("TUTTI_DEBUG");
}

/* ---- who has chosen -------------------------------------------------------------------------- */

static void ask_who(struct member *member)
{
    tuttiExplanation_t told = {.size = sizeof told};

    EXPECT_OK(member, tuttiCommExplain(member->comm, "allreduce", NULL, 1 << 16, tuttiFloat32,
                                       tuttiSum, 0, &told));
    EXPECT(member, strcmp(told.algorithm, "hybrid[doublings=1]") == 0);
    EXPECT(member, strncmp(told.reason, "by TUTTI_ALGORITHM", 18) == 0);
    /* Only what the name is for. */
    EXPECT_OK(member, tuttiCommExplain(member->comm, "alltoallv", NULL, 5, tuttiInt8, tuttiSum, 0,
                                       &told));
    EXPECT(member, strstr(told.reason, "TUTTI_ALGORITHM") == NULL);
    EXPECT_OK(member, tuttiCommExplain(member->comm, "gatherv", NULL, 5, tuttiInt8, tuttiSum, 1,
                                       &told));
    EXPECT(member, strcmp(told.algorithm, "linear") == 0);
    EXPECT_OK(member, tuttiCommExplain(member->comm, "barrier", NULL, 0, tuttiInt8, tuttiSum, 0,
                                       &told));
    EXPECT(member, strcmp(told.algorithm, "none") != 0);
    EXPECT_OK(member, tuttiCommExplain(member->comm, "reduce", NULL, 0, tuttiInt8, tuttiSum, 0,
                                       &told));
    EXPECT(member, strcmp(told.algorithm, "none") == 0);
}

static void the_one_that_chose_is_named(void **state)
{
    (void)state;
    setenv("TUTTI_ALGORITHM", "allreduce:hybrid[doublings=1]", 1);
    setenv("TUTTI_TRANSPORTS", "self,tcp", 1);
    world_run(LAUNCH_PROCESSES, 4, ask_who, NULL);
    unsetenv("TUTTI_TRANSPORTS");
    unsetenv("TUTTI_ALGORITHM");
}

static void ask_alone(struct member *member)
{
    tuttiExplanation_t told = {.size = sizeof told};

    EXPECT_OK(member, tuttiCommExplain(member->comm, "allgather", NULL, 8, tuttiFloat16, tuttiSum,
                                       0, &told));
    EXPECT(member, strcmp(told.algorithm, "copy") == 0 && strcmp(told.transport, "self") == 0);
}

static void one_rank_copies(void **state)
{
    (void)state;
    world_run(LAUNCH_PROCESSES, 1, ask_alone, NULL);
}

/* ---- mistakes -------------------------------------------------------------------------------- */

static void make_mistakes(struct member *member)
{
    static const struct {
        const char *collective;
        int type, op, root;
        size_t size;
        const char *word; /* of the message */
    } cases[] = {
        {"allreduces", tuttiInt8, tuttiSum, 0, sizeof(tuttiExplanation_t), "\"allreduces\""},
        {"", tuttiInt8, tuttiSum, 0, sizeof(tuttiExplanation_t), "is no collective"},
        {"v", tuttiInt8, tuttiSum, 0, sizeof(tuttiExplanation_t), "is no collective"},
        {"broadcastv", tuttiInt8, tuttiSum, 0, sizeof(tuttiExplanation_t), "is no collective"},
        {NULL, tuttiInt8, tuttiSum, 0, sizeof(tuttiExplanation_t), "is no collective"},
        {"reduce", tuttiNumTypes, tuttiSum, 0, sizeof(tuttiExplanation_t), "datatype"},
        {"reduce", tuttiInt8, tuttiNumOps, 0, sizeof(tuttiExplanation_t), "op 11"},
        {"reduce", tuttiInt8, tuttiSum, 2, sizeof(tuttiExplanation_t), "root 2"},
        {"reduce", tuttiInt8, tuttiSum, -1, sizeof(tuttiExplanation_t), "root -1"},
        {"reduce", tuttiInt8, tuttiSum, 0, 0, "size is 0"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tuttiExplanation_t told = {.size = cases[i].size, .algorithm = "as before"};

        EXPECT_RESULT(member, tuttiInvalidArgument,
                      tuttiCommExplain(member->comm, cases[i].collective, NULL, 1,
                                       (tuttiDataType_t)cases[i].type, (tuttiRedOp_t)cases[i].op,
                                       cases[i].root, &told));
        if (strstr(tuttiGetLastError(NULL), cases[i].word) == NULL)
            member_complain(member, "case %zu: %s", i, tuttiGetLastError(NULL));
        EXPECT(member, strcmp(told.algorithm, "as before") == 0);
    }
    EXPECT_RESULT(member, tuttiInvalidArgument,
                  tuttiCommExplain(member->comm, "barrier", NULL, 0, tuttiInt8, tuttiSum, 0, NULL));
    EXPECT_RESULT(member, tuttiInvalidArgument,
                  tuttiCommExplain(NULL, "barrier", NULL, 0, tuttiInt8, tuttiSum, 0, NULL));
}

static void mistakes_are_refused_and_leave_the_answer_alone(void **state)
{
    (void)state;
    world_run(LAUNCH_PROCESSES, 2, make_mistakes, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_told_is_what_runs),
        cmocka_unit_test(the_one_that_chose_is_named),
        cmocka_unit_test(one_rank_copies),
        cmocka_unit_test(mistakes_are_refused_and_leave_the_answer_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
