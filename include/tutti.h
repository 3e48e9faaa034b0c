/* SPDX-License-Identifier: Apache-2.0
 *
 * Tutti: collective communication between ranks.
 *
 * A communicator joins `nranks` ranks. A rank is a thread or a process, and the ranks of one
 * communicator may be on one host or on many, in any mix. Each rank calls the same collectives in
 * the same order. Argument order, group semantics, data types, operations and result codes are
 * NCCL's. Data types and operations that NCCL does not have follow those that it has.
 * docs/glossary.md defines the terms.
 *
 * These conventions hold for every function, unless its comment says otherwise:
 *
 *  - Results. A function returns tuttiSuccess, or a code that tuttiResult_t describes.
 *    tuttiGetLastError() then returns one line that names the argument and the cure. Output
 *    arguments change only on success. The comment of a function lists the errors that are
 *    particular to it. In addition, every function returns tuttiInvalidArgument for a NULL pointer
 *    that it must read or write, and for a handle that is not valid. A call on a communicator that
 *    has failed returns the error of that failure.
 *  - Counts are in elements of the given data type, never in bytes. A count of 0 is valid.
 *  - Buffers are host or device memory that is aligned to the size of one element. They belong to
 *    the library from the call until the operation is complete. Both buffers of a call must be host
 *    memory, or both must be device memory. Input and output must not overlap, except exactly in
 *    place as each function says. A buffer may be NULL when its count is 0.
 *  - Streams. With stream NULL the operation is complete when the call returns. Inside a group it
 *    is complete when the outermost tuttiGroupEnd returns. With a stream made by
 *    tuttiHostStreamCreate the call returns at once, and the operation runs in the order of that
 *    stream. With device memory the stream is a cudaStream_t or CUstream that is cast to
 *    tuttiStream_t. The operation is enqueued there, and may be captured in a CUDA graph. A call on
 *    device memory with stream NULL waits for the context's default stream first. Ranks that share
 *    a GPU in one process must use different streams, or NULL.
 *  - GPUs. A rank is on the GPU that config.device names. Without config.device it is on the GPU of
 *    the CUDA context that is current when its communicator is made. In a split it is then on the
 *    GPU of its parent. One communicator may have ranks on GPUs and ranks on CPUs. If all ranks are
 *    on GPUs, then in each call either all must pass host memory or all must pass device memory. A
 *    call with neither buffers nor a stream runs where the previous call ran: on the host or on the
 *    GPUs.
 *  - Threads. Different threads may use different communicators at the same time. One thread at a
 *    time may use a communicator, and threads may take turns. While a thread is inside a call on a
 *    communicator, a call of another thread has no effect and returns tuttiInvalidUsage. The
 *    message then names the call of the first thread. A call with a stream ends when it returns,
 *    even if its operation is still running. Any thread may call tuttiCommAbort,
 *    tuttiCommGetAsyncError, tuttiCommCount, tuttiCommUserRank, tuttiCommGetName,
 *    tuttiCommHostCount, tuttiCommGetRankInfo and tuttiGetLastError at any time.
 *  - Order. Operations on one communicator run in the order of their calls, also when they are
 *    issued on different streams. If the ranks' GPUs can access each other's memory, operations on
 *    host memory and operations on device memory are ordered separately.
 *  - Determinism. All ranks that receive the same result receive identical bits. The same call on
 *    the same communicator gives the same bits on every run.
 *  - Every wait ends. An operation ends in success, or in an error that names the rank and the
 *    collective. It ends in an error when a peer dies, when ranks call different collectives, or
 *    when a deadline (tuttiConfig_t) passes. A deadline can be turned off. Such an error leaves the
 *    communicator aborted, and the caller must destroy it. After an error of an argument
 *    (tuttiInvalidArgument) the communicator is as it was before the call.
 */
#ifndef TUTTI_H
#define TUTTI_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header. docs/versioning.md says what each part of it promises. */
#define TUTTI_MAJOR 0
/* See TUTTI_MAJOR. */
#define TUTTI_MINOR 1
/* See TUTTI_MAJOR. */
#define TUTTI_PATCH 0
/* One number for a version, encoded as NCCL does: major * 10000 + minor * 100 + patch. */
#define TUTTI_VERSION(major, minor, patch) ((major) * 10000 + (minor) * 100 + (patch))
/* The version code of this header. tuttiGetVersion returns that of the library. */
#define TUTTI_VERSION_CODE TUTTI_VERSION(TUTTI_MAJOR, TUTTI_MINOR, TUTTI_PATCH)

#if defined(__GNUC__)
#define TUTTI_API __attribute__((visibility("default")))
#else
#define TUTTI_API
#endif

/* ---- types ---------------------------------------------------------------- */

/* The handle of one rank on a communicator. */
typedef struct tuttiComm *tuttiComm_t;

/* An in-order queue of operations. NULL means that a call is complete when it returns. */
typedef struct tuttiStream *tuttiStream_t;

/* Result codes. They are NCCL's codes, for the same failures. After a code marked "aborted" every
 * further call on the communicator returns that code, and the caller must destroy it. */
typedef enum {
    tuttiSuccess = 0,
    tuttiUnhandledCudaError = 1, /* a call of the CUDA driver failed; aborted */
    tuttiSystemError = 2,        /* the operating system refused something; aborted */
    tuttiInternalError = 3,      /* there is a bug in this library; aborted */
    tuttiInvalidArgument = 4,    /* the call had no effect; the communicator is as before */
    tuttiInvalidUsage = 5,       /* calls do not match: on this rank, or between ranks (aborted) */
    tuttiRemoteError = 6,        /* a peer died, left, or cannot be reached; aborted */
    tuttiInProgress = 7,         /* the call is not finished; this is not an error */
    tuttiTimeout = 8,            /* a deadline passed; aborted */
    tuttiNumResults = 9
} tuttiResult_t;

/* Types of elements. They have NCCL's numbers. */
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
    tuttiInt16 = 12, /* NCCL has neither this type nor those after it */
    tuttiUint16 = 13,
    tuttiBool = 14, /* one byte: 0 is false, any other value is true */
    tuttiNumTypes = 15
} tuttiDataType_t;

