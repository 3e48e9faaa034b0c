/* SPDX-License-Identifier: Apache-2.0
 *
 * Tutti: collective communication between ranks.
 *
 * A communicator joins `nranks` ranks: threads of one process, processes of one
 * host, processes of many hosts, in any mix. Each rank calls the same
 * collectives in the same order. Whoever knows NCCL knows this header: argument
 * order, group semantics, data types, operations and result codes are NCCL's.
 *
 * Conventions that hold for every function, unless it says otherwise:
 *
 *  - Results. tuttiSuccess, or a code whose meaning is given at tuttiResult_t;
 *    tuttiGetLastError() has one line that names the argument and the cure.
 *    Output arguments change only on success.
 *  - Counts are in elements of the given data type, never bytes. 0 is ordinary.
 *  - Buffers are host or device memory aligned to the size of one element, and belong to
 *    the library from the call until the operation is complete. Both buffers of a call are on the
 *    same side. Input and
 *    output must not overlap, except exactly in place as each function says.
 *    A buffer may be NULL when its count is 0.
 *  - Streams. With stream NULL the operation is complete when the call returns
 *    (inside a group: when the outermost tuttiGroupEnd returns). With a stream
 *    made by tuttiHostStreamCreate the call returns at once and the operation
 *    runs in the order of that stream. With device memory the stream is CUDA's, a cudaStream_t or
 *    CUstream cast to tuttiStream_t: the operation is enqueued there, and may be captured in a
 *    graph. A call on device memory with stream NULL waits for the context's default stream first.
 *    Ranks that share a GPU in one process need streams of their own, or NULL.
 *  - GPUs. A rank is on the GPU that config.device names, else on that of the CUDA context that is
 *    current when its communicator is made, in a split on its parent's. Ranks on GPUs and on CPUs
 *    may be of one communicator. Where all are on GPUs, all ranks must pass memory of the same side
 *    in a call; one without buffers and stream goes where the one before went.
 *  - Threads. Different communicators may be used by different threads at the
 *    same time. Calls on one communicator must be made by one thread at a time,
 *    except tuttiCommAbort and tuttiCommGetAsyncError, which any thread may call.
 *  - Order. Operations on one communicator run in the order of their calls,
 *    also when they are issued on different streams. Where the ranks' GPUs reach each other,
 *    those on host memory and those on device memory have an order each.
 *  - Determinism. All ranks receive identical bits, and the same call on the
 *    same communicator gives the same bits on every run.
 *  - No wait is endless. Every operation ends in success or in an error that
 *    names the rank and the collective: when a peer dies, when ranks call
 *    different collectives, or when a deadline (tuttiConfig_t) passes. Such an
 *    error leaves the communicator aborted: destroy it. Errors of arguments
 *    (tuttiInvalidArgument) leave it as it was.
 */
#ifndef TUTTI_H
#define TUTTI_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TUTTI_MAJOR 0
#define TUTTI_MINOR 1
#define TUTTI_PATCH 0
/* Encoded as NCCL does: major * 10000 + minor * 100 + patch. */
#define TUTTI_VERSION(major, minor, patch) ((major) * 10000 + (minor) * 100 + (patch))
#define TUTTI_VERSION_CODE TUTTI_VERSION(TUTTI_MAJOR, TUTTI_MINOR, TUTTI_PATCH)

#if defined(__GNUC__)
#define TUTTI_API __attribute__((visibility("default")))
#else
#define TUTTI_API
#endif

/* ---- types ---------------------------------------------------------------- */

/* One rank's handle on a communicator. */
typedef struct tuttiComm *tuttiComm_t;

/* An in-order queue of operations on host buffers; NULL is "complete at return". */
typedef struct tuttiStream *tuttiStream_t;

/* The codes are NCCL's, for the same failures. */
typedef enum {
    tuttiSuccess = 0,
    tuttiUnhandledCudaError = 1, /* a device call failed; the communicator is aborted */
    tuttiSystemError = 2,        /* the operating system refused something; aborted */
    tuttiInternalError = 3,      /* a bug of this library; aborted */
    tuttiInvalidArgument = 4,    /* the call had no effect; the communicator is as before */
    tuttiInvalidUsage = 5,       /* calls that do not fit together, here or between ranks */
    tuttiRemoteError = 6,        /* a peer died, left, or cannot be reached; aborted */
    tuttiInProgress = 7,         /* not an error: ask again */
    tuttiTimeout = 8,            /* a deadline passed; aborted */
    tuttiNumResults = 9
} tuttiResult_t;

