/* SPDX-License-Identifier: Apache-2.0
 * A communicator's rank on a GPU, and its calls on device memory.
 *
 * If all ranks form a domain of GPUs (executor/cuda/gpu.h), a call on device memory is a kernel,
 * which is enqueued on the caller's stream. Otherwise the call goes through the host (stage.c), and
 * so does a call that no kernel runs in a domain of several hosts, such as one of a v-form. The
 * rank copies its input to the host, the host's executor runs the call like any other, and the rank
 * copies the result back. All these steps keep the order of the caller's stream, too. So one
 * communicator may have ranks on GPUs and ranks on CPUs.
 *
 * Calls that run as kernels are numbered apart from calls on host memory, and each of the two kinds
 * keeps its own order. */
#ifndef TUTTI_GPU_COMM_GPU_H
#define TUTTI_GPU_COMM_GPU_H

#include "executor/cuda/gpu.h"
#include "gpu/network.h"
#include "gpu/plan.h"
#include "queue/batch.h"

/* The GPU of a communicator's rank. "The thread inside" is that of comm.h. */
struct tutti_gpu_comm {
    struct tutti_cuda_gpu *gpu;   /* owned; NULL: it could not be opened */
    bool has_domain;              /* the GPUs of all ranks reach each other; calls are kernels */
    uint8_t calls_on_host;        /* 1 if the last call with a buffer was on host memory; atomic */
    struct tutti_call_history history;   /* of calls that ran as kernels; for the thread inside */
    struct tutti_gpu_plan plan;          /* the machine of the ranks */
    struct tutti_gpu_network network;    /* between the GPUs of several hosts */
    struct tutti_gpu_programs *programs; /* how calls run; NULL until needed */
    struct tutti_tuner_view view;        /* of the domain, for the tuner (plan.c) */
    struct tutti_memo memo;              /* of the view */
    char fingerprint[TUTTI_FINGERPRINT_BYTES]; /* of the view */
    uint64_t *sequences;          /* [2][nranks]: number of receives, and of sends, as kernels */

    /* Forming. */
    struct tutti_batch *batch;    /* the all-gather under way; NULL: none */
    uint8_t *messages;            /* [nranks] records of TUTTI_CUDA_MESSAGE_BYTES */

    /* Watching (watch.c) while enqueued work is not complete. */
    pthread_t watcher;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    /* Under the lock. The watcher has been started, has work to watch, and shall end. */
    bool has_watcher, is_busy, is_ending;
    bool is_stuck;                /* failed, and enqueued work never ended: keep its memory */

    /* Through the host (stage.c). */
    tuttiStream_t stage;          /* host stream that runs the calls in order; NULL until needed */
    struct tutti_stage *stages;   /* page-locked memory, in use or not; under the lock */
    size_t staged_bytes;          /* of all `stages` */
    bool has_captured;            /* some calls are in graphs, which may be replayed at any time */
};

/* ---- life (comm_gpu.c) -------------------------------------------------------------------- */

/* Opens the GPU of a new communicator's rank, and sets comm->cuda and comm->gpu. `wanted` is the
 * ordinal of the device, or -1 for none. With TUTTI_CONFIG_UNDEF_INT the rank uses the device of
 * `parent`, or none if `parent` has none. Without a parent, it then uses the device of the thread's
 * current CUDA context, if there is one. TUTTI_ERR_ARGUMENT: there is no such device.
 * TUTTI_ERR_DEVICE: the device cannot be used, or there is no CUDA driver. TUTTI_ERR_SYSTEM: there
 * is no memory. After an error the caller frees comm->gpu with tutti_gpu_comm_free. */
int tutti_gpu_comm_open(struct tutti_comm *comm, int wanted, const struct tutti_comm *parent);

/* Finds out whether the GPUs of all ranks reach each other, and opens the memory of the other GPUs.
 * All ranks must have a GPU, and all must call this function. TUTTI_AGAIN: call again. The function
 * uses all-gathers of the communicator itself, whose engine must run. */
int tutti_gpu_comm_form(struct tutti_comm *comm);

/* Waits for the enqueued work. If the communicator has failed, ends that work instead. Also ends
 * the watching thread. Does nothing on a rank without a GPU. */
void tutti_gpu_comm_drain(struct tutti_comm *comm);
/* Drains and frees comm->gpu, if there is one. */
void tutti_gpu_comm_free(struct tutti_comm *comm);

/* ---- calls (call.c) ----------------------------------------------------------------------- */

/* True if `buffer` is in device or managed memory. comm->cuda must not be NULL. */
bool tutti_gpu_is_device_memory(const struct tutti_comm *comm, const void *buffer);

/* Finds out whether a call is on device memory. The sizes are in bytes. A buffer of size 0 is
 * considered only if the other buffer is empty, too. If both buffers are NULL, the stream decides.
 * Without a stream, such a call goes where the last call went. comm->cuda must not be NULL if a
 * buffer is given. TUTTI_ERR_ARGUMENT: only one buffer is in device memory. The same error is
 * returned for device memory if the rank is on the CPU, or the stream is a host stream. Messages
 * name `function`. */
int tutti_gpu_classify_call(const struct tutti_comm *comm, const char *function, const void *send,
                            size_t send_bytes, const void *recv, size_t recv_bytes,
                            tuttiStream_t stream, bool *ret_is_on_gpu);

