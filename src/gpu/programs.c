/* SPDX-License-Identifier: Apache-2.0
 * Programs of calls on device memory for which the user has named an algorithm, in a variable, a
 * rule or a schedule file. Kernels run the algorithm's schedule step by step. The kernels' built-in
 * algorithms run all other calls. */
#include "gpu/comm_gpu.h"

#include "base/log.h"
#include "executor/cuda/program.h"

#include <stdlib.h>

/* Programs stay in device memory, because kernels and graphs may need them at any time. So their
 * number is limited. All ranks count the same calls, so they reach the limit at the same call. */
enum { MOST_CALLS = 1024, BITS = 11, ENTRIES = 1 << BITS };
_Static_assert(ENTRIES > MOST_CALLS, "a search ends at a free entry");

/* The program of a call. Without one, the kernels' built-in algorithms run the call. */
struct variant {
    bool is_made, has_program;
    struct tutti_cuda_stored stored;
};

struct entry {
    struct tutti_calls_key key;         /* the arguments that are the same on all ranks */
    struct variant variants[2];         /* out of place, in place; ranks may differ in this */
};

struct tutti_gpu_programs {
    struct tutti_cache *plans; /* of the named algorithms */
    /* Sizes of calls that files do not serve, as far as this has been logged: one bit for each
     * power of two. */
    uint64_t refused_sizes[TUTTI_COLLECTIVE_COUNT];
    size_t count;              /* entries in use */
    struct entry entries[ENTRIES];
};

/* Returns the entry of the key, or the free entry where the key belongs. */
static struct entry *place_of(struct tutti_gpu_programs *programs,
                              const struct tutti_calls_key *key)
{
    size_t at = tutti_calls_key_hash(key, BITS);

    while (programs->entries[at].key.what != 0 &&
           !tutti_calls_key_equal(&programs->entries[at].key, key))
        at = (at + 1) % ENTRIES;
    return &programs->entries[at];
}

/* ---- making ---------------------------------------------------------------------------------- */

/* Logs why no schedule file serves the call, once for each power of two of sizes. */
static void report_refusal(const struct tutti_comm *comm, const struct tutti_tuner_query *query)
{
    uint64_t *sizes = &comm->gpu->programs->refused_sizes[query->collective];
    char refusal[640];

    if (comm->rank != 0 || !tutti_log_is_on(TUTTI_LOG_INFO) ||
        !tutti_schedules_refusal(comm->schedules, &comm->view, query, refusal, sizeof refusal))
        return;
    tutti_log(tutti_call_is_new_size(sizes, query->block_bytes) ? TUTTI_LOG_INFO : TUTTI_LOG_TRACE,
              "%s of %zu bytes a block does not run by TUTTI_SCHEDULE, since %s",
              tutti_collective_name(query->collective), query->block_bytes, refusal);
}

/* Finds the plan of the algorithm that the user has named for the call. *ret_plan is NULL if no
 * algorithm was named. */
static int find_plan(struct tutti_comm *comm, const struct tutti_call *call,
                     const struct tutti_plan **ret_plan)
{
    struct tutti_tuner_query query = tutti_cache_query(comm, call);
    enum tutti_authority by = TUTTI_BY_NONE;
    struct tutti_choice choice;

    *ret_plan = tutti_schedules_find(comm->schedules, &comm->view, &query);
    if (*ret_plan != NULL)
        return TUTTI_OK;
    report_refusal(comm, &query);
    TUTTI_TRY(tutti_tuner_choose(&comm->view, &query, &choice, &by));
    if (by >= TUTTI_BY_TABLE) /* the user has not named it */
        return TUTTI_OK;
    return tutti_cache_plan(comm, comm->gpu->programs->plans, &choice, call->root,
                            tutti_cuda_grid_channels(tutti_cuda_grid(comm->gpu->gpu)), ret_plan);
}

