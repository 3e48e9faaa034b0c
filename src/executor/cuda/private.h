/* SPDX-License-Identifier: Apache-2.0
 * Declarations that only the files of the CUDA executor share. These files are:
 *
 *   gpu.c       opens, enters and destroys a GPU
 *   layout.c    decides how large mailboxes are
 *   form.c      forms the domain, as a table of phases
 *   tables.c    decides by which path ranks reach each other, and writes this down for kernels
 *   far.c       keeps the mailboxes for ranks of other hosts
 *   proxy.c     carries these mailboxes between the hosts
 *   proxy_link.c  carries those of one pair of ranks
 *   share.c     passes memory and boards to other processes, and opens theirs
 *   boards.c    reads the descriptors that other processes show on their boards
 *   test.c      tests that stores arrive and that loads return what is there
 *   lines.c     tests that lines of 128 bytes arrive whole
 *   rate.c      measures the paths between GPUs
 *   maps.c      shows a rank's buffers to its peers, and maps theirs
 *   residency.c divides the blocks that can be resident on a device among communicators
 *   sharers.c   refuses calls by which ranks on one GPU would wait for each other forever
 *   work.c      turns a call into a work for kernels
 *   slabs.c     manages host memory that launches read
 *   scratch.c   manages device memory for programs
 *   copy.c      runs calls that are left to copy engines
 *   streams.c   knows the streams of callers, and keeps them in order
 *   launch.c    enqueues works, reads what kernels report
 *   columns.c   divides the steps of a schedule among blocks
 *   staging.c   finds the parts of buffers that each block copies before and after the steps
 *   program.c   cuts and encodes schedules for kernels
 *   messages.c  encodes sends and receives for kernels
 *   image.c     writes the images of programs and of messages
 *
 * A work (device/cuda/work.h) is what a kernel is told to do for one call. Functions must be called
 * by one thread at a time for each GPU. Functions that return an int return TUTTI_OK or an error,
 * with a message.
 */
#ifndef TUTTI_EXECUTOR_CUDA_PRIVATE_H
#define TUTTI_EXECUTOR_CUDA_PRIVATE_H

#include "base/result.h"
#include "device/cuda/cuda_kernels.h"
#include "executor/cuda/gpu.h"
#include "executor/cuda/program.h"
#include "transport/gpu_memory/gpu_memory.h"
#include "transport/identity.h"
#include "transport/shm/board.h"

/* The data that a rank sends to all others while they form a domain. The fields are filled in phase
 * by phase. All of them are valid in the last exchange. */
struct tutti_cuda_record {
    uint64_t magic;         /* MAGIC of form.c; with another value, this is no record */
    uint8_t has_kernels;    /* the rank has loaded kernels for its GPU */
    uint8_t has_network;    /* a fabric connects it with the ranks of other hosts */
    uint8_t is_failed;      /* a phase has failed on the rank, so no rank gets a domain */
    uint8_t is_copy_bad;    /* copies by the driver from other ranks arrive corrupted */
    uint8_t is_primary;     /* `context` is the device's primary context; always 0 unless this
                               process has ranks of the communicator on another GPU */
    uint8_t unused[3];
    struct tutti_identity identity;
    uint8_t uuid[TUTTI_CU_UUID_BYTES];
    int32_t device;         /* number of the device in the rank's process */
    uint32_t resident;      /* most blocks that can be resident on the device */
    uint32_t offered;       /* of those, for this communicator's ranks in this process */
    uint64_t memory_bytes;  /* limit of device memory in this rank's settings */
    uint64_t context;       /* address of the CUDA context in the rank's process */
    uint64_t copy_bytes;    /* size from which its settings leave calls to copy engines; 0: none */
    uint64_t own_address, host_address;       /* its two areas' addresses in the rank's process */
    struct tutti_gpumem_token own_token, host_token;
    uint64_t reached;       /* bit r: this rank can map the memory of rank r's device */
    uint64_t bad;           /* bit r: stores by rank r here, or loads from it, were wrong */
    uint64_t slow;          /* bit r: host memory is far faster to reach than rank r's device */
    uint64_t linked;        /* bit r: the link with rank r's device should keep lines whole */
    uint64_t torn;          /* bit r: a line from rank r arrived torn */
    char reason[64];        /* the error message, if is_failed */
};
_Static_assert(sizeof(struct tutti_cuda_record) <= TUTTI_CUDA_MESSAGE_BYTES, "it is one message");

