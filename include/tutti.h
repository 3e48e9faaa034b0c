/* SPDX-License-Identifier: Apache-2.0
 *
 * Tutti: collective communication between ranks.
 *
 * A communicator joins `nranks` ranks: threads of one process, processes of one
 * host, processes of many hosts, in any mix. Each rank calls the same
 * collectives in the same order. Argument order, group semantics, data types,
 * operations and result codes are NCCL's.
 *
 * Conventions that hold for every function, unless it says otherwise:
 *
 *  - Results. A function returns tuttiSuccess, or a code that tuttiResult_t describes;
 *    tuttiGetLastError() then has one line that names the argument and the cure.
 *    Output arguments change only on success.
 *  - Counts are in elements of the given data type, never bytes. A count of 0 is valid.
 *  - Buffers are host or device memory aligned to the size of one element, and belong to the
 *    library from the call until the operation is complete. Both buffers of a call must be host
 *    memory, or both device memory. Input and output must not overlap, except exactly in place as
 *    each function says.
 *    A buffer may be NULL when its count is 0.
 *  - Streams. With stream NULL the operation is complete when the call returns
 *    (inside a group: when the outermost tuttiGroupEnd returns). With a stream
 *    made by tuttiHostStreamCreate the call returns at once and the operation
 *    runs in the order of that stream. With device memory the stream is CUDA's, a cudaStream_t or
 *    CUstream cast to tuttiStream_t: the operation is enqueued there, and may be captured in a
 *    graph. A call on device memory with stream NULL waits for the context's default stream first.
 *    Ranks that share a GPU in one process need streams of their own, or NULL.
 *  - GPUs. A rank is on the GPU that config.device names. Without config.device it is on the GPU of
 *    the CUDA context that is current when its communicator is made, or in a split on that of its
 *    parent. One communicator may have ranks on GPUs and ranks on CPUs. If all its ranks are on
 *    GPUs, all must pass host memory in a call, or all device memory; a call without buffers and
 *    stream runs where the previous call ran, on the host or on the GPUs.
 *  - Threads. Different communicators may be used by different threads at the same time. One
 *    communicator may be used by one thread at a time: while a thread is inside a call on it, a
 *    call of another thread does nothing and returns tuttiInvalidUsage, and the message names the
 *    call of the first. Threads may take turns. A call with a stream ends when it returns, even if
 *    its operation is still running. Any thread may call tuttiCommAbort, tuttiCommGetAsyncError,
 *    tuttiCommCount, tuttiCommUserRank, tuttiCommGetName, tuttiCommHostCount,
 *    tuttiCommGetRankInfo and tuttiGetLastError at any time.
 *  - Order. Operations on one communicator run in the order of their calls,
 *    also when they are issued on different streams. If the ranks' GPUs can access each other's
 *    memory, operations on host memory and operations on device memory are ordered separately.
 *  - Determinism. All ranks receive identical bits, and the same call on the
 *    same communicator gives the same bits on every run.
 *  - Every wait ends. An operation ends in success, or in an error that names the rank and the
 *    collective: when a peer dies, when ranks call different collectives, or when a deadline
 *    (tuttiConfig_t) passes; a deadline can be turned off. Such an
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

/* The version of this header; docs/versioning.md says what it promises. */
#define TUTTI_MAJOR 0
/* The same. */
#define TUTTI_MINOR 1
/* The same. */
#define TUTTI_PATCH 0
/* Encoded as NCCL does: major * 10000 + minor * 100 + patch. */
#define TUTTI_VERSION(major, minor, patch) ((major) * 10000 + (minor) * 100 + (patch))
/* The code of this header; tuttiGetVersion gives the library's. */
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

/* Types of elements, with NCCL's numbers. */
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

/* Size of a tuttiUniqueId. */
#define TUTTI_UNIQUE_ID_BYTES 128

/* Names a communicator to be formed: where its ranks meet, and the secret that
 * they share. Move it to all ranks by any means; whoever holds it can join.
 * Plain bytes, without pointers. */
typedef struct {
    char internal[TUTTI_UNIQUE_ID_BYTES]; /* of meaning to the library alone */
} tuttiUniqueId;

