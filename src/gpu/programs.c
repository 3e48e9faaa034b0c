/* SPDX-License-Identifier: Apache-2.0
 * Decides how calls on device memory run. A schedule file, or else the tuner, names an algorithm
 * and a protocol (algorithms/protocols.h). A kernel runs the call as a whole, or runs the
 * algorithm's schedule step by step by a program. */
#include "gpu/comm_gpu.h"

#include "base/log.h"
#include "executor/cuda/program.h"
#include "tuner/builtin.h"
#include "tune/tune.h"
#include "tuner/explain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Programs stay in device memory, because kernels and graphs may need them at any time. So their
 * number is limited. All ranks count the same calls, so they reach the limit at the same call. */
enum { MOST_CALLS = 1024, BITS = 11, ENTRIES = 1 << BITS };
_Static_assert(ENTRIES > MOST_CALLS, "a search ends at a free entry");

/* How a call runs. */
struct variant {
    bool is_made;
    const char *file;                /* the schedule file that serves the call; NULL: none does */
    struct tutti_choice choice;      /* without a file */
    enum tutti_authority by;         /* which has made the choice */
    struct tutti_cuda_stored stored; /* with a file, or with TUTTI_PROTOCOL_STEPS */
};

struct entry {
    struct tutti_calls_key key;         /* the arguments that are the same on all ranks */
    struct variant variants[2];         /* out of place, in place; ranks may differ in this */
};

/* A candidate that is being measured. */
struct trial {
    const struct tutti_choice *choice; /* comm->trial */
    struct variant variant;
};

/* How long kernels need a program. */
enum lifetime {
    OF_COMM,   /* later calls of the same kind use it, too */
    OF_LAUNCH, /* only the next launch uses it */
    OF_GRAPH,  /* as OF_LAUNCH, which is captured, and may be replayed */
};

struct tutti_gpu_programs {
    struct trial trials[TUTTI_TRIAL_CHOICES];
    uint32_t ntrials;
    struct tutti_cuda_mark before_trials; /* of the memory of programs */
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

struct tutti_tuner_query tutti_gpu_query(const struct tutti_comm *comm,
                                         const struct tutti_call *call)
{
    struct tutti_tuner_query query = tutti_cache_query(comm, call);

    query.protocols = tutti_cuda_protocols(comm->gpu->gpu, call);
    /* Within a host, the kernels that copy from buffer to buffer run v-forms best. */
    if (call->kind != TUTTI_CALL_COLLECTIVE && !tutti_cuda_spans_hosts(comm->gpu->gpu))
        query.protocols &= ~(1u << TUTTI_PROTOCOL_STEPS);
    return query;
}

int tutti_gpu_choose(struct tutti_comm *comm, const struct tutti_tuner_view *view,
                     const struct tutti_call *call, struct tutti_choice *ret_choice,
                     char *reason, size_t reason_bytes)
{
    struct tutti_tuner_query query = tutti_gpu_query(comm, call);
    enum tutti_authority by;

    TUTTI_TRY(tutti_tuner_choose(view, &query, ret_choice, &by));
    tutti_authority_format(view, &query, by, reason, reason_bytes);
    return TUTTI_OK;
}

/* Logs how the call runs. The copies of the driver are logged when they are enqueued. */
static void report(struct tutti_comm *comm, const struct tutti_call *call,
                   const struct variant *variant)
{
    bool has_steps = variant->choice.protocol == TUTTI_PROTOCOL_STEPS;
    struct tutti_tuner_query query;
    char text[96], reason[96];

    if (!tutti_log_is_on(TUTTI_LOG_INFO) || variant->choice.protocol == TUTTI_PROTOCOL_COPIES)
        return;
    if (variant->file != NULL) {
        tutti_cuda_log_call(comm->gpu->gpu, call, "runs by %s, step by step: by TUTTI_SCHEDULE",
                            variant->file);
        return;
    }
    query = tutti_gpu_query(comm, call);
    tutti_choice_format(&variant->choice, text, sizeof text);
    tutti_authority_format(&comm->gpu->view, &query, variant->by, reason, sizeof reason);
    tutti_cuda_log_call(comm->gpu->gpu, call, "runs by %s%s: %s", text,
                        has_steps ? ", step by step" : "", reason);
}

static int store(struct tutti_comm *comm, const struct tutti_plan *plan,
                 const struct tutti_call *call, enum lifetime lifetime,
                 struct tutti_cuda_stored *ret_stored)
{
    const struct tutti_cuda_grid *grid = tutti_cuda_grid(comm->gpu->gpu);
    struct tutti_program *program;
    struct tutti_cuda_program_image image;
    int rc;

