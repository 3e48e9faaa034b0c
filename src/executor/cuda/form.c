/* SPDX-License-Identifier: Apache-2.0
 * Forms the domain of a communicator's GPUs. Finds out which ranks have a GPU, which GPUs reach
 * each other, and through which memory. All ranks decide by the same records, so their decisions
 * agree. */
#include "executor/cuda/private.h"

#include "base/log.h"
#include "base/param.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC UINT64_C(0x3155504749545554) /* "TUTIGPU1" */

/* The number of blocks that saturates a GPU's links. More blocks would only take room from
 * other communicators. These blocks have as many threads as NCCL 2 has in its 32 channels. */
enum { LINK_BLOCKS = 64 };

/* The table `phases` below says what each phase does and which phase follows. */
enum phase_number {
    PHASE_DESCRIBE,
    PHASE_DIVIDE_BLOCKS,
    PHASE_RESERVE,
    PHASE_SHARE,
    PHASE_ROUTE,
    PHASE_SHARE_HOST,
    PHASE_STORE_PATTERNS,
    PHASE_CHECK_PATTERNS,
    PHASE_JUDGE_PATHS,
    PHASE_TEST_LINES,
    PHASE_START_DOMAIN,
    PHASE_SHARE_BOARDS,
    PHASE_FREE_AREAS,
    PHASE_DONE,
};

/* ---- records -------------------------------------------------------------------------------- */

/* Copies the record of `rank` out of the messages. The end of its text is not trusted, because
 * another process wrote it. */
static struct tutti_cuda_record read_record(const uint8_t *messages, int rank)
{
    struct tutti_cuda_record record;

    memcpy(&record, messages + (size_t)rank * TUTTI_CUDA_MESSAGE_BYTES, sizeof record);
    record.reason[sizeof record.reason - 1] = '\0';
    return record;
}

void tutti_cuda_prepare(struct tutti_cuda_gpu *gpu, const uint8_t secret[TUTTI_SECRET_BYTES],
                        struct tutti_domain *domain, const struct tutti_cuda_network *network,
                        uint64_t nvlinked)
{
    gpu->host_domain = domain;
    gpu->network = *network;
    gpu->nvlinked = nvlinked;
    memcpy(gpu->secret, secret, sizeof gpu->secret);
}

const uint8_t *tutti_cuda_message(const struct tutti_cuda_gpu *gpu)
{
    return gpu->message;
}

void tutti_cuda_take_messages(struct tutti_cuda_gpu *gpu, const uint8_t *messages)
{
    tutti_assert(gpu->awaits_records);
    gpu->awaits_records = false;
    for (int rank = 0; rank < gpu->args.nranks; rank++)
        gpu->records[rank] = read_record(messages, rank);
}

/* Asks for an all-gather of all ranks' records. */
static int exchange(struct tutti_cuda_gpu *gpu)
{
    struct tutti_cuda_record *mine = &gpu->records[gpu->args.rank];

    memset(gpu->message, 0, sizeof gpu->message);
    memcpy(gpu->message, mine, sizeof *mine);
    gpu->awaits_records = true;
    return TUTTI_CUDA_EXCHANGE;
}

/* Marks this rank as failed. If one rank fails, no rank gets a domain. */
static void give_up(struct tutti_cuda_gpu *gpu)
{
    struct tutti_cuda_record *mine = &gpu->records[gpu->args.rank];

    mine->is_failed = 1;
    tutti_message_copy(mine->reason, sizeof mine->reason, tutti_message_last());
}

/* Returns true if a record tells of a failure. */
static bool has_failed(const struct tutti_cuda_gpu *gpu)
{
    for (int rank = 0; rank < gpu->args.nranks; rank++) {
        if (!gpu->records[rank].is_failed)
            continue;
        if (gpu->args.rank == 0)
            tutti_log(TUTTI_LOG_WARN,
                      "the ranks' GPUs do not reach each other, so device memory goes through "
                      "the host: rank %d: %s",
                      rank, gpu->records[rank].reason);
        return true;
    }
    return false;
}

/* ---- which ranks reach each other --------------------------------------------------------- */