/* Reductions. Integers wrap around. Floating types narrower than 32 bits are summed and multiplied
 * in float32, and the result is rounded once, to nearest even. Min and max of floating types
 * propagate NaN and order -0 before +0 (IEEE 754-2019 minimum and maximum). The average of floating
 * types is the sum times 1/nranks. The average of integers is the sum divided by nranks, rounded
 * toward zero. The bitwise and the logical operations take integers and bool. In a logical
 * operation every nonzero element is true, and each result is 1 or 0, also on a single rank. On
 * bool all operations are logical: sum, max and the bitwise or are a logical or, prod, min and the
 * bitwise and are a logical and, and the bitwise xor is a logical xor. There are no averages and no
 * pre-multiplied sums of bool. An operation on a type that does not have it is refused with
 * tuttiInvalidArgument. */
typedef enum {
    tuttiSum = 0,
    tuttiProd = 1,
    tuttiMax = 2,
    tuttiMin = 3,
    tuttiAvg = 4,
    tuttiBand = 5, /* bitwise and; NCCL has neither this operation nor those after it */
    tuttiBor = 6,
    tuttiBxor = 7,
    tuttiLand = 8, /* logical and */
    tuttiLor = 9,
    tuttiLxor = 10,
    tuttiNumOps = 11,        /* operations made by tuttiRedOpCreatePreMulSum begin here */
    tuttiMaxRedOp = 0x7fffffff
} tuttiRedOp_t;

/* Where the scalar of a pre-multiplied sum is stored, and when it is read. */
typedef enum {
    tuttiScalarDevice = 0,       /* read when a call runs; must stay valid until it ends */
    tuttiScalarHostImmediate = 1 /* in host memory; read before tuttiRedOpCreatePreMulSum returns */
} tuttiScalarResidence_t;

/* Size of a tuttiUniqueId in bytes. */
#define TUTTI_UNIQUE_ID_BYTES 128

/* The identity of a communicator that is to be formed. It holds the address at which the ranks meet
 * and the secret that they share. It is plain bytes without pointers, so it can be moved to all
 * ranks by any means. Any process that holds it can join. */
typedef struct {
    char internal[TUTTI_UNIQUE_ID_BYTES]; /* only the library interprets these bytes */
} tuttiUniqueId;

/* ---- configuration -------------------------------------------------------- */

/* Marks an initialized tuttiConfig_t. */
#define TUTTI_CONFIG_MAGIC 0x54757474u
/* The value of an int field of tuttiConfig_t that takes its default. */
#define TUTTI_CONFIG_UNDEF_INT INT_MIN

/* How a communicator behaves. Always start from TUTTI_CONFIG_INITIALIZER and change the fields that
 * you need; every other field takes its default. The environment variables named below override the
 * fields. Later versions add fields at the end. `size` tells the library which fields the caller
 * knows. */
typedef struct {
    size_t size;          /* the initializer sets this and the next two fields */
    unsigned int magic;   /* TUTTI_CONFIG_MAGIC */
    unsigned int version; /* TUTTI_VERSION_CODE of the caller's header */
    /* With 1 (default) initialization returns when the communicator is ready. With 0 it returns
     * tuttiInProgress, and calls of tuttiCommGetAsyncError continue it until they report that the
     * communicator is ready. */
    int blocking;
    /* Deadline for forming the communicator in milliseconds (default 120000). The variable
     * TUTTI_INIT_TIMEOUT_MS overrides it. */
    int initTimeoutMs;
    /* Deadline for each operation in milliseconds (default 1800000). 0 means none. The variable
     * TUTTI_TIMEOUT_MS overrides it. */
    int timeoutMs;
    /* A name that messages and tuttiCommGetName show. Up to 63 characters of it are copied. NULL
     * means no name. For a communicator from the environment or a store it must be the same on all
     * ranks, because they find each other by it. */
    const char *commName;
    /* The GPU of this rank, by its CUDA number. With -1 the rank is on the CPU. By default a split
     * uses the GPU of the parent. Otherwise the default is the GPU of the CUDA context that is
     * current on the calling thread, or the CPU without a context. */
    int device;
} tuttiConfig_t;

/* A configuration in which every field takes its default. */
#define TUTTI_CONFIG_INITIALIZER                                              \
    {                                                                         \
        sizeof(tuttiConfig_t), TUTTI_CONFIG_MAGIC, TUTTI_VERSION_CODE,        \
        TUTTI_CONFIG_UNDEF_INT, TUTTI_CONFIG_UNDEF_INT,                       \
        TUTTI_CONFIG_UNDEF_INT, NULL, TUTTI_CONFIG_UNDEF_INT                  \
    }

/* ---- library -------------------------------------------------------------- */

/* Store the library's version code in *version (TUTTI_VERSION_CODE of its build). Thread-safe. */
TUTTI_API tuttiResult_t tuttiGetVersion(int *version);

/* The version as text: "0.1.0", followed by the revision of the source in parentheses if the build
 * knows it. It is a constant and never NULL. Thread-safe. */
TUTTI_API const char *tuttiGetVersionString(void);

/* A readable description of `result`. It is a constant and never NULL. Thread-safe. */
TUTTI_API const char *tuttiGetErrorString(tuttiResult_t result);

/* One line that says what failed last, why, and what to do. With a communicator it is the error
 * that aborted `comm`, if there is one. With NULL, or if `comm` has not failed, it is the last
 * error of the calling thread. It is "" if nothing has failed. The text belongs to the library and
 * is valid until the next failure on the calling thread. Thread-safe. */
TUTTI_API const char *tuttiGetLastError(tuttiComm_t comm);

/* Allocate `size` bytes of the kind of memory that is the fastest to communicate from. The memory
 * is zeroed. If a CUDA context is current on the calling thread, it is memory of that device. The
 * other GPUs of the process may use it, and ranks in other processes map it at the first calls that
 * use it. Without a context it is host memory, as from tuttiMemAllocHost. Free it with
 * tuttiMemFree. If `size` is 0, *ptr becomes NULL. Thread-safe.
 *  - tuttiInvalidArgument: `ptr` is NULL, or no memory can have that size.
 *  - tuttiSystemError, tuttiUnhandledCudaError: there is not enough memory. */
TUTTI_API tuttiResult_t tuttiMemAlloc(void **ptr, size_t size);

/* Allocate `size` bytes of host memory, also if a CUDA context is current. The memory is zeroed and
 * page-aligned. From 2 MiB on it is in huge pages if the kernel has them, and is then committed at
 * once. It is lent to the other ranks of the host, which map it at the first calls that use it.
 * Lending needs a file descriptor for each allocation of 64 KiB or more, up to 128 in a process.
 * After fork the child shares the memory with its parent and has no copy of it. Everything else is
 * as for tuttiMemAlloc. */
