/* SPDX-License-Identifier: Apache-2.0
 * Declarations that the files of the CUDA executor share:
 *
 *   gpu.c       opens, enters and destroys a GPU
 *   layout.c    decides how large mailboxes are
 *   form.c      forms the domain, as a table of phases
 *   tables.c    decides by which path ranks reach each other, and tells kernels
 *   share.c     passes memory to other processes and opens theirs
 *   test.c      tests that stores arrive and that loads return what is there
 *   lines.c     tests that lines of 128 bytes arrive whole
 *   rate.c      measures the paths between GPUs
 *   maps.c      shows a rank's buffers to its peers, and maps theirs
 *   places.c    divides a device's places among communicators
 *   sharers.c   refuses one stream for ranks that share a GPU
 *   work.c      turns a call into a work for kernels
 *   slabs.c     host memory that launches read
 *   scratch.c   device memory that programs use
 *   copy.c      runs calls that are left to copy engines
 *   launch.c    enqueues works, keeps streams in order, reads what kernels report
 *   program.c   cuts and encodes schedules for kernels
 *   messages.c  encodes sends and receives for kernels
 *   image.c     writes the images of both
 */
#ifndef TUTTI_EXECUTOR_CUDA_PRIVATE_H
#define TUTTI_EXECUTOR_CUDA_PRIVATE_H

#include "base/result.h"
#include "device/cuda/cuda_kernels.h"
#include "executor/cuda/gpu.h"
#include "executor/cuda/program.h"
#include "transport/gpu_memory/gpu_memory.h"
#include "transport/identity.h"

/* What a rank tells all others while they form. Fields are filled in phase by phase; all of them
 * are valid in the last exchange. */
struct tutti_gpu_record {
    uint64_t magic;
    uint8_t has_kernels, is_failed;
    uint8_t is_copy_bad;    /* copies by the driver from other ranks arrive corrupted */
    uint8_t is_primary;     /* `context` is the device's primary context; found out only if the
                               communicator has another GPU of this process */
    uint8_t unused[4];
    struct tutti_identity identity;
    uint8_t uuid[TUTTI_CU_UUID_BYTES];
    int32_t device;
    uint32_t places;        /* blocks that can run at once on the device */
    uint32_t offered;       /* of these, for the ranks of this communicator and process there */
    uint64_t memory_bytes;  /* limit of device memory in this rank's settings */
    uint64_t context;       /* its address in the rank's process */
    uint64_t copy_bytes;    /* size from which its settings leave calls to copy engines; 0: none */
    uint64_t own_address, host_address;       /* of its two areas, in the rank's process */
    struct tutti_gpu_token own_token, host_token;
    uint64_t reached;       /* bit r: this rank can map the memory of rank r's device */
    uint64_t bad;           /* bit r: stores by rank r here, or loads from it, were wrong */
    uint64_t slow;          /* bit r: the host's memory is far faster than rank r's device */
    uint64_t linked;        /* bit r: the link with rank r's device should keep lines whole */
    uint64_t torn;          /* bit r: a line from rank r arrived torn */
    char reason[64];        /* why, if is_failed */
};
_Static_assert(sizeof(struct tutti_gpu_record) <= TUTTI_GPU_MESSAGE_BYTES, "it is one message");

/* The areas of a rank, its mailboxes and windows, as this rank sees them. */
struct tutti_gpu_neighbour {
    struct tutti_gpu_memory own, host; /* mapped here; NONE for a rank of this process */
    tutti_cu_address own_at, host_at;  /* their addresses here; 0: not reached */
};

/* ---- gpu.c -------------------------------------------------------------------------------- */

/* Copies between host or device memory, on the stream `desk`, and waits for it. */
int tutti_gpu_put(const struct tutti_gpu *gpu, tutti_cu_address to, tutti_cu_address from,
                  size_t size_bytes);
/* Waits for all that is on the stream `desk`. */
int tutti_gpu_settle_desk(const struct tutti_gpu *gpu);

struct tutti_pass;

struct tutti_gpu {
    const struct tutti_cuda *cuda;
    struct tutti_gpu_args args;
    uint8_t secret[TUTTI_SECRET_BYTES]; /* the communicator's */
    struct tutti_domain *host_domain;   /* of the host, with all ranks; NULL: there is none */
    bool holds_primary;
    struct tutti_cu_context *context;
    char name[64];                      /* the device's, for messages */
    int multiprocessors, most_threads;
    struct tutti_cuda_kernels *kernels; /* NULL: none */

