/* SPDX-License-Identifier: Apache-2.0
 * Runs many ranks for one test, as threads of a process, as processes, or mixed.
 *
 * Ranks always run in forked children. So each run reads its own environment, and a rank that
 * crashes makes the test fail instead of ending it. The calling process must not use the library.
 * Ranks write their complaints to shared memory, and the caller's cmocka test fails with these. */
#ifndef TUTTI_TEST_CROWD_H
#define TUTTI_TEST_CROWD_H

#include <stdbool.h>
#include <stddef.h>
#include <tutti.h>

enum launch {
    LAUNCH_THREADS,   /* all ranks are threads of one process */
    LAUNCH_PROCESSES, /* one process per rank */
    LAUNCH_MIXED,     /* two processes; even ranks are threads of the one, odd ones of the other */
    LAUNCH_COUNT
};

extern const char *const launch_names[LAUNCH_COUNT];

/* The number of a launch by its name, -1 if there is none. */
int launch_find(const char *name);

/* False for processes under the thread sanitizer, which sees nothing of what these share. */
bool launch_is_watched(enum launch launch);

struct crowd;

/* One rank, as it sees itself. */
struct member {
    int rank, nranks;
    tuttiComm_t comm; /* formed by world_run; NULL in crowd_run */
    void *context;    /* as given; a copy of the caller's memory in another process */
    struct crowd *crowd;
};

typedef void (*member_fn)(struct member *member);

/* Run `fn` once per rank; returns when all have returned. Fails the running cmocka test when a
 * rank complained, or when a process died; then the others are killed. */
void crowd_run(enum launch launch, int nranks, member_fn fn, void *context);

/* The same, with a communicator of all ranks, formed before and destroyed after. */
void world_run(enum launch launch, int nranks, member_fn fn, void *context);

/* Write down what is wrong; the first few complaints of a crowd are kept. */
void member_complain(struct member *member, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Whether any rank has complained. */
bool member_is_unhappy(const struct member *member);

/* Wait for all members of the crowd, without the library. */
void member_meet(struct member *member);

/* Gets the id that rank 0 makes for all ranks. Collective over the crowd; may be called
 * again. */
void member_share_id(struct member *member, tuttiUniqueId *ret_id);

/* The configuration of the tests: a hang becomes an error within a minute. */
tuttiConfig_t crowd_config(void);

/* Complain about a false claim; the text says what and where. Gives the claim. */
#define EXPECT(member, claim)                                                                \
    ((claim) ? true                                                                          \
             : (member_complain((member), "%s:%d: %s is not so", __FILE__, __LINE__, #claim), \
                false))

/* Complain unless `call` gives the result `wanted`; with the library's own message. */
#define EXPECT_RESULT(member, wanted, call)                                                    \
    expect_result((member), (wanted), (call), #call, __FILE__, __LINE__)
#define EXPECT_OK(member, call) EXPECT_RESULT(member, tuttiSuccess, call)

bool expect_result(struct member *member, tuttiResult_t wanted, tuttiResult_t got,
                   const char *call, const char *file, int line);

#endif