    TUTTI_TRY(tutti_cuda_program_create(plan, call, comm->rank, grid, &program));
    rc = tutti_cuda_program_encode(program, call, grid, &image);
    tutti_program_destroy(program);
    TUTTI_TRY(rc);
    rc = lifetime == OF_COMM
             ? tutti_cuda_store(comm->gpu->gpu, image.bytes, image.size_bytes, &ret_stored->image)
             : tutti_cuda_store_for_launch(comm->gpu->gpu, image.bytes, image.size_bytes,
                                           lifetime == OF_GRAPH, &ret_stored->image);
    ret_stored->image_bytes = image.size_bytes;
    ret_stored->scratch_bytes = image.scratch_bytes;
    ret_stored->is_on_host = lifetime != OF_COMM;
    tutti_cuda_program_image_fini(&image);
    return rc;
}

/* Chooses a protocol other than step by step. Every call has one, unless the domain spans hosts. */
static int choose_kernel(struct tutti_comm *comm, const struct tutti_call *call,
                         struct variant *variant)
{
    struct tutti_tuner_query query = tutti_gpu_query(comm, call);

    query.protocols &= ~(1u << TUTTI_PROTOCOL_STEPS);
    variant->by = TUTTI_BY_HOST;
    if (tutti_builtin_find_protocol(&comm->gpu->view, &query, &variant->choice))
        return TUTTI_OK;
    return tutti_fail(TUTTI_ERR_INTERNAL, "no kernel runs %s",
                      tutti_collective_name(call->collective));
}

/* Makes the program of a plan, which kernels can read. *ret_is_stored is false if kernels cannot
 * run the schedule. If they cannot run it on this rank, they cannot run it on any other. So all
 * ranks fall back to another protocol together, or fail together if there is no other. */
static int try_plan(struct tutti_comm *comm, const struct tutti_call *call,
                    const struct tutti_plan *plan, enum lifetime lifetime,
                    struct variant *variant, bool *ret_is_stored)
{
    const uint32_t of_peers = TUTTI_NEEDS_PEER_READ | TUTTI_NEEDS_PEER_STORE;
    int rc;

    *ret_is_stored = false;
    if ((plan->schedule->needs & of_peers) != 0 && !tutti_cuda_reaches_all(comm->gpu->gpu)) {
        tutti_log(TUTTI_LOG_INFO, "the algorithm that was named for %s reads its peers' buffers, "
                  "which on GPUs needs ranks of one process on one GPU: not used",
                  tutti_collective_name(call->collective));
        return TUTTI_OK;
    }
    rc = store(comm, plan, call, lifetime, &variant->stored);
    *ret_is_stored = rc == TUTTI_OK;
    return rc == TUTTI_ERR_USAGE ? TUTTI_OK : rc;
}

/* Tries the schedule files of the user. */
static int try_files(struct tutti_comm *comm, const struct tutti_call *call,
                     enum lifetime lifetime, struct variant *variant, bool *ret_is_stored)
{
    struct tutti_tuner_query query = tutti_cache_query(comm, call);
    const struct tutti_plan *plan;

    *ret_is_stored = false;
    if (comm->schedules == NULL || call->kind != TUTTI_CALL_COLLECTIVE)
        return TUTTI_OK;
    plan = tutti_schedules_find(comm->schedules, &comm->gpu->view, &query);
    if (plan == NULL) {
        report_refusal(comm, &query);
        return TUTTI_OK;
    }
    TUTTI_TRY(try_plan(comm, call, plan, lifetime, variant, ret_is_stored));
    if (*ret_is_stored)
        variant->file = tutti_schedules_file(comm->schedules, plan);
    return TUTTI_OK;
}

/* Tries the schedule of variant->choice. */
static int try_choice(struct tutti_comm *comm, const struct tutti_call *call,
                      enum lifetime lifetime, struct variant *variant, bool *ret_is_stored)
{
    const struct tutti_cache_site site = {
        .places = comm->gpu->view.places,
        .channels = tutti_cuda_grid_channels(tutti_cuda_grid(comm->gpu->gpu))};
    const struct tutti_plan *plan;

    TUTTI_TRY(tutti_cache_plan(comm, comm->gpu->programs->plans, &variant->choice, call->root,
                               &site, &plan));
    return try_plan(comm, call, plan, lifetime, variant, ret_is_stored);
}

static int make(struct tutti_comm *comm, const struct tutti_call *call, enum lifetime lifetime,
                struct variant *variant)
{
    struct tutti_tuner_query query = tutti_gpu_query(comm, call);
    bool is_stored;