/* ---- configuration -------------------------------------------------------- */

/* Marks an initialised tuttiConfig_t. */
#define TUTTI_CONFIG_MAGIC 0x54757474u
/* An int of tuttiConfig_t that takes its default. */
#define TUTTI_CONFIG_UNDEF_INT INT_MIN

/* How a communicator behaves. Always start from TUTTI_CONFIG_INITIALIZER and
 * change what you need; undefined fields take the default. The environment
 * variables named below override it. Later versions add fields at the end; `size`
 * tells the library which ones the caller knows. */
typedef struct {
    size_t size;          /* the initializer sets this and the next two fields */
    unsigned int magic;   /* TUTTI_CONFIG_MAGIC */
    unsigned int version; /* TUTTI_VERSION_CODE of the caller's header */
    /* 1 (default): initialisation returns when the communicator is ready.
     * 0: it returns tuttiInProgress, and calls of tuttiCommGetAsyncError continue it until
     * they report that the communicator is ready. */
    int blocking;
    /* Deadline for forming the communicator in ms (default 120000). TUTTI_INIT_TIMEOUT_MS. */
    int initTimeoutMs;
    /* Deadline for each operation in ms (default 1800000; 0: none). TUTTI_TIMEOUT_MS. */
    int timeoutMs;
    /* Shown in messages and by tuttiCommGetName; copied, up to 63 characters. NULL: none. For a
     * communicator from the environment or a store it must be the same on all ranks, which find
     * each other by it. */
    const char *commName;
    /* The GPU of this rank, by its CUDA number; -1: none, the rank is on the CPU. Default: in a
     * split the GPU of the parent, otherwise the GPU of the CUDA context that is current on the
     * calling thread, or none without a context. */
    int device;
} tuttiConfig_t;

/* Every field undefined: all defaults. */
#define TUTTI_CONFIG_INITIALIZER                                              \
    {                                                                         \
        sizeof(tuttiConfig_t), TUTTI_CONFIG_MAGIC, TUTTI_VERSION_CODE,        \
        TUTTI_CONFIG_UNDEF_INT, TUTTI_CONFIG_UNDEF_INT,                       \
        TUTTI_CONFIG_UNDEF_INT, NULL, TUTTI_CONFIG_UNDEF_INT                  \
    }

/* ---- library -------------------------------------------------------------- */

/* The library's version code (TUTTI_VERSION_CODE of its build). */
TUTTI_API tuttiResult_t tuttiGetVersion(int *version);

/* The version for people: "0.1.0", with the revision of the source in parentheses where the build
 * knows it. A constant; never NULL. Thread-safe. */
TUTTI_API const char *tuttiGetVersionString(void);

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

/* As tuttiMemAlloc, but always memory of the host: page-aligned, in huge pages where the kernel has
 * them (from 2 MiB on, and then committed at once). It is lent to the other ranks of the host,
 * which map it at the first calls on it. Lending needs a file descriptor for each allocation from
 * 64 KiB on, up to 128 in a process. A child made by fork shares the memory, rather than having a
 * copy. */
TUTTI_API tuttiResult_t tuttiMemAllocHost(void **ptr, size_t size);

/* Free memory of tuttiMemAlloc or tuttiMemAllocHost; NULL is ignored. Operations on it must be
 * complete, also those that an open group holds: these are not looked for. Thread-safe.
 * tuttiInvalidArgument: not an address that one of them gave. */
TUTTI_API tuttiResult_t tuttiMemFree(void *ptr);

/* ---- forming communicators -------------------------------------------------- */

/* Make a new id and open the address at which its ranks will meet. Call it once for each
 * communicator, in a process that will hold one of the ranks, and pass the id to all others: an id
 * serves one communicator. The process that made the id accepts the other ranks while its rank
 * initialises. Thread-safe.
 * tuttiSystemError: no usable network interface. */
TUTTI_API tuttiResult_t tuttiGetUniqueId(tuttiUniqueId *uniqueId);