typedef enum {
    tuttiInt8 = 0, tuttiChar = 0,
    tuttiUint8 = 1,
    tuttiInt32 = 2, tuttiInt = 2,
    tuttiUint32 = 3,
    tuttiInt64 = 4,
    tuttiUint64 = 5,
    tuttiFloat16 = 6, tuttiHalf = 6,
    tuttiFloat32 = 7, tuttiFloat = 7,
    tuttiFloat64 = 8, tuttiDouble = 8,
    tuttiBfloat16 = 9,
    tuttiFloat8e4m3 = 10, /* OCP E4M3: finite up to 448, no infinities */
    tuttiFloat8e5m2 = 11, /* OCP E5M2 */
    tuttiNumTypes = 12
} tuttiDataType_t;

/* Reductions. Integers wrap around. Types narrower than 32 bits of floating
 * point are summed and multiplied in float32 and rounded once, to nearest even.
 * Min and max of floating types propagate NaN and order -0 before +0 (IEEE
 * 754-2019 minimum and maximum). Average is the sum times 1/nranks; of integers
 * the sum divided by nranks, rounded toward zero. */
typedef enum {
    tuttiSum = 0,
    tuttiProd = 1,
    tuttiMax = 2,
    tuttiMin = 3,
    tuttiAvg = 4,
    tuttiNumOps = 5,         /* the first operation made by tuttiRedOpCreatePreMulSum */
    tuttiMaxRedOp = 0x7fffffff
} tuttiRedOp_t;

/* Where the scalar of a pre-multiplied sum lives. */
typedef enum {
    tuttiScalarDevice = 0,       /* read when the operation runs; must stay valid until then */
    tuttiScalarHostImmediate = 1 /* read before tuttiRedOpCreatePreMulSum returns */
} tuttiScalarResidence_t;

#define TUTTI_UNIQUE_ID_BYTES 128

/* Names a communicator to be formed: where its ranks meet, and the secret that
 * they share. Move it to all ranks by any means; whoever holds it can join.
 * Plain bytes, without pointers. */
typedef struct {
    char internal[TUTTI_UNIQUE_ID_BYTES];
} tuttiUniqueId;

/* ---- configuration -------------------------------------------------------- */

#define TUTTI_CONFIG_MAGIC 0x54757474u
#define TUTTI_CONFIG_UNDEF_INT INT_MIN

/* How a communicator behaves. Always start from TUTTI_CONFIG_INITIALIZER and
 * change what you need; undefined fields take the default. The environment
 * variables named below override it. Later versions add fields at the end; `size`
 * tells the library which ones the caller knows. */
typedef struct {
    size_t size;
    unsigned int magic;
    unsigned int version;
    /* 1 (default): initialisation returns when the communicator is ready.
     * 0: it returns tuttiInProgress and goes on in calls of
     * tuttiCommGetAsyncError, which tells when it is ready. */
    int blocking;
    /* Deadline for forming the communicator in ms (default 120000). TUTTI_INIT_TIMEOUT_MS. */
    int initTimeoutMs;
    /* Deadline for each operation in ms (default 1800000; 0: none). TUTTI_TIMEOUT_MS. */
    int timeoutMs;
    /* Shown in messages; copied. NULL: none. */
    const char *commName;
    /* The GPU of this rank, as CUDA counts them; -1: none, the rank is on the CPU. Default: in a
     * split that of the parent, else that of the CUDA context that is current on the calling
     * thread, none if there is none. */
    int device;
} tuttiConfig_t;

#define TUTTI_CONFIG_INITIALIZER                                              \
    {                                                                         \
        sizeof(tuttiConfig_t), TUTTI_CONFIG_MAGIC, TUTTI_VERSION_CODE,        \
        TUTTI_CONFIG_UNDEF_INT, TUTTI_CONFIG_UNDEF_INT,                       \
        TUTTI_CONFIG_UNDEF_INT, NULL, TUTTI_CONFIG_UNDEF_INT                  \
    }