TUTTI_API tuttiResult_t tuttiMemAllocHost(void **ptr, size_t size);

/* Free memory from tuttiMemAlloc or tuttiMemAllocHost. NULL is ignored. Operations on the memory
 * must be complete, and no open group may hold a call on it; the library does not check this.
 * Thread-safe.
 *  - tuttiInvalidArgument: `ptr` is not an address that one of these functions returned. */
TUTTI_API tuttiResult_t tuttiMemFree(void *ptr);

/* ---- forming communicators -------------------------------------------------- */

/* Make a new id and open the address at which its ranks will meet. Call it once for each
 * communicator, in a process that will hold one of the ranks, and pass the id to all other ranks.
 * An id serves one communicator. The process that made the id accepts the other ranks while its own
 * rank initializes. Thread-safe.
 *  - tuttiSystemError: there is no usable network interface. */
TUTTI_API tuttiResult_t tuttiGetUniqueId(tuttiUniqueId *uniqueId);

/* Join the communicator `commId` of `nranks` ranks as number `rank`. The call returns when all
 * ranks have joined. Inside a group the rank joins at tuttiGroupEnd, so that one thread may hold
 * several ranks, and *comm is set by the time that tuttiGroupEnd returns. The caller owns the new
 * handle and frees it with tuttiCommDestroy.
 *  - tuttiInvalidArgument: `rank` or `nranks` is out of range, or the id is corrupted.
 *  - tuttiInvalidUsage: ranks disagree on `nranks`, or two claim one number, or this process made
 *    the id and it has been used.
 *  - tuttiRemoteError: a rank gave up, or no process serves the id any more. Then the id has been
 *    used, or the process that made it has ended.
 *  - tuttiTimeout: the process that made the id is unreachable or silent, or ranks are missing. The
 *    message names them. */
TUTTI_API tuttiResult_t tuttiCommInitRank(tuttiComm_t *comm, int nranks, tuttiUniqueId commId,
                                          int rank);

/* Join as with tuttiCommInitRank, with a configuration. `config` is read before the call returns.
 * NULL means the default configuration. */
TUTTI_API tuttiResult_t tuttiCommInitRankConfig(tuttiComm_t *comm, int nranks, tuttiUniqueId commId,
                                                int rank, const tuttiConfig_t *config);

/* Make a communicator of `ndev` ranks that are all in the calling process. comms[i] is the handle
 * of rank i, which is on GPU devlist[i]. If devlist[i] is -1 it is on the CPU. A GPU may appear
 * more than once. If `devlist` is NULL, all ranks are on the CPU. Use the handles from `ndev`
 * threads, or from one thread inside groups.
 *  - tuttiInvalidUsage: a group is open on this thread. */
TUTTI_API tuttiResult_t tuttiCommInitAll(tuttiComm_t *comms, int ndev, const int *devlist);

/* Join the communicator that the environment describes. The launchers are tried in this order:
 *  - tutti-run (TUTTI_RANK, TUTTI_NRANKS, TUTTI_ROOT, TUTTI_SECRET);
 *  - torchrun (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT);
 *  - Open MPI (OMPI_COMM_WORLD_*);
 *  - MPICH (PMI_*);
 *  - Slurm (SLURM_*).
 *
 * docs/launchers.md says what each of them needs. Without any of these variables the communicator
 * has one rank.
 *
 * Call it once for each communicator. No barrier is needed between calls. The n-th call of a rank
 * with a config.commName, or without one, joins the n-th call of the other ranks with the same
 * name. So calls with the same name must come from one thread, in the same order on all ranks. To
 * form communicators in several threads at once, or several in a group, give each a commName of its
 * own that is the same on all ranks.
 *  - tuttiInvalidUsage: a variable is missing or malformed, and the message names it. Or another
 *    living thread of the process has used the name: the order of threads could differ between
 *    ranks and mix their communicators. */
TUTTI_API tuttiResult_t tuttiCommInitFromEnv(tuttiComm_t *comm, const tuttiConfig_t *config);

/* Join through a store that all ranks reach. `store` has one of these forms:
 *  - "file:DIRECTORY" is a directory on a shared file system. It is made if it is absent. One job
 *    at a time uses it, and empties it.
 *  - "unix:NAME" is a socket of this host without a file. Rank 0 listens there.
 *  - "tcp:HOST:PORT" is a TCP address. Rank 0 listens there.
 *
 * `secret` is any text that all ranks share and strangers do not know. With NULL every process that
 * knows the address of the store can join. A store serves any number of communicators. Calls meet
 * by config.commName and in order, as in tuttiCommInitFromEnv. Errors are those of
 * tuttiCommInitRank, and:
 *  - tuttiInvalidUsage: another job uses the store, or another thread forms communicators of that
 *    name there. Or TUTTI_ENCRYPT is set and a "tcp:" store has no secret. */
TUTTI_API tuttiResult_t tuttiCommInitStore(tuttiComm_t *comm, int nranks, int rank,
                                           const char *store, const char *secret,
                                           const tuttiConfig_t *config);

/* An all-gather that the caller provides. It contributes `bytes` bytes at `input`. On return
 * `output` holds the contributions of all ranks, rank 0 first. `context` is the pointer that was
 * passed to tuttiCommInitCallback. It returns 0, or nonzero on failure. It may block. The library
 * calls it a few times, in the same order on all ranks. */
typedef int (*tuttiAllGatherFn_t)(void *context, const void *input, void *output, size_t bytes);

/* Join by means of the caller's own all-gather (MPI, a parameter server, ...). It is called on the
 * calling thread before this function returns. This function always blocks. Errors are those of
 * tuttiCommInitRank. */
TUTTI_API tuttiResult_t tuttiCommInitCallback(tuttiComm_t *comm, int nranks, int rank,
                                              tuttiAllGatherFn_t allGather, void *context,
                                              const tuttiConfig_t *config);

/* The color of a rank that joins no new communicator of a split. */
#define TUTTI_SPLIT_NOCOLOR (-1)

/* Split `comm`. Ranks with equal `color` (>= 0) form a new communicator. They are ordered by `key`,
 * and by rank in `comm` if their keys are equal. Ranks with TUTTI_SPLIT_NOCOLOR take part in the
 * call and get NULL. The call is collective over `comm`, which stays usable. It is complete when it
 * returns. Inside a group the split takes place at tuttiGroupEnd. If `config` is NULL, the new
 * communicator has the configuration of its parent. The caller owns the new handle. */
