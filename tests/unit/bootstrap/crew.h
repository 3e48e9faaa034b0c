/* SPDX-License-Identifier: Apache-2.0
 * One thread drives many ranks of one bootstrap, so no call may block. */
#ifndef TUTTI_TESTS_CREW_H
#define TUTTI_TESTS_CREW_H

#include "base/clock.h"
#include "base/result.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/exchange.h"

#include <stdbool.h>
#include <stdint.h>

#define CREW_MAX 512

/* How the ranks meet. */
enum meeting { BY_ID, BY_TCP, BY_UNIX, BY_FILE, MEETING_COUNT };
extern const char *const meeting_names[MEETING_COUNT];

struct crew {
    enum meeting meeting;
    int count;
    struct tutti_bootstrap *boots[CREW_MAX];
    int rc[CREW_MAX];                            /* of the current round */
    char message[CREW_MAX][TUTTI_MESSAGE_BYTES]; /* of a failure */
    uint8_t id[TUTTI_UNIQUE_ID_SIZE];
    const char *name; /* of the communicator that ranks added from now on form; NULL: none */
    char url[128];
    char directory[64];
};

/* Enough for any machine; tests that wait for a deadline take a short one. */
#define PLENTY_NS (120 * TUTTI_NS_PER_S)

/* A place to meet: an id, a free port, or a fresh directory. */
void crew_open(struct crew *crew, enum meeting meeting);

/* One more rank, as it calls itself. */
void crew_add(struct crew *crew, int nranks, int rank, uint64_t deadline_ns, const char *secret);

/* `nranks` ranks that agree. */
void crew_fill(struct crew *crew, int nranks, uint64_t deadline_ns);

/* One round with records of `size` bytes, until all have finished one way or the other. Sleeps on
 * the descriptors that the ranks give, and fails the test when nothing moves. */
void crew_round(struct crew *crew, size_t size);

/* A step of each rank, without waiting for anything. */
void crew_step(struct crew *crew, size_t size);

void crew_step_one(struct crew *crew, int index, size_t size);

/* Destroy one rank / all of them, and the place. The directory must be gone or empty. */
void crew_leave(struct crew *crew, int index, const char *reason);
void crew_close(struct crew *crew);

/* All ranks ended the round with `rc`, and all failures say `words`. */
void crew_expect(const struct crew *crew, int rc, const char *words);

/* The knowledge of the place that a rank of the crew with this secret has, for tests that imitate
 * one. BY_TCP. */
void crew_place(const struct crew *crew, const char *secret, struct tutti_meeting_place *ret_place);

/* The port in an id or in a "tcp:" URL, for strangers who want to call. */
int crew_call(const struct crew *crew);

#endif