/* Join the communicator `commId` of `nranks` ranks as number `rank`. Returns when
 * all ranks have joined. Inside a group, joining happens at tuttiGroupEnd, so
 * that one thread may hold several ranks; *comm is set by then.
 * tuttiInvalidArgument: rank or nranks out of range, corrupted id;
 * tuttiInvalidUsage: ranks disagree on nranks, two claim one number, or this process made the id
 * and it has been used;
 * tuttiRemoteError: a rank gave up, or nobody serves the id any more: it has been used, or the
 * process that made it has ended;
 * tuttiTimeout: the root is unreachable or silent, or ranks are missing (named). */
TUTTI_API tuttiResult_t tuttiCommInitRank(tuttiComm_t *comm, int nranks, tuttiUniqueId commId,
                                          int rank);

/* As tuttiCommInitRank, with a configuration (NULL: the default). */
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
 * docs/launchers.md says what each needs. Without any of these variables the communicator has one
 * rank. tuttiInvalidUsage: a variable is missing or malformed (named).
 *
 * Call it once for each communicator; no barrier is needed between calls. The n-th call of a rank
 * with a config.commName, or without one, joins the n-th call of the other ranks with the same
 * name. So calls with the same name must come from one thread, in the same order on all ranks. To
 * form communicators in several threads at once, or several in a group, give each a commName of its
 * own, the same on all ranks. tuttiInvalidUsage: another living thread of the process has used the
 * name; the order of threads could differ between ranks and mix their communicators. */
TUTTI_API tuttiResult_t tuttiCommInitFromEnv(tuttiComm_t *comm, const tuttiConfig_t *config);

/* Join through a store that all ranks reach: "file:DIRECTORY" (a directory on a
 * shared file system, made if absent, used by one job at a time and emptied by it), "unix:NAME" (a
 * socket of this host without a file; rank 0 listens there) or "tcp:HOST:PORT" (rank 0 listens
 * there). `secret` is any text that all ranks share and strangers do not know; NULL means only the
 * store's address. A store serves any number of communicators; calls meet by config.commName and in
 * order, as in tuttiCommInitFromEnv.
 * tuttiInvalidUsage: another job uses the store, or another thread forms communicators of that name
 * there; with TUTTI_ENCRYPT a "tcp:" store without a secret; and as tuttiCommInitRank. */
TUTTI_API tuttiResult_t tuttiCommInitStore(tuttiComm_t *comm, int nranks, int rank,
                                           const char *store, const char *secret,
                                           const tuttiConfig_t *config);

/* An all-gather that the caller provides: contribute `bytes` bytes at `input`; on
 * return `output` holds those of all ranks, rank 0 first. Returns 0, or nonzero on failure. It may
 * block, and is called a few times, in the same order on all ranks. */
typedef int (*tuttiAllGatherFn_t)(void *context, const void *input, void *output, size_t bytes);

/* Join by means of the caller's own all-gather (MPI, a parameter server, ...),
 * called on the calling thread before this returns. Always blocking. */
TUTTI_API tuttiResult_t tuttiCommInitCallback(tuttiComm_t *comm, int nranks, int rank,
                                              tuttiAllGatherFn_t allGather, void *context,
                                              const tuttiConfig_t *config);

/* The color of a rank that joins no new communicator of a split. */
#define TUTTI_SPLIT_NOCOLOR (-1)

/* Split `comm`: ranks with equal `color` (>= 0) form a new communicator, ordered
 * by `key`, ties by rank. Ranks with TUTTI_SPLIT_NOCOLOR take part in the call and
 * get NULL. Collective over `comm`, which stays usable; complete at return.
 * Inside a group it takes place at tuttiGroupEnd. `config` NULL: the parent's. */
TUTTI_API tuttiResult_t tuttiCommSplit(tuttiComm_t comm, int color, int key, tuttiComm_t *newcomm,
                                       const tuttiConfig_t *config);

/* ---- ending communicators ---------------------------------------------------------------- */

/* Wait until all operations of this rank, also those on streams, are complete and all ranks have
 * called this. Afterwards only queries and tuttiCommDestroy are allowed. Collective.
 * tuttiInvalidUsage: an open group holds calls on it, or another thread is inside a call on it. */
TUTTI_API tuttiResult_t tuttiCommFinalize(tuttiComm_t comm);