/* The areas of another rank as this rank sees them. An area holds the mailboxes and windows. */
struct tutti_cuda_neighbor {
    struct tutti_gpumem own, host;     /* mappings of areas; NONE for a rank of this process */
    tutti_cu_address own_at, host_at;  /* addresses of the areas in this process; 0: not reached */
};

/* ---- gpu.c -------------------------------------------------------------------------------- */

/* Copies bytes on the stream `setup_stream`, and waits until the copy is complete. Each address may
 * be of host or device memory. */
int tutti_cuda_copy_and_wait(const struct tutti_cuda_gpu *gpu, tutti_cu_address to,
                             tutti_cu_address from, size_t size_bytes);
/* Waits for all work on the stream `setup_stream`. */
int tutti_cuda_wait_setup(const struct tutti_cuda_gpu *gpu);

struct tutti_pass;

struct tutti_cuda_gpu {
    const struct tutti_cu_driver *cuda;
    struct tutti_cuda_args args;
    uint8_t secret[TUTTI_SECRET_BYTES]; /* the communicator's secret */
    struct tutti_domain *host_domain;   /* the host's domain if it has all ranks, else NULL */
    struct tutti_cuda_network network;  /* between hosts */
    uint64_t nvlinked;                  /* bit r: only NVLinks to rank r's GPU (gpu.h) */
    bool holds_primary;                 /* this rank has retained the primary context */
    struct tutti_cu_context *context;
    char name[64];                      /* the device's name, for messages */
    int multiprocessors, most_threads;  /* of the device; most_threads: in a block */
    struct tutti_kernel_module *kernels; /* NULL: none */

    /* These are for forming a domain. */
    uint32_t phase, next_phase; /* enum phase_number of form.c */
    bool awaits_records;        /* an all-gather of messages is under way */
    uint8_t message[TUTTI_CUDA_MESSAGE_BYTES];
    struct tutti_cuda_record *records;  /* [nranks]: the last record of each rank */
    uint64_t *excluded;                 /* [nranks]: bit r: do not use the path to rank r */
    struct tutti_pass **passes;         /* [nranks]: transfers of descriptors under way */
    int *passed_fds;                    /* [nranks]: descriptors received; -1: none */
    struct tutti_board board;           /* shows other processes the descriptors of buffers */
    int *board_fds;                     /* [nranks]: far ends of boards of others; -1: none */
    int step;                           /* position within a phase, by share.c and lines.c */
    bool has_domain, has_measured;      /* has_measured: rates of paths, which is done once */

    /* These describe the domain. An area consists of nranks mailboxes, each of which another rank
     * writes, and of two windows after them. */
    struct tutti_cuda_grid grid;
    struct tutti_gpumem own;                /* this rank's area in device memory */
    struct tutti_gpumem host;               /* its area in host memory; NONE if all reach `own` */
    struct tutti_gpumem far;                /* mailboxes for ranks of other hosts; NONE: no such */
    struct tutti_cuda_proxy *proxy;         /* carries those; NULL: no such ranks */
    struct tutti_cuda_neighbor *neighbors;  /* [nranks] */
    struct tutti_gpumem state;      /* holds struct tutti_kernel_domain, peers, counters */
    struct tutti_kernel_domain *domain; /* device address of that struct; NULL before `state` */
    tutti_cu_address peers_at;          /* device address of struct tutti_kernel_peer [nranks] */
    struct tutti_kernel_report *report; /* in page-locked host memory */
    uint32_t blocks;                    /* most blocks of a launch */
    uint32_t threads;                   /* most threads of a block */
    struct tutti_cuda_claim *claim;     /* resident blocks on its device (residency.c) */
    uint32_t multiprocessor_blocks;     /* run at a time on a multiprocessor */
    uint32_t nsharers;                  /* ranks of this process on the device, and this one */
    bool is_one_process, is_one_device; /* all ranks are in one process; are on one device */
    bool spans_hosts;                   /* some ranks are on different hosts */
    bool all_reach_all;                 /* all ranks reach each other's device memory */
    bool is_all_open;                   /* one process, and all can use each other's plain memory */
    bool is_all_apart;                  /* no two ranks are in one process; set by copy.c */
    uint64_t copy_bytes;                /* calls so large are left to copy engines; 0: none */
    uint64_t whole_lines;               /* bit r: lines between rank r and all others are whole */