TUTTI_API tuttiResult_t tuttiCommSplit(tuttiComm_t comm, int color, int key, tuttiComm_t *newcomm,
                                       const tuttiConfig_t *config);

/* ---- ending communicators ---------------------------------------------------------------- */

/* Wait until all ranks have called this function and all operations of this rank are complete, also
 * those on streams. Afterwards only queries and tuttiCommDestroy are allowed. Collective.
 *  - tuttiInvalidUsage: an open group holds calls on the communicator, or another thread is inside
 *    a call on it. */
TUTTI_API tuttiResult_t tuttiCommFinalize(tuttiComm_t comm);

/* Free the communicator. Operations that are still on streams are completed first. The call is not
 * collective and does not wait for peers, except that a rank on a GPU waits some seconds at most
 * until other hosts have received what its kernels have sent. Operations of peers with this rank must be complete. NULL
 * is ignored.
 *  - tuttiInvalidUsage: an open group of this thread or another one holds calls on the
 *    communicator, or another thread is inside a call on it. The communicator is as before. */
TUTTI_API tuttiResult_t tuttiCommDestroy(tuttiComm_t comm);

/* End all operations of the communicator, on this rank and on the others. They return
 * tuttiInvalidUsage, or tuttiRemoteError on ranks that learn only that this rank is gone. Any
 * thread may call it at any time. The handle stays valid and must still be freed by
 * tuttiCommDestroy. */
TUTTI_API tuttiResult_t tuttiCommAbort(tuttiComm_t comm);

/* ---- queries ------------------------------------------------------------------ */

/* Store the number of ranks of the communicator in *count. Any thread may call it. */
TUTTI_API tuttiResult_t tuttiCommCount(tuttiComm_t comm, int *count);

/* Store the number of this rank in *rank. Any thread may call it. */
TUTTI_API tuttiResult_t tuttiCommUserRank(tuttiComm_t comm, int *rank);

/* Set *name to the name from config.commName, or to "" without one. The text belongs to the
 * communicator and is valid until the communicator is destroyed. Any thread may call it. */
TUTTI_API tuttiResult_t tuttiCommGetName(tuttiComm_t comm, const char **name);

/* Store the number of hosts on which the ranks run in *hosts. Two ranks are on one host if they
 * share one operating system and one network namespace, or if they have the same TUTTI_HOST_ID. Any
 * thread may call it.
 *  - tuttiInvalidUsage: the communicator is still being formed. */
TUTTI_API tuttiResult_t tuttiCommHostCount(tuttiComm_t comm, int *hosts);

/* Size of the name of a host in bytes, with its terminating zero. */
#define TUTTI_HOST_NAME_MAX 64

/* Where a rank runs. Later versions add fields at the end. */
typedef struct {
    size_t size;    /* in: sizeof(tuttiRankInfo_t), so that the library knows the caller's fields */
    int host;       /* number of its host from 0; hosts are numbered by their lowest ranks */
    int localRank;  /* its number among the ranks of that host, from 0, in the order of ranks */
    int localCount; /* number of ranks on that host */
    int pid;        /* its process id in its own pid namespace */
    char hostName[TUTTI_HOST_NAME_MAX]; /* name of that host, without its domain */
} tuttiRankInfo_t;

/* Report where `rank` runs. `rank` may be any rank of the communicator, and there is no
 * communication. The function fills *info, which belongs to the caller. Any thread may call it.
 *  - tuttiInvalidArgument: `rank` is out of range, or info->size is not set.
 *  - tuttiInvalidUsage: the communicator is still being formed. */
TUTTI_API tuttiResult_t tuttiCommGetRankInfo(tuttiComm_t comm, int rank, tuttiRankInfo_t *info);

/* Store the state of the communicator in *asyncError. It is tuttiSuccess, or the error that aborted
 * the communicator. During a non-blocking initialization it is tuttiInProgress, and the
 * initialization makes progress in this call. The call never blocks. Any thread may call it, but
 * only one at a time during an initialization. */
TUTTI_API tuttiResult_t tuttiCommGetAsyncError(tuttiComm_t comm, tuttiResult_t *asyncError);

/* Memory and connections of a communicator in this process. */
typedef struct {
    size_t size;               /* in: sizeof(tuttiMemStats_t) */
    size_t privateBytes;       /* heap of this rank */
    size_t sharedBytes;        /* part of the host's shared segment that this rank has touched */
    size_t sharedReservedBytes; /* address space of the host's shared segment */
    int connections;           /* open connections of this rank */
    int sockets;               /* TCP sockets among them */
    size_t deviceBytes;        /* memory of this rank's GPU */
} tuttiMemStats_t;

/* Report the memory and the connections that this rank has now. The call counts as a call on the
 * communicator, so only one thread at a time may make it.
 *  - tuttiInvalidArgument: stats->size is not set. */
TUTTI_API tuttiResult_t tuttiCommMemStats(tuttiComm_t comm, tuttiMemStats_t *stats);

/* ---- registration ----------------------------------------------------------------- */

/* Let the ranks of `comm` access the allocation of device memory that holds `buff` directly. Memory
 * from tuttiMemAlloc is accessed in this way without registration. Other device memory is copied
 * through memory of the communicator, unless all ranks are threads of one process. The call is
 * local. It takes effect some calls later, when all ranks have seen it. Host memory needs no
 * registration, and the function does nothing for it.
 *
 * The `size` bytes at `buff` must lie in one allocation, and all of that allocation is registered.
 * In virtual memory (cuMemMap) each mapping is an allocation. All GPUs of the process that have
 * ranks of `comm` must have access to it (cuMemSetAccess). *handle is for tuttiCommDeregister.
 *  - tuttiInvalidArgument: the memory cannot be shared, for example because it is from a
 *    stream-ordered pool, or it spans several allocations. */
TUTTI_API tuttiResult_t tuttiCommRegister(tuttiComm_t comm, void *buff, size_t size, void **handle);

/* Undo tuttiCommRegister. Call it before the memory is freed, when the operations on it are
 * complete. A NULL handle is ignored. */
TUTTI_API tuttiResult_t tuttiCommDeregister(tuttiComm_t comm, void *handle);