/* ---- library -------------------------------------------------------------- */

/* The library's version code (TUTTI_VERSION_CODE of its build). */
TUTTI_API tuttiResult_t tuttiGetVersion(int *version);

/* A constant, readable name for `result`. Never NULL. Thread-safe. */
TUTTI_API const char *tuttiGetErrorString(tuttiResult_t result);

/* One line that says what failed last, why, and what to do: on `comm`, or on the
 * calling thread when `comm` is NULL. "" if nothing has failed. The text is
 * valid until the next failure on the calling thread. Thread-safe. */
TUTTI_API const char *tuttiGetLastError(tuttiComm_t comm);

/* Allocate `size` bytes of memory that is the fastest to communicate from, zeroed. Where a CUDA
 * context is current on the calling thread it is memory of that device, which the other GPUs of the
 * process may use, and which ranks in other processes map at the first calls on it; else memory of
 * the host, as of tuttiMemAllocHost. Free it with tuttiMemFree. Size 0 gives NULL. Thread-safe.
 * tuttiInvalidArgument: ptr is NULL, or no memory can have that size;
 * tuttiSystemError, tuttiUnhandledCudaError: out of memory. */
TUTTI_API tuttiResult_t tuttiMemAlloc(void **ptr, size_t size);

/* The same, always of the host: page-aligned, in huge pages where the kernel has them (from 2 MiB
 * on, and then committed at once), and lent to the other ranks of the host, which map it at the
 * first calls on it. That needs a file descriptor for each allocation from 64 KiB on, up to 128 in
 * a process; a child made by fork shares it, rather than having a copy. */
TUTTI_API tuttiResult_t tuttiMemAllocHost(void **ptr, size_t size);

/* Free what these two gave; NULL is ignored. Operations on it must be complete. Thread-safe.
 * tuttiInvalidArgument: not an address that they gave. */
TUTTI_API tuttiResult_t tuttiMemFree(void *ptr);

/* ---- forming communicators -------------------------------------------------- */

/* Make a new id and open the address at which its ranks will meet. Call it once,
 * in a process that is to hold one of the ranks; that process serves the
 * meeting while its rank initialises. Thread-safe.
 * tuttiSystemError: no usable network interface. */
TUTTI_API tuttiResult_t tuttiGetUniqueId(tuttiUniqueId *uniqueId);

/* Join the communicator `commId` of `nranks` ranks as number `rank`. Returns when
 * all ranks have joined. Inside a group, joining happens at tuttiGroupEnd, so
 * that one thread may hold several ranks; *comm is set by then.
 * tuttiInvalidArgument: rank or nranks out of range, corrupted id;
 * tuttiInvalidUsage: ranks disagree on nranks, or two claim one number;
 * tuttiTimeout: the root is unreachable or silent, or ranks are missing (named). */
TUTTI_API tuttiResult_t tuttiCommInitRank(tuttiComm_t *comm, int nranks, tuttiUniqueId commId,
                                          int rank);

/* The same, with a configuration (NULL: the default). */
TUTTI_API tuttiResult_t tuttiCommInitRankConfig(tuttiComm_t *comm, int nranks, tuttiUniqueId commId,
                                                int rank, const tuttiConfig_t *config);

/* Make a communicator of `ndev` ranks, all of the calling process: comms[i] is
 * rank i, on GPU devlist[i], or on the CPU where that is -1. A GPU may be named more than once.
 * `devlist` NULL: all are on the CPU. Use them from `ndev` threads, or from one thread inside
 * groups. */
TUTTI_API tuttiResult_t tuttiCommInitAll(tuttiComm_t *comms, int ndev, const int *devlist);

/* Join the communicator that the environment describes, as set by tutti-run
 * (TUTTI_RANK, TUTTI_NRANKS, TUTTI_ROOT, TUTTI_SECRET), torchrun (RANK, WORLD_SIZE, MASTER_ADDR,
 * MASTER_PORT), Open MPI (OMPI_COMM_WORLD_*), MPICH (PMI_*) or Slurm (SLURM_*), in this order.
 * docs/launchers.md says what each needs. An environment that names none is a
 * communicator of one rank. A malformed one: tuttiInvalidUsage, naming the variable. */
