/* SPDX-License-Identifier: Apache-2.0
 * Forms the domain of a communicator's GPUs: finds out which ranks have one, which of them reach
 * which others, and through which memory. All decide by the same news, so all decide alike. */
#include "executor/cuda/private.h"

#include "base/log.h"
#include "base/param.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC UINT64_C(0x3155504749545554) /* "TUTIGPU1" */

/* Blocks needed to saturate a GPU's links. More would only take places from other communicators.
 * They have as many threads as NCCL 2 has in its 32 channels. */
enum { BLOCKS_OF_LINK = 64 };

enum phase {
    PHASE_MEET,       /* tell what this rank has */
    PHASE_RESERVE,    /* allocate this rank's area, for the others to open */
    PHASE_SHARE,      /* open the areas of the others */
    PHASE_ROUTE,      /* allocate host memory if not all devices reach this one */
    PHASE_SHARE_HOST, /* open that of the others */
    PHASE_STORE,      /* test all paths: store a pattern */
    PHASE_LOOK,       /* look for the patterns of the others, and measure rates */
    PHASE_JUDGE,      /* exclude paths that are wrong or slow, and try again */
    PHASE_LINES,      /* test that lines arrive whole */
    PHASE_SUM_UP,     /* the domain is formed */
    PHASE_GIVE_BACK,  /* there will be no domain: free everything */
    PHASE_DONE,
};

/* ---- saying and hearing ------------------------------------------------------------------ */

static struct tutti_gpu_news read_news(const uint8_t *messages, int rank)
{
    struct tutti_gpu_news news;

    memcpy(&news, messages + (size_t)rank * TUTTI_GPU_MESSAGE_BYTES, sizeof news);
    news.reason[sizeof news.reason - 1] = '\0';
    return news;
}

static bool is_meeting(const uint8_t *messages, int nranks)
{
    struct tutti_gpu_news first = read_news(messages, 0);

    if (nranks > TUTTI_GPU_RANKS)
        return false;
    for (int rank = 0; rank < nranks; rank++) {
        struct tutti_gpu_news news = read_news(messages, rank);

        if (news.magic != MAGIC || !news.has_kernels ||
            !tutti_identity_same_host(&news.identity, &first.identity))
            return false;
    }
    return true;
}

void tutti_gpu_trust(struct tutti_gpu *gpu, const uint8_t secret[TUTTI_SECRET_BYTES],
                     struct tutti_domain *domain)
{
    gpu->host_domain = domain;
    memcpy(gpu->secret, secret, sizeof gpu->secret);
}

const uint8_t *tutti_gpu_message(const struct tutti_gpu *gpu)
{
    return gpu->message;
}

void tutti_gpu_hear(struct tutti_gpu *gpu, const uint8_t *messages)
{
    if (gpu->phase == PHASE_MEET + 1 && !is_meeting(messages, gpu->args.nranks))
        gpu->phase = PHASE_DONE;
    for (int rank = 0; rank < gpu->args.nranks; rank++)
        gpu->news[rank] = read_news(messages, rank);
}

/* Asks for an all-gather of all ranks' news, after which the next phase begins. */
static int exchange(struct tutti_gpu *gpu)
{
    struct tutti_gpu_news *mine = &gpu->news[gpu->args.rank];

    memset(gpu->message, 0, sizeof gpu->message);
    memcpy(gpu->message, mine, sizeof *mine);
    gpu->phase++;
    return TUTTI_GPU_EXCHANGE;
}

/* Marks this rank as failed. If one rank fails, all go without a domain. */
static void give_up(struct tutti_gpu *gpu)
{
    struct tutti_gpu_news *mine = &gpu->news[gpu->args.rank];

    mine->is_failed = 1;
    tutti_message_copy(mine->reason, sizeof mine->reason, tutti_last_message());
}

