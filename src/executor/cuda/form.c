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
enum { BLOCKS_OF_LINK = 64 };

/* The table `phases` below says what each phase does and which phase follows. */
enum phase_number {
    PHASE_MEET,
    PHASE_DIVIDE,
    PHASE_RESERVE,
    PHASE_SHARE,
    PHASE_ROUTE,
    PHASE_SHARE_HOST,
    PHASE_STORE,
    PHASE_LOOK,
    PHASE_JUDGE,
    PHASE_LINES,
    PHASE_SUM_UP,
    PHASE_GIVE_BACK,
    PHASE_DONE,
};

/* ---- saying and hearing ------------------------------------------------------------------ */

static struct tutti_cuda_record read_record(const uint8_t *messages, int rank)
{
    struct tutti_cuda_record record;

    memcpy(&record, messages + (size_t)rank * TUTTI_CUDA_MESSAGE_BYTES, sizeof record);
    record.reason[sizeof record.reason - 1] = '\0';
    return record;
}

void tutti_cuda_prepare(struct tutti_cuda_gpu *gpu, const uint8_t secret[TUTTI_SECRET_BYTES],
                        struct tutti_domain *domain)
{
    gpu->host_domain = domain;
    memcpy(gpu->secret, secret, sizeof gpu->secret);
}

const uint8_t *tutti_cuda_message(const struct tutti_cuda_gpu *gpu)
{
    return gpu->message;
}

void tutti_cuda_hear(struct tutti_cuda_gpu *gpu, const uint8_t *messages)
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

static uint64_t list_reached(const struct tutti_cuda_gpu *gpu)
{
    uint64_t reached = 0;

    for (int rank = 0; rank < gpu->args.nranks; rank++)
        if (gpu->neighbors[rank].own_at != 0)
            reached |= UINT64_C(1) << rank;
    return reached;
}

static bool has_both_hosts(const struct tutti_cuda_gpu *gpu)
{
    for (int rank = 0; rank < gpu->args.nranks; rank++)
        if (!tutti_cuda_is_reached_by_all(gpu, rank) && gpu->neighbors[rank].host_at == 0)
            return false;
    return true;
}

/* ---- what a rank brings ------------------------------------------------------------------- */

static int meet(struct tutti_cuda_gpu *gpu)
{
    struct tutti_cuda_record *mine = &gpu->records[gpu->args.rank];
    int blocks = 1;

    *mine = (struct tutti_cuda_record){
        .magic = MAGIC, .has_kernels = gpu->kernels != NULL, .device = gpu->args.device};
    tutti_identity_describe(&mine->identity);
    gpu->cuda->device_uuid(mine->uuid, gpu->args.device);
    mine->memory_bytes = (uint64_t)tutti_param_int(TUTTI_PARAM_GPU_MEMORY);
    mine->copy_bytes = (uint64_t)tutti_param_int(TUTTI_PARAM_GPU_COPY_ENGINES);
    if (gpu->kernels != NULL)
        blocks = tutti_kernel_module_occupancy(gpu->kernels, (uint32_t)gpu->threads);
    mine->resident = (uint32_t)(blocks * gpu->multiprocessors);
    return tutti_cuda_residency_claim(gpu, mine->uuid, mine->resident, &mine->offered);
}

/* Returns true if there may be a domain: all ranks are on one host and have kernels, and there are
 * not too many of them. */
static bool is_meeting(const struct tutti_cuda_gpu *gpu)
{
    if (gpu->args.nranks > TUTTI_KERNEL_RANKS)
        return false;
    for (int rank = 0; rank < gpu->args.nranks; rank++) {
        const struct tutti_cuda_record *record = &gpu->records[rank];

        if (record->magic != MAGIC || !record->has_kernels ||
            !tutti_identity_same_host(&record->identity, &gpu->records[0].identity))
            return false;
    }
    return true;
}

