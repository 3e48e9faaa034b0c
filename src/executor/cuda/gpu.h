/* SPDX-License-Identifier: Apache-2.0
 * The CUDA executor. It runs the calls of one rank on its GPU, in a domain of ranks whose kernels
 * reach each other's memory.
 *
 * A rank with a GPU opens it, and the ranks exchange records of their GPUs (form.c). If all GPUs
 * reach each other's memory, or host memory that all of them see, the ranks form a domain. Ranks of
 * several hosts do if a network connects the hosts (proxy.h). Then collectives on device memory run
 * as kernels that communicate with each other (device/cuda/work.h). They are enqueued on the
 * caller's stream, so the host does not wait. A rank without a domain can still copy data to and
 * from its GPU. src/gpu decides how its calls run.
 *
 * Forming needs some all-gathers, which the caller makes, so that this folder does not depend on
 * the bootstrap:
 *
 *     tutti_cuda_open(cuda, args, &gpu)
 *     tutti_cuda_prepare(gpu, secret, domain, network, nvlinked)
 *     while ((rc = tutti_cuda_form(gpu)) != TUTTI_OK)
 *         TUTTI_AGAIN: call again
 *         TUTTI_CUDA_EXCHANGE: all-gather the TUTTI_CUDA_MESSAGE_BYTES bytes of
 *             tutti_cuda_message(gpu), and give the result to tutti_cuda_take_messages
 *         any other result is an error
 *
 * Functions must be called by one thread at a time unless their comment says otherwise.
 */
#ifndef TUTTI_EXECUTOR_CUDA_GPU_H
#define TUTTI_EXECUTOR_CUDA_GPU_H

#include "algorithms/protocols.h"
#include "base/handshake.h"
#include "device/cuda/work.h"
#include "executor/call.h"
#include "wrap/cuda.h"

#include <stdbool.h>

struct tutti_cuda_gpu;

struct tutti_cuda_args {
    int nranks, rank;                  /* of the communicator */
    tutti_cu_device device;            /* the device of this rank */
    struct tutti_cu_context *context;  /* NULL: the device's primary context */
    uint64_t deadline_ns;              /* forming must be complete by this time */
};

struct tutti_domain;
struct tutti_fabric;

/* The network between the hosts of a communicator, for the proxy of a rank. */
struct tutti_cuda_network {
    struct tutti_fabric *fabric; /* connected with all ranks of other hosts; NULL: none. Borrowed
                                    until tutti_cuda_end_network, and used by the proxy alone */
    /* Called on a thread of the proxy, at most once, when a connection is lost. */
    void (*fail)(void *context, int rc, const char *message);
    void *context;
};

/* Opens the GPU: retains its context, makes streams and loads the kernels. If there are no kernels
 * for this GPU, it still opens, with a warning in the log. `cuda` is borrowed until
 * tutti_cuda_destroy, which the caller must call. TUTTI_ERR_DEVICE: the driver refused, and the
 * message names the device. TUTTI_ERR_SYSTEM: no memory. */
int tutti_cuda_open(const struct tutti_cu_driver *cuda, const struct tutti_cuda_args *args,
                    struct tutti_cuda_gpu **ret_gpu);

/* Destroys the GPU. All kernels of the rank must have ended. If some kernels have not ended, set
 * `is_stuck`, so that nothing that they use is freed. NULL is ignored. */
void tutti_cuda_destroy(struct tutti_cuda_gpu *gpu, bool is_stuck);

/* Fills in `device` and `context` as the GPU was opened with them, and nothing else. */
void tutti_cuda_args_of(const struct tutti_cuda_gpu *gpu, struct tutti_cuda_args *ret_args);

/* Finds the PCI bus id of the GPU, as topology/inventory/inventory.h writes it. TUTTI_ERR_DEVICE:
 * the driver refused. */
int tutti_cuda_bus_id(const struct tutti_cuda_gpu *gpu, int64_t *ret_busid);

/* ---- forming (form.c) ----------------------------------------------------------------- */

/* The result of tutti_cuda_form that asks for an all-gather. It is no error. */
#define TUTTI_CUDA_EXCHANGE 2
#define TUTTI_CUDA_MESSAGE_BYTES 512

/* Call it before tutti_cuda_form. Sets the communicator's secret, the host's load/store domain if it
 * includes all ranks, else NULL, and the network. The domain is borrowed. Bit r of `nvlinked` is
 * set if the GPUs of this rank and of rank r are known to have nothing but NVLinks between them. */
void tutti_cuda_prepare(struct tutti_cuda_gpu *gpu, const uint8_t secret[TUTTI_SECRET_BYTES],
                        struct tutti_domain *domain, const struct tutti_cuda_network *network,
                        uint64_t nvlinked);

/* Forms the domain, as the head of this file describes. TUTTI_OK: forming is over, with or without
 * a domain. TUTTI_ERR_USAGE, on all ranks: a GPU can hold fewer resident blocks than one
 * process has ranks on it. Other errors concern this rank alone. */