/* Set the deadline of this rank's later operations on `comm` to `timeoutMs` milliseconds. With 0
 * they have none. Operations that are already waiting may keep their deadline. The call is local,
 * and ranks may have different deadlines. TUTTI_TIMEOUT_MS does not override it.
 *  - tuttiInvalidArgument: `timeoutMs` is negative. */
TUTTI_API tuttiResult_t tuttiCommSetTimeout(tuttiComm_t comm, int timeoutMs);

/* ---- tuning --------------------------------------------------------------------- */

/* What tuttiCommTune measures. Start from TUTTI_TUNE_CONFIG_INITIALIZER. 0 and NULL mean the
 * default of a field. Later versions add fields at the end. */
typedef struct {
    size_t size; /* the initializer sets this field */
    /* Names that are separated by commas, as in TUTTI_ALGORITHM: allreduce, reduce, broadcast,
     * allgather, reduce_scatter, alltoall, gather, scatter, barrier, scan, exclusive_scan. NULL
     * means all of them. */
    const char *collectives;
    /* The smallest size in bytes (default 4). Sizes are those of the larger of a rank's two
     * buffers. They grow by factors of 4 from minBytes up to maxBytes. */
    size_t minBytes;
    /* The largest size in bytes (default 4 MiB, at most 1 GiB). Each rank allocates two buffers of
     * this size during the measurement. */
    size_t maxBytes;
    /* Approximate limit of the measuring time in milliseconds (default 10000). Sizes that are not
     * measured by then are left out. */
    int budgetMs;
    /* 0 measures calls on host memory. 1 measures calls on the memory of the ranks' GPUs, for which
     * the ranks choose among kernels and algorithms, too. All ranks must be on GPUs whose kernels
     * reach each other. */
    int onDevice;
} tuttiTuneConfig_t;

/* A tuning configuration in which every field takes its default. */
#define TUTTI_TUNE_CONFIG_INITIALIZER { sizeof(tuttiTuneConfig_t), NULL, 0, 0, 0, 0 }

/* Measure which algorithms are the fastest on this communicator, and use them from now on. A call
 * for which TUTTI_ALGORITHM or TUTTI_TUNE names an algorithm still uses that one. The function is
 * collective, and a group must not be open. It returns on all ranks when the choices are in use.
 *
 * Unless `file` is NULL, rank 0 writes the choices to it. They are stored under a name made of
 * processor, cores, ranks, hosts and transports, or "gpu" in their place. Choices in the file for other machines and
 * collectives are kept. Later runs read the file if TUTTI_TUNE_TABLE names it (docs/tuning.md). The
 * arguments of rank 0 apply, and its file system. Those of the other ranks are ignored. All ranks
 * get the same error:
 *  - tuttiInvalidArgument: `config` is not initialized, a collective is unknown, or the range of
 *    sizes is empty.
 *  - tuttiInvalidUsage: a group is open, the file cannot be read or written, or config->onDevice is
 *    set and the kernels of the ranks do not reach each other. */
TUTTI_API tuttiResult_t tuttiCommTune(tuttiComm_t comm, const char *file,
                                      const tuttiTuneConfig_t *config);

/* How a call runs. Later versions add fields at the end. */
typedef struct {
    size_t size;         /* in: sizeof(tuttiExplanation_t) */
    char algorithm[96];  /* "ring", or "hybrid[doublings=3]" if options differ from the defaults.
                            "file" is a schedule from TUTTI_SCHEDULE. On GPUs it is "LL", "LL128" or
                            "direct". */
    char transport[32];  /* between the ranks: "threads", "cma", "shm", "shm+tcp", "tcp" or "gpu".
                            With one rank it is "self". */
    char reason[96];     /* what chose the algorithm: "by TUTTI_TUNE, line 3" */
} tuttiExplanation_t;

/* Report how a call would run on `comm`, without running it. The function is local and does not
 * block. All ranks get the same answer if they pass the same kind of memory.
 *
 * `collective` is a name as in TUTTI_ALGORITHM (allreduce, reduce, broadcast, allgather,
 * reduce_scatter, alltoall, gather, scatter, barrier, scan, exclusive_scan), or allgatherv,
 * reduce_scatterv, alltoallv, gatherv or scatterv. `count`, `datatype`, `op` and `root` are those
 * of the call. For a form with a count per rank `count` is their mean. `op` and `root` are ignored
 * if the call has none. `buffer` is an address in the kind of memory that the ranks would pass:
 * device memory, memory from tuttiMemAlloc, or other memory. It is not read. NULL means ordinary
 * host memory.
 *  - tuttiInvalidArgument: the name, type or operation is unknown, the call would refuse the
 *    operation, `root` is not a rank, or explanation->size is not set. */
TUTTI_API tuttiResult_t tuttiCommExplain(tuttiComm_t comm, const char *collective,
                                         const void *buffer, size_t count,
                                         tuttiDataType_t datatype, tuttiRedOp_t op, int root,
                                         tuttiExplanation_t *explanation);

/* ---- custom reductions ---------------------------------------------------- */

/* Make an operation that sums the inputs of all ranks, each multiplied by the `scalar` of its rank.
 * `scalar` points to one element of `datatype`. *op is valid for this communicator and data type
 * until tuttiRedOpDestroy. The call is local, and ranks may use different scalars. A communicator
 * has at most 4096 operations at a time.
 *  - tuttiInvalidArgument: `datatype` or `residence` is unknown, or `datatype` is tuttiBool.
 *  - tuttiInvalidUsage: the communicator has as many operations as it can have. */
TUTTI_API tuttiResult_t tuttiRedOpCreatePreMulSum(tuttiRedOp_t *op, void *scalar,
                                                  tuttiDataType_t datatype,
                                                  tuttiScalarResidence_t residence,
                                                  tuttiComm_t comm);

/* Free `op`. Operations that were already issued with it still complete.
 *  - tuttiInvalidArgument: `op` was not made on this communicator, or is already destroyed. */
TUTTI_API tuttiResult_t tuttiRedOpDestroy(tuttiRedOp_t op, tuttiComm_t comm);

/* ---- collectives ---------------------------------------------------------------- */

/* Combine the inputs of all ranks with `op`, and give the result to all ranks: recvbuff[i] on every
 * rank = op over ranks of sendbuff[i], i < count. In place: sendbuff == recvbuff. Algorithms: ring
 * (Patarasuk and Yuan 2009), recursive doubling (Thakur, Rabenseifner, Gropp 2005), circulant
 * reduce-scatter and all-gather (Traff 2024), and others. */