    /* Forming. */
    uint32_t phase, next_phase; /* enum phase_number of form.c */
    bool awaits_records;        /* an all-gather of messages is under way */
    uint8_t message[TUTTI_GPU_MESSAGE_BYTES];
    struct tutti_gpu_record *records;   /* [nranks]: the last that each rank has told */
    uint64_t *excluded;                 /* [nranks]: bit r: do not use the path to rank r */
    struct tutti_pass **passes;         /* [nranks]: transfers of descriptors under way */
    int *passed_fds;                    /* [nranks]: descriptors received; -1: none */
    int step;                           /* within a phase */
    bool has_domain, has_measured;

    /* The domain. An area is nranks mailboxes, each written by another rank, then two windows. */
    struct tutti_gpu_grid grid;
    struct tutti_gpu_memory own;        /* this rank's area in device memory */
    struct tutti_gpu_memory host;       /* the one in host memory; NONE if all reach `own` */
    struct tutti_gpu_neighbour *neighbours; /* [nranks] */
    struct tutti_gpu_memory state;      /* struct tutti_gpu_domain, peers, counters */
    struct tutti_gpu_domain *domain;    /* its device address */
    tutti_cu_address peers_at;          /* device address of struct tutti_gpu_peer [nranks] */
    struct tutti_gpu_report *report;    /* in page-locked host memory */
    uint32_t blocks;                    /* most blocks of a launch */
    uint32_t threads;                   /* most threads of a block */
    struct tutti_gpu_claim *claim;      /* places on its device (places.c) */
    bool shares_device;                 /* with another rank of the domain in this process */
    /* True if all ranks are in one process; on one device; reach each other's device memory. */
    bool is_one_process, is_one_device, all_reach_all;
    bool is_all_open;                   /* one process, and all can use each other's plain memory */
    bool is_all_apart;                  /* no two ranks are in one process; set by copy.c */
    uint64_t copy_bytes;                /* calls so large are left to copy engines; 0: none */
    uint64_t whole;                     /* bit r: lines between rank r and all others are whole */

    /* Calling. */
    struct tutti_cu_stream *own_stream; /* for calls that complete before they return */
    struct tutti_cu_stream *desk;       /* for tables and tests: never waits for works */
    struct tutti_cu_event *last_event;  /* recorded behind the last launch */
    struct tutti_cu_event *edge;        /* orders one stream behind another */
    bool has_launched;
    uint64_t seen[TUTTI_COLLECTIVE_COUNT]; /* size classes whose first call was logged */
    /* For ranks that share a GPU in one process; under the lock of sharers.c. */
    struct tutti_gpu *next_sharer;
    const struct tutti_cu_stream *called_stream;
    uint64_t called_number;             /* number of the last collective on it */
    struct tutti_gpu_slab *slabs, *slab; /* all of them; the one being filled */
    struct tutti_gpu_scratch *scratch;  /* newest block of device memory for running programs */
    struct tutti_gpu_scratch *store;    /* newest block of device memory that holds programs */
    size_t stored_bytes;                /* used in the newest block of `store` */
    struct tutti_gpu_maps *maps;        /* NULL: no catalog, because no domain of the host */
};

/* ---- layout.c -------------------------------------------------------------------------- */

/* Lays out the mailboxes and windows of `nranks` ranks, which take about `memory_bytes` of each
 * rank. Programs get at most `most_blocks` blocks. */
void tutti_gpu_lay_out(uint32_t nranks, uint32_t most_blocks, uint64_t memory_bytes,
                       struct tutti_gpu_grid *ret_grid);
/* The size of an area, and the offsets in it of the mailbox that rank `writer` writes and of the
 * two windows, in bytes. */
size_t tutti_gpu_area_bytes(const struct tutti_gpu_layout *layout);
size_t tutti_gpu_mailbox_at(const struct tutti_gpu_layout *layout, uint32_t writer);
size_t tutti_gpu_windows_at(const struct tutti_gpu_layout *layout);

/* ---- share.c --------------------------------------------------------------------------- */

/* Opens the areas of all other ranks, in device memory or (`is_host`) in host memory. TUTTI_AGAIN:
 * call again. An area that cannot be opened is no error: its address in gpu->neighbors is 0. */
int tutti_gpu_share_areas(struct tutti_gpu *gpu, bool is_host);
/* True if this rank's context is its device's primary one. Creates the primary context if there is
 * none, as enabling peer access does too. */