/* Free the communicator; operations still on streams are completed first. Not collective: it does
 * not wait for peers, whose operations with this rank must be complete. NULL is ignored.
 * tuttiInvalidUsage: an open group, of this thread or another one, holds calls on it, or another
 * thread is inside a call on it; the communicator is as before. */
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

/* The name of config.commName; "" without one. *name is valid until the communicator is
 * destroyed. Any thread. */
TUTTI_API tuttiResult_t tuttiCommGetName(tuttiComm_t comm, const char **name);

/* Number of hosts that its ranks run on. Ranks are on one host when they have one operating system
 * and one network namespace, or one TUTTI_HOST_ID. Any thread. tuttiInvalidUsage: the communicator
 * is still being formed. */
TUTTI_API tuttiResult_t tuttiCommHostCount(tuttiComm_t comm, int *hosts);

/* Bytes of a host's name, with its terminating zero. */
#define TUTTI_HOST_NAME_MAX 64

/* Where a rank runs. Later versions add fields at the end. */
typedef struct {
    size_t size;    /* in: sizeof(tuttiRankInfo_t), so that the library knows the caller's fields */
    int host;       /* number of its host from 0; hosts are numbered by their lowest ranks */
    int localRank;  /* its number among the ranks of that host, from 0, in the order of ranks */
    int localCount; /* number of ranks on that host */
    int pid;        /* its process id in its own pid namespace */
    char hostName[TUTTI_HOST_NAME_MAX]; /* name of that host, up to the first dot */
} tuttiRankInfo_t;

/* Where `rank` runs; any rank of the communicator may be asked about, without communication. Fills
 * *info, which is the caller's. Any thread. tuttiInvalidArgument: rank out of range, info->size not
 * set; tuttiInvalidUsage: the communicator is still being formed. */
TUTTI_API tuttiResult_t tuttiCommGetRankInfo(tuttiComm_t comm, int rank, tuttiRankInfo_t *info);

/* The state of the communicator: tuttiSuccess, tuttiInProgress while a
 * non-blocking initialisation goes on (it goes on in this call), or the error that aborted it.
 * Never blocks. Any thread, but one at a time while initialisation goes on. */
TUTTI_API tuttiResult_t tuttiCommGetAsyncError(tuttiComm_t comm, tuttiResult_t *asyncError);

/* What a communicator costs this process. */
typedef struct {
    size_t size;               /* in: sizeof(tuttiMemStats_t) */
    size_t privateBytes;       /* heap of this rank */
    size_t sharedBytes;        /* this rank's part of the host's segment, as touched so far */
    size_t sharedReservedBytes; /* address space of the host's segment */
    int connections;           /* open connections of this rank */
    int sockets;               /* TCP sockets among them */
    size_t deviceBytes;        /* memory of this rank's GPU */
} tuttiMemStats_t;

/* Memory and connections of this rank now. It counts as a call on the communicator: one thread at a
 * time. */
TUTTI_API tuttiResult_t tuttiCommMemStats(tuttiComm_t comm, tuttiMemStats_t *stats);

/* ---- registration ----------------------------------------------------------------- */

/* Let the ranks of `comm` access the allocation of device memory that holds `buff` directly, as
 * they access memory of tuttiMemAlloc, which needs no registration. Other device memory is copied
 * through memory of the communicator, unless all ranks are threads of one process. Local; it takes
 * effect some calls later, when all ranks have seen it. Host memory needs no registration, and
 * nothing is done for it. The `size` bytes at `buff` must lie in one allocation, and all of that
 * allocation is registered. In virtual memory (cuMemMap) each mapping is an allocation, and must be
 * accessible to all GPUs of the process that have ranks of `comm` (cuMemSetAccess).
 * tuttiInvalidArgument: memory that cannot be shared (of a stream-ordered pool, say), or of several
 * allocations. */
TUTTI_API tuttiResult_t tuttiCommRegister(tuttiComm_t comm, void *buff, size_t size, void **handle);

/* Undo tuttiCommRegister, before the memory is freed. Operations on it must be complete. NULL is
 * ignored. */
TUTTI_API tuttiResult_t tuttiCommDeregister(tuttiComm_t comm, void *handle);