    /* These are for calls. */
    struct tutti_cu_stream *own_stream; /* for calls that complete before they return; NULL: there
                                           was none yet */
    struct tutti_cu_stream *setup_stream; /* for tables and tests; never waits for works */
    struct tutti_cu_event *last_event;  /* recorded after the last launch */
    uint64_t last_stream;               /* number of that launch's stream; 0: not known */
    struct {
        uint64_t number;          /* 0: not known */
        uint32_t multiprocessors; /* of its green context; 0: it has the whole device */
        uint32_t blocks;          /* of this rank that run there at a time */
    } stream;                     /* the one of the last call (streams.c) */
    struct tutti_cu_event *order_event; /* makes one stream wait for another */
    bool has_launched;
    /* Size classes whose first call was logged (tutti_call_is_new_size). */
    uint64_t logged_sizes[TUTTI_COLLECTIVE_COUNT];
    /* These three are for ranks that share a GPU in one process. The lock of sharers.c protects
     * them. */
    struct tutti_cuda_gpu *next_sharer;
    const struct tutti_cu_stream *called_stream; /* stream of this rank's last collective */
    uint64_t called_number;             /* number of that collective */
    struct tutti_cuda_slab *slabs, *slab; /* list of all slabs; the slab being filled */
    struct tutti_cuda_scratch *scratch;  /* newest block of device memory for running programs */
    struct tutti_cuda_scratch *store;    /* newest block of device memory that holds programs */
    size_t stored_bytes;                /* used in the newest block of `store` */
    struct tutti_cuda_maps *maps;       /* NULL if the host has no domain of all ranks */
};

/* ---- layout.c -------------------------------------------------------------------------- */

/* Decides the sizes and positions of the mailboxes and windows for `nranks` ranks. They take about
 * `memory_bytes` of each rank's memory. Programs get at most `most_blocks` blocks. If the domain
 * spans hosts, only FIFOs are used, and proxies carry their slots. */
void tutti_cuda_lay_out(uint32_t nranks, uint32_t most_blocks, uint64_t memory_bytes,
                        bool spans_hosts, struct tutti_cuda_grid *ret_grid);
/* These return numbers of bytes: the size of an area, the offset of the mailbox that rank `writer`
 * writes, and the offset of the two windows. Offsets are from the beginning of the area. */
size_t tutti_cuda_area_bytes(const struct tutti_kernel_layout *layout);
size_t tutti_cuda_mailbox_at(const struct tutti_kernel_layout *layout, uint32_t writer);
size_t tutti_cuda_windows_at(const struct tutti_kernel_layout *layout);

/* ---- far.c ----------------------------------------------------------------------------- */

/* Returns true if the two ranks are on different hosts. */
bool tutti_cuda_is_far(const struct tutti_cuda_gpu *gpu, int from, int to);
/* Allocates gpu->far. Does nothing if all ranks are on this host. TUTTI_ERR_DEVICE: no memory. */
int tutti_cuda_far_reserve(struct tutti_cuda_gpu *gpu);
/* Sets the addresses of the two mailboxes that this rank shares with a far rank. */
void tutti_cuda_far_mailboxes(const struct tutti_cuda_gpu *gpu, int rank,
                              struct tutti_kernel_peer *peer);
/* Starts the proxy, if there are far ranks. Returns what tutti_cuda_proxy_begin returns. */
int tutti_cuda_far_begin(struct tutti_cuda_gpu *gpu);

/* ---- share.c --------------------------------------------------------------------------- */

/* Opens the areas of all other ranks: those in host memory if `is_host`, else those in device
 * memory. Returns TUTTI_AGAIN if the caller must call again. An area that cannot be opened is no
 * error. Its address in gpu->neighbors is then 0. */
int tutti_cuda_share_areas(struct tutti_cuda_gpu *gpu, bool is_host);
/* Passes the boards of ranks to all ranks in other processes. Returns TUTTI_AGAIN if the caller
 * must call again. A board that does not arrive is no error. */
int tutti_cuda_share_boards(struct tutti_cuda_gpu *gpu);
/* Returns true if this rank's context is its device's primary context. Creates the primary context
 * if there is none, as enabling peer access does too. */