static bool has_failed(const struct tutti_gpu *gpu)
{
    for (int rank = 0; rank < gpu->args.nranks; rank++) {
        if (!gpu->news[rank].is_failed)
            continue;
        if (gpu->args.rank == 0)
            tutti_log(TUTTI_LOG_WARN,
                      "the ranks' GPUs do not reach each other, so device memory goes through "
                      "the host: rank %d: %s", rank, gpu->news[rank].reason);
        return true;
    }
    return false;
}

/* ---- who reaches whom --------------------------------------------------------------------- */

bool tutti_gpu_reaches(const struct tutti_gpu *gpu, int from, int owner)
{
    uint64_t bit = UINT64_C(1) << owner, back = UINT64_C(1) << from;

    return (gpu->news[from].reached & bit) != 0 && (gpu->excluded[from] & bit) == 0 &&
           (gpu->excluded[owner] & back) == 0;
}

static bool is_reached_by_all(const struct tutti_gpu *gpu, int owner)
{
    for (int from = 0; from < gpu->args.nranks; from++)
        if (!tutti_gpu_reaches(gpu, from, owner))
            return false;
    return true;
}

static uint64_t list_reached(const struct tutti_gpu *gpu)
{
    uint64_t reached = 0;

    for (int rank = 0; rank < gpu->args.nranks; rank++)
        if (gpu->neighbours[rank].own_at != 0)
            reached |= UINT64_C(1) << rank;
    return reached;
}

static bool has_both_hosts(const struct tutti_gpu *gpu)
{
    for (int rank = 0; rank < gpu->args.nranks; rank++)
        if (!is_reached_by_all(gpu, rank) && gpu->neighbours[rank].host_at == 0)
            return false;
    return true;
}

/* ---- what a rank brings ------------------------------------------------------------------- */

static int meet(struct tutti_gpu *gpu)
{
    struct tutti_gpu_news *mine = &gpu->news[gpu->args.rank];
    int blocks = 1;

    *mine = (struct tutti_gpu_news){.magic = MAGIC, .has_kernels = gpu->kernels != NULL,
                                    .device = gpu->args.device};
    tutti_identity_describe(&mine->identity);
    gpu->cuda->device_uuid(mine->uuid, gpu->args.device);
    mine->memory_bytes = (uint64_t)tutti_param_int(TUTTI_PARAM_GPU_MEMORY);
    mine->copy_bytes = (uint64_t)tutti_param_int(TUTTI_PARAM_GPU_COPY_ENGINES);
    if (gpu->kernels != NULL)
        blocks = tutti_cuda_kernels_occupancy(gpu->kernels, (uint32_t)gpu->threads);
    mine->places = (uint32_t)(blocks * gpu->multiprocessors);
    TUTTI_TRY(tutti_gpu_places_claim(gpu, mine->uuid, mine->places, &mine->offered));
    return exchange(gpu);
}

/* Counts the ranks on the GPU of `rank`, and those of them that are also in its process. */
static void count_sharers(const struct tutti_gpu *gpu, int rank, uint32_t *ret_all,
                          uint32_t *ret_here)
{
    const struct tutti_gpu_news *news = &gpu->news[rank];

    *ret_all = *ret_here = 0;
    for (int other = 0; other < gpu->args.nranks; other++) {
        if (memcmp(gpu->news[other].uuid, news->uuid, sizeof news->uuid) != 0)
            continue;
        ++*ret_all;
        *ret_here += tutti_identity_same_process(&gpu->news[other].identity, &news->identity);
    }
}

/* Sets the most blocks of a launch. The blocks of all ranks on a device must be able to run at
 * once; otherwise they could wait for each other forever. */