/* Returns the ranks, as bits, whose areas in device memory this rank has opened. */
static uint64_t list_reached(const struct tutti_cuda_gpu *gpu)
{
    uint64_t reached = 0;

    for (int rank = 0; rank < gpu->args.nranks; rank++)
        if (gpu->neighbors[rank].own_at != 0)
            reached |= UINT64_C(1) << rank;
    return reached;
}

/* Returns true if this rank has opened an area of every rank of its host that all of them can
 * use. */
static bool has_path_to_all(const struct tutti_cuda_gpu *gpu)
{
    for (int rank = 0; rank < gpu->args.nranks; rank++)
        if (!tutti_cuda_is_far(gpu, gpu->args.rank, rank) &&
            !tutti_cuda_is_reached_by_all(gpu, rank) && gpu->neighbors[rank].host_at == 0)
            return false;
    return true;
}

/* ---- what a rank brings ------------------------------------------------------------------- */

/* Fills in what the other ranks must know of this rank, and claims blocks of its GPU. */
static int describe_rank(struct tutti_cuda_gpu *gpu)
{
    struct tutti_cuda_record *mine = &gpu->records[gpu->args.rank];
    int blocks = 1;

    *mine = (struct tutti_cuda_record){
        .magic = MAGIC, .has_kernels = gpu->kernels != NULL,
        .has_network = gpu->network.fabric != NULL, .device = gpu->args.device};
    tutti_identity_describe(&mine->identity);
    gpu->cuda->device_uuid(mine->uuid, gpu->args.device);
    mine->memory_bytes = (uint64_t)tutti_param_int(TUTTI_PARAM_GPU_MEMORY);
    mine->copy_bytes = (uint64_t)tutti_param_int(TUTTI_PARAM_GPU_COPY_ENGINES);
    if (gpu->kernels != NULL)
        blocks = tutti_kernel_module_occupancy(gpu->kernels, (uint32_t)gpu->threads);
    gpu->multiprocessor_blocks = (uint32_t)blocks;
    mine->resident = (uint32_t)(blocks * gpu->multiprocessors);
    return tutti_cuda_residency_claim(gpu, mine->uuid, mine->resident, &mine->offered);
}

/* Returns true if there may be a domain: all ranks have kernels, there are not too many of them,
 * and they are on one host or have a network between their hosts. */
static bool can_form_domain(const struct tutti_cuda_gpu *gpu)
{
    if (gpu->args.nranks > TUTTI_KERNEL_RANKS)
        return false;
    for (int rank = 0; rank < gpu->args.nranks; rank++) {
        const struct tutti_cuda_record *record = &gpu->records[rank];

        if (record->magic != MAGIC || !record->has_kernels ||
            (tutti_cuda_is_far(gpu, rank, 0) &&
             (!record->has_network || !gpu->records[0].has_network)))
            return false;
    }
    return true;
}

/* Counts the ranks on the GPU of `rank`, and those of them that are also in its process. */
static void count_sharers(const struct tutti_cuda_gpu *gpu, int rank, uint32_t *ret_all,
                          uint32_t *ret_in_process)
{
    const struct tutti_cuda_record *record = &gpu->records[rank];

    *ret_all = *ret_in_process = 0;
    for (int other = 0; other < gpu->args.nranks; other++) {
        if (memcmp(gpu->records[other].uuid, record->uuid, sizeof record->uuid) != 0)
            continue;
        ++*ret_all;
        *ret_in_process +=
            tutti_identity_same_process(&gpu->records[other].identity, &record->identity);
    }
}

/* Decides how many blocks a launch may have. The blocks of all ranks on a device must be able to
 * run at once. Otherwise they could wait for each other forever. Fails on all ranks, or on none. */