/* Counts the ranks on the GPU of `rank`, and those of them that are also in its process. */
static void count_sharers(const struct tutti_cuda_gpu *gpu, int rank, uint32_t *ret_all,
                          uint32_t *ret_here)
{
    const struct tutti_cuda_record *record = &gpu->records[rank];

    *ret_all = *ret_here = 0;
    for (int other = 0; other < gpu->args.nranks; other++) {
        if (memcmp(gpu->records[other].uuid, record->uuid, sizeof record->uuid) != 0)
            continue;
        ++*ret_all;
        *ret_here += tutti_identity_same_process(&gpu->records[other].identity, &record->identity);
    }
}

/* Decides how many blocks a launch may have. The blocks of all ranks on a device must be able to
 * run at once. Otherwise they could wait for each other forever. Fails on all ranks, or on none. */
static int divide(struct tutti_cuda_gpu *gpu)
{
    uint32_t least = TUTTI_KERNEL_BLOCKS, nhere = 1;
    bool is_one_device = true;

    if (!is_meeting(gpu)) {
        gpu->next_phase = PHASE_DONE;
        return TUTTI_OK;
    }
    for (int rank = 0; rank < gpu->args.nranks; rank++) {
        const struct tutti_cuda_record *record = &gpu->records[rank];
        uint32_t nsharers, nthere, blocks;

        count_sharers(gpu, rank, &nsharers, &nthere);
        if (nthere > record->resident)
            return tutti_fail(TUTTI_ERR_USAGE,
                              "%u ranks of one process share GPU %d, on which the "
                              "kernels of %u run at a time; use more GPUs or fewer ranks",
                              nthere, record->device, record->resident);
        nhere = rank == gpu->args.rank ? nthere : nhere;
        is_one_device = is_one_device && nsharers == (uint32_t)gpu->args.nranks;
        blocks = record->offered > nsharers ? record->offered / nsharers : 1;
        least = blocks < least ? blocks : least;
    }
    gpu->shares_device = nhere > 1;
    gpu->blocks = is_one_device || least < BLOCKS_OF_LINK ? least : BLOCKS_OF_LINK;
    tutti_cuda_residency_settle(gpu, nhere * gpu->blocks);
    return TUTTI_OK;
}

static int reserve(struct tutti_cuda_gpu *gpu)
{
    struct tutti_cuda_record *mine = &gpu->records[gpu->args.rank];
    uint64_t memory_bytes = UINT64_MAX;
    bool is_shared = false, has_others = false;
    int fd = -1;

    tutti_assert(gpu->own.kind == TUTTI_GPUMEM_NONE && gpu->blocks > 0);
    for (int rank = 0; rank < gpu->args.nranks; rank++) {
        if (gpu->records[rank].memory_bytes < memory_bytes)
            memory_bytes = gpu->records[rank].memory_bytes;
        is_shared = is_shared || !tutti_cuda_is_here(gpu, rank);
        has_others = has_others || (tutti_cuda_is_here(gpu, rank) &&
                                    gpu->records[rank].device != gpu->args.device);
    }
    mine->context = (uint64_t)(uintptr_t)gpu->context;
    mine->is_primary = has_others && tutti_cuda_has_primary(gpu);
    tutti_cuda_lay_out((uint32_t)gpu->args.nranks, gpu->blocks, memory_bytes, &gpu->grid);
    TUTTI_TRY(tutti_gpumem_alloc(gpu->cuda, gpu->args.device,
                                 tutti_cuda_area_bytes(&gpu->grid.layout), gpu->setup_stream,
                                 &gpu->own));
    TUTTI_TRY(tutti_cuda_lend(gpu, &gpu->own));
    mine->own_address = gpu->own.address;
    mine->own_token = (struct tutti_gpumem_token){.kind = gpu->own.kind,
                                                  .size_bytes = gpu->own.size_bytes};
    if (is_shared && gpu->own.kind == TUTTI_GPUMEM_PLAIN &&
        tutti_gpumem_export(gpu->cuda, &gpu->own, &mine->own_token, &fd) != TUTTI_OK)
        tutti_log(TUTTI_LOG_INFO, "rank %d: %s", gpu->args.rank, tutti_message_last());
    return TUTTI_OK;
}

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