int tutti_cuda_form(struct tutti_cuda_gpu *gpu);
/* The message to all-gather. It has TUTTI_CUDA_MESSAGE_BYTES bytes, and is valid until the next
 * call of tutti_cuda_form. */
const uint8_t *tutti_cuda_message(const struct tutti_cuda_gpu *gpu);
/* Takes the result of the all-gather: `messages` of all ranks in their order, which are copied. */
void tutti_cuda_take_messages(struct tutti_cuda_gpu *gpu, const uint8_t *messages);

/* Ends the use of the network. `is_orderly`: all kernels of this rank have ended without an error.
 * Then other ranks get what the kernels have sent, and the call may take some seconds. */
void tutti_cuda_end_network(struct tutti_cuda_gpu *gpu, bool is_orderly);

/* True if the ranks have formed a domain. Once forming is over, all ranks get the same result. */
bool tutti_cuda_has_domain(const struct tutti_cuda_gpu *gpu);

/* ---- calling (launch.c) ---------------------------------------------------------------- */

/* A program that kernels can read (program.h), and the scratch memory that a run of it takes. */
struct tutti_cuda_stored {
    const void *image;   /* address for kernels, from tutti_cuda_store or _for_launch */
    size_t image_bytes, scratch_bytes;
    bool is_on_host;     /* tutti_cuda_store_for_launch has stored the image */
};

/* One call, with the header that identifies it among the ranks' calls. Both are borrowed. */
struct tutti_cuda_item {
    const struct tutti_call *call;
    const struct tutti_header *header;
    enum tutti_protocol protocol;     /* of a collective */
    struct tutti_cuda_stored program; /* with TUTTI_PROTOCOL_STEPS; else `image` is NULL */
};

/* Copies an encoded program into device memory, where it stays until tutti_cuda_destroy. *ret_image
 * is its device address. TUTTI_ERR_DEVICE: the driver refused, for example because the device has
 * no memory. TUTTI_ERR_SYSTEM: no host memory. */
int tutti_cuda_store(struct tutti_cuda_gpu *gpu, const void *bytes, size_t size_bytes,
                     const void **ret_image);

/* Copies an encoded program into memory of the next launch, which is freed when that launch has
 * ended, or with the communicator if `is_captured`. Programs of calls that are not repeated, such
 * as v-forms, live there. Errors are those of tutti_cuda_store. */
int tutti_cuda_store_for_launch(struct tutti_cuda_gpu *gpu, const void *bytes, size_t size_bytes,
                                bool is_captured, const void **ret_image);

/* Allocates memory for programs before the first call. A later allocation may have to wait until
 * the kernels on the GPU have ended, among them those of other ranks that wait for this rank. */
int tutti_cuda_store_reserve(struct tutti_cuda_gpu *gpu);

/* A place in the memory of programs. */
struct tutti_cuda_scratch;
struct tutti_cuda_mark {
    const struct tutti_cuda_scratch *block;
    size_t used_bytes;
};
/* Returns the place after the programs that are stored. */
struct tutti_cuda_mark tutti_cuda_store_mark(const struct tutti_cuda_gpu *gpu);
/* Lets later programs overwrite those that were stored after the mark. No kernel may use these any
 * more. No memory is freed, because that could wait for the kernels of other ranks. */
void tutti_cuda_store_rewind(struct tutti_cuda_gpu *gpu, const struct tutti_cuda_mark *mark);

/* Allocates device memory as programs do (cuMemAlloc), and fills it with a byte. The caller frees it
 * with tutti_cuda_drop_buffer, which ignores NULL. TUTTI_ERR_DEVICE: the driver refused. */
int tutti_cuda_make_buffer(struct tutti_cuda_gpu *gpu, size_t size_bytes, uint8_t fill,
                           void **ret_buffer);
void tutti_cuda_drop_buffer(struct tutti_cuda_gpu *gpu, void *buffer);

/* Returns the protocols that can run a collective: bit p for enum tutti_protocol p. The result
 * depends only on values that all ranks know. TUTTI_PROTOCOL_STEPS is always among them; it needs a
 * program that kernels can run. If the domain spans hosts, there is no other. */
uint32_t tutti_cuda_protocols(const struct tutti_cuda_gpu *gpu, const struct tutti_call *call);

/* Logs on rank 0 how a call runs. The first call of its collective and size class is logged at
 * INFO, and later calls at TRACE. */
