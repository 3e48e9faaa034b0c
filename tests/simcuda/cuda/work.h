/* SPDX-License-Identifier: Apache-2.0
 * The work of streams and graphs: kernels, copies, and the rest. */
#ifndef TUTTI_TESTS_SIMCUDA_CUDA_WORK_H
#define TUTTI_TESTS_SIMCUDA_CUDA_WORK_H

#include "simcuda/cuda/state.h"

struct sim_kernel;

enum sim_work_kind {
    SIM_WORK_NOTHING, /* a place in the order: events, and waiting for them */
    SIM_WORK_KERNEL,
    SIM_WORK_COPY,
    SIM_WORK_SET,
    SIM_WORK_HOST,
    SIM_WORK_WAIT,
    SIM_WORK_GRAPH,
};

/* Counted by its holders, with the lock. It does not change once another part holds it. */
struct sim_work {
    enum sim_work_kind kind;
    uint32_t nrefs;
    struct tutti_cu_context *context;
    union {
        struct {
            const struct sim_kernel *kernel;
            uint32_t blocks, threads;
            struct sim_need need;     /* of a block */
            uint32_t multiprocessors; /* of its stream */
            void *argument; /* a copy */
        } kernel;
        struct {
            void *to;
            const void *from;
            size_t size_bytes;
            bool is_corrupt;
            uint32_t mb_per_s; /* that it counts as */
            void *staged;      /* a copy of pageable memory, owned; NULL: `from` is used */
        } copy;
        struct {
            void *to;
            size_t size_bytes;
            unsigned char value;
        } set;
        struct {
            void (*function)(void *);
            void *argument;
        } host;
        struct {
            const uint32_t *at;
            uint32_t value;
            unsigned flags;
        } wait;
        struct tutti_cu_exec *exec; /* held */
    };
};

/* Held by the caller; never NULL. */
struct sim_work *sim_work_create(enum sim_work_kind kind, struct tutti_cu_context *context);
void sim_work_drop(struct sim_work *work);

/* Do it, on the calling thread and to its end, without the lock. On a device that is lost nothing
 * happens. */
void sim_work_run(const struct sim_work *work);

#endif