/* From now on operations of this rank on `comm` have a deadline of `timeoutMs`; 0: none. Operations
 * that wait already may keep theirs. Local; ranks may have different deadlines. TUTTI_TIMEOUT_MS
 * does not override it. tuttiInvalidArgument: timeoutMs is negative. */
TUTTI_API tuttiResult_t tuttiCommSetTimeout(tuttiComm_t comm, int timeoutMs);

/* ---- tuning --------------------------------------------------------------------- */

/* What tuttiCommTune shall measure. Start from TUTTI_TUNE_CONFIG_INITIALIZER; 0 and NULL are the
 * defaults. Later versions add fields at the end. */
typedef struct {
    size_t size; /* as the initializer sets it */
    /* Comma-separated, as in TUTTI_ALGORITHM: allreduce, reduce, broadcast, allgather,
     * reduce_scatter, alltoall, gather, scatter, barrier. NULL: all of them. */
    const char *collectives;
    /* Sizes of the larger of a rank's two buffers, in bytes: from minBytes (4) by factors of 4, up
     * to maxBytes. */
    size_t minBytes;
    /* The largest size (4 MiB, at most 1 GiB). Each rank allocates two buffers of it meanwhile. */
    size_t maxBytes;
    /* Approximate limit of the time that it takes, in ms (10000). Sizes that are not measured by
     * then are left out. */
    int budgetMs;
} tuttiTuneConfig_t;

/* All defaults. */
#define TUTTI_TUNE_CONFIG_INITIALIZER { sizeof(tuttiTuneConfig_t), NULL, 0, 0, 0 }

/* Measure which algorithms are the fastest on this communicator, and use them from now on. Calls
 * for which TUTTI_ALGORITHM or TUTTI_TUNE name an algorithm still use that one. The choices are
 * written to `file`, unless it is NULL, under a name made of processor, cores, ranks, hosts and
 * transports. Choices in it for other machines and collectives are kept. Later runs read the file
 * if TUTTI_TUNE_TABLE names it (docs/tuning.md). Collective, not inside a group; returns on all
 * ranks when the choices are in use. The arguments of rank 0 apply, and its file system; those of
 * other ranks are ignored.
 * tuttiInvalidArgument: config is not initialised, an unknown collective, an empty range of sizes;
 * tuttiInvalidUsage: inside a group, or the file cannot be read or written. Both on all ranks. */
TUTTI_API tuttiResult_t tuttiCommTune(tuttiComm_t comm, const char *file,
                                      const tuttiTuneConfig_t *config);

/* How a call runs. Later versions add fields at the end. */
typedef struct {
    size_t size;         /* in: sizeof(tuttiExplanation_t) */
    char algorithm[96];  /* "ring", "hybrid[doublings=3]": options follow if they differ from
                            the defaults; "file": one of TUTTI_SCHEDULE; on GPUs "LL", "LL128",
                            "direct" */
    char transport[32];  /* between the ranks: "threads", "cma", "shm", "shm+tcp", "tcp", "gpu";
                            "self" where there is one rank */
    char reason[96];     /* what chose the algorithm: "by TUTTI_TUNE, line 3" */
} tuttiExplanation_t;

/* Report how a call would run on `comm`, without running it. `collective` is a name as in
 * TUTTI_ALGORITHM (allreduce, reduce, broadcast, allgather, reduce_scatter, alltoall, gather,
 * scatter, barrier), or allgatherv, reduce_scatterv or alltoallv. `count`, `datatype`, `op` and
 * `root` are those of the call; of a form with a count per rank, `count` is their mean. `op` and
 * `root` are ignored where the call has none. `buffer` is an address in the memory that the ranks
 * would pass: device memory, memory of tuttiMemAlloc, or other memory. It is not read, and NULL
 * means ordinary memory of the host. All ranks get the same answer if they pass the same kind of
 * memory. Local, does not block. tuttiInvalidArgument: an unknown name, type or operation, a root
 * that is no rank, or explanation->size is not set. */
TUTTI_API tuttiResult_t tuttiCommExplain(tuttiComm_t comm, const char *collective,
                                         const void *buffer, size_t count,
                                         tuttiDataType_t datatype, tuttiRedOp_t op, int root,
                                         tuttiExplanation_t *explanation);

