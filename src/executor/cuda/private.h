/* SPDX-License-Identifier: Apache-2.0
 * What the files of the CUDA executor share.
 *
 *   gpu.c         open, enter, destroy
 *   layout.c  how large mailboxes are
 *   form.c    the ranks meet: who reaches whom
 *   share.c   memory passed on to other processes and opened there
 *   test.c    do stores arrive, and loads return what is there?
 *   lines.c   are lines whole when they arrive?
 *   maps.c    which of a rank's buffers its peers see
 *   work.c    a call as kernels take it
 *   places.c  which of a device's places each communicator has
 *   rate.c    how fast ways between GPUs are
 *   sharers.c ranks that share a GPU must not share a stream
 *   slabs.c   host memory that launches read
 *   scratch.c device memory that programs use
 *   copy.c    calls that are left to copy engines
 *   launch.c  enqueue; the order of streams; what became of it
 */
#ifndef TUTTI_EXECUTOR_CUDA_PRIVATE_H
#define TUTTI_EXECUTOR_CUDA_PRIVATE_H

#include "base/result.h"
#include "device/cuda/cuda_kernels.h"
#include "executor/cuda/gpu.h"
#include "executor/cuda/program.h"
#include "transport/gpu_memory/gpu_memory.h"
#include "transport/identity.h"

/* What the ranks tell each other. Every rank fills in all of it by the last round. */
struct tutti_gpu_news {
    uint64_t magic;
    uint8_t has_kernels, is_failed;
    uint8_t is_copy_bad;    /* what the driver copies from others does not come through right */
    uint8_t is_primary;     /* `context`: looked at where another GPU of the process is there */
    uint8_t unused[4];
    struct tutti_identity identity;
    uint8_t uuid[TUTTI_CU_UUID_BYTES];
    int32_t device;
    uint32_t places;        /* blocks that run at once on the device */
    uint32_t offered;       /* of these, to this communicator's ranks of the process there */
    uint64_t memory_bytes;  /* that this rank would have */
    uint64_t context;       /* in its process */
    uint64_t copy_bytes;    /* from which on it would leave calls to copy engines; 0: none */
    uint64_t own_address, host_address;       /* of its two areas, in its process */
    struct tutti_gpu_token own_token, host_token;
    uint64_t reached;       /* bit r: I reach the memory of rank r's device */
    uint64_t bad;           /* bit r: what I stored there did not arrive, or the other way round */
    uint64_t slow;          /* bit r: the host's memory is far faster */
    uint64_t linked;        /* bit r: the way to rank r's device and back should keep lines whole */
    uint64_t torn;          /* bit r: a line from there was not */
    char reason[64];
};
_Static_assert(sizeof(struct tutti_gpu_news) <= TUTTI_GPU_MESSAGE_BYTES, "it is one message");

/* Another rank's areas, as this rank has them. */
struct tutti_gpu_neighbour {
    struct tutti_gpu_memory own, host; /* opened; NONE where it is of this process */
    tutti_cu_address own_at, host_at;  /* where I see them; 0: not at all */
};

/* ---- gpu.c -------------------------------------------------------------------------------- */

/* Copy, host memory or the device's, and wait: by the desk. */
int tutti_gpu_put(const struct tutti_gpu *gpu, tutti_cu_address to, tutti_cu_address from,
                  size_t size_bytes);
/* Wait for what is on the desk. */
int tutti_gpu_settle_desk(const struct tutti_gpu *gpu);

struct tutti_pass;

struct tutti_gpu {
    const struct tutti_cuda *cuda;
    struct tutti_gpu_args args;
    uint8_t secret[TUTTI_SECRET_BYTES]; /* the communicator's */
    struct tutti_domain *host_domain;   /* of all ranks, NULL: there is none */
    bool holds_primary;
    struct tutti_cu_context *context;
    char name[64];                      /* of the device, for messages */
    int multiprocessors, most_threads;
    struct tutti_cuda_kernels *kernels; /* NULL: none */

    /* Forming. */
    int phase;                          /* form.c */
    uint8_t message[TUTTI_GPU_MESSAGE_BYTES];
    struct tutti_gpu_news *news;        /* [nranks]: what was heard last */
    uint64_t *excluded;                 /* [nranks]: bit r: the way to rank r is not to be used */
    struct tutti_pass **passes;         /* [nranks]: descriptors on their way */
    int *passed_fds;                    /* [nranks]: that have come; -1 */
    int step;                           /* within a phase */
    bool has_domain, has_measured;