TUTTI_API tuttiResult_t tuttiAllReduce(const void *sendbuff, void *recvbuff, size_t count,
                                       tuttiDataType_t datatype, tuttiRedOp_t op, tuttiComm_t comm,
                                       tuttiStream_t stream);

/* Combine the inputs of all ranks as tuttiAllReduce does, and give the result to `root` only.
 * recvbuff is ignored on the other ranks. In place: sendbuff == recvbuff on root. */
TUTTI_API tuttiResult_t tuttiReduce(const void *sendbuff, void *recvbuff, size_t count,
                                    tuttiDataType_t datatype, tuttiRedOp_t op, int root,
                                    tuttiComm_t comm, tuttiStream_t stream);

/* Combine the inputs of the ranks up to and including this one with `op`: recvbuff[i] on rank r =
 * op over ranks 0 to r of sendbuff[i], i < count. In place: sendbuff == recvbuff. With floats, the
 * result of rank r need not equal, bit by bit, the result of rank r - 1 combined with the input of
 * rank r. Algorithms: doubling (Hillis and Steele 1986), a tree (Sanders and Traff 2006) and a
 * chain (Worringen 2003).
 *  - tuttiInvalidArgument: `op` is tuttiAvg. The ranks combine different numbers of inputs, so
 *    there is no common divisor. */
TUTTI_API tuttiResult_t tuttiScan(const void *sendbuff, void *recvbuff, size_t count,
                                  tuttiDataType_t datatype, tuttiRedOp_t op, tuttiComm_t comm,
                                  tuttiStream_t stream);

/* Combine as tuttiScan does, but without the input of this rank: recvbuff[i] on rank r > 0 = op
 * over ranks 0 to r - 1 of sendbuff[i], i < count. On rank 0, recvbuff is ignored: nothing is
 * written to it, and it may be NULL. The input of the last rank is in no result, but the last rank
 * must pass a sendbuff, too. In place: sendbuff == recvbuff. The errors are those of tuttiScan.
 * Algorithms: doubling with skips of 1, 2, 3, 6, 12, ... (Traff 2025), a tree (Sanders and Traff
 * 2006) and a chain (Worringen 2003). */
TUTTI_API tuttiResult_t tuttiExclusiveScan(const void *sendbuff, void *recvbuff, size_t count,
                                           tuttiDataType_t datatype, tuttiRedOp_t op,
                                           tuttiComm_t comm, tuttiStream_t stream);

/* Copy the `count` elements of sendbuff on `root` to recvbuff on every rank. sendbuff is ignored on
 * the other ranks. In place: sendbuff == recvbuff on root. */
TUTTI_API tuttiResult_t tuttiBroadcast(const void *sendbuff, void *recvbuff, size_t count,
                                       tuttiDataType_t datatype, int root, tuttiComm_t comm,
                                       tuttiStream_t stream);

/* Concatenate the sendbuffs of all ranks in recvbuff on every rank, rank 0 first. Each rank
 * contributes `sendcount` elements, so recvbuff has nranks * sendcount. In place: sendbuff ==
 * recvbuff + rank * sendcount. */
TUTTI_API tuttiResult_t tuttiAllGather(const void *sendbuff, void *recvbuff, size_t sendcount,
                                       tuttiDataType_t datatype, tuttiComm_t comm,
                                       tuttiStream_t stream);

/* Gather as tuttiAllGather does, with a count for each rank. Rank i contributes recvcounts[i]
 * elements, which every rank receives at recvbuff + displs[i] elements. `recvcounts` and `displs`
 * have nranks entries, which are read before the call returns. If `displs` is NULL, the blocks
 * follow each other without gaps. In place: sendbuff == recvbuff + displs[rank].
 *
 * All ranks must pass the same `recvcounts`, but `displs` may differ. A call whose counts are all
 * zero still waits for its peers.
 *  - tuttiInvalidUsage: ranks passed different `recvcounts`. This call reports the first entry that
 *    differs and both values. A peer that cannot be told the reason gets tuttiRemoteError.
 *  - tuttiInvalidArgument: blocks overlap in recvbuff. Empty blocks overlap nothing. */
TUTTI_API tuttiResult_t tuttiAllGatherV(const void *sendbuff, void *recvbuff,
                                        const size_t *recvcounts, const size_t *displs,
                                        tuttiDataType_t datatype, tuttiComm_t comm,
                                        tuttiStream_t stream);

/* Combine the inputs of all ranks with `op`, and give each rank one block of the result:
 * recvbuff[i] = op over ranks of sendbuff[rank * recvcount + i], i < recvcount. sendbuff has nranks
 * * recvcount elements. In place: recvbuff == sendbuff + rank * recvcount. */
TUTTI_API tuttiResult_t tuttiReduceScatter(const void *sendbuff, void *recvbuff, size_t recvcount,
                                           tuttiDataType_t datatype, tuttiRedOp_t op,
                                           tuttiComm_t comm, tuttiStream_t stream);

/* Combine as tuttiReduceScatter does, with a count for each rank. Rank i receives the result of the
 * recvcounts[i] elements at sendbuff + displs[i] elements. The arrays and the errors are as for
 * tuttiAllGatherV, but blocks of sendbuff may overlap. In place: recvbuff == sendbuff +
 * displs[rank]. */
TUTTI_API tuttiResult_t tuttiReduceScatterV(const void *sendbuff, void *recvbuff,
                                            const size_t *recvcounts, const size_t *displs,
                                            tuttiDataType_t datatype, tuttiRedOp_t op,
                                            tuttiComm_t comm, tuttiStream_t stream);

/* Exchange one block between each two ranks: block i of recvbuff = block `rank` of rank i's
 * sendbuff. A block has `count` elements, so each buffer has nranks * count. In place: sendbuff ==
 * recvbuff. Algorithms: pairwise, Bruck et al. 1997, and others. */
TUTTI_API tuttiResult_t tuttiAlltoAll(const void *sendbuff, void *recvbuff, size_t count,
                                      tuttiDataType_t datatype, tuttiComm_t comm,
                                      tuttiStream_t stream);