/* ---- custom reductions ---------------------------------------------------- */

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
 * nranks entries, which are read before the call returns. displs NULL: packed. In place:
 * sendbuff == recvbuff + displs[rank].
 *
 * All ranks must pass the same recvcounts; displs may differ. Ranks that pass other recvcounts
 * get tuttiInvalidUsage from this call, with the first entry that differs and both values; a peer
 * that cannot be told the reason gets tuttiRemoteError. Blocks that overlap in recvbuff are
 * refused with tuttiInvalidArgument; empty blocks overlap nothing. A call whose counts are all
 * zero still waits for its peers. */
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
 * elements, found at sendbuff + displs[i]. Both arrays as in tuttiAllGatherV, with the same
 * errors, but blocks of sendbuff may overlap. In place: recvbuff == sendbuff + displs[rank]. */
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
 * recvcounts[i] at recvbuff + rdispls[i] from it. Arrays of nranks entries, read before the call
 * returns; displacements in elements, NULL: packed. In place (sendbuff == recvbuff) needs equal
 * counts and displacements for sending and receiving.
 *
 * recvcounts[i] must equal what rank i sends here, also where one of the two is zero. Else both
 * ranks get tuttiInvalidUsage from this call, with what one of them sends and the other expects;
 * other ranks may complete the call and learn of the failure in their next one. Blocks that overlap
 * in recvbuff are refused with tuttiInvalidArgument; empty blocks overlap nothing. A call whose
 * counts are all zero still waits for its peers. */
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

/* The operation completes on no rank before all ranks have called it. (NCCL users write a one-byte
 * all-reduce for this.) Dissemination: Hensgen, Finkel, Manber 1988. */
TUTTI_API tuttiResult_t tuttiBarrier(tuttiComm_t comm, tuttiStream_t stream);

/* Send to `peer`; the k-th send matches the k-th receive of a
 * pair, with equal count and type (checked). A send may return before the
 * receive has begun. Exchanges belong in a group, where they never deadlock. A message of a rank
 * to itself needs both of its calls in one group, in the same order among such messages and on the
 * same side (host or device memory); else tuttiInvalidUsage, from the call itself outside of
 * groups, from tuttiGroupEnd within. */
TUTTI_API tuttiResult_t tuttiSend(const void *sendbuff, size_t count, tuttiDataType_t datatype,
                                  int peer, tuttiComm_t comm, tuttiStream_t stream);
/* Receive from `peer`: the other side of tuttiSend. */
TUTTI_API tuttiResult_t tuttiRecv(void *recvbuff, size_t count, tuttiDataType_t datatype, int peer,
                                  tuttiComm_t comm, tuttiStream_t stream);

/* ---- groups ---------------------------------------------------------------------- */

/* Collect the calling thread's calls until the matching tuttiGroupEnd and run
 * them together: any mix of collectives, sends and receives on any number of
 * communicators, and initialisations. Groups nest; the outermost end runs them. Sends and receives
 * of a group progress at the same time; collectives of one communicator run in the order of
 * their calls. Until the group has ended its communicators and host streams cannot be destroyed,
 * and its buffers must stay valid. A group that is never ended runs nothing: when its thread or
 * the process ends, one line at log level `error` names the calls that it held, or says that
 * another thread was still in a group. */
TUTTI_API tuttiResult_t tuttiGroupStart(void);

/* Run the group. With stream NULL everything is complete at return. If a call
 * inside the group failed on its arguments, nothing is run and its code is returned.
 * tuttiInvalidUsage, and nothing is run: no group is open on this thread, another thread is inside
 * a call on one of the group's communicators, or a message of a rank to itself lacks one of its
 * calls. */
TUTTI_API tuttiResult_t tuttiGroupEnd(void);

/* ---- mailboxes ---------------------------------------------------------------------- */

/* A mailbox exchanges messages that are matched by sender and tag, in any order. Its messages
 * progress by themselves, beside the collectives of its communicator. They lie in host memory. All
 * functions of mailboxes and requests are thread-safe and take no part in groups. */
typedef struct tuttiMailbox *tuttiMailbox_t;
/* A message on its way: from tuttiMailboxSend or tuttiMailboxRecv to tuttiRequestWait. */
typedef struct tuttiRequest *tuttiRequest_t;

