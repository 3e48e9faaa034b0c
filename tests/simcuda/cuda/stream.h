/* SPDX-License-Identifier: Apache-2.0
 * A stream does its work in order, in a thread of its own. */
#ifndef TUTTI_TESTS_SIMCUDA_CUDA_STREAM_H
#define TUTTI_TESTS_SIMCUDA_CUDA_STREAM_H

#include "simcuda/cuda/capture.h"
#include "simcuda/cuda/state.h"
#include "simcuda/cuda/work.h"

/* Something that a stream does. Counted by its holders: the stream until it is done, events, and
 * what waits for it. */
struct sim_op {
    uint32_t nrefs;
    bool is_begun, is_done;
    struct sim_op *ahead; /* of the same hardware queue, which must begin before; held */
    uint64_t done_ns; /* by the clock; behind copies, by what those should take */
    struct tutti_cu_stream *stream; /* held */
    struct sim_work *work;          /* held */
    struct sim_op **earlier;        /* of other streams, that must be done before; held */
    uint32_t nearlier;
    struct sim_op *next;
};

struct tutti_cu_stream {
    struct tutti_cu_context *context;
    bool is_legacy, is_blocking; /* blocking: it and the legacy stream wait for each other */
    pthread_t owner;             /* of a thread's own default stream */
    bool is_of_thread;
    bool is_destroyed, has_worker;
    uint64_t number; /* no other stream of the process has it */
    uint32_t multiprocessors; /* that its kernels may use */
    uint32_t queue; /* the number of its hardware queue, from 1 on; 0: it has one of its own */
    uint32_t nrefs; /* the context until it is destroyed, each op, the worker */
    struct sim_op *first, *last; /* not done yet */
    struct sim_op *newest;       /* held; NULL: it never did anything */
    uint64_t time_ns;            /* when it had done what it did last */
    enum sim_work_kind did_last;
    pthread_cond_t has_more, has_done;
    struct sim_membership capture;
    struct tutti_cu_stream *next;
};

/* The stream of a handle: of the current context where it is a default one. */
int sim_stream_find(struct tutti_cu_stream *handle, struct tutti_cu_stream **ret_stream);

/* Give a stream, or the graph that it is captured into, something to do; takes the work over, in
 * every case. */
int sim_stream_do(struct tutti_cu_stream *stream, struct sim_work *work);
/* The same for a stream that is not captured, after other work that it waits for (may be NULL). */
void sim_stream_submit(struct tutti_cu_stream *stream, struct sim_work *work,
                       struct sim_op *earlier);

/* Wait until all that it was given is done. These give the lock away while they wait. */
void sim_stream_wait(struct tutti_cu_stream *stream);
void sim_context_wait(struct tutti_cu_context *context);
/* The same if SIMCUDA_WAITS is set. */
void sim_allocation_wait(struct tutti_cu_context *context);
void sim_op_wait(struct sim_op *op);
void sim_op_drop(struct sim_op *op);
void sim_stream_drop(struct tutti_cu_stream *stream);

/* A context ends, and its streams with it. */
void sim_streams_end(struct tutti_cu_context *context);

/* Counts streams that were not destroyed, without the default ones. */
uint32_t sim_streams_left(void);
uint32_t sim_events_left(void);

#endif