static int share(struct tutti_cuda_gpu *gpu)
{
    int rc = tutti_cuda_share_areas(gpu, false);

    if (rc == TUTTI_AGAIN)
        return rc;
    gpu->records[gpu->args.rank].reached = list_reached(gpu);
    gpu->records[gpu->args.rank].linked = tutti_cuda_lines_linked(gpu);
    return rc;
}

static int share_host(struct tutti_cuda_gpu *gpu)
{
    TUTTI_TRY(tutti_cuda_share_areas(gpu, true));
    if (!has_both_hosts(gpu))
        return tutti_note(TUTTI_ERR_DEVICE, "host memory of another rank cannot be opened");
    return TUTTI_OK;
}

static int store(struct tutti_cuda_gpu *gpu)
{
    if (gpu->records[gpu->args.rank].is_failed)
        return TUTTI_OK; /* The phase before has failed, and this phase's exchange says so. */
    TUTTI_TRY(tutti_cuda_write_tables(gpu));
    return tutti_cuda_test_store(gpu);
}

static int look(struct tutti_cuda_gpu *gpu)
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

static int sum_up(struct tutti_cuda_gpu *gpu)
{
    tutti_assert(!gpu->has_domain && gpu->domain != NULL);
    gpu->is_one_process = gpu->is_one_device = gpu->all_reach_all = gpu->is_all_open = true;
    for (int rank = 0; rank < gpu->args.nranks; rank++) {
        if (!tutti_cuda_is_here(gpu, rank))
            gpu->is_one_process = false;
        if (memcmp(gpu->records[rank].uuid, gpu->records[0].uuid, TUTTI_CU_UUID_BYTES) != 0)
            gpu->is_one_device = false;
        if (!tutti_cuda_is_reached_by_all(gpu, rank))
            gpu->all_reach_all = false;
        for (int owner = 0; owner < gpu->args.nranks; owner++)
            gpu->is_all_open = gpu->is_all_open && tutti_cuda_is_open(gpu, rank, owner);
    }
    gpu->is_all_open = gpu->is_all_open && gpu->is_one_process;
    if (gpu->is_one_process && !gpu->is_all_open && gpu->args.rank == 0)
        tutti_log(TUTTI_LOG_INFO, "not all ranks are in primary contexts, so only memory of "
                  "tuttiMemAlloc, and virtual memory, is accessed directly");
    tutti_cuda_lines_agree(gpu);
    tutti_cuda_copy_agree(gpu);
    gpu->has_domain = true;
    tutti_cuda_sharers_enter(gpu);
    return tutti_cuda_maps_create(gpu);
}

/* Excludes the paths that were measured to be slow. Returns true if there are any. */
static bool exclude_slow(struct tutti_cuda_gpu *gpu)
{
    bool are_some = false;

    for (int from = 0; from < gpu->args.nranks; from++) {
        are_some = are_some || gpu->records[from].slow != 0;
        gpu->excluded[from] |= gpu->records[from].slow;
    }
    gpu->records[gpu->args.rank].slow = 0;
    return are_some;
}

/* Replaces paths that are wrong or slow by paths through the host, and has all paths tested again.
 * Gives up if a path through the host is wrong. */
static int judge(struct tutti_cuda_gpu *gpu)
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
        gpu->next_phase = is_host_bad ? PHASE_GIVE_BACK : PHASE_ROUTE;
    else if (!tutti_cuda_lines_are_possible(gpu))
        gpu->next_phase = PHASE_SUM_UP;
    return TUTTI_OK;
}

/* Frees what the domain would have used. Freeing memory may wait for all work on the device. So no
 * rank may make calls before all ranks have freed their memory, and the all-gather ensures that. */