TUTTI_API tuttiResult_t tuttiCommInitFromEnv(tuttiComm_t *comm, const tuttiConfig_t *config);

/* Join through a store that all ranks reach: "file:DIRECTORY" (a directory on a
 * shared file system, made if absent, used by one communicator at a time and
 * emptied by it) or "tcp:HOST:PORT" (rank 0 listens there). `secret` is any text that all ranks
 * share and strangers do not know; NULL means only the store's address. */
TUTTI_API tuttiResult_t tuttiCommInitStore(tuttiComm_t *comm, int nranks, int rank,
                                           const char *store, const char *secret,
                                           const tuttiConfig_t *config);

/* An all-gather of the embedder's own: contribute `bytes` bytes at `input`; on
 * return `output` holds those of all ranks, rank 0 first. Returns 0, or nonzero on failure. It may
 * block, and is called a few times, in the same order on all ranks. */
typedef int (*tuttiAllGatherFn_t)(void *context, const void *input, void *output, size_t bytes);

/* Join by means of the caller's own all-gather (MPI, a parameter server, ...),
 * called on the calling thread before this returns. Always blocking. */
TUTTI_API tuttiResult_t tuttiCommInitCallback(tuttiComm_t *comm, int nranks, int rank,
                                              tuttiAllGatherFn_t allGather, void *context,
                                              const tuttiConfig_t *config);

#define TUTTI_SPLIT_NOCOLOR (-1)

/* Split `comm`: ranks with equal `color` (>= 0) form a new communicator, ordered
 * by `key`, ties by rank. Ranks with TUTTI_SPLIT_NOCOLOR take part in the call and
 * get NULL. Collective over `comm`, which stays usable; complete at return.
 * Inside a group it takes place at tuttiGroupEnd. `config` NULL: the parent's. */
TUTTI_API tuttiResult_t tuttiCommSplit(tuttiComm_t comm, int color, int key, tuttiComm_t *newcomm,
                                       const tuttiConfig_t *config);

/* ---- their end ---------------------------------------------------------------- */

/* Wait until all operations of this rank, also those on streams, are complete and all ranks have
 * called this. Afterwards only queries and tuttiCommDestroy are allowed. Collective. */
TUTTI_API tuttiResult_t tuttiCommFinalize(tuttiComm_t comm);

/* Free the communicator; operations still on streams are completed first. Not collective: it does
 * not wait for peers, whose operations with this rank must be complete. NULL is ignored. */
TUTTI_API tuttiResult_t tuttiCommDestroy(tuttiComm_t comm);

/* End all operations of the communicator, here and on its other ranks, with
 * tuttiRemoteError or tuttiInvalidUsage, from any thread at any time. The handle stays valid and
 * must still be freed by tuttiCommDestroy. */
TUTTI_API tuttiResult_t tuttiCommAbort(tuttiComm_t comm);

/* ---- queries ------------------------------------------------------------------ */

/* Number of ranks. */
TUTTI_API tuttiResult_t tuttiCommCount(tuttiComm_t comm, int *count);

/* This rank's number. */
TUTTI_API tuttiResult_t tuttiCommUserRank(tuttiComm_t comm, int *rank);

/* The state of the communicator: tuttiSuccess, tuttiInProgress while a
 * non-blocking initialisation goes on (it goes on in this call), or the error that aborted it.
 * Never blocks. Any thread, but one at a time while initialisation goes on. */
TUTTI_API tuttiResult_t tuttiCommGetAsyncError(tuttiComm_t comm, tuttiResult_t *asyncError);

/* What a communicator costs this process. */
typedef struct {
    size_t size;               /* in: sizeof(tuttiMemStats_t) */
    size_t privateBytes;       /* heap of this rank */
    size_t sharedBytes;        /* this rank's part of the host's segment, as touched so far */
    size_t sharedReservedBytes;/* address space of the host's segment */
    int connections;           /* open connections of this rank */
    int sockets;               /* TCP sockets among them */
    size_t deviceBytes;        /* memory of this rank's GPU */
} tuttiMemStats_t;

