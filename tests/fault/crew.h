/* SPDX-License-Identifier: Apache-2.0
 * A crew is the ranks of one communicator as processes, or as threads of one process. It is forked
 * from a test that has not called the library itself, so that each crew may have its own
 * environment.
 *
 * Each rank forms the communicator, runs the test's function and reports into memory that it
 * shares with the test. A rank that does not end in time hangs. It is killed, and the test fails.
 */
#ifndef TUTTI_TESTS_CREW_H
#define TUTTI_TESTS_CREW_H

#include "tutti.h"

#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { CREW_MOST = 8, CREW_TEXT_BYTES = 1024, CREW_MARKS = 8 };

struct crew_report {
    tuttiResult_t result;         /* of the function; tuttiNumResults while it runs */
    char text[CREW_TEXT_BYTES];   /* why, when not tuttiSuccess */
    bool is_over;                 /* the rank has ended in good order */
    int wait_status;              /* of its process */
};

/* Shared by the test and all ranks. */
struct crew_board {
    sem_t id_is_there;
    tuttiUniqueId id;
    uint32_t marks[CREW_MARKS];   /* the test's own; atomic */
    uint32_t steps[CREW_MOST];    /* how far each rank is; atomic */
    struct crew_report reports[CREW_MOST];
};

struct crew;

/* The arguments of a rank's function. */
struct crew_seat {
    struct crew_board *board;
    const struct crew *crew;
    int rank, nranks;
    tuttiComm_t comm;             /* destroyed when the function has returned, if not NULL */
};

struct crew {
    int nranks;
    bool is_threads;              /* of one process; else a process each */
    const char *const *environment; /* NAME, value, NAME, value, ..., NULL; NULL: none */
    int timeout_ms;               /* of operations; 0: none */
    const char *name;             /* of the communicator; NULL: none */
    bool forms_itself;            /* the function makes its communicator */
    tuttiResult_t (*run)(struct crew_seat *seat);
    /* Done by the test while the ranks run; may be NULL. pids[] are the ranks' processes. */
    void (*meddle)(const struct crew *crew, struct crew_board *board, const pid_t *pids);
    const void *context;
};

/* Run it. The board, with all reports, is valid until crew_clear. Ranks that were not killed by
 * meddle (SIGKILL) must have ended with exit status 0, or this fails the test. */
struct crew_board *crew_run(const struct crew *crew);
void crew_clear(struct crew_board *board);

/* For ranks: the id that rank 0 has made. */
tuttiUniqueId crew_share_id(struct crew_seat *seat);

/* Atomic counters of the board. crew_await polls until *counter >= least; false after some
 * seconds. */
uint32_t crew_load(const uint32_t *counter);
void crew_add(uint32_t *counter);
bool crew_await(const uint32_t *counter, uint32_t least);

/* Where tests loop over is_threads: from false to true, or true alone under the thread sanitizer,
 * which sees nothing of what processes share. */
#ifdef __SANITIZE_THREAD__
enum { CREW_FIRST_LAUNCH = true };
#else
enum { CREW_FIRST_LAUNCH = false };
#endif

/* Every communication call by one description. */
enum crew_kind {
    CREW_ALLREDUCE, CREW_REDUCE, CREW_BROADCAST, CREW_ALLGATHER, CREW_REDUCE_SCATTER, CREW_ALLTOALL,
    CREW_GATHER, CREW_SCATTER, CREW_BARRIER, CREW_ALLGATHERV, CREW_REDUCE_SCATTERV, CREW_ALLTOALLV,
    CREW_GATHERV, CREW_SCATTERV, CREW_SCAN, CREW_EXCLUSIVE_SCAN, CREW_SENDRECV, CREW_KINDS
};
extern const char *const crew_names[CREW_KINDS];

struct crew_call {
    enum crew_kind kind;
    size_t count;
    tuttiDataType_t type;
    tuttiRedOp_t op;
    int root;
};

/* Make the call with buffers of its own, which are freed. CREW_SENDRECV goes round the ranks. */
tuttiResult_t crew_call(struct crew_seat *seat, const struct crew_call *call);

/* The ways that collectives take: NAME, value, ..., NULL. */
struct crew_way {
    const char *name;
    const char *environment[8];
};
extern const struct crew_way crew_ways[];
extern const int crew_way_count;

/* Open descriptors and threads of this process. */
int crew_count_fds(void);
int crew_count_threads(void);

/* The wait status of a forked child that runs `body` and exits with what that returns. Forks when all
 * other threads sleep: one that starts or ends may hold a lock of a sanitizer's allocator, which
 * nothing would release in the child. */
int crew_fork(int (*body)(void *context), void *context);

/* Returns the object behind a handle, for tests that inspect it. NULL means that it is no
 * communicator. The handle stays the caller's, which must not destroy it meanwhile. */
struct tutti_comm *crew_look_inside(tuttiComm_t handle);

#endif