/* Checks the scalar of a call. TUTTI_ERR_ARGUMENT: `call` is a pre-multiplied sum whose scalar the
 * device cannot read. */
int tutti_gpu_check_scalar(const struct tutti_comm *comm, const char *function,
                           const struct tutti_call *call);

/* Runs a call on device memory. The call is enqueued on the CUDA stream. If `stream` is NULL, the
 * function returns when the call is complete. The thread must be inside `comm`. */
int tutti_gpu_call(struct tutti_comm *comm, const struct tutti_call *call, tuttiStream_t stream);

/* A part of a group: its calls on device memory on one communicator. The parts of a group are a
 * list, which starts as NULL. */
struct tutti_gpu_part;
/* Adds a copy of `call` to the part of `comm`. The arrays of a v-form are copied, too. */
int tutti_gpu_part_add(struct tutti_gpu_part **parts, struct tutti_comm *comm,
                       const struct tutti_call *call, tuttiStream_t stream);
/* Returns the collected call number `index` on `comm`, or NULL if there are fewer calls. */
const struct tutti_call *tutti_gpu_part_call(const struct tutti_gpu_part *parts,
                                             const struct tutti_comm *comm, size_t index);
/* Launches all collected calls. Those of one communicator are launched together. Goes on after a
 * failure, and returns the first error. */
int tutti_gpu_parts_launch(struct tutti_gpu_part *parts);
/* Waits for the work of communicators that have a call with stream NULL. Returns the first
 * error. */
int tutti_gpu_parts_wait(struct tutti_gpu_part *parts);
/* Frees all parts and their copies of calls. */
void tutti_gpu_parts_free(struct tutti_gpu_part *parts);

/* ---- the machine of the GPUs (plan.c) ------------------------------------------------------ */

/* Fills in comm->gpu->view, once it is known whether the ranks have formed a domain, and after the
 * policy has changed. Also reserves memory for programs if calls may need any. Does nothing without
 * a domain. TUTTI_ERR_DEVICE, TUTTI_ERR_SYSTEM: there is no memory. */
int tutti_gpu_plan_fill_view(struct tutti_comm *comm);

/* ---- programs (programs.c) ----------------------------------------------------------------- */

/* Finds out how item->call runs, and sets the item's protocol and program. All ranks get the same
 * protocol. Sets nothing for a message. With comm->trial that choice runs the call.
 * `is_captured`: the call is being captured into a graph. The item must be launched next, because
 * its program may be in memory of the next launch. TUTTI_ERR_USAGE: kernels cannot run that
 * choice. */
int tutti_gpu_programs_find(struct tutti_comm *comm, bool is_captured,
                            struct tutti_cuda_item *item);
/* Returns the tuner's query for a call on device memory. */
struct tutti_tuner_query tutti_gpu_query(const struct tutti_comm *comm,
                                         const struct tutti_call *call);
/* Forgets the programs of the candidates that comm->trial has named. Their kernels must have ended
 * on this rank. */
void tutti_gpu_programs_end_trial(struct tutti_comm *comm);
/* Chooses how a call runs, as tutti_gpu_programs_find does at its first call if there is no
 * schedule file, and writes the reason. `view` is comm->gpu->view, or a copy of it. */
int tutti_gpu_choose(struct tutti_comm *comm, const struct tutti_tuner_view *view,
                     const struct tutti_call *call, struct tutti_choice *ret_choice,
                     char *reason, size_t reason_bytes);
/* Forgets how calls ran, because the policy has changed. */
void tutti_gpu_programs_forget(struct tutti_comm *comm);
/* Frees the table of programs, if there is one. Their images in device memory belong to the GPU. */
void tutti_gpu_programs_fini(struct tutti_comm *comm);

/* ---- watching (watch.c) -------------------------------------------------------------------- */

/* Lets a thread watch the enqueued work until it is complete. If a peer dies or gives up, the
 * thread fails the communicator, so that the work does not wait forever. Must be called after work
 * was enqueued. The first call starts the thread. TUTTI_ERR_SYSTEM: the thread cannot be
 * started. */
int tutti_gpu_watch(struct tutti_comm *comm);
/* Ends the watching thread, if there is one. */
void tutti_gpu_watch_end(struct tutti_comm *comm);
/* Waits until all enqueued work is complete, or the communicator has failed. Returns the
 * communicator's error, if any. */
int tutti_gpu_wait(struct tutti_comm *comm);

/* ---- through the host (stage.c) ------------------------------------------------------------- */

/* Enqueues `calls`, which are one call or those of a group, as one batch. `is_captured` is true if
 * the stream is being captured into a graph. The GPU's context must be current. Any error but
 * TUTTI_ERR_ARGUMENT has been recorded with tutti_comm_fail. */
int tutti_gpu_stage_calls(struct tutti_comm *comm, const struct tutti_call *const *calls,
                          size_t count, struct tutti_cu_stream *stream, bool is_captured);
/* Runs the calls that the driver has not reached yet, and may never reach, so that they take their
 * turn and fail. Must be called when the communicator has failed. Thread-safe. */
void tutti_gpu_stage_give_up(struct tutti_comm *comm);
/* Destroys the host stream and frees the page-locked memory. */
void tutti_gpu_stage_fini(struct tutti_comm *comm);

#endif
