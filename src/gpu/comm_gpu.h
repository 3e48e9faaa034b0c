/* SPDX-License-Identifier: Apache-2.0
 * A communicator's rank on a GPU: calls on device memory.
 *
 * Where all ranks form a domain of GPUs (executor/cuda/gpu.h), a call on device memory is a kernel that
 * is enqueued on the caller's stream. Elsewhere it goes through the host (stage.c): the rank
 * copies its input out, the host's executor runs the call as any other, the rank copies the result
 * in; all of that in the order of the caller's stream, too. So ranks on GPUs and ranks on CPUs may
 * be of one communicator.
 *
 * Calls that run as kernels count by themselves: they keep their order among each other, while
 * calls on host memory keep theirs. */
#ifndef TUTTI_GPU_COMM_GPU_H
#define TUTTI_GPU_COMM_GPU_H

#include "executor/cuda/gpu.h"
#include "queue/batch.h"

struct tutti_comm_gpu {
    struct tutti_gpu *gpu;
    bool has_domain;
    uint8_t calls_on_host;        /* the last call with a buffer was on host memory; atomic */
    struct tutti_history history; /* of calls that ran as kernels: the calling thread's */
    struct tutti_gpu_programs *programs; /* of named algorithms; NULL until needed */
    uint64_t *sequences;          /* of messages that did: [2][nranks], receives, sends */

    /* Forming. */
    struct tutti_batch *batch;    /* an all-gather on its way */
    uint8_t *messages;            /* [nranks] */

    /* Watching (watch.c): while something is on its way. */
    pthread_t watcher;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool has_watcher, is_busy, is_ending; /* under the lock */
    bool is_stuck;                /* failed, and what it enqueued never ended: it owns its memory */

    /* Through the host (stage.c). */
    tuttiStream_t stage;          /* where calls run, in their order; NULL until needed */
    struct tutti_stage *stages;   /* page-locked memory, in use or not: under the lock */
    size_t staged_bytes;          /* of all of them */
    bool has_captured;            /* calls, in graphs that may be replayed at any time */
};

/* ---- life (comm_gpu.c) -------------------------------------------------------------------- */

/* The device that a new communicator's rank is on: `wanted`, an ordinal, -1: none; or with
 * TUTTI_CONFIG_UNDEF_INT that of `parent`, or if there is none (NULL) that of the thread's current
 * context, if any. The rank takes hold of it. */
int tutti_comm_gpu_open(struct tutti_comm *comm, int wanted, const struct tutti_comm *parent);

/* All ranks have GPUs: meet. Resumable; uses the communicator's own all-gathers. */
int tutti_comm_gpu_form(struct tutti_comm *comm);

/* Waits for what was enqueued, ends it if the communicator has failed. */
void tutti_comm_gpu_drain(struct tutti_comm *comm);
void tutti_comm_gpu_free(struct tutti_comm *comm);

/* ---- calls (call.c) ----------------------------------------------------------------------- */

bool tutti_gpu_is_device_memory(const struct tutti_comm *comm, const void *buffer);

/* Is it a call on device memory? TUTTI_ERR_ARGUMENT: of the one buffer, not of the other. */
int tutti_gpu_place(const struct tutti_comm *comm, const char *function, const void *send,
                    size_t send_bytes, const void *recv, size_t recv_bytes, tuttiStream_t stream,
                    bool *ret_is_on_gpu);

/* Can the device read what the call is to be multiplied by? */
int tutti_gpu_check_scalar(const struct tutti_comm *comm, const char *function,
                           const struct tutti_call *call);

/* Run a call on device memory: enqueue it, or with stream NULL complete it. */
int tutti_gpu_call(struct tutti_comm *comm, const struct tutti_call *call, tuttiStream_t stream);

/* The same in a group: calls are collected, then launched together. */
struct tutti_gpu_part;
int tutti_gpu_part_add(struct tutti_gpu_part **parts, struct tutti_comm *comm,
                       const struct tutti_call *call, tuttiStream_t stream);
/* Call `index` of those collected on `comm`; NULL: there are fewer. */
const struct tutti_call *tutti_gpu_part_call(const struct tutti_gpu_part *parts,
                                             const struct tutti_comm *comm, size_t index);
int tutti_gpu_parts_launch(struct tutti_gpu_part *parts);
/* Wait for those with stream NULL. */
int tutti_gpu_parts_wait(struct tutti_gpu_part *parts);
void tutti_gpu_parts_free(struct tutti_gpu_part *parts);

/* ---- programs (programs.c) ----------------------------------------------------------------- */

/* By what the call runs if somebody has named an algorithm for it; NULL: as kernels like. Valid
 * until the next call of this. */
int tutti_gpu_programs_find(struct tutti_comm *comm, const struct tutti_call *call,
                            const struct tutti_gpu_stored **ret_stored);
void tutti_gpu_programs_fini(struct tutti_comm *comm);

/* ---- watching (watch.c) -------------------------------------------------------------------- */

/* Something has been enqueued: see to it that nothing waits for ever. */
int tutti_gpu_watch(struct tutti_comm *comm);
void tutti_gpu_watch_end(struct tutti_comm *comm);
/* Until everything enqueued is complete, or the communicator has failed. */
int tutti_gpu_wait(struct tutti_comm *comm);

/* ---- through the host (stage.c) ------------------------------------------------------------- */

/* Enqueue the calls of a group, or one: all at the same time, as far as they are messages. */
int tutti_gpu_stage_calls(struct tutti_comm *comm, const struct tutti_call *const *calls,
                          size_t count, struct tutti_cu_stream *stream, bool is_captured);
/* The communicator has failed: let calls have their turn, to fail, though the driver may never come
 * to them. Any thread. */
void tutti_gpu_stage_give_up(struct tutti_comm *comm);
void tutti_gpu_stage_fini(struct tutti_comm *comm);

#endif