/* Memory and connections of this rank now. */
TUTTI_API tuttiResult_t tuttiCommMemStats(tuttiComm_t comm, tuttiMemStats_t *stats);

/* ---- registration ----------------------------------------------------------------- */

/* Let the ranks of `comm` use the allocation of device memory that holds `buff` where it lies, as
 * they use memory of tuttiMemAlloc, which needs no registration. Other device memory is copied
 * through memory of the communicator's own unless all ranks are threads of one process. Local; of
 * effect when all ranks have seen it, some calls later. Host memory needs none: nothing is done.
 * `size` bytes from `buff` on must lie in one allocation; all of that is registered, however few
 * they are. Virtual memory (cuMemMap) is an allocation for each mapping, and must be open to all
 * GPUs of the process that have ranks of `comm` (cuMemSetAccess). tuttiInvalidArgument: memory that
 * cannot be shared (of a stream-ordered pool, say), or of several allocations. */
TUTTI_API tuttiResult_t tuttiCommRegister(tuttiComm_t comm, void *buff, size_t size, void **handle);

/* Take it back, before the memory is freed. Operations on it must be complete. NULL is ignored. */
TUTTI_API tuttiResult_t tuttiCommDeregister(tuttiComm_t comm, void *handle);

/* ---- tuning --------------------------------------------------------------------- */

/* What tuttiCommTune shall measure. Start from TUTTI_TUNE_CONFIG_INITIALIZER; 0 and NULL are the
 * defaults. Later versions add fields at the end. */
typedef struct {
    size_t size;
    /* Comma-separated, as in TUTTI_ALGORITHM: allreduce, reduce, broadcast, allgather,
     * reduce_scatter, alltoall, gather, scatter, barrier. NULL: all of them. */
    const char *collectives;
    /* Sizes of the larger of a rank's two buffers, in bytes: from minBytes (4) by factors of 4,
     * and maxBytes (4 MiB, at most 1 GiB). Each rank allocates two buffers of maxBytes
     * meanwhile. */
    size_t minBytes, maxBytes;
    /* About how long it may take, in ms (10000). What is not measured by then is left out. */
    int budgetMs;
} tuttiTuneConfig_t;

#define TUTTI_TUNE_CONFIG_INITIALIZER { sizeof(tuttiTuneConfig_t), NULL, 0, 0, 0 }

/* Measure which algorithms are the fastest on this communicator, and use them from now on; calls
 * for which TUTTI_ALGORITHM or TUTTI_TUNE name an algorithm stay with it. `file`, unless NULL,
 * remembers the choices under a name of processor, cores, ranks, hosts and transports: what it
 * holds for other machines and collectives is kept, and TUTTI_TUNE_TABLE names it in later runs
 * (docs/tuning.md). Collective, not inside a group; returns on all ranks when the choices are in
 * use. The arguments of rank 0 count, on others they are ignored; so does its file system.
 * tuttiInvalidArgument: config is not initialised, an unknown collective, an empty range of sizes;
 * tuttiInvalidUsage: inside a group, or the file cannot be read or written. Both on all ranks. */
TUTTI_API tuttiResult_t tuttiCommTune(tuttiComm_t comm, const char *file,
                                      const tuttiTuneConfig_t *config);

/* ---- reductions of one's own ---------------------------------------------------- */

/* Make `op`: the sum of every rank's input multiplied by that rank's `scalar`,
 * one element of `datatype`. Valid for this communicator and data type until
 * tuttiRedOpDestroy. Local: ranks may use different scalars. */
TUTTI_API tuttiResult_t tuttiRedOpCreatePreMulSum(tuttiRedOp_t *op, void *scalar,
                                                  tuttiDataType_t datatype,
                                                  tuttiScalarResidence_t residence,
                                                  tuttiComm_t comm);

/* Free `op`; operations already issued keep it alive. */
TUTTI_API tuttiResult_t tuttiRedOpDestroy(tuttiRedOp_t op, tuttiComm_t comm);