bool tutti_gpu_has_primary(const struct tutti_gpu *gpu);
/* True if kernels of rank `from` may use plain memory of rank `owner`. Both must be in one
 * process. */
bool tutti_gpu_is_open(const struct tutti_gpu *gpu, int from, int owner);
/* Closes all areas of other ranks, and drops what is being passed. */
void tutti_gpu_unshare(struct tutti_gpu *gpu);

/* Registers an area of this rank as lent: other ranks of this process may still use it when this
 * rank is destroyed. tutti_gpu_take_back ends that: the memory is freed once no other rank uses it.
 * It also frees memory that was never lent. */
int tutti_gpu_lend(const struct tutti_gpu *gpu, const struct tutti_gpu_memory *memory);
void tutti_gpu_take_back(const struct tutti_gpu *gpu, struct tutti_gpu_memory *memory);

/* ---- test.c ---------------------------------------------------------------------------- */

/* tutti_gpu_test_store stores a pattern into every mailbox that this rank writes. When all ranks
 * have done so, tutti_gpu_test_look checks the mailboxes that this rank reads, and loads all
 * windows. It sets bit r in *ret_bad if rank r's pattern was wrong in either, and *ret_is_copy_bad
 * if it was wrong after a copy by the driver. */
int tutti_gpu_test_store(struct tutti_gpu *gpu);
int tutti_gpu_test_look(struct tutti_gpu *gpu, uint64_t *ret_bad, bool *ret_is_copy_bad);

/* ---- rate.c ---------------------------------------------------------------------------- */

/* Sets a bit for each rank on another GPU whose memory is so slow to reach that host memory is
 * better. Overwrites this rank's second window. */
int tutti_gpu_test_rates(const struct tutti_gpu *gpu, uint64_t *ret_slow);

/* ---- lines.c --------------------------------------------------------------------------- */

/* A bit for each rank whose device has a link with this rank's that should keep lines whole. */
uint64_t tutti_gpu_lines_linked(const struct tutti_gpu *gpu);
/* True if any two ranks that reach each other's device memory have such a link. */
bool tutti_gpu_lines_are_possible(const struct tutti_gpu *gpu);
/* Exchanges lines with all ranks to which this one has such a link, and sets a bit in *ret_torn for
 * each rank whose lines arrived torn. All ranks must call it at the same time. TUTTI_AGAIN: call
 * again. */
int tutti_gpu_lines_test(struct tutti_gpu *gpu, uint64_t *ret_torn);
/* Decides from all ranks' results which pairs may use lines, and sets gpu->whole. */
void tutti_gpu_lines_agree(struct tutti_gpu *gpu);

/* ---- slabs.c --------------------------------------------------------------------------- */

struct tutti_gpu_slab;

/* Memory for the next launch, which host and device see at the same address. Valid until the
 * launch has ended; `is_captured`: until the rank is destroyed. */
int tutti_gpu_slab_take(struct tutti_gpu *gpu, size_t size_bytes, bool is_captured,
                        void **ret_bytes);
/* Call it once the launch that reads the memory taken so far is enqueued on `stream`. */
int tutti_gpu_slabs_launched(struct tutti_gpu *gpu, struct tutti_cu_stream *stream);
void tutti_gpu_slabs_fini(struct tutti_gpu *gpu);

/* ---- scratch.c ------------------------------------------------------------------------- */

struct tutti_gpu_scratch;

/* Device memory for the next launch. Later launches get the same memory unless they need more, so
 * works must run one after the other. */
int tutti_gpu_scratch_take(struct tutti_gpu *gpu, size_t size_bytes, uint8_t **ret_scratch);
void tutti_gpu_scratch_fini(struct tutti_gpu *gpu);
size_t tutti_gpu_scratch_bytes(const struct tutti_gpu *gpu);

/* ---- work.c ---------------------------------------------------------------------------- */

/* Fills in the work of a collective. `is_captured`: the memory it refers to must outlive this
 * launch, because the launch may be replayed. */
int tutti_gpu_work_fill(struct tutti_gpu *gpu, const struct tutti_gpu_item *item, bool is_captured,
                        struct tutti_gpu_work *ret_work);
/* Fills in one work for all sends and receives among the items. There must be at least one. */
int tutti_gpu_work_fill_messages(struct tutti_gpu *gpu, const struct tutti_gpu_item *items,
                                 size_t count, bool is_captured, struct tutti_gpu_work *ret_work);

