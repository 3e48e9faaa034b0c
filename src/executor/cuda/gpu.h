/* SPDX-License-Identifier: Apache-2.0
 * The CUDA executor: one rank's GPU, and the domain of ranks whose kernels reach each other.
 *
 * A rank with a GPU opens it, and the ranks meet (form.c). If all of them have GPUs that reach
 * each other's memory, or memory of the host that all see, they form a domain: then collectives on
 * device memory run as kernels that talk to each other (device/cuda/work.h), enqueued on the
 * caller's stream, and nobody waits. A rank that has a GPU but no domain can still copy to and from
 * it; how its calls then run is for others to say.
 *
 * Forming needs rounds of somebody's all-gather, so that this room needs to know nothing of it:
 *
 *     tutti_gpu_open(args, &gpu)
 *     while ((rc = tutti_gpu_form(gpu)) != TUTTI_OK)
 *         TUTTI_AGAIN: call again
 *         TUTTI_GPU_EXCHANGE: all-gather tutti_gpu_message(gpu), TUTTI_GPU_MESSAGE_BYTES of it, and
 *             give the result to tutti_gpu_hear
 *
 * One thread at a time, but for what says otherwise.
 */
#ifndef TUTTI_EXECUTOR_CUDA_GPU_H
#define TUTTI_EXECUTOR_CUDA_GPU_H

#include "base/handshake.h"
#include "device/cuda/work.h"
#include "executor/call.h"
#include "wrap/cuda.h"

#include <stdbool.h>

struct tutti_gpu;

struct tutti_gpu_args {
    int nranks, rank;
    tutti_cu_device device;            /* of this rank */
    struct tutti_cu_context *context;  /* NULL: the device's primary one */
    uint64_t deadline_ns;              /* of forming */
};

struct tutti_domain;

/* Take hold of the GPU. TUTTI_ERR_DEVICE names it. */
int tutti_gpu_open(const struct tutti_cuda *cuda, const struct tutti_gpu_args *args,
                   struct tutti_gpu **ret_gpu);

/* The kernels must have ended; else, `is_stuck`, nothing is freed that they use. NULL is
 * ignored. */
void tutti_gpu_destroy(struct tutti_gpu *gpu, bool is_stuck);

/* The device and context that it was opened with. */
void tutti_gpu_place_of(const struct tutti_gpu *gpu, struct tutti_gpu_args *ret_args);

/* ---- forming (form.c) ----------------------------------------------------------------- */

#define TUTTI_GPU_EXCHANGE 2
#define TUTTI_GPU_MESSAGE_BYTES 512

/* Before it: the communicator's secret, and the domain of its ranks if they are all of one (else
 * NULL). */
void tutti_gpu_trust(struct tutti_gpu *gpu, const uint8_t secret[TUTTI_SECRET_BYTES],
                     struct tutti_domain *domain);

int tutti_gpu_form(struct tutti_gpu *gpu);
const uint8_t *tutti_gpu_message(const struct tutti_gpu *gpu);
/* `messages` (nranks of them, copied as far as needed). */
void tutti_gpu_hear(struct tutti_gpu *gpu, const uint8_t *messages);

/* Have the ranks formed a domain? The same on all ranks, once formed. */
bool tutti_gpu_has_domain(const struct tutti_gpu *gpu);

/* ---- calling (launch.c) ---------------------------------------------------------------- */

/* A program in device memory (program.h), and the scratch memory that it takes. */
struct tutti_gpu_stored {
    const void *image;
    size_t scratch_bytes;
};

/* One call, with what identifies it among the ranks' calls. */
struct tutti_gpu_item {
    const struct tutti_call *call;
    const struct tutti_header *header;
    struct tutti_gpu_stored program; /* `image` NULL: none, kernels know by themselves */
};

/* Put an encoded program into device memory, where it stays. */
int tutti_gpu_store(struct tutti_gpu *gpu, const void *bytes, size_t size_bytes,
                    const void **ret_image);