/* ---- collectives ---------------------------------------------------------------- */

/* recvbuff[i] on every rank = op over ranks of sendbuff[i], i < count.
 * In place: sendbuff == recvbuff.
 * Ring: Patarasuk and Yuan 2009. Recursive doubling: Thakur, Rabenseifner, Gropp 2005.
 * Circulant reduce-scatter and all-gather: Traff 2024. */
TUTTI_API tuttiResult_t tuttiAllReduce(const void *sendbuff, void *recvbuff, size_t count,
                                       tuttiDataType_t datatype, tuttiRedOp_t op, tuttiComm_t comm,
                                       tuttiStream_t stream);

/* As tuttiAllReduce, but only `root` receives; recvbuff is ignored elsewhere.
 * In place: sendbuff == recvbuff on root. */
TUTTI_API tuttiResult_t tuttiReduce(const void *sendbuff, void *recvbuff, size_t count,
                                    tuttiDataType_t datatype, tuttiRedOp_t op, int root,
                                    tuttiComm_t comm, tuttiStream_t stream);

/* recvbuff on every rank = sendbuff of `root`, `count` elements; sendbuff is
 * ignored elsewhere. In place: sendbuff == recvbuff on root. */
TUTTI_API tuttiResult_t tuttiBroadcast(const void *sendbuff, void *recvbuff, size_t count,
                                       tuttiDataType_t datatype, int root, tuttiComm_t comm,
                                       tuttiStream_t stream);

/* recvbuff = the sendbuffs of all ranks, `sendcount` elements each, rank 0
 * first. In place: sendbuff == recvbuff + rank * sendcount. */
TUTTI_API tuttiResult_t tuttiAllGather(const void *sendbuff, void *recvbuff, size_t sendcount,
                                       tuttiDataType_t datatype, tuttiComm_t comm,
                                       tuttiStream_t stream);

/* As tuttiAllGather with a count per rank: rank i gives recvcounts[i] elements,
 * which are placed at recvbuff + displs[i] elements everywhere. `recvcounts` and `displs` have
 * nranks entries, are read before the call returns; recvcounts must be equal on all ranks, displs
 * may differ. displs NULL: packed. In place: sendbuff == recvbuff + displs[rank]. */
TUTTI_API tuttiResult_t tuttiAllGatherV(const void *sendbuff, void *recvbuff,
                                        const size_t *recvcounts, const size_t *displs,
                                        tuttiDataType_t datatype, tuttiComm_t comm,
                                        tuttiStream_t stream);

/* recvbuff[i] = op over ranks of sendbuff[rank * recvcount + i], i < recvcount.
 * In place: recvbuff == sendbuff + rank * recvcount. */
TUTTI_API tuttiResult_t tuttiReduceScatter(const void *sendbuff, void *recvbuff, size_t recvcount,
                                           tuttiDataType_t datatype, tuttiRedOp_t op,
                                           tuttiComm_t comm, tuttiStream_t stream);

/* As tuttiReduceScatter with a count per rank: rank i receives recvcounts[i]
 * elements, found at sendbuff + displs[i]. Both arrays as in tuttiAllGatherV.
 * In place: recvbuff == sendbuff + displs[rank]. */
TUTTI_API tuttiResult_t tuttiReduceScatterV(const void *sendbuff, void *recvbuff,
                                            const size_t *recvcounts, const size_t *displs,
                                            tuttiDataType_t datatype, tuttiRedOp_t op,
                                            tuttiComm_t comm, tuttiStream_t stream);

/* Block i of recvbuff = block `rank` of rank i's sendbuff; blocks of `count`
 * elements, nranks * count in all. In place: sendbuff == recvbuff.
 * Pairwise, and Bruck et al. 1997. */
TUTTI_API tuttiResult_t tuttiAlltoAll(const void *sendbuff, void *recvbuff, size_t count,
                                      tuttiDataType_t datatype, tuttiComm_t comm,
                                      tuttiStream_t stream);

/* Send sendcounts[i] elements at sendbuff + sdispls[i] to rank i, receive
 * recvcounts[i] at recvbuff + rdispls[i] from it. recvcounts[i] must equal
 * what rank i sends here. Arrays of nranks entries, read before the call returns; displacements in
 * elements, NULL: packed. In place (sendbuff == recvbuff) needs equal counts and displacements
 * for sending and receiving. */