static int give_back(struct tutti_cuda_gpu *gpu)
{
    tutti_assert(!gpu->has_domain);
    tutti_cuda_unshare(gpu);
    tutti_cuda_take_back(gpu, &gpu->own);
    tutti_cuda_take_back(gpu, &gpu->host);
    tutti_gpumem_free(gpu->cuda, &gpu->state);
    return TUTTI_OK;
}

/* ---- the phases ------------------------------------------------------------------------------ */

struct phase {
    const char *name;
    /* Does all work of the phase, or returns TUTTI_AGAIN to be called again. It may choose another
     * phase to follow by setting gpu->next_phase. */
    int (*step)(struct tutti_cuda_gpu *gpu);
    enum phase_number next;
    bool is_exchange;    /* an all-gather of the ranks' records ends the phase */
    bool tells_failure;  /* an error goes into this rank's record; otherwise it is returned */
    bool minds_failures; /* PHASE_GIVE_BACK replaces the phase if a record tells of a failure */
};

static const struct phase phases[PHASE_DONE] = {
    [PHASE_MEET] = {"telling what each rank has", meet, PHASE_DIVIDE, true, false, false},
    [PHASE_DIVIDE] = {"dividing the GPUs", divide, PHASE_RESERVE, false, false, false},
    [PHASE_RESERVE] = {"allocating areas", reserve, PHASE_SHARE, true, true, false},
    [PHASE_SHARE] = {"opening the areas of others", share, PHASE_ROUTE, true, true, true},
    [PHASE_ROUTE] = {"allocating areas in host memory", reserve_host, PHASE_SHARE_HOST, true, true,
                     true},
    [PHASE_SHARE_HOST] = {"opening those of others", share_host, PHASE_STORE, false, true, true},
    /* PHASE_SHARE_HOST ends without an exchange. Other ranks do not know of its failures yet, so
     * this phase does not act on them. */
    [PHASE_STORE] = {"storing patterns by all paths", store, PHASE_LOOK, true, true, false},
    [PHASE_LOOK] = {"looking for the patterns, and measuring", look, PHASE_JUDGE, true, true, true},
    [PHASE_JUDGE] = {"judging the paths", judge, PHASE_LINES, false, false, true},
    [PHASE_LINES] = {"testing that lines arrive whole", test_lines, PHASE_SUM_UP, true, true, true},
    [PHASE_SUM_UP] = {"starting the domain", sum_up, PHASE_DONE, false, false, true},
    [PHASE_GIVE_BACK] = {"giving back all memory", give_back, PHASE_DONE, true, false, false},
};

/* Does one phase. Returns TUTTI_OK if the next phase may begin at once. */
static int do_phase(struct tutti_cuda_gpu *gpu)
{
    const struct phase *phase;
    int rc;

    if (phases[gpu->phase].minds_failures && has_failed(gpu))
        gpu->phase = PHASE_GIVE_BACK;
    phase = &phases[gpu->phase];
    gpu->next_phase = phase->next;
    rc = phase->step(gpu);
    if (rc == TUTTI_AGAIN || (rc != TUTTI_OK && !phase->tells_failure))
        return rc;
    if (rc != TUTTI_OK)
        give_up(gpu);
    tutti_log(TUTTI_LOG_DEBUG, "GPUs: done with %s", phase->name);
    gpu->phase = gpu->next_phase;
    return phase->is_exchange ? exchange(gpu) : TUTTI_OK;
}

static int form_inside(struct tutti_cuda_gpu *gpu)
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
    rc = form_inside(gpu);
    tutti_cuda_leave(gpu);
    if (rc == TUTTI_OK && !gpu->has_domain)
        tutti_cuda_residency_leave(gpu);
    if (rc == TUTTI_OK && gpu->has_domain && gpu->args.rank == 0)
        tutti_log(TUTTI_LOG_INFO, "%d ranks' GPUs reach each other: %u blocks of %u threads each",
                  gpu->args.nranks, gpu->blocks, gpu->threads);
    return rc;
}

bool tutti_cuda_has_domain(const struct tutti_cuda_gpu *gpu)
{
    return gpu->has_domain;
}