static int divide_blocks(struct tutti_cuda_gpu *gpu)
{
    uint32_t least = TUTTI_KERNEL_BLOCKS, nsharers_here = 1;
    bool is_one_device = true;

    if (!can_form_domain(gpu)) {
        gpu->next_phase = PHASE_DONE;
        return TUTTI_OK;
    }
    for (int rank = 0; rank < gpu->args.nranks; rank++) {
        const struct tutti_cuda_record *record = &gpu->records[rank];
        uint32_t nsharers, nin_process, blocks;

        count_sharers(gpu, rank, &nsharers, &nin_process);
        if (nin_process > record->resident)
            return tutti_fail(TUTTI_ERR_USAGE,
                              "%u ranks of one process share GPU %d, on which the "
                              "kernels of %u run at a time; use more GPUs or fewer ranks",
                              nin_process, record->device, record->resident);
        nsharers_here = rank == gpu->args.rank ? nin_process : nsharers_here;
        is_one_device = is_one_device && nsharers == (uint32_t)gpu->args.nranks;
        gpu->spans_hosts = gpu->spans_hosts || tutti_cuda_is_far(gpu, rank, 0);
        blocks = record->offered > nsharers ? record->offered / nsharers : 1;
        least = blocks < least ? blocks : least;
    }
    gpu->nsharers = nsharers_here;
    gpu->blocks = is_one_device || least < LINK_BLOCKS ? least : LINK_BLOCKS;
    tutti_cuda_residency_settle(gpu, nsharers_here * gpu->blocks);
    return TUTTI_OK;
}

/* Allocates this rank's area in device memory, and describes it in the record. */
static int reserve(struct tutti_cuda_gpu *gpu)
{
    struct tutti_cuda_record *mine = &gpu->records[gpu->args.rank];
    uint64_t memory_bytes = UINT64_MAX;
    bool has_other_process = false, has_other_device = false;
    int fd = -1;

    tutti_assert(gpu->own.kind == TUTTI_GPUMEM_NONE && gpu->blocks > 0);
    for (int rank = 0; rank < gpu->args.nranks; rank++) {
        if (gpu->records[rank].memory_bytes < memory_bytes)
            memory_bytes = gpu->records[rank].memory_bytes;
        has_other_process = has_other_process || !tutti_cuda_is_in_process(gpu, rank);
        has_other_device = has_other_device || (tutti_cuda_is_in_process(gpu, rank) &&
                                                gpu->records[rank].device != gpu->args.device);
    }
    mine->context = (uint64_t)(uintptr_t)gpu->context;
    mine->is_primary = has_other_device && tutti_cuda_has_primary(gpu);
    tutti_cuda_lay_out((uint32_t)gpu->args.nranks, gpu->blocks, memory_bytes, gpu->spans_hosts,
                       &gpu->grid);
    TUTTI_TRY(tutti_gpumem_alloc(gpu->cuda, gpu->args.device,
                                 tutti_cuda_area_bytes(&gpu->grid.layout), gpu->setup_stream,
                                 &gpu->own));
    TUTTI_TRY(tutti_cuda_lend(gpu, &gpu->own));
    TUTTI_TRY(tutti_cuda_far_reserve(gpu));
    TUTTI_TRY(tutti_cuda_slabs_reserve(gpu));
    TUTTI_TRY(tutti_cuda_scratch_reserve(gpu));
    mine->own_address = gpu->own.address;
    mine->own_token = (struct tutti_gpumem_token){.kind = gpu->own.kind,
                                                  .size_bytes = gpu->own.size_bytes};
    if (has_other_process && gpu->own.kind == TUTTI_GPUMEM_PLAIN &&
        tutti_gpumem_export(gpu->cuda, &gpu->own, &mine->own_token, &fd) != TUTTI_OK)
        tutti_log(TUTTI_LOG_INFO, "rank %d: %s", gpu->args.rank, tutti_message_last());
    return TUTTI_OK;
}

/* Allocates this rank's area in host memory, unless all ranks reach its area in device memory. */
static int reserve_host(struct tutti_cuda_gpu *gpu)
{
    struct tutti_cuda_record *mine = &gpu->records[gpu->args.rank];

    tutti_assert(gpu->own.kind != TUTTI_GPUMEM_NONE);
    if (tutti_cuda_is_reached_by_all(gpu, gpu->args.rank) || gpu->host.kind != TUTTI_GPUMEM_NONE)
        return TUTTI_OK;
    TUTTI_TRY(
        tutti_gpumem_alloc_host(gpu->cuda, tutti_cuda_area_bytes(&gpu->grid.layout), &gpu->host));
    TUTTI_TRY(tutti_cuda_lend(gpu, &gpu->host));
    mine->host_address = gpu->host.address;
    mine->host_token = (struct tutti_gpumem_token){.kind = gpu->host.kind,
                                                   .size_bytes = gpu->host.size_bytes};
    tutti_log(TUTTI_LOG_INFO, "rank %d: not all GPUs reach GPU %d, so some go through host memory",
              gpu->args.rank, gpu->args.device);
    return TUTTI_OK;
}