/* Send sendcounts[i] elements at sendbuff + sdispls[i] elements to rank i, and receive
 * recvcounts[i] elements from it at recvbuff + rdispls[i] elements. The arrays have nranks entries,
 * which are read before the call returns. If an array of displacements is NULL, its blocks follow
 * each other without gaps. In place (sendbuff == recvbuff) needs equal counts and displacements for
 * sending and receiving.
 *
 * recvcounts[i] must equal the number of elements that rank i sends to this rank, also if one of
 * the two is zero. A call whose counts are all zero still waits for its peers.
 *  - tuttiInvalidUsage: the counts of two ranks do not match. Both ranks get this error from this
 *    call, and it says how many elements one of them sends and the other expects. Other ranks may
 *    complete the call and learn of the failure in their next one.
 *  - tuttiInvalidArgument: blocks overlap in recvbuff. Empty blocks overlap nothing. */
TUTTI_API tuttiResult_t tuttiAlltoAllV(const void *sendbuff, const size_t *sendcounts,
                                       const size_t *sdispls, void *recvbuff,
                                       const size_t *recvcounts, const size_t *rdispls,
                                       tuttiDataType_t datatype, tuttiComm_t comm,
                                       tuttiStream_t stream);

/* Concatenate the sendbuffs of all ranks in recvbuff on `root`, rank 0 first. Each rank contributes
 * `count` elements. recvbuff is ignored on the other ranks. In place on root: sendbuff == recvbuff
 * + root * count. */
TUTTI_API tuttiResult_t tuttiGather(const void *sendbuff, void *recvbuff, size_t count,
                                    tuttiDataType_t datatype, int root, tuttiComm_t comm,
                                    tuttiStream_t stream);

/* Gather as tuttiGather does, with a count for each rank. Rank i contributes its own `sendcount`
 * elements, which `root` receives at recvbuff + displs[i] elements. `recvcounts` and `displs` have
 * nranks entries on `root`, which are read before the call returns; they are ignored on the other
 * ranks, like recvbuff, and may be NULL there. If `displs` is NULL, the blocks follow each other
 * without gaps. In place on root: sendbuff == recvbuff + displs[root].
 *
 * recvcounts[i] on `root` must equal `sendcount` on rank i, also if one of the two is zero. A root
 * whose counts are all zero still waits for its peers. A call has one message per rank, directly to
 * the root (the linear algorithm).
 *  - tuttiInvalidUsage: the counts of `root` and a rank do not match. The error says how many
 *    elements the rank sends and `root` expects. The root gets it from this call. The rank gets it
 *    from this call too, or from its next call if this one did not have to wait for the root. The
 *    other ranks learn of the failure in the same way.
 *  - tuttiInvalidArgument: blocks overlap in recvbuff, or recvcounts[root] is not the root's own
 *    `sendcount`. Empty blocks overlap nothing. */
TUTTI_API tuttiResult_t tuttiGatherV(const void *sendbuff, size_t sendcount, void *recvbuff,
                                     const size_t *recvcounts, const size_t *displs,
                                     tuttiDataType_t datatype, int root, tuttiComm_t comm,
                                     tuttiStream_t stream);

/* Give each rank one block of sendbuff on `root`: recvbuff of rank i = block i, `count` elements
 * each. sendbuff is ignored on the other ranks. In place on root: recvbuff == sendbuff + root *
 * count. */
TUTTI_API tuttiResult_t tuttiScatter(const void *sendbuff, void *recvbuff, size_t count,
                                     tuttiDataType_t datatype, int root, tuttiComm_t comm,
                                     tuttiStream_t stream);

/* Scatter as tuttiScatter does, with a count for each rank. Rank i receives the sendcounts[i]
 * elements at sendbuff + displs[i] elements on `root`, and passes their number as its own
 * `recvcount`. The arrays and the errors are as for tuttiGatherV, but blocks of sendbuff may
 * overlap. A rank whose count does not match gets the error from this call, and the root from this
 * call or its next one. In place on root: recvbuff == sendbuff + displs[root]. */
TUTTI_API tuttiResult_t tuttiScatterV(const void *sendbuff, const size_t *sendcounts,
                                      const size_t *displs, void *recvbuff, size_t recvcount,
                                      tuttiDataType_t datatype, int root, tuttiComm_t comm,
                                      tuttiStream_t stream);

/* Wait for all ranks: the operation completes on no rank before all ranks have called it. NCCL has
 * no such call, and its users write a one-element all-reduce instead. Algorithm: dissemination
 * (Hensgen, Finkel, Manber 1988), and others. */
TUTTI_API tuttiResult_t tuttiBarrier(tuttiComm_t comm, tuttiStream_t stream);

/* Send `count` elements to `peer`. The k-th send of a pair of ranks matches the k-th receive, which
 * must have the same count and type; the library checks this. A send may return before the receive
 * has begun. Put sends and receives that depend on each other into one group, where they never
 * deadlock. A message of a rank to itself needs both of its calls in one group. They must be in the
 * same order among such messages, and on the same side (host or device memory).
 *  - tuttiInvalidUsage: count or type differ from those of the receive. Or a message to itself
 *    lacks its other call; outside a group this call returns the error, inside one tuttiGroupEnd
 *    does. */
TUTTI_API tuttiResult_t tuttiSend(const void *sendbuff, size_t count, tuttiDataType_t datatype,
                                  int peer, tuttiComm_t comm, tuttiStream_t stream);
/* Receive `count` elements from `peer`. It is the other side of tuttiSend, and has the same
 * errors. */
TUTTI_API tuttiResult_t tuttiRecv(void *recvbuff, size_t count, tuttiDataType_t datatype, int peer,
                                  tuttiComm_t comm, tuttiStream_t stream);

/* ---- groups ---------------------------------------------------------------------- */

/* Open a group: collect the calling thread's calls until the matching tuttiGroupEnd, and run them
 * together. A group may hold any mix of collectives, sends and receives on any number of
 * communicators, and initializations. Groups nest, and the outermost end runs them. Sends and
 * receives of a group progress at the same time. Collectives of one communicator run in the order
 * of their calls.
 *
 * Until the group has ended, its communicators and host streams cannot be destroyed and its buffers
 * must stay valid. A group that is never ended runs nothing. When its thread or the process ends,
 * one line at log level `error` names the calls that it held, or says that another thread was still
 * in a group. */
TUTTI_API tuttiResult_t tuttiGroupStart(void);

/* Run the group. With stream NULL all its operations are complete when the call returns. If a call
 * inside the group failed on its arguments, nothing runs and that call's code is returned.
 *  - tuttiInvalidUsage: no group is open on this thread, another thread is inside a call on one of
 *    the group's communicators, or a message of a rank to itself lacks one of its calls. Nothing
 *    runs. */