TUTTI_API tuttiResult_t tuttiAlltoAllV(const void *sendbuff, const size_t *sendcounts,
                                       const size_t *sdispls, void *recvbuff,
                                       const size_t *recvcounts, const size_t *rdispls,
                                       tuttiDataType_t datatype, tuttiComm_t comm,
                                       tuttiStream_t stream);

/* recvbuff on `root` = the sendbuffs of all ranks, `count` elements each;
 * recvbuff is ignored elsewhere. In place on root: sendbuff == recvbuff + root * count. */
TUTTI_API tuttiResult_t tuttiGather(const void *sendbuff, void *recvbuff, size_t count,
                                    tuttiDataType_t datatype, int root, tuttiComm_t comm,
                                    tuttiStream_t stream);

/* recvbuff of rank i = block i of root's sendbuff, `count` elements each; sendbuff
 * is ignored elsewhere. In place on root: recvbuff == sendbuff + root * count. */
TUTTI_API tuttiResult_t tuttiScatter(const void *sendbuff, void *recvbuff, size_t count,
                                     tuttiDataType_t datatype, int root, tuttiComm_t comm,
                                     tuttiStream_t stream);

/* No rank passes before all have arrived. (NCCL users write a one-byte
 * all-reduce for this.) Dissemination: Hensgen, Finkel, Manber 1988. */
TUTTI_API tuttiResult_t tuttiBarrier(tuttiComm_t comm, tuttiStream_t stream);

/* Send to / receive from `peer`; the k-th send matches the k-th receive of a
 * pair, with equal count and type (checked). A send may return before the
 * receive has begun. Exchanges belong in a group, where they never deadlock; a rank may
 * send to itself there. */
TUTTI_API tuttiResult_t tuttiSend(const void *sendbuff, size_t count, tuttiDataType_t datatype,
                                  int peer, tuttiComm_t comm, tuttiStream_t stream);
TUTTI_API tuttiResult_t tuttiRecv(void *recvbuff, size_t count, tuttiDataType_t datatype, int peer,
                                  tuttiComm_t comm, tuttiStream_t stream);

/* ---- groups ---------------------------------------------------------------------- */

/* Collect the calling thread's calls until the matching tuttiGroupEnd and run
 * them together: any mix of collectives, sends and receives on any number of
 * communicators, and initialisations. Groups nest; the outermost end runs them. Sends and receives
 * of a group progress at the same time; collectives of one communicator run in the order of
 * their calls. */
TUTTI_API tuttiResult_t tuttiGroupStart(void);

/* Run the group. With stream NULL everything is complete at return. If a call
 * inside the group failed on its arguments, nothing is run and its code is returned. */
TUTTI_API tuttiResult_t tuttiGroupEnd(void);

/* ---- host streams ------------------------------------------------------------------ */

/* Make an in-order queue served by a thread of its own, which runs on the CPUs that
 * TUTTI_STREAM_CPUS lists, else on those of the calling thread. Thread-safe, as all functions
 * here. */
TUTTI_API tuttiResult_t tuttiHostStreamCreate(tuttiStream_t *stream);

/* Wait for the operations of the stream, then free it. NULL is ignored. */
TUTTI_API tuttiResult_t tuttiHostStreamDestroy(tuttiStream_t stream);

/* Wait until all operations issued so far are complete. Returns the first
 * error among them since the last call that reported one. */
TUTTI_API tuttiResult_t tuttiStreamSynchronize(tuttiStream_t stream);

/* tuttiSuccess: all complete; tuttiInProgress: not yet; else the first error, as above. */
TUTTI_API tuttiResult_t tuttiStreamQuery(tuttiStream_t stream);

/* A descriptor that polls readable whenever the stream has become idle since it
 * was last read (8 bytes, as of eventfd). It belongs to the stream: do not close it. */
TUTTI_API tuttiResult_t tuttiStreamEventFd(tuttiStream_t stream, int *fd);

#ifdef __cplusplus
}
#endif

#endif