/* ---- forming ------------------------------------------------------------------------------- */

/* Opens the areas in device memory, and records which are reached and by which links. */
static int share(struct tutti_cuda_gpu *gpu)
{
    int rc = tutti_cuda_share_areas(gpu, false);

    if (rc == TUTTI_AGAIN)
        return rc;
    gpu->records[gpu->args.rank].reached = list_reached(gpu);
    gpu->records[gpu->args.rank].linked = tutti_cuda_lines_linked(gpu);
    return rc;
}

/* Opens the areas in host memory. Fails if some rank cannot be reached by any area. */
static int share_host(struct tutti_cuda_gpu *gpu)
{
    TUTTI_TRY(tutti_cuda_share_areas(gpu, true));
    if (!has_path_to_all(gpu))
        return tutti_note(TUTTI_ERR_DEVICE, "some rank's host memory cannot be opened");
    return TUTTI_OK;
}

/* Stores patterns by all paths, unless this rank failed in the phase before. */
static int store_patterns(struct tutti_cuda_gpu *gpu)
{
    if (gpu->records[gpu->args.rank].is_failed)
        return TUTTI_OK; /* the exchange that ends this phase tells the other ranks */
    TUTTI_TRY(tutti_cuda_write_tables(gpu));
    return tutti_cuda_test_store(gpu);
}

/* Checks the patterns of all ranks, and measures the paths. */
static int check_patterns(struct tutti_cuda_gpu *gpu)
{
    struct tutti_cuda_record *mine = &gpu->records[gpu->args.rank];
    bool is_copy_bad = false;
    int rc;

    tutti_assert(gpu->domain != NULL);
    rc = tutti_cuda_test_check(gpu, &mine->bad, &is_copy_bad);
    mine->is_copy_bad = is_copy_bad;
    /* Measure only once. Paths through the host are the last resort, so their speed does not
     * matter. */
    if (rc == TUTTI_OK && !gpu->has_measured)
        rc = tutti_cuda_test_rates(gpu, &mine->slow);
    gpu->has_measured = true;
    return rc;
}

static int test_lines(struct tutti_cuda_gpu *gpu)
{
    return tutti_cuda_lines_test(gpu, &gpu->records[gpu->args.rank].torn);
}

/* Sets the facts that hold for all ranks together, and starts the domain. */
static int start_domain(struct tutti_cuda_gpu *gpu)
{
    tutti_assert(!gpu->has_domain && gpu->domain != NULL);
    gpu->is_one_process = gpu->is_one_device = gpu->all_reach_all = gpu->is_all_open = true;
    for (int rank = 0; rank < gpu->args.nranks; rank++) {
        if (!tutti_cuda_is_in_process(gpu, rank))
            gpu->is_one_process = false;
        if (memcmp(gpu->records[rank].uuid, gpu->records[0].uuid, TUTTI_CU_UUID_BYTES) != 0)
            gpu->is_one_device = false;
        if (gpu->spans_hosts || !tutti_cuda_is_reached_by_all(gpu, rank))
            gpu->all_reach_all = false;
        for (int owner = 0; owner < gpu->args.nranks; owner++)
            gpu->is_all_open = gpu->is_all_open && tutti_cuda_may_access(gpu, rank, owner);
    }
    gpu->is_all_open = gpu->is_all_open && gpu->is_one_process;
    if (gpu->is_one_process && !gpu->is_all_open && gpu->args.rank == 0)
        tutti_log(TUTTI_LOG_INFO, "not all ranks are in primary contexts, so only memory of "
                  "tuttiMemAlloc, and virtual memory, is accessed directly");
    tutti_cuda_lines_agree(gpu);
    tutti_cuda_copy_agree(gpu);
    gpu->has_domain = true;
    tutti_cuda_sharers_enter(gpu);
    TUTTI_TRY(tutti_cuda_far_begin(gpu));
    return tutti_cuda_maps_create(gpu);
}