static int share_places(struct tutti_gpu *gpu)
{
    uint32_t least = TUTTI_GPU_BLOCKS, nhere = 1;
    bool is_one_device = true;

    for (int rank = 0; rank < gpu->args.nranks; rank++) {
        const struct tutti_gpu_news *news = &gpu->news[rank];
        uint32_t nsharers, nthere, blocks;

        count_sharers(gpu, rank, &nsharers, &nthere);
        if (nthere > news->places)
            return tutti_fail(TUTTI_ERR_USAGE, "%u ranks of one process share GPU %d, on which the "
                              "kernels of %u run at a time; use more GPUs or fewer ranks", nthere,
                              news->device, news->places);
        nhere = rank == gpu->args.rank ? nthere : nhere;
        is_one_device = is_one_device && nsharers == (uint32_t)gpu->args.nranks;
        blocks = news->offered > nsharers ? news->offered / nsharers : 1;
        least = blocks < least ? blocks : least;
    }
    gpu->shares_device = nhere > 1;
    gpu->blocks = is_one_device || least < BLOCKS_OF_LINK ? least : BLOCKS_OF_LINK;
    tutti_gpu_places_settle(gpu, nhere * gpu->blocks);
    return TUTTI_OK;
}

static int reserve(struct tutti_gpu *gpu)
{
    struct tutti_gpu_news *mine = &gpu->news[gpu->args.rank];
    uint64_t memory_bytes = UINT64_MAX;
    bool is_shared = false, has_others = false;
    int fd = -1;

    for (int rank = 0; rank < gpu->args.nranks; rank++) {
        if (gpu->news[rank].memory_bytes < memory_bytes)
            memory_bytes = gpu->news[rank].memory_bytes;
        is_shared = is_shared || !tutti_gpu_is_here(gpu, rank);
        has_others = has_others || (tutti_gpu_is_here(gpu, rank) &&
                                    gpu->news[rank].device != gpu->args.device);
    }
    mine->context = (uint64_t)(uintptr_t)gpu->context;
    mine->is_primary = has_others && tutti_gpu_has_primary(gpu);
    tutti_gpu_lay_out((uint32_t)gpu->args.nranks, gpu->blocks, memory_bytes, &gpu->grid);
    TUTTI_TRY(tutti_gpu_memory_alloc(gpu->cuda, gpu->args.device,
                                     tutti_gpu_area_bytes(&gpu->grid.layout), gpu->desk,
                                     &gpu->own));
    TUTTI_TRY(tutti_gpu_lend(gpu, &gpu->own));
    mine->own_address = gpu->own.address;
    mine->own_token = (struct tutti_gpu_token){.kind = gpu->own.kind,
                                               .size_bytes = gpu->own.size_bytes};
    if (is_shared && gpu->own.kind == TUTTI_GPU_MEMORY_PLAIN &&
        tutti_gpu_memory_export(gpu->cuda, &gpu->own, &mine->own_token, &fd) != TUTTI_OK)
        tutti_log(TUTTI_LOG_INFO, "rank %d: %s", gpu->args.rank, tutti_last_message());
    return TUTTI_OK;
}

static int reserve_host(struct tutti_gpu *gpu)
{
    struct tutti_gpu_news *mine = &gpu->news[gpu->args.rank];

    if (is_reached_by_all(gpu, gpu->args.rank) || gpu->host.kind != TUTTI_GPU_MEMORY_NONE)
        return TUTTI_OK;
    TUTTI_TRY(tutti_gpu_memory_alloc_host(gpu->cuda, tutti_gpu_area_bytes(&gpu->grid.layout),
                                          &gpu->host));
    TUTTI_TRY(tutti_gpu_lend(gpu, &gpu->host));
    mine->host_address = gpu->host.address;
    mine->host_token = (struct tutti_gpu_token){.kind = gpu->host.kind,
                                                .size_bytes = gpu->host.size_bytes};
    tutti_log(TUTTI_LOG_INFO, "rank %d: not all GPUs reach GPU %d, so some go through host memory",
              gpu->args.rank, gpu->args.device);
    return TUTTI_OK;
}

/* ---- the tables of the domain ---------------------------------------------------------------- */