void tutti_cuda_log_call(struct tutti_cuda_gpu *gpu, const struct tutti_call *call,
                         const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The grid by which programs are cut (program.h). It is valid from the forming of a domain until
 * tutti_cuda_destroy. */
struct tutti_cuda_grid;
const struct tutti_cuda_grid *tutti_cuda_grid(const struct tutti_cuda_gpu *gpu);
/* True if some ranks of the domain are on different hosts. */
bool tutti_cuda_spans_hosts(const struct tutti_cuda_gpu *gpu);
/* True if the kernels of every rank can use any device memory of all other ranks. */
bool tutti_cuda_reaches_all(const struct tutti_cuda_gpu *gpu);

/* The following functions that take a stream require that the GPU's context is current. */

/* Enqueues the calls on `stream`, in order. They are one launch, except for calls that copy engines
 * run. The caller must not touch the buffers until the stream has passed that point, but may free
 * `items` on return. Successive uses of this function run in their order, also on different
 * streams. `is_captured`: the stream is being captured. Kernels that wait for longer than
 * `timeout_ns` end with an error; 0: there is no limit. */
int tutti_cuda_run(struct tutti_cuda_gpu *gpu, const struct tutti_cuda_item *items, size_t count,
                   struct tutti_cu_stream *stream, bool is_captured, uint64_t timeout_ns);

/* Shows the counts of v-form number `number` in the host's domain, so that a rank that passes
 * different counts can name the one that differs. */
void tutti_cuda_show_counts(struct tutti_cuda_gpu *gpu, uint64_t number, const size_t *counts);

/* Sets *ret_is_capturing to true if the stream is being captured. TUTTI_ERR_ARGUMENT: `stream` is
 * not a stream, or its capture was invalidated. */
int tutti_cuda_is_capturing(const struct tutti_cuda_gpu *gpu, struct tutti_cu_stream *stream,
                            bool *ret_is_capturing);

/* Makes `stream` wait for all work that is on `other` now. Does nothing if both are the same. */
int tutti_cuda_wait_for_stream(struct tutti_cuda_gpu *gpu, struct tutti_cu_stream *stream,
                               struct tutti_cu_stream *other);

/* Makes `stream` wait for the rank's last operation, as tutti_cuda_run does. Call it before work is
 * enqueued by other means. Do not call it while the stream is being captured. */
int tutti_cuda_wait_for_last(struct tutti_cuda_gpu *gpu, struct tutti_cu_stream *stream);

/* Makes all work on `stream` so far the rank's last operation, as if tutti_cuda_run had enqueued
 * it. Call it after work was enqueued by other means. */
int tutti_cuda_set_last(struct tutti_cuda_gpu *gpu, struct tutti_cu_stream *stream);

/* TUTTI_OK: all that tutti_cuda_run has enqueued is complete. TUTTI_AGAIN: not yet.
 * TUTTI_ERR_TIMEOUT, TUTTI_ERR_USAGE (different calls), TUTTI_ERR_REMOTE (tutti_cuda_abort) and
 * TUTTI_ERR_INTERNAL are reported by a kernel, and the message names the rank that it waited for.
 * TUTTI_ERR_DEVICE comes from the driver. Any thread. */
int tutti_cuda_check(struct tutti_cuda_gpu *gpu);

/* Checks only whether that work has ended, not whether kernels report errors. TUTTI_OK: it has.
 * TUTTI_AGAIN: not yet. TUTTI_ERR_DEVICE: the GPU is lost. Any thread. */
int tutti_cuda_check_ended(struct tutti_cuda_gpu *gpu);

/* Gives a stream of the rank's own, which does not wait for any default stream. The GPU owns the
 * stream. It is created at the first use, because streams share a few hardware queues, and many
 * programs never need it. TUTTI_ERR_DEVICE: the driver creates none. */
int tutti_cuda_stream(struct tutti_cuda_gpu *gpu, struct tutti_cu_stream **ret_stream);
/* Waits until all that was enqueued on the context's default stream is complete. */
int tutti_cuda_await_default(struct tutti_cuda_gpu *gpu);

/* Tells the kernels of this rank that another rank of this host has destroyed its communicator.
 * Kernels that still wait for that rank then end with an error. For ranks of other hosts, of which
 * the proxy tells the kernels, the function does nothing. There is a domain. Any thread. */
void tutti_cuda_tell_left(struct tutti_cuda_gpu *gpu, int rank);

/* Makes all kernels of this rank end soon, even those that wait. Returns at once. Any thread. */
void tutti_cuda_abort(struct tutti_cuda_gpu *gpu);

/* ---- context, errors and memory ---------------------------------------------------------- */

/* tutti_cuda_enter makes the GPU's context current on the calling thread. tutti_cuda_leave restores
 * the context that was current before. TUTTI_ERR_DEVICE: the driver refused. Any thread. */
int tutti_cuda_enter(const struct tutti_cuda_gpu *gpu);
void tutti_cuda_leave(const struct tutti_cuda_gpu *gpu);

/* The same, around code that allocates memory or queries the driver. A stream capture may forbid
 * such calls, even on other threads; the relaxed capture mode permits them on this thread. Pass
 * the mode from *ret_mode to tutti_cuda_leave_relaxed. */
int tutti_cuda_enter_relaxed(const struct tutti_cuda_gpu *gpu, int *ret_mode);
void tutti_cuda_leave_relaxed(const struct tutti_cuda_gpu *gpu, int mode);

/* Sets the error message for `code`, an error of the driver. The message names rank, device, and
 * `what`, the object or action that failed. Returns TUTTI_ERR_DEVICE. */
int tutti_cuda_fail(const struct tutti_cuda_gpu *gpu, int code, const char *what);

/* Returns the bytes of device memory that the rank holds, for the memory report. */
size_t tutti_cuda_bytes(const struct tutti_cuda_gpu *gpu);

#endif
