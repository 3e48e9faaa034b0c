/* SPDX-License-Identifier: Apache-2.0
 * Captures streams: the work that a captured stream gets becomes nodes of a graph. A stream joins
 * a capture when it waits for an event of it. All functions need the lock. */
#ifndef TUTTI_TESTS_SIMCUDA_CUDA_CAPTURE_H
#define TUTTI_TESTS_SIMCUDA_CUDA_CAPTURE_H

#include "simcuda/cuda/state.h"

struct sim_work;

/* Counted by its members, and by the list of those that go on. */
struct sim_capture {
    uint32_t nrefs;
    unsigned long long id;
    int mode; /* TUTTI_CU_CAPTURE_GLOBAL ... */
    pthread_t owner;
    bool is_invalid, is_over;
    struct tutti_cu_stream *origin;
    struct tutti_cu_graph *graph;
    struct sim_capture *next;
};

/* A stream's, or an event's, place in a capture: the nodes that what follows comes after. */
struct sim_membership {
    struct sim_capture *capture; /* held; NULL: in none */
    uint32_t nfront;
    uint32_t *front;
};

void sim_membership_copy(struct sim_membership *ret_membership,
                         const struct sim_membership *membership);
void sim_membership_leave(struct sim_membership *membership);
/* True if the stream is in a capture that has not ended. */
bool sim_membership_is_active(const struct sim_membership *membership);

/* 0; INVALIDATED. */
int sim_capture_status(const struct sim_capture *capture);
/* One node more; where that works the graph has the work. */
int sim_capture_add(struct sim_membership *membership, struct sim_work *work);
/* A stream waits for an event where one of them is captured. */
int sim_capture_wait(struct tutti_cu_stream *stream, const struct sim_membership *event,
                     bool is_recorded_elsewhere);

/* The following invalidate captures that they must not meet. A call that is unsafe while the
 * calling thread, or any, captures, as its mode has it: */
int sim_capture_forbids(void);
/* Asking a captured stream how far it is, or ending it: */
int sim_capture_touches(struct tutti_cu_stream *stream);
int sim_capture_touches_event(const struct sim_membership *event);
/* Using the legacy stream beside one that is captured and would have to wait for it: */
int sim_capture_legacy(struct tutti_cu_stream *stream);
/* A stream that goes away with its context. */
void sim_capture_end_stream(struct tutti_cu_stream *stream);

#endif