struct tutti_gpu_peer tutti_gpu_look_at(const struct tutti_gpu *gpu, int rank)
{
    const struct tutti_gpu_neighbour *neighbour = &gpu->neighbours[rank];
    const struct tutti_gpu_layout *layout = &gpu->grid.layout;
    int me = gpu->args.rank;
    tutti_cu_address to = tutti_gpu_reaches(gpu, me, rank) ? neighbour->own_at : neighbour->host_at;
    tutti_cu_address from = tutti_gpu_reaches(gpu, rank, me) ? gpu->own.address : gpu->host.address;
    tutti_cu_address window = is_reached_by_all(gpu, rank) ? neighbour->own_at : neighbour->host_at;

    return (struct tutti_gpu_peer){
        .to = (uint8_t *)(uintptr_t)(to + tutti_gpu_mailbox_at(layout, (uint32_t)me)),
        .from = (uint8_t *)(uintptr_t)(from + tutti_gpu_mailbox_at(layout, (uint32_t)rank)),
        .window = (uint8_t *)(uintptr_t)(window + tutti_gpu_windows_at(layout)),
    };
}

/* Writes the tables that kernels read in device memory: the domain, its peers, and counters. */
static int write_tables(struct tutti_gpu *gpu)
{
    size_t npeers = (size_t)gpu->args.nranks;
    size_t peers_at = sizeof(struct tutti_gpu_domain);
    size_t counters_at = peers_at + npeers * sizeof(struct tutti_gpu_peer);
    size_t bytes = counters_at + TUTTI_GPU_COUNTERS_BYTES(gpu->grid.layout.channels, npeers);
    struct tutti_gpu_peer *peers = calloc(npeers, sizeof *peers);
    struct tutti_gpu_domain domain = {.layout = gpu->grid.layout,
                                      .nranks = (uint32_t)gpu->args.nranks,
                                      .rank = (uint32_t)gpu->args.rank};
    tutti_cu_address report = 0;
    int code = TUTTI_CU_SUCCESS, rc = TUTTI_OK;

    if (peers == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the tables of %zu GPUs", npeers);
    for (size_t rank = 0; rank < npeers; rank++)
        peers[rank] = tutti_gpu_look_at(gpu, (int)rank);
    if (gpu->state.kind == TUTTI_GPU_MEMORY_NONE &&
        tutti_gpu_memory_alloc(gpu->cuda, gpu->args.device, bytes, gpu->desk,
                               &gpu->state) != TUTTI_OK) {
        free(peers);
        return TUTTI_ERR_DEVICE;
    }
    if (gpu->report == NULL)
        code = gpu->cuda->host_alloc((void **)&gpu->report, sizeof *gpu->report,
                                     TUTTI_CU_HOST_PORTABLE | TUTTI_CU_HOST_MAPPED);
    if (code == TUTTI_CU_SUCCESS) {
        memset(gpu->report, 0, sizeof *gpu->report);
        code = gpu->cuda->host_device_address(&report, gpu->report, 0);
    }
    domain.peers = (struct tutti_gpu_peer *)(uintptr_t)(gpu->state.address + peers_at);
    domain.counters = (struct tutti_gpu_counters *)(uintptr_t)(gpu->state.address + counters_at);
    domain.report = (struct tutti_gpu_report *)(uintptr_t)report;
    gpu->domain = (struct tutti_gpu_domain *)(uintptr_t)gpu->state.address;
    gpu->peers_at = gpu->state.address + peers_at;
    if (code != TUTTI_CU_SUCCESS)
        rc = tutti_gpu_fail(gpu, code, "page-locked memory");
    if (rc == TUTTI_OK)
        rc = tutti_gpu_put(gpu, gpu->state.address, (tutti_cu_address)(uintptr_t)&domain,
                           sizeof domain);
    if (rc == TUTTI_OK)
        rc = tutti_gpu_put(gpu, gpu->peers_at, (tutti_cu_address)(uintptr_t)peers,
                           npeers * sizeof *peers);
    free(peers);
    return rc;
}

/* ---- forming ------------------------------------------------------------------------------- */

static int share(struct tutti_gpu *gpu)
{
    int rc = tutti_gpu_share_areas(gpu, false);

    if (rc == TUTTI_AGAIN)
        return rc;
    if (rc != TUTTI_OK)
        give_up(gpu);
    gpu->news[gpu->args.rank].reached = list_reached(gpu);
    gpu->news[gpu->args.rank].linked = tutti_gpu_lines_linked(gpu);
    return exchange(gpu);
}

static int share_host(struct tutti_gpu *gpu)
{
    int rc = tutti_gpu_share_areas(gpu, true);

    if (rc == TUTTI_AGAIN)
        return rc;
    if (rc != TUTTI_OK || !has_both_hosts(gpu)) {
        if (rc == TUTTI_OK)
            tutti_note(TUTTI_ERR_DEVICE, "host memory of another rank cannot be opened");
        give_up(gpu);
    }
    gpu->phase = PHASE_STORE;
    return TUTTI_OK;
}

/* Ends a phase: asks for the all-gather, and lets it tell if the phase failed with `rc`. */
static int say(struct tutti_gpu *gpu, int rc)
{
    if (rc != TUTTI_OK)
        give_up(gpu);
    return exchange(gpu);
}

static int store(struct tutti_gpu *gpu)
{
    int rc = gpu->news[gpu->args.rank].is_failed ? TUTTI_ERR_DEVICE : write_tables(gpu);

    return say(gpu, rc != TUTTI_OK ? rc : tutti_gpu_test_store(gpu));
}

static int look(struct tutti_gpu *gpu)
{
    struct tutti_gpu_news *mine = &gpu->news[gpu->args.rank];
    bool is_copy_bad = false;
    int rc = tutti_gpu_test_look(gpu, &mine->bad, &is_copy_bad);

    mine->is_copy_bad = is_copy_bad;
    /* Measure only once: paths through the host are the last resort, however slow they are. */
    if (rc == TUTTI_OK && !gpu->has_measured)
        rc = tutti_gpu_test_rates(gpu, &mine->slow);
    gpu->has_measured = true;
    return say(gpu, rc);
}

static int lines(struct tutti_gpu *gpu)
{
    int rc = tutti_gpu_lines_test(gpu, &gpu->news[gpu->args.rank].torn);

    return rc == TUTTI_AGAIN ? rc : say(gpu, rc);
}

static int sum_up(struct tutti_gpu *gpu)
{
    gpu->is_one_process = gpu->is_one_device = gpu->all_reach_all = gpu->is_all_open = true;
    for (int rank = 0; rank < gpu->args.nranks; rank++) {
        if (!tutti_gpu_is_here(gpu, rank))
            gpu->is_one_process = false;
        if (memcmp(gpu->news[rank].uuid, gpu->news[0].uuid, TUTTI_CU_UUID_BYTES) != 0)
            gpu->is_one_device = false;
        if (!is_reached_by_all(gpu, rank))
            gpu->all_reach_all = false;
        for (int owner = 0; owner < gpu->args.nranks; owner++)
            gpu->is_all_open = gpu->is_all_open && tutti_gpu_is_open(gpu, rank, owner);
    }
    gpu->is_all_open = gpu->is_all_open && gpu->is_one_process;
    if (gpu->is_one_process && !gpu->is_all_open && gpu->args.rank == 0)
        tutti_log(TUTTI_LOG_INFO, "not all ranks are in primary contexts, so only memory of "
                  "tuttiMemAlloc, and virtual memory, is accessed directly");
    tutti_gpu_lines_agree(gpu);
    tutti_gpu_copy_agree(gpu);
    gpu->has_domain = true;
    tutti_gpu_sharers_enter(gpu);
    TUTTI_TRY(tutti_gpu_maps_create(gpu));
    gpu->phase = PHASE_DONE;
    return TUTTI_OK;
}

/* Excludes the paths that were measured to be slow. True if there are any. */
static bool exclude_slow(struct tutti_gpu *gpu)
{
    bool are_some = false;

    for (int from = 0; from < gpu->args.nranks; from++) {
        are_some = are_some || gpu->news[from].slow != 0;
        gpu->excluded[from] |= gpu->news[from].slow;
    }
    gpu->news[gpu->args.rank].slow = 0;
    return are_some;
}

/* Replaces paths that are wrong or slow by paths through the host, and tests again. Gives up if a
 * path through the host is wrong. */
static void judge(struct tutti_gpu *gpu)
{
    bool is_bad = exclude_slow(gpu), is_host_bad = false;

    for (int from = 0; from < gpu->args.nranks; from++)
        for (int owner = 0; owner < gpu->args.nranks; owner++) {
            uint64_t bit = UINT64_C(1) << owner;

            if ((gpu->news[from].bad & bit) == 0)
                continue;
            is_bad = true;
            gpu->excluded[from] |= bit;
            is_host_bad = is_host_bad || gpu->news[owner].host_token.kind != TUTTI_GPU_MEMORY_NONE;
            if (gpu->args.rank == 0)
                tutti_log(TUTTI_LOG_WARN, "stores of rank %d to the memory of rank %d's GPU, or "
                          "loads from it, give wrong data: that path is not used", owner, from);
        }
    gpu->news[gpu->args.rank].bad = 0;
    if (is_bad)
        gpu->phase = is_host_bad ? PHASE_GIVE_BACK : PHASE_ROUTE;
    else
        gpu->phase = tutti_gpu_lines_are_possible(gpu) ? PHASE_LINES : PHASE_SUM_UP;
}

/* Frees what the domain would have used. Freeing memory may wait for all work on the device, so the
 * all-gather keeps every rank from making calls before all have freed theirs. */
static int give_back(struct tutti_gpu *gpu)
{
    tutti_gpu_unshare(gpu);
    tutti_gpu_take_back(gpu, &gpu->own);
    tutti_gpu_take_back(gpu, &gpu->host);
    tutti_gpu_memory_free(gpu->cuda, &gpu->state);
    return exchange(gpu);
}

static int form_inside(struct tutti_gpu *gpu)
{
    for (;;) {
        if (gpu->phase > PHASE_RESERVE && gpu->phase < PHASE_GIVE_BACK &&
            gpu->phase != PHASE_STORE && has_failed(gpu))
            gpu->phase = PHASE_GIVE_BACK;
        switch (gpu->phase) {
        case PHASE_MEET: return meet(gpu);
        case PHASE_RESERVE:
            TUTTI_TRY(share_places(gpu)); /* fails on all ranks, or on none */
            return say(gpu, reserve(gpu));
        case PHASE_SHARE: return share(gpu);
        case PHASE_ROUTE: return say(gpu, reserve_host(gpu));
        case PHASE_SHARE_HOST: TUTTI_TRY(share_host(gpu)); break;
        case PHASE_STORE: return store(gpu);
        case PHASE_LOOK: return look(gpu);
        case PHASE_JUDGE: judge(gpu); break;
        case PHASE_LINES: return lines(gpu);
        case PHASE_SUM_UP: TUTTI_TRY(sum_up(gpu)); break;
        case PHASE_GIVE_BACK: return give_back(gpu);
        default: return TUTTI_OK;
        }
    }
}

int tutti_gpu_form(struct tutti_gpu *gpu)
{
    int rc;

    TUTTI_TRY(tutti_gpu_enter(gpu));
    rc = form_inside(gpu);
    tutti_gpu_leave(gpu);
    if (rc == TUTTI_OK && !gpu->has_domain)
        tutti_gpu_places_leave(gpu);
    if (rc == TUTTI_OK && gpu->has_domain && gpu->args.rank == 0)
        tutti_log(TUTTI_LOG_INFO, "%d ranks' GPUs reach each other: %u blocks of %u threads each",
                  gpu->args.nranks, gpu->blocks, gpu->threads);
    return rc;
}

bool tutti_gpu_has_domain(const struct tutti_gpu *gpu)
{
    return gpu->has_domain;
}