/* Excludes the paths that were measured to be slow. Returns true if there are any. */
static bool exclude_slow(struct tutti_cuda_gpu *gpu)
{
    bool has_slow = false;

    for (int from = 0; from < gpu->args.nranks; from++) {
        has_slow = has_slow || gpu->records[from].slow != 0;
        gpu->excluded[from] |= gpu->records[from].slow;
    }
    gpu->records[gpu->args.rank].slow = 0;
    return has_slow;
}

/* Replaces paths that are wrong or slow by paths through the host, and has all paths tested again.
 * Gives up if a path through the host is wrong. */
static int judge_paths(struct tutti_cuda_gpu *gpu)
{
    bool is_bad = exclude_slow(gpu), is_host_bad = false;

    for (int from = 0; from < gpu->args.nranks; from++)
        for (int owner = 0; owner < gpu->args.nranks; owner++) {
            uint64_t bit = UINT64_C(1) << owner;

            if ((gpu->records[from].bad & bit) == 0)
                continue;
            is_bad = true;
            gpu->excluded[from] |= bit;
            is_host_bad = is_host_bad || gpu->records[owner].host_token.kind != TUTTI_GPUMEM_NONE;
            if (gpu->args.rank == 0)
                tutti_log(TUTTI_LOG_WARN, "stores of rank %d to the memory of rank %d's GPU, or "
                          "loads from it, give wrong data: that path is not used", owner, from);
        }
    gpu->records[gpu->args.rank].bad = 0;
    if (is_bad)
        gpu->next_phase = is_host_bad ? PHASE_FREE_AREAS : PHASE_ROUTE;
    else if (!tutti_cuda_lines_are_possible(gpu))
        gpu->next_phase = PHASE_START_DOMAIN;
    return TUTTI_OK;
}

/* Frees what the domain would have used. Freeing memory may wait for all work on the device. So no
 * rank may make calls before all ranks have freed their memory, and the all-gather ensures that. */
static int free_areas(struct tutti_cuda_gpu *gpu)
{
    tutti_assert(!gpu->has_domain);
    tutti_cuda_unshare(gpu);
    tutti_cuda_take_back(gpu, &gpu->own);
    tutti_cuda_take_back(gpu, &gpu->host);
    tutti_gpumem_free(gpu->cuda, &gpu->far);
    tutti_gpumem_free(gpu->cuda, &gpu->state);
    tutti_cuda_slabs_fini(gpu);
    tutti_cuda_scratch_fini(gpu);
    return TUTTI_OK;
}

/* ---- the phases ------------------------------------------------------------------------------ */

/* The flags of a phase tell what happens before and after it. */
enum {
    EXCHANGES = 1,       /* an all-gather of the ranks' records ends the phase */
    RECORDS_FAILURE = 2, /* an error goes into this rank's record; otherwise it is returned */
    HEEDS_FAILURES = 4,  /* PHASE_FREE_AREAS replaces the phase if a record tells of a failure */
};

struct phase {
    const char *name; /* what the phase does, for the log */
    /* Does all work of the phase, or returns TUTTI_AGAIN to be called again. It may choose another
     * phase to follow by setting gpu->next_phase. */
    int (*step)(struct tutti_cuda_gpu *gpu);
    enum phase_number next;
    unsigned flags;
};