/* As the peer of a receive: any rank. */
#define TUTTI_ANY_RANK (-1)
/* As the tag of a receive: any tag. */
#define TUTTI_ANY_TAG (-1)

/* Make a mailbox of the ranks of `comm`. Collective, not inside a group. The mailbox has
 * connections of its own and may outlive `comm`; its deadline is that of `comm`. Local errors as
 * those of tuttiCommSplit. */
TUTTI_API tuttiResult_t tuttiMailboxCreate(tuttiComm_t comm, tuttiMailbox_t *mailbox);

/* End the mailbox. Local. Messages that were sent and are complete can still be received. Requests
 * that are not complete end with tuttiInvalidUsage, and are still to be passed to
 * tuttiRequestWait. Peers that wait for this rank alone get tuttiRemoteError. NULL is ignored. */
TUTTI_API tuttiResult_t tuttiMailboxDestroy(tuttiMailbox_t mailbox);

/* End all requests, here and on all other ranks, with an error. The mailbox can only be destroyed
 * then. */
TUTTI_API tuttiResult_t tuttiMailboxAbort(tuttiMailbox_t mailbox);

/* The same as tuttiCommSetTimeout, for waits that begin from now on. */
TUTTI_API tuttiResult_t tuttiMailboxSetTimeout(tuttiMailbox_t mailbox, int timeoutMs);

/* Begin to send `count` elements to `peer`, which may be the calling rank. `tag` is not negative.
 * Does not block. The buffer must stay as it is until the request is complete. That may be before
 * the receive has begun. A message meets the oldest receive that fits it; two messages to one rank
 * with one tag are received in the order in which they were sent.
 * tuttiInvalidArgument: bad peer, tag, type, count or buffer; nothing was sent. */
TUTTI_API tuttiResult_t tuttiMailboxSend(const void *sendbuff, size_t count,
                                         tuttiDataType_t datatype, int peer, int tag,
                                         tuttiMailbox_t mailbox, tuttiRequest_t *request);

/* Begin to receive a message with `tag` (or TUTTI_ANY_TAG) from `peer` (or TUTTI_ANY_RANK). Does
 * not block. Type and count must be those of the message; another message is an error of the
 * mailbox, tuttiInvalidUsage on both ranks. */
TUTTI_API tuttiResult_t tuttiMailboxRecv(void *recvbuff, size_t count, tuttiDataType_t datatype,
                                         int peer, int tag, tuttiMailbox_t mailbox,
                                         tuttiRequest_t *request);

/* Wait until the request is complete, free it and set *request to NULL. Then `peer` and `tag`,
 * which may be NULL, tell the other rank and the tag of the message. With a `timeoutMs` of 0 or
 * more it returns tuttiInProgress if the request is not complete by then, and the request stays; 0
 * only looks. With a negative one the deadline of the mailbox holds, and an error frees the
 * request.
 * *request NULL: tuttiSuccess at once. One thread at a time may wait for a request.
 * tuttiTimeout: the deadline has passed; tuttiRemoteError: a peer died or has destroyed its
 * mailbox; tuttiInvalidUsage: cancelled, or a message of another type or count. But for a cancelled
 * request the mailbox is lost, and all its requests end with that error. */
TUTTI_API tuttiResult_t tuttiRequestWait(tuttiRequest_t *request, int timeoutMs, int *peer,
                                         int *tag);

/* Take a receive back that has no message yet. It is still to be passed to tuttiRequestWait, which
 * returns tuttiInvalidUsage, or tuttiSuccess where a message was faster. */
TUTTI_API tuttiResult_t tuttiRequestCancel(tuttiRequest_t request);

/* ---- host streams ------------------------------------------------------------------ */

/* Make an in-order queue with a thread of its own, which runs on the CPUs that TUTTI_STREAM_CPUS
 * lists, or else on those of the calling thread. All functions of host streams are thread-safe. */
TUTTI_API tuttiResult_t tuttiHostStreamCreate(tuttiStream_t *stream);

/* Wait for the operations of the stream, then free it. NULL is ignored.
 * tuttiInvalidUsage: an open group holds calls on it. */
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