/* The most bytes that one rank sends to another; UINT64_MAX if not all ranks know that number. */
uint64_t tutti_gpu_most_sent(const struct tutti_gpu *gpu, const struct tutti_call *call);

/* True for a send or receive. */
static inline bool tutti_gpu_is_message(const struct tutti_gpu_item *item)
{
    return tutti_call_is_message(item->call);
}

/* ---- copy.c ---------------------------------------------------------------------------- */

/* Decides from all ranks' records which calls are left to copy engines, and sets gpu->copy_bytes.
 */
void tutti_gpu_copy_agree(struct tutti_gpu *gpu);
/* True if this call is left to copy engines. The same on all ranks. */
bool tutti_gpu_copy_takes(const struct tutti_gpu *gpu, const struct tutti_gpu_item *item);
/* Enqueues it on `stream`, which must already wait for the rank's last operation. */
int tutti_gpu_copy_run(struct tutti_gpu *gpu, const struct tutti_gpu_item *item, bool is_captured,
                       struct tutti_cu_stream *stream, uint64_t timeout_ns);

/* ---- maps.c ---------------------------------------------------------------------------- */

struct tutti_gpu_maps;

/* Does nothing if the host has no domain of all ranks. TUTTI_ERR_SYSTEM: no memory. Call
 * tutti_gpu_maps_destroy after a failure, too. */
int tutti_gpu_maps_create(struct tutti_gpu *gpu);
void tutti_gpu_maps_destroy(struct tutti_gpu *gpu);
/* Shows the peers this rank's new allocations, maps theirs, and notes which of its own all peers
 * have mapped. Do not call it while this thread captures a stream. */
int tutti_gpu_maps_refresh(struct tutti_gpu *gpu);

/* The map by which all peers see the whole of a buffer of this rank, and the buffer's offset in it.
 * *ret_map is TUTTI_GPU_NOT_MAPPED if there is none. */
void tutti_gpu_locate(const struct tutti_gpu *gpu, const void *buffer, size_t size_bytes,
                      uint32_t *ret_map, uint64_t *ret_offset);

/* ---- places.c -------------------------------------------------------------------------- */

struct tutti_gpu_claim;

/* Claims some of the `total` places of device `uuid` for all ranks of this communicator that this
 * process has there. All of them get the same number. Later tutti_gpu_places_settle tells how many
 * places these ranks need together, at most that number; the rest becomes free.
 * tutti_gpu_places_leave gives up this rank's part of the claim. Thread-safe, as ranks of a
 * process share the claims. */
int tutti_gpu_places_claim(struct tutti_gpu *gpu, const uint8_t *uuid, uint32_t total,
                           uint32_t *ret_places);
void tutti_gpu_places_settle(struct tutti_gpu *gpu, uint32_t places);
void tutti_gpu_places_leave(struct tutti_gpu *gpu);

/* ---- sharers.c ------------------------------------------------------------------------- */

/* Adds or removes a rank that shares its GPU with others of the process. Thread-safe. */
void tutti_gpu_sharers_enter(struct tutti_gpu *gpu);
void tutti_gpu_sharers_leave(struct tutti_gpu *gpu);
/* Call it before the rank makes call `number` on `stream`. TUTTI_ERR_USAGE: another rank has made
 * the same call on that stream, so the two could never end. Thread-safe. */
int tutti_gpu_sharers_call(struct tutti_gpu *gpu, struct tutti_cu_stream *stream, uint64_t number);

/* ---- tables.c -------------------------------------------------------------------------- */

/* True if rank `from` may store to and load from the device memory of rank `owner`. */
bool tutti_gpu_reaches(const struct tutti_gpu *gpu, int from, int owner);
/* True if all ranks may. */
bool tutti_gpu_is_reached_by_all(const struct tutti_gpu *gpu, int owner);

/* Writes the tables that kernels read in device memory: the domain, its peers, and counters. */
int tutti_gpu_write_tables(struct tutti_gpu *gpu);

/* The entry of `rank` in the table of peers that kernels read, from what is known so far. */
struct tutti_gpu_peer tutti_gpu_look_at(const struct tutti_gpu *gpu, int rank);

/* True if `rank` is in this process. */
static inline bool tutti_gpu_is_here(const struct tutti_gpu *gpu, int rank)
{
    return tutti_identity_same_process(&gpu->records[rank].identity,
                                       &gpu->records[gpu->args.rank].identity);
}

#endif
