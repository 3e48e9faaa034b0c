/* SPDX-License-Identifier: Apache-2.0
 * The simulated driver's devices and contexts, and how each of its functions begins and ends.
 *
 *   TUTTI_SIM_TOPOLOGY=FILE                   the machine, as for the simulated NVML; without one:
 *   SIMCUDA_DEVICES=N                         that many devices (1)
 *   SIMCUDA_MULTIPROCESSORS=N                 of each device (4)
 *   SIMCUDA_THREADS=N                         most threads of a block (64)
 *   SIMCUDA_MULTIPROCESSOR_THREADS=N          most threads at once of a multiprocessor (2048)
 *   SIMCUDA_MEMORY_MB=N                       of each device (1024)
 *   SIMCUDA_QUEUES=1                          streams share hardware queues (queue.c), as many as
 *                                             CUDA_DEVICE_MAX_CONNECTIONS says (8)
 *   SIMCUDA_WAITS=1                           calls that allocate page-locked memory, or that map or
 *                                             unmap virtual memory, wait until the device has done
 *                                             all that it was given
 *   SIMCUDA_CHECK=1                           kernels' accesses are looked at (memory.h)
 *   SIMCUDA_WATCHDOG_MS=N                     a kernel that gets nowhere for so long is a loud end
 *   SIMCUDA_LEAKS=1                           at the end: what was not given back
 *   SIMCUDA_WEAK=SEED                         stores get to others late, loads see old data
 *                                             (launch.h)
 *   SIMCUDA_FAULTS=...                        faults.h
 *   TUTTI_SIM_CUDA_FAULT=function:code,...    calls that fail
 */
#ifndef TUTTI_TESTS_SIMCUDA_CUDA_STATE_H
#define TUTTI_TESTS_SIMCUDA_CUDA_STATE_H

#include "simcuda/cuda/places.h"
#include "wrap/cuda.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SIM_DEVICES = 64,
    SIM_MULTIPROCESSORS = 256,
    SIM_QUEUES = 32, /* most hardware queues of a context */
};

/* Codes of the driver that only the simulation needs, in addition to those of wrap/cuda.h. */
enum {
    SIM_CU_ALREADY_MAPPED = 208,
    SIM_CU_PEER_ACCESS_NOT_ENABLED = 705,
    SIM_CU_CAPTURE_MERGE = 902,
    SIM_CU_CAPTURE_UNMATCHED = 903,
    SIM_CU_CAPTURE_UNJOINED = 904,
    SIM_CU_CAPTURE_ISOLATION = 905,
    SIM_CU_CAPTURE_IMPLICIT = 906,
    SIM_CU_CAPTURED_EVENT = 907,
    SIM_CU_CAPTURE_WRONG_THREAD = 908,
};

struct tutti_cu_context {
    struct sim_device *device;
    uint32_t nretained;
    uint64_t peers;                  /* devices whose memory it may use, by bits */
    struct tutti_cu_stream *streams; /* all of them, the default ones too */
    struct tutti_cu_stream *legacy;  /* made when it is first used */
    uint32_t nstreams_of_queue[SIM_QUEUES];     /* those that exist */
    struct sim_op *newest_of_queue[SIM_QUEUES]; /* held */
};

struct sim_device {
    int ordinal;
    int64_t busid;
    bool has_peers; /* the machine lets it reach others */
    uint64_t nvlinks; /* devices to which it has one, by bits */
    char name[64];
    unsigned char uuid[TUTTI_CU_UUID_BYTES];
    int major, minor;
    size_t used_bytes;
    struct tutti_cu_context primary;
    uint64_t nlaunches;
    int lost; /* the code that all calls return since then; 0: the device works. Atomic: kernels
                 read it */

    pthread_mutex_t places_lock; /* of what follows */
    struct sim_multiprocessor multiprocessors[SIM_MULTIPROCESSORS];
};

struct sim_settings {
    uint32_t multiprocessors, threads, multiprocessor_threads;
    uint32_t nqueues; /* hardware queues of a context; 0: each stream has its own */
    size_t memory_bytes;
    uint64_t watchdog_ns;
    int visible; /* the only device that the process sees; -1: it sees all */
    bool allocations_wait;
    bool copies_are_late; /* copies from pageable memory return before they arrive */
    bool must_check, must_count_leaks, has_watched_warps, has_small_crews;
    bool counts_traffic; /* traffic.h */
};

/* The driver's state; unchanging once cuInit has returned, but for the devices' inside. */
extern struct sim_settings sim_settings;
extern struct sim_device sim_devices[SIM_DEVICES];
extern int sim_ndevices;

/* Of everything in this folder that no other lock is named for. */
extern pthread_mutex_t sim_lock;

enum sim_needs {
    SIM_NEEDS_NOTHING = 0,
    SIM_NEEDS_CONTEXT = 1,   /* a current context that exists, of a device that works */
    SIM_NOT_IN_CAPTURE = 2,  /* calls that captures forbid, by their mode */
};

/* Returns how often the calling thread has called the driver. Exported, for tests. */
__attribute__((visibility("default"))) uint64_t cuSimCalls(void);

/* At the beginning of each call: 0 with the lock held, or what to return at once. A call from a
 * host function of a stream is a loud end. */
int sim_enter(const char *function, int needs);
/* At the end: gives the lock back; returns its argument. */
int sim_leave(int code);

/* The calling thread's context; NULL: none. */
struct tutti_cu_context *sim_current(void);
/* True if this is a context that exists; with the lock. */
bool sim_context_lives(const struct tutti_cu_context *context);
/* True if the one device may use the other's memory. */
bool sim_can_access_peer(const struct sim_device *device, const struct sim_device *peer);
/* True if there is an NVLink between them, or a switch of NVLinks. */
bool sim_has_nvlink(const struct sim_device *device, const struct sim_device *peer);
/* The code of a lost device; 0: it is well. */
int sim_device_lost(const struct sim_device *device);
void sim_device_lose(struct sim_device *device, int code);

/* A context ends, and its modules with it; those of all contexts that were not unloaded. */
void sim_modules_end(struct tutti_cu_context *context);
uint32_t sim_modules_left(void);

/* While a thread runs a stream's host function. */
void sim_host_function_begins(void);
void sim_host_function_ends(void);

#endif