TUTTI_API tuttiResult_t tuttiGroupEnd(void);

/* ---- mailboxes ---------------------------------------------------------------------- */

/* A mailbox exchanges messages that are matched by sender and tag, in any order. Its messages make
 * progress without further calls, beside the collectives of its communicator. They must be in host
 * memory. All functions of mailboxes and requests are thread-safe, and none of them is part of a
 * group. */
typedef struct tuttiMailbox *tuttiMailbox_t;
/* A send or receive of a mailbox that has begun. tuttiMailboxSend and tuttiMailboxRecv make it, and
 * tuttiRequestWait frees it. */
typedef struct tuttiRequest *tuttiRequest_t;

/* As the peer of a receive, it matches every rank. */
#define TUTTI_ANY_RANK (-1)
/* As the tag of a receive, it matches every tag. */
#define TUTTI_ANY_TAG (-1)

/* Make a mailbox of the ranks of `comm`. The call is collective, and a group must not be open. The
 * mailbox has its own connections and may outlive `comm`. Its deadline is that of `comm`. The
 * caller owns it and frees it with tuttiMailboxDestroy. Local errors are those of
 * tuttiCommSplit. */
TUTTI_API tuttiResult_t tuttiMailboxCreate(tuttiComm_t comm, tuttiMailbox_t *mailbox);

/* Free the mailbox. The call is local. Peers can still receive messages whose sends are complete.
 * Requests that are not complete end with tuttiInvalidUsage, and must still be passed to
 * tuttiRequestWait. Peers that wait for this rank alone get tuttiRemoteError. NULL is ignored. */
TUTTI_API tuttiResult_t tuttiMailboxDestroy(tuttiMailbox_t mailbox);

/* End all requests of the mailbox with an error, on this rank and on all others. After that the
 * mailbox can only be destroyed. */
TUTTI_API tuttiResult_t tuttiMailboxAbort(tuttiMailbox_t mailbox);

/* Set the deadline of waits that begin from now on, as tuttiCommSetTimeout does. */
TUTTI_API tuttiResult_t tuttiMailboxSetTimeout(tuttiMailbox_t mailbox, int timeoutMs);

/* Begin to send `count` elements to `peer`, which may be the calling rank. `tag` must not be
 * negative. The call does not block. The buffer must not change until the request is complete,
 * which may be before the receive has begun. A message goes to the oldest receive that matches it.
 * Two messages to one rank with one tag are received in the order in which they were sent.
 *  - tuttiInvalidArgument: peer, tag, type, count or buffer is not valid. Nothing was sent. */
TUTTI_API tuttiResult_t tuttiMailboxSend(const void *sendbuff, size_t count,
                                         tuttiDataType_t datatype, int peer, int tag,
                                         tuttiMailbox_t mailbox, tuttiRequest_t *request);

/* Begin to receive a message with `tag` (or TUTTI_ANY_TAG) from `peer` (or TUTTI_ANY_RANK). The
 * call does not block. The buffer belongs to the library until the request is complete. Type and
 * count must equal those of the message. If they do not, the mailbox fails with tuttiInvalidUsage
 * on both ranks. */
TUTTI_API tuttiResult_t tuttiMailboxRecv(void *recvbuff, size_t count, tuttiDataType_t datatype,
                                         int peer, int tag, tuttiMailbox_t mailbox,
                                         tuttiRequest_t *request);

/* Wait until the request is complete, free it, and set *request to NULL. `peer` and `tag` then hold
 * the other rank and the tag of the message; either may be NULL. If *request is NULL, the call
 * returns tuttiSuccess at once. One thread at a time may wait for a request.
 *
 * If `timeoutMs` is negative, the deadline of the mailbox applies, and an error frees the request.
 * If it is 0 or more, the call waits no longer than that. It then returns tuttiInProgress, and the
 * request remains. With 0 the call does not wait at all.
 *  - tuttiTimeout: the deadline of the mailbox has passed.
 *  - tuttiRemoteError: a peer died, or has destroyed its mailbox.
 *  - tuttiInvalidUsage: the request was canceled, or the message has another type or count.
 *
 * After any of these errors the mailbox is lost, and all its requests end with that error. The only
 * exception is a request that was canceled. */
TUTTI_API tuttiResult_t tuttiRequestWait(tuttiRequest_t *request, int timeoutMs, int *peer,
                                         int *tag);

/* Cancel a receive that has not matched a message yet. The request must still be passed to
 * tuttiRequestWait. That returns tuttiInvalidUsage, or tuttiSuccess if a message matched first. */
TUTTI_API tuttiResult_t tuttiRequestCancel(tuttiRequest_t request);

/* ---- host streams ------------------------------------------------------------------ */

/* Make an in-order queue that has its own thread. The thread runs on the CPUs that
 * TUTTI_STREAM_CPUS lists. Without that variable it runs on the CPUs of the calling thread. The
 * caller frees the stream with tuttiHostStreamDestroy. All functions of host streams are
 * thread-safe.
 *  - tuttiSystemError: there is no memory, descriptor or thread for it. */
TUTTI_API tuttiResult_t tuttiHostStreamCreate(tuttiStream_t *stream);

/* Wait for the operations of the stream, then free it. NULL is ignored.
 *  - tuttiInvalidUsage: an open group holds calls on it. */
TUTTI_API tuttiResult_t tuttiHostStreamDestroy(tuttiStream_t stream);

/* Wait until all operations issued so far are complete. Returns the first error among the
 * operations since the last call that reported one. */
TUTTI_API tuttiResult_t tuttiStreamSynchronize(tuttiStream_t stream);

/* Report whether the operations issued so far are complete, without waiting. Returns tuttiSuccess
 * if all are complete, tuttiInProgress if not, or the first error as tuttiStreamSynchronize
 * does. */
TUTTI_API tuttiResult_t tuttiStreamQuery(tuttiStream_t stream);

/* Get a descriptor that becomes readable whenever the stream has become idle since the descriptor
 * was last read. A read takes 8 bytes, as from an eventfd. The descriptor belongs to the stream, so
 * do not close it. */
TUTTI_API tuttiResult_t tuttiStreamEventFd(tuttiStream_t stream, int *fd);

#ifdef __cplusplus
}
#endif

#endif