static const struct phase phases[PHASE_DONE] = {
    [PHASE_DESCRIBE] = {"telling what each rank has", describe_rank, PHASE_DIVIDE_BLOCKS,
                        EXCHANGES},
    [PHASE_DIVIDE_BLOCKS] = {"dividing the GPUs", divide_blocks, PHASE_RESERVE, 0},
    [PHASE_RESERVE] = {"allocating areas", reserve, PHASE_SHARE, EXCHANGES | RECORDS_FAILURE},
    [PHASE_SHARE] = {"opening the areas of others", share, PHASE_ROUTE,
                     EXCHANGES | RECORDS_FAILURE | HEEDS_FAILURES},
    [PHASE_ROUTE] = {"allocating areas in host memory", reserve_host, PHASE_SHARE_HOST,
                     EXCHANGES | RECORDS_FAILURE | HEEDS_FAILURES},
    [PHASE_SHARE_HOST] = {"opening those of others", share_host, PHASE_STORE_PATTERNS,
                          RECORDS_FAILURE | HEEDS_FAILURES},
    /* PHASE_SHARE_HOST ends without an exchange. Other ranks do not know of its failures yet, so
     * this phase does not act on them. */
    [PHASE_STORE_PATTERNS] = {"storing patterns by all paths", store_patterns,
                              PHASE_CHECK_PATTERNS, EXCHANGES | RECORDS_FAILURE},
    [PHASE_CHECK_PATTERNS] = {"looking for the patterns, and measuring", check_patterns,
                              PHASE_JUDGE_PATHS, EXCHANGES | RECORDS_FAILURE | HEEDS_FAILURES},
    [PHASE_JUDGE_PATHS] = {"judging the paths", judge_paths, PHASE_TEST_LINES, HEEDS_FAILURES},
    [PHASE_TEST_LINES] = {"testing that lines arrive whole", test_lines, PHASE_START_DOMAIN,
                          EXCHANGES | RECORDS_FAILURE | HEEDS_FAILURES},
    [PHASE_START_DOMAIN] = {"starting the domain", start_domain, PHASE_SHARE_BOARDS,
                            HEEDS_FAILURES},
    [PHASE_SHARE_BOARDS] = {"passing boards", tutti_cuda_share_boards, PHASE_DONE, 0},
    [PHASE_FREE_AREAS] = {"giving back all memory", free_areas, PHASE_DONE, EXCHANGES},
};

/* Does one phase. TUTTI_OK: the next phase may begin at once. TUTTI_AGAIN: the phase is not
 * complete. TUTTI_CUDA_EXCHANGE: the phase ends by an all-gather. */
static int do_phase(struct tutti_cuda_gpu *gpu)
{
    const struct phase *phase;
    int rc;

    if ((phases[gpu->phase].flags & HEEDS_FAILURES) != 0 && has_failed(gpu))
        gpu->phase = PHASE_FREE_AREAS;
    phase = &phases[gpu->phase];
    gpu->next_phase = phase->next;
    rc = phase->step(gpu);
    if (rc == TUTTI_AGAIN || (rc != TUTTI_OK && (phase->flags & RECORDS_FAILURE) == 0))
        return rc;
    if (rc != TUTTI_OK)
        give_up(gpu);
    tutti_log(TUTTI_LOG_DEBUG, "GPUs: done with %s", phase->name);
    gpu->phase = gpu->next_phase;
    return (phase->flags & EXCHANGES) != 0 ? exchange(gpu) : TUTTI_OK;
}

/* Does phases until forming is over or must wait. The GPU's context is current. */
static int do_phases(struct tutti_cuda_gpu *gpu)
{
    while (gpu->phase != PHASE_DONE)
        TUTTI_TRY(do_phase(gpu));
    return TUTTI_OK;
}

int tutti_cuda_form(struct tutti_cuda_gpu *gpu)
{
    int rc;

    tutti_assert(!gpu->awaits_records && gpu->phase <= PHASE_DONE);
    TUTTI_TRY(tutti_cuda_enter(gpu));
    rc = do_phases(gpu);
    tutti_cuda_leave(gpu);
    if (rc == TUTTI_OK && !gpu->has_domain)
        tutti_cuda_residency_leave(gpu);
    if (rc == TUTTI_OK && gpu->has_domain && gpu->args.rank == 0)
        tutti_log(TUTTI_LOG_INFO, "%d ranks' GPUs reach each other%s: %u blocks of %u threads each",
                  gpu->args.nranks, gpu->spans_hosts ? ", on several hosts through proxies" : "",
                  gpu->blocks, gpu->threads);
    return rc;
}

bool tutti_cuda_has_domain(const struct tutti_cuda_gpu *gpu)
{
    return gpu->has_domain;
}