    TUTTI_TRY(try_files(comm, call, lifetime, variant, &is_stored));
    variant->is_made = true;
    if (is_stored)
        return TUTTI_OK;
    TUTTI_TRY(tutti_tuner_choose(&comm->gpu->view, &query, &variant->choice, &variant->by));
    if (variant->choice.protocol != TUTTI_PROTOCOL_STEPS)
        return TUTTI_OK;
    TUTTI_TRY(try_choice(comm, call, lifetime, variant, &is_stored));
    if (is_stored)
        return TUTTI_OK;
    if (tutti_cuda_spans_hosts(comm->gpu->gpu))
        return tutti_fail(TUTTI_ERR_USAGE, "kernels cannot run %s by %s; choose another algorithm",
                          tutti_collective_name(call->collective),
                          variant->choice.algorithm->name);
    return choose_kernel(comm, call, variant);
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
        tutti_log(TUTTI_LOG_INFO, "%d kinds of calls have run on GPUs: further ones run %s",
                  MOST_CALLS, tutti_cuda_spans_hosts(comm->gpu->gpu)
                                  ? "by programs that are made for each call"
                                  : "by kernels that need no schedule");
    return entry;
}

static int open_programs(struct tutti_gpu_comm *gpu_comm)
{
    if (gpu_comm->programs != NULL)
        return TUTTI_OK;
    gpu_comm->programs = calloc(1, sizeof *gpu_comm->programs);
    if (gpu_comm->programs == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for programs of a GPU");
    return tutti_cache_create(&gpu_comm->programs->plans);
}

/* Makes the variant of a candidate that is measured. */
static int make_trial(struct tutti_comm *comm, const struct tutti_call *call,
                      struct variant *variant)
{
    bool is_stored;

    variant->is_made = true;
    variant->choice = *comm->trial;
    if (variant->choice.protocol != TUTTI_PROTOCOL_STEPS)
        return TUTTI_OK;
    TUTTI_TRY(try_choice(comm, call, OF_COMM, variant, &is_stored));
    return is_stored ? TUTTI_OK
                     : tutti_note(TUTTI_ERR_USAGE, "kernels cannot run %s by %s",
                                  tutti_collective_name(call->collective),
                                  variant->choice.algorithm->name);
}

/* Finds the variant of the candidate that is measured. */
static int find_trial(struct tutti_comm *comm, struct tutti_cuda_item *item)
{
    struct tutti_gpu_programs *programs = comm->gpu->programs;
    struct trial *trial = programs->trials;

    if (programs->ntrials == 0)
        programs->before_trials = tutti_cuda_store_mark(comm->gpu->gpu);
    while (trial < programs->trials + programs->ntrials && trial->choice != comm->trial)
        trial++;
    if (trial == programs->trials + programs->ntrials) {
        tutti_assert(programs->ntrials < TUTTI_TRIAL_CHOICES);
        *trial = (struct trial){.choice = comm->trial};
        TUTTI_TRY(make_trial(comm, item->call, &trial->variant));
        programs->ntrials++;
    }
    item->protocol = trial->variant.choice.protocol;
    item->program = trial->variant.stored;
    return TUTTI_OK;
}

void tutti_gpu_programs_end_trial(struct tutti_comm *comm)
{
    struct tutti_gpu_programs *programs = comm->gpu->programs;

    if (programs == NULL || programs->ntrials == 0)
        return;
    programs->ntrials = 0;
    tutti_cuda_store_rewind(comm->gpu->gpu, &programs->before_trials);
}

static void use(struct tutti_comm *comm, const struct variant *variant,
                struct tutti_cuda_item *item)
{
    item->protocol = variant->choice.protocol;
    item->program = variant->stored;
    report(comm, item->call, variant);
}

/* Chooses how a call runs whose choice is not kept. Within a host, each such call has a kernel. */
static int choose_anew(struct tutti_comm *comm, bool is_captured, struct tutti_cuda_item *item)
{
    struct variant variant = {.file = NULL};

    if (tutti_cuda_spans_hosts(comm->gpu->gpu))
        TUTTI_TRY(make(comm, item->call, is_captured ? OF_GRAPH : OF_LAUNCH, &variant));
    else
        TUTTI_TRY(choose_kernel(comm, item->call, &variant));
    use(comm, &variant, item);
    return TUTTI_OK;
}

int tutti_gpu_programs_find(struct tutti_comm *comm, bool is_captured,
                            struct tutti_cuda_item *item)
{
    struct tutti_gpu_comm *gpu_comm = comm->gpu;
    const struct tutti_call *call = item->call;
    struct variant *variant;
    struct entry *entry;

    if (tutti_call_is_message(call))
        return TUTTI_OK;
    if (comm->trial != NULL) {
        TUTTI_TRY(open_programs(gpu_comm));
        return find_trial(comm, item);
    }
    /* Rows of the built-in table decide: nothing needs to be remembered. */
    if (comm->policy == NULL && comm->schedules == NULL && gpu_comm->view.is_even)
        return choose_anew(comm, is_captured, item);
    TUTTI_TRY(open_programs(gpu_comm));
    /* The key of a v-form does not have its counts. */
    entry = call->kind == TUTTI_CALL_COLLECTIVE ? enter(comm, call) : NULL;
    if (entry == NULL)
        return choose_anew(comm, is_captured, item);
    variant = &entry->variants[call->input == call->output];
    if (!variant->is_made)
        TUTTI_TRY(make(comm, call, OF_COMM, variant));
    use(comm, variant, item);
    return TUTTI_OK;
}

/* The programs stay in device memory, because graphs may need them. */
void tutti_gpu_programs_forget(struct tutti_comm *comm)
{
    struct tutti_gpu_programs *programs = comm->gpu->programs;

    if (programs == NULL)
        return;
    tutti_cache_forget(programs->plans);
    memset(programs->entries, 0, sizeof programs->entries);
    programs->count = 0;
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