    /* The domain. Areas: nranks mailboxes that others write, then two windows. */
    struct tutti_gpu_grid grid;
    struct tutti_gpu_memory own;        /* my area in device memory */
    struct tutti_gpu_memory host;       /* the one in host memory; NONE where all reach me */
    struct tutti_gpu_neighbour *neighbours; /* [nranks] */
    struct tutti_gpu_memory state;      /* struct tutti_gpu_domain, peers, counters */
    struct tutti_gpu_domain *domain;    /* its device address */
    tutti_cu_address peers_at;          /* struct tutti_gpu_peer [nranks], behind it */
    struct tutti_gpu_report *report;    /* page-locked */
    uint32_t blocks;                    /* most of a launch */
    uint32_t threads;                   /* of a block */
    struct tutti_gpu_claim *claim;      /* the places of its device (places.c) */
    bool shares_device;                 /* with another rank of the domain in this process */
    bool is_one_process, is_one_device, all_reach_all; /* of all ranks */
    bool is_all_open;                   /* one process, and all can use each other's plain memory */
    bool is_all_apart;                  /* each is a process, once copy_bytes are agreed */
    uint64_t copy_bytes;                /* calls so large are left to copy engines; 0: none */
    uint64_t whole;                     /* bit r: lines are, between rank r and all others */

    /* Calling. */
    struct tutti_cu_stream *own_stream; /* for calls that are complete when they return */
    struct tutti_cu_stream *desk;       /* for tables and tests: never waits for kernels of ours */
    struct tutti_cu_event *last_event;  /* behind the last launch */
    struct tutti_cu_event *edge;        /* from one stream to another */
    bool has_launched;
    uint64_t seen[TUTTI_COLLECTIVE_COUNT]; /* sizes of which the log has told what runs them */
    /* Of ranks that share a GPU in one process (sharers.c): under its lock. */
    struct tutti_gpu *next_sharer;
    const struct tutti_cu_stream *called_stream;
    uint64_t called_number;             /* of the last collective on it */
    struct tutti_gpu_slab *slabs, *slab; /* all of them; the one in use */
    struct tutti_gpu_scratch *scratch;  /* the newest of device memory for programs */
    struct tutti_gpu_scratch *store;    /* and of that which holds them */
    size_t stored_bytes;                /* in the newest */
    struct tutti_gpu_maps *maps;        /* NULL: no board to write on */
};

/* ---- layout.c -------------------------------------------------------------------------- */

/* Mailboxes of `nranks` ranks that take about `memory_bytes` of each, windows included, for
 * programs that at most `most_blocks` blocks run. */
void tutti_gpu_lay_out(uint32_t nranks, uint32_t most_blocks, uint64_t memory_bytes,
                       struct tutti_gpu_grid *ret_grid);
/* Bytes of an area; where in it are the mailbox that `writer` writes, and the windows. */
size_t tutti_gpu_area_bytes(const struct tutti_gpu_layout *layout);
size_t tutti_gpu_mailbox_at(const struct tutti_gpu_layout *layout, uint32_t writer);
size_t tutti_gpu_windows_at(const struct tutti_gpu_layout *layout);

/* ---- share.c --------------------------------------------------------------------------- */

/* Open the areas of all others that this rank can, device or host memory; resumable. What cannot be
 * had stays 0: that is no error. */
int tutti_gpu_share_areas(struct tutti_gpu *gpu, bool is_host);
/* Is this rank's context its device's primary one? Makes that where it is not there, as letting
 * others in does. */
bool tutti_gpu_has_primary(const struct tutti_gpu *gpu);
/* Both are of one process: may kernels of rank `from` use plain memory of rank `owner`? */
bool tutti_gpu_is_open(const struct tutti_gpu *gpu, int from, int owner);
void tutti_gpu_unshare(struct tutti_gpu *gpu);

/* An area of mine that ranks of this process may still use when I am gone; and when I go, take back
 * or free what nobody else uses. */
int tutti_gpu_lend(const struct tutti_gpu *gpu, const struct tutti_gpu_memory *memory);
void tutti_gpu_take_back(const struct tutti_gpu *gpu, struct tutti_gpu_memory *memory);

/* ---- test.c ---------------------------------------------------------------------------- */

/* Store into every mailbox that I write; then, when all have done so, look at those I read, and at
 * the windows. The second sets a bit for each rank from which nothing right has come, and says
 * whether the driver's copies are at fault. */
int tutti_gpu_test_store(struct tutti_gpu *gpu);
int tutti_gpu_test_look(struct tutti_gpu *gpu, uint64_t *ret_bad, bool *ret_is_copy_bad);

/* ---- rate.c ---------------------------------------------------------------------------- */

/* Set a bit for each rank on another GPU whose memory is not worth reaching. Uses the second
 * window. */
int tutti_gpu_test_rates(const struct tutti_gpu *gpu, uint64_t *ret_slow);

/* ---- lines.c --------------------------------------------------------------------------- */

/* Ranks whose devices are linked to mine in a way that should keep lines whole, by bits. */
uint64_t tutti_gpu_lines_linked(const struct tutti_gpu *gpu);
/* Is there any such pair, of those that reach each other's device memory? */
bool tutti_gpu_lines_are_possible(const struct tutti_gpu *gpu);
/* Send lines to my part of these pairs, and look at theirs: which ranks' come torn, by bits. All
 * ranks at the same time; TUTTI_AGAIN. */