/* How a collective that has no program would run: "LL", "LL128", "direct" (kernels), or "copy
 * engines". Constant text. */
const char *tutti_gpu_way(const struct tutti_gpu *gpu, const struct tutti_call *call);

/* On rank 0, log what runs that call: at INFO for the first of its collective and size, at TRACE
 * later. */
void tutti_gpu_tell(struct tutti_gpu *gpu, const struct tutti_call *call, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* What programs are cut by; and whether every rank sees every buffer of all others. */
struct tutti_gpu_grid;
const struct tutti_gpu_grid *tutti_gpu_grid(const struct tutti_gpu *gpu);
bool tutti_gpu_sees_all(const struct tutti_gpu *gpu);

/* The following, as far as they take a stream: with the GPU's context current. */

/* Enqueue the calls on `stream`, in order, as one launch. The caller's buffers are the library's
 * until the stream has come past it. Calls on several streams run in the order of these calls. */
int tutti_gpu_run(struct tutti_gpu *gpu, const struct tutti_gpu_item *items, size_t count,
                  struct tutti_cu_stream *stream, bool is_captured, uint64_t timeout_ns);

/* Let others name the count that differs, if theirs of call `number` are not these. */
void tutti_gpu_show_counts(struct tutti_gpu *gpu, uint64_t number, const size_t *counts);

/* Is the stream being captured? TUTTI_ERR_ARGUMENT: it is no stream, or cannot be used. */
int tutti_gpu_is_capturing(const struct tutti_gpu *gpu, struct tutti_cu_stream *stream,
                           bool *ret_is_capturing);

/* Let `stream` go on only after what is on `other` by now; nothing where they are one. */
int tutti_gpu_follow(struct tutti_gpu *gpu, struct tutti_cu_stream *stream,
                     struct tutti_cu_stream *other);

/* Let `stream` go on only after the last operation, as tutti_gpu_run does; for what is enqueued
 * otherwise, and not while the stream is captured. */
int tutti_gpu_follow_last(struct tutti_gpu *gpu, struct tutti_cu_stream *stream);

/* Count what was enqueued on `stream` otherwise as if tutti_gpu_run had done it. */
int tutti_gpu_note(struct tutti_gpu *gpu, struct tutti_cu_stream *stream);

/* Is everything that was enqueued by tutti_gpu_run complete? TUTTI_AGAIN: not yet; or what went
 * wrong in a kernel, naming the rank that was waited for. Any thread. */
int tutti_gpu_check(struct tutti_gpu *gpu);

/* The same, but of errors only that the GPU is lost: have the kernels ended? */
int tutti_gpu_check_ended(struct tutti_gpu *gpu);

/* A stream of the rank's own, which waits for no other; and wait until all that was enqueued on the
 * default stream of the context is complete. */
struct tutti_cu_stream *tutti_gpu_stream(const struct tutti_gpu *gpu);
int tutti_gpu_await_default(struct tutti_gpu *gpu);

/* End all kernels of this rank soon, whatever they wait for. Any thread. */
void tutti_gpu_abort(struct tutti_gpu *gpu);

/* ---- what is there ---------------------------------------------------------------------- */

/* Make the GPU's context the thread's current one, and give the thread back what it had. */
int tutti_gpu_enter(const struct tutti_gpu *gpu);
void tutti_gpu_leave(const struct tutti_gpu *gpu);

/* The same where the driver is asked or memory is made: whoever captures, on any thread, may have
 * forbidden that to their own calls, not to ours. */
int tutti_gpu_enter_relaxed(const struct tutti_gpu *gpu, int *ret_mode);
void tutti_gpu_leave_relaxed(const struct tutti_gpu *gpu, int mode);

/* An error of the driver, with the device's name. */
int tutti_gpu_fail(const struct tutti_gpu *gpu, int code, const char *what);

/* Bytes of device memory held, for the memory report. */
size_t tutti_gpu_bytes(const struct tutti_gpu *gpu);

#endif