bool tutti_cuda_has_primary(const struct tutti_cuda_gpu *gpu);
/* Returns true if kernels of rank `from` may use plain device memory of rank `owner`. Both ranks
 * must be in one process. */
bool tutti_cuda_may_access(const struct tutti_cuda_gpu *gpu, int from, int owner);
/* Closes all areas of other ranks, and drops the transfers of descriptors that are under way. */
void tutti_cuda_unshare(struct tutti_cuda_gpu *gpu);

/* Registers an area of this rank as lent. Other ranks of this process may then still use the area
 * when this rank is destroyed. tutti_cuda_take_back ends the loan: the memory is freed once no
 * other rank uses it. If the memory was never lent, tutti_cuda_take_back frees it at once. */
int tutti_cuda_lend(const struct tutti_cuda_gpu *gpu, const struct tutti_gpumem *memory);
void tutti_cuda_take_back(const struct tutti_cuda_gpu *gpu, struct tutti_gpumem *memory);

/* ---- boards.c -------------------------------------------------------------------------- */

/* Gets the notice of a rank's board. It is empty if there is none, or no board. The caller closes
 * the copies in it. */
void tutti_cuda_board_read(const struct tutti_cuda_gpu *gpu, int rank,
                           struct tutti_board_notice *ret_notice);
/* Finds a descriptor in the notice of a rank's board, by its number. The notice keeps it. Returns
 * TUTTI_AGAIN if the rank has not shown it yet, and TUTTI_ERR_DEVICE if it cannot arrive. */
int tutti_cuda_board_find(const struct tutti_cuda_gpu *gpu, int rank, uint64_t number,
                          const struct tutti_board_notice *notice, int *ret_fd);
/* Closes all boards. */
void tutti_cuda_close_boards(struct tutti_cuda_gpu *gpu);

/* ---- test.c ---------------------------------------------------------------------------- */

/* tutti_cuda_test_store stores a pattern into every mailbox that this rank writes. Once all ranks
 * have done so, call tutti_cuda_test_check. That function checks the mailboxes that this rank
 * reads, and loads the windows of all ranks. It sets bit r in *ret_bad if rank r's pattern was
 * wrong in the mailbox or in the window. It sets *ret_is_copy_bad to true if some pattern was wrong
 * after a copy by the driver. */
int tutti_cuda_test_store(struct tutti_cuda_gpu *gpu);
int tutti_cuda_test_check(struct tutti_cuda_gpu *gpu, uint64_t *ret_bad, bool *ret_is_copy_bad);

/* ---- rate.c ---------------------------------------------------------------------------- */

/* Sets bit r in *ret_slow if rank r is on another GPU whose memory is so slow to reach that host
 * memory is better. Overwrites this rank's second window. */
int tutti_cuda_test_rates(const struct tutti_cuda_gpu *gpu, uint64_t *ret_slow);

/* ---- lines.c --------------------------------------------------------------------------- */

/* Sets bit r in the result if the link between rank r's device and this rank's device should keep
 * lines whole. A line has 128 bytes, and is whole if all of it arrives at once. */
uint64_t tutti_cuda_lines_linked(const struct tutti_cuda_gpu *gpu);
/* Returns true if any two ranks that reach each other's device memory have such a link. */
bool tutti_cuda_lines_are_possible(const struct tutti_cuda_gpu *gpu);
/* Exchanges lines with all ranks to which this rank has such a link. Sets bit r in *ret_torn if
 * lines of rank r arrived torn. All ranks must call this at the same time. Returns TUTTI_AGAIN if
 * the caller must call again. */
int tutti_cuda_lines_test(struct tutti_cuda_gpu *gpu, uint64_t *ret_torn);
/* Decides from all ranks' results which ranks may use lines, and sets gpu->whole_lines. */
void tutti_cuda_lines_agree(struct tutti_cuda_gpu *gpu);

/* ---- slabs.c --------------------------------------------------------------------------- */

struct tutti_cuda_slab;

/* Allocates slabs before the first call. A call that allocates one may have to wait until the
 * kernels on the GPU have ended, among them those of other ranks that wait for this rank. */
int tutti_cuda_slabs_reserve(struct tutti_cuda_gpu *gpu);
/* Takes memory for the next launch, which host and device see at the same address. The memory is
 * valid until the launch has ended. If `is_captured`, it is valid until the rank is destroyed. */