int tutti_gpu_lines_test(struct tutti_gpu *gpu, uint64_t *ret_torn);
/* By what all have found: between whom lines may go. */
void tutti_gpu_lines_agree(struct tutti_gpu *gpu);

/* ---- slabs.c --------------------------------------------------------------------------- */

struct tutti_gpu_slab;

/* Memory for the next launch, which both sides see at one address. */
int tutti_gpu_slab_take(struct tutti_gpu *gpu, size_t size_bytes, bool is_captured,
                        void **ret_bytes);
/* The launch that reads what was taken is on `stream`. */
int tutti_gpu_slabs_launched(struct tutti_gpu *gpu, struct tutti_cu_stream *stream);
void tutti_gpu_slabs_fini(struct tutti_gpu *gpu);

/* ---- scratch.c ------------------------------------------------------------------------- */

struct tutti_gpu_scratch;

/* Device memory for the next launch, and all after it that need no more. */
int tutti_gpu_scratch_take(struct tutti_gpu *gpu, size_t size_bytes, uint8_t **ret_scratch);
void tutti_gpu_scratch_fini(struct tutti_gpu *gpu);
size_t tutti_gpu_scratch_bytes(const struct tutti_gpu *gpu);

/* ---- work.c ---------------------------------------------------------------------------- */

/* `is_captured`: what it refers to must last. */
int tutti_gpu_work_fill(struct tutti_gpu *gpu, const struct tutti_gpu_item *item, bool is_captured,
                        struct tutti_gpu_work *ret_work);
/* The sends and receives among the items, at least one, as one work. */
int tutti_gpu_work_fill_messages(struct tutti_gpu *gpu, const struct tutti_gpu_item *items,
                                 size_t count, bool is_captured, struct tutti_gpu_work *ret_work);

/* The most that one rank sends to another; UINT64_MAX where not all ranks know it alike. */
uint64_t tutti_gpu_most_sent(const struct tutti_gpu *gpu, const struct tutti_call *call);

static inline bool tutti_gpu_is_message(const struct tutti_gpu_item *item)
{
    return item->call->kind >= TUTTI_CALL_SEND;
}

/* ---- copy.c ---------------------------------------------------------------------------- */

/* From what all ranks have said: which calls are left to copy engines, if any are. */
void tutti_gpu_copy_agree(struct tutti_gpu *gpu);
/* Is this one? The same on all ranks. */
bool tutti_gpu_copy_takes(const struct tutti_gpu *gpu, const struct tutti_gpu_item *item);
/* Enqueue it, on the rank's own turn. */
int tutti_gpu_copy_run(struct tutti_gpu *gpu, const struct tutti_gpu_item *item, bool is_captured,
                       struct tutti_cu_stream *stream, uint64_t timeout_ns);

/* ---- maps.c ---------------------------------------------------------------------------- */

struct tutti_gpu_maps;

int tutti_gpu_maps_create(struct tutti_gpu *gpu);
void tutti_gpu_maps_destroy(struct tutti_gpu *gpu);
/* See what is new, here and with the others. Not while a stream of this thread is captured. */
int tutti_gpu_maps_refresh(struct tutti_gpu *gpu);

/* By which map all peers see a buffer of this rank, all of it, and where in that;
 * TUTTI_GPU_NOT_MAPPED. */
void tutti_gpu_locate(const struct tutti_gpu *gpu, const void *buffer, size_t size_bytes,
                      uint32_t *ret_map, uint64_t *ret_offset);

/* ---- places.c -------------------------------------------------------------------------- */

struct tutti_gpu_claim;

/* Claim places of the device `uuid`, of `total`, for all ranks of this communicator that this
 * process has there: each learns the same number. Then say how many it is that they need, at most
 * as many. */
int tutti_gpu_places_claim(struct tutti_gpu *gpu, const uint8_t *uuid, uint32_t total,
                           uint32_t *ret_places);
void tutti_gpu_places_settle(struct tutti_gpu *gpu, uint32_t places);
void tutti_gpu_places_leave(struct tutti_gpu *gpu);

/* ---- sharers.c ------------------------------------------------------------------------- */

void tutti_gpu_sharers_enter(struct tutti_gpu *gpu);
void tutti_gpu_sharers_leave(struct tutti_gpu *gpu);
/* The rank is about to make that call on that stream: TUTTI_ERR_USAGE if it could never end. */
int tutti_gpu_sharers_call(struct tutti_gpu *gpu, struct tutti_cu_stream *stream, uint64_t number);

/* ---- form.c ---------------------------------------------------------------------------- */

/* Does `from` store to and load from the device memory of `owner`? */
bool tutti_gpu_reaches(const struct tutti_gpu *gpu, int from, int owner);

/* The other rank as kernels see it, by what is known now. */
struct tutti_gpu_peer tutti_gpu_look_at(const struct tutti_gpu *gpu, int rank);

static inline bool tutti_gpu_is_here(const struct tutti_gpu *gpu, int rank)
{
    return tutti_identity_same_process(&gpu->news[rank].identity,
                                       &gpu->news[gpu->args.rank].identity);
}

#endif