static int store(struct tutti_comm *comm, const struct tutti_plan *plan,
                 const struct tutti_call *call, struct tutti_cuda_stored *ret_stored)
{
    const struct tutti_cuda_grid *grid = tutti_cuda_grid(comm->gpu->gpu);
    struct tutti_program *program;
    struct tutti_cuda_program_image image;
    int rc;

    TUTTI_TRY(tutti_cuda_program_create(plan, call, comm->rank, grid, &program));
    rc = tutti_cuda_program_encode(program, call, grid, &image);
    tutti_program_destroy(program);
    TUTTI_TRY(rc);
    rc = tutti_cuda_store(comm->gpu->gpu, image.bytes, image.size_bytes, &ret_stored->image);
    ret_stored->scratch_bytes = image.scratch_bytes;
    tutti_cuda_program_image_fini(&image);
    return rc;
}

/* If kernels cannot run a program on this rank, they cannot run it on any other. So all ranks fall
 * back to the built-in algorithms together. */
static int make(struct tutti_comm *comm, const struct tutti_call *call, struct variant *variant)
{
    const uint32_t of_peers = TUTTI_NEEDS_PEER_READ | TUTTI_NEEDS_PEER_STORE;
    const struct tutti_plan *plan;
    int rc;

    TUTTI_TRY(find_plan(comm, call, &plan));
    if (plan != NULL && (plan->schedule->needs & of_peers) != 0 &&
        !tutti_cuda_reaches_all(comm->gpu->gpu)) {
        tutti_log(TUTTI_LOG_INFO, "the algorithm that was named for %s reads its peers' buffers, "
                  "which on GPUs needs ranks of one process on one GPU: not used",
                  tutti_collective_name(call->collective));
        plan = NULL;
    }
    if (plan != NULL) {
        rc = store(comm, plan, call, &variant->stored);
        if (rc != TUTTI_OK && rc != TUTTI_ERR_USAGE)
            return rc;
        variant->has_program = rc == TUTTI_OK;
        if (rc == TUTTI_OK)
            tutti_cuda_log_call(comm->gpu->gpu, call, "runs step by step in kernels: %u steps",
                                plan->schedule->nsteps);
    }
    variant->is_made = true;
    return TUTTI_OK;
}

/* Returns the entry of the call, which is made at its first use, or NULL if the table is full. */
static struct entry *enter(struct tutti_comm *comm, const struct tutti_call *call)
{
    struct tutti_gpu_programs *programs = comm->gpu->programs;
    struct tutti_calls_key key = tutti_calls_key_of(call, comm->nranks, false);
    struct entry *entry = place_of(programs, &key);

    if (entry->key.what != 0)
        return entry;
    if (programs->count == MOST_CALLS)
        return NULL;
    *entry = (struct entry){.key = key};
    if (++programs->count == MOST_CALLS && comm->rank == 0)
        tutti_log(TUTTI_LOG_INFO, "%d kinds of calls have run by named algorithms on GPUs: further "
                  "ones run as if none were named", MOST_CALLS);
    return entry;
}

int tutti_gpu_programs_find(struct tutti_comm *comm, const struct tutti_call *call,
                            const struct tutti_cuda_stored **ret_stored)
{
    struct tutti_gpu_comm *gpu_comm = comm->gpu;
    struct variant *variant;
    struct entry *entry;

    *ret_stored = NULL;
    /* For v-forms the built-in kernels, which copy from buffer to buffer, are better than any named
     * algorithm. */
    if (call->kind != TUTTI_CALL_COLLECTIVE || (comm->policy == NULL && comm->schedules == NULL))
        return TUTTI_OK;
    if (gpu_comm->programs == NULL) {
        gpu_comm->programs = calloc(1, sizeof *gpu_comm->programs);
        if (gpu_comm->programs == NULL)
            return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for programs of a GPU");
        TUTTI_TRY(tutti_cache_create(&gpu_comm->programs->plans));
    }
    entry = enter(comm, call);
    if (entry == NULL)
        return TUTTI_OK;
    variant = &entry->variants[call->input == call->output];
    if (!variant->is_made)
        TUTTI_TRY(make(comm, call, variant));
    *ret_stored = variant->has_program ? &variant->stored : NULL;
    return TUTTI_OK;
}

void tutti_gpu_programs_fini(struct tutti_comm *comm)
{
    struct tutti_gpu_programs *programs = comm->gpu->programs;

    if (programs == NULL)
        return;
    tutti_cache_destroy(programs->plans);
    free(programs);
    comm->gpu->programs = NULL;
}