int tutti_cuda_slab_take(struct tutti_cuda_gpu *gpu, size_t size_bytes, bool is_captured,
                         void **ret_bytes);
/* Notes that a launch on `stream` reads the memory that was taken before. Call this once the launch
 * is enqueued. */
int tutti_cuda_slabs_launched(struct tutti_cuda_gpu *gpu, struct tutti_cu_stream *stream);
void tutti_cuda_slabs_fini(struct tutti_cuda_gpu *gpu);

/* ---- scratch.c ------------------------------------------------------------------------- */

struct tutti_cuda_scratch;

/* Allocates scratch memory before the first call, as tutti_cuda_slabs_reserve does. */
int tutti_cuda_scratch_reserve(struct tutti_cuda_gpu *gpu);
/* Takes device memory for the next launch. Later launches get the same memory unless they need
 * more, so works must run one after the other. The GPU owns the memory. */
int tutti_cuda_scratch_take(struct tutti_cuda_gpu *gpu, size_t size_bytes, uint8_t **ret_scratch);
void tutti_cuda_scratch_fini(struct tutti_cuda_gpu *gpu);
size_t tutti_cuda_scratch_bytes(const struct tutti_cuda_gpu *gpu);

/* ---- work.c ---------------------------------------------------------------------------- */

/* Fills in the work of a collective. If `is_captured`, the memory to which the work refers outlives
 * this launch, because the launch may be replayed. */
int tutti_cuda_work_fill(struct tutti_cuda_gpu *gpu, const struct tutti_cuda_item *item,
                         bool is_captured, struct tutti_kernel_work *ret_work);
/* Fills in one work for all sends and receives among the items. There must be at least one. */
int tutti_cuda_work_fill_messages(struct tutti_cuda_gpu *gpu, const struct tutti_cuda_item *items,
                                  size_t count, bool is_captured,
                                  struct tutti_kernel_work *ret_work);

/* Returns the largest number of bytes that one rank sends to another, or UINT64_MAX if not all
 * ranks know that number. */
uint64_t tutti_cuda_largest_send(const struct tutti_cuda_gpu *gpu, const struct tutti_call *call);

/* Returns true if the item is a send or a receive. */
static inline bool tutti_cuda_is_message(const struct tutti_cuda_item *item)
{
    return tutti_call_is_message(item->call);
}

/* ---- streams.c ------------------------------------------------------------------------- */

/* Sets gpu->stream to the facts about a call's stream. Asks the driver again only if the stream is
 * not that of the last call. Returns the number of the stream, or 0 if it is not known. */
uint64_t tutti_cuda_stream_look(struct tutti_cuda_gpu *gpu, struct tutti_cu_stream *stream);
/* Sets the message for a call on this stream, gpu->stream, that needs so many blocks. Returns
 * TUTTI_ERR_USAGE. The call has its number by then, so the communicator fails. */
int tutti_cuda_stream_is_small(const struct tutti_cuda_gpu *gpu,
                               const struct tutti_cu_stream *stream, uint32_t blocks);
/* These do the same as tutti_cuda_wait_for_last and tutti_cuda_set_last, for a stream whose number
 * is known. tutti_cuda_stream_mark_last returns a code of the driver. */
int tutti_cuda_stream_wait_for_last(struct tutti_cuda_gpu *gpu, struct tutti_cu_stream *stream,
                                    uint64_t number);
int tutti_cuda_stream_set_last(struct tutti_cuda_gpu *gpu, struct tutti_cu_stream *stream,
                               uint64_t number);
int tutti_cuda_stream_mark_last(struct tutti_cuda_gpu *gpu, struct tutti_cu_stream *stream,
                                uint64_t number);

/* ---- copy.c ---------------------------------------------------------------------------- */

/* Decides from all ranks' records which calls are left to copy engines, and sets gpu->copy_bytes.
 */
void tutti_cuda_copy_agree(struct tutti_cuda_gpu *gpu);
/* Returns true if this call is left to copy engines. The result is the same on all ranks. */
bool tutti_cuda_copy_serves(const struct tutti_cuda_gpu *gpu, const struct tutti_call *call);
/* Enqueues such a call on `stream`, which must already wait for the rank's last operation. Kernels
 * give up if they wait for longer than `timeout_ns`. If `timeout_ns` is 0, they wait forever. */
int tutti_cuda_copy_run(struct tutti_cuda_gpu *gpu, const struct tutti_cuda_item *item,
                        bool is_captured, struct tutti_cu_stream *stream, uint64_t timeout_ns);

/* ---- maps.c ---------------------------------------------------------------------------- */

struct tutti_cuda_maps;

/* Creates gpu->maps. Does nothing if the host has no domain of all ranks. Returns TUTTI_ERR_SYSTEM
 * if memory runs out. Call tutti_cuda_maps_destroy after a failure, too. */
int tutti_cuda_maps_create(struct tutti_cuda_gpu *gpu);
void tutti_cuda_maps_destroy(struct tutti_cuda_gpu *gpu);
/* Shows this rank's new allocations to its peers, and maps the new allocations of the peers. Notes
 * which of this rank's allocations all peers have mapped. Do not call this while the thread
 * captures a stream. */
int tutti_cuda_maps_refresh(struct tutti_cuda_gpu *gpu);

/* Finds the map by which all peers see the whole of a buffer of this rank. *ret_offset is the
 * buffer's offset in that map, in bytes. If there is no such map, *ret_map is
 * TUTTI_KERNEL_NOT_MAPPED. */
void tutti_cuda_locate(const struct tutti_cuda_gpu *gpu, const void *buffer, size_t size_bytes,
                       uint32_t *ret_map, uint64_t *ret_offset);

/* ---- residency.c ----------------------------------------------------------------------- */

struct tutti_cuda_claim;

/* Claims some of the `total` blocks that can be resident on device `uuid`, for all ranks of this
 * communicator that this process has there. All of these ranks get the same number in *ret_blocks.
 * Returns TUTTI_ERR_SYSTEM if memory runs out.
 *
 * Each rank then calls tutti_cuda_residency_settle with the number of blocks that these ranks need
 * together, at most the number claimed. The others become free. tutti_cuda_residency_leave ends
 * this rank's part in the claim. These functions are thread-safe, because ranks of a process share
 * the claims. */
int tutti_cuda_residency_claim(struct tutti_cuda_gpu *gpu, const uint8_t *uuid, uint32_t total,
                               uint32_t *ret_blocks);
void tutti_cuda_residency_settle(struct tutti_cuda_gpu *gpu, uint32_t blocks);
void tutti_cuda_residency_leave(struct tutti_cuda_gpu *gpu);

/* ---- sharers.c ------------------------------------------------------------------------- */

/* These add or remove a rank that shares its GPU with other ranks of the process. They do nothing
 * for other ranks. Thread-safe. */
void tutti_cuda_sharers_enter(struct tutti_cuda_gpu *gpu);
void tutti_cuda_sharers_leave(struct tutti_cuda_gpu *gpu);
/* Records that the rank makes call `number` on `stream`. Call this before the call is enqueued.
 * Returns TUTTI_ERR_USAGE if another rank has made the same call on that stream, because the two
 * calls could never end. Thread-safe. */
int tutti_cuda_sharers_record(struct tutti_cuda_gpu *gpu, struct tutti_cu_stream *stream,
                              uint64_t number);

/* ---- tables.c -------------------------------------------------------------------------- */

/* Returns true if rank `from` may store to and load from the device memory of rank `owner`. */
bool tutti_cuda_reaches(const struct tutti_cuda_gpu *gpu, int from, int owner);
/* Returns true if every rank of its host may do this with the device memory of rank `owner`. */
bool tutti_cuda_is_reached_by_all(const struct tutti_cuda_gpu *gpu, int owner);

/* Writes the tables that kernels read in device memory: the domain, its peers, and its counters. */
int tutti_cuda_write_tables(struct tutti_cuda_gpu *gpu);

/* Returns the entry of `rank` in the table of peers that kernels read. The entry follows from the
 * paths that are known so far. */
struct tutti_kernel_peer tutti_cuda_peer_of(const struct tutti_cuda_gpu *gpu, int rank);

/* Returns true if `rank` is in this process. */
static inline bool tutti_cuda_is_in_process(const struct tutti_cuda_gpu *gpu, int rank)
{
    return tutti_identity_same_process(&gpu->records[rank].identity,
                                       &gpu->records[gpu->args.rank].identity);
}

#endif
