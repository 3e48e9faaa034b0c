/* SPDX-License-Identifier: Apache-2.0
 * Decides which buffers of a rank the kernels of its peers can use in place, without a copy.
 *
 * If all ranks are threads of one process, in contexts that are open to each other, plain device
 * memory can be used as it is. For other memory, each rank has a catalog in shared memory:
 * - The owner lists its allocations in its catalog, each under a number. If other processes need a
 *   descriptor to open an allocation, the owner's board (transport/shm/board.h) has it until all
 *   peers have acknowledged the allocation.
 * - Peers map new allocations at their next calls. In their own catalogs they acknowledge the last
 *   number up to which they have read, and mark the allocations that they could not open. A peer
 *   that does not find a descriptor on the board has not read that entry yet.
 * - An allocation can be used by all peers if all have acknowledged its number and none has marked
 *   it. So the owner alone decides which memory it offers in its posts, without a negotiation.
 * All other memory is copied through the rank's window.
 *
 * An allocation keeps its entry in the catalog, and its map in kernels, for as long as it lives,
 * because enqueued kernels and replayed graphs refer to maps. If no entry is free, an allocation is
 * not listed until an entry becomes free. A freed allocation is removed from the catalog at once,
 * and its entry is used again only after all other free entries. */
#include "executor/cuda/private.h"

#include "base/atomic.h"
#include "base/log.h"
#include "transport/gpu_memory/alloc.h"
#include "transport/domain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Entries of a catalog. Entry i has map i + 1 in kernels, because map 0 is for addresses. */
enum { ENTRIES = TUTTI_KERNEL_MAPS - 1 };
_Static_assert(ENTRIES <= 32, "a word of 32 bits has a bit for each entry");
_Static_assert((int)ENTRIES <= (int)TUTTI_BOARD_ENTRIES, "a board has room for each entry");

enum { TOKEN_WORDS = sizeof(struct tutti_gpumem_token) / sizeof(uint64_t) };
_Static_assert(sizeof(struct tutti_gpumem_token) % sizeof(uint64_t) == 0, "a token is whole words");

/* An entry of a catalog, in memory that the ranks of the host share. */
struct entry {
    uint64_t number; /* 0 while the rest is being written, and after the memory was freed */
    uint64_t begin;  /* address of the allocation in the owner's process */
    uint64_t token[TOKEN_WORDS]; /* struct tutti_gpumem_token */
    uint32_t has_descriptor; /* 1: the owner's board has it, under `number` */
};

struct catalog {
    struct entry entries[ENTRIES];
    uint32_t changes;                /* grows when allocations are shown or removed, and when the
                                        board has descriptors that it lacked */
    uint32_t last;                   /* the last number shown */
    /* For each peer, the answer of this catalog's owner to the peer's catalog. The high half is the
     * last number that the owner has read there. The low half has a bit for each entry of the peer
     * whose memory the owner cannot use. */
    uint64_t answers[TUTTI_KERNEL_RANKS];
};
_Static_assert(sizeof(struct catalog) <= TUTTI_AREA_BYTES, "a catalog fits a rank's area");

/* A rank's private record of its own entries and those of each peer. */
struct tutti_cuda_maps {
    uint64_t generation;             /* of the process's list of allocations, when last read */
    uint32_t last, granted;          /* last number shown, and last number that all acknowledged */
    uint32_t refused;                /* bit per entry: some peer cannot use it */
    bool is_board_behind;            /* the board lacks descriptors of entries that are listed */
    int turn;                        /* where to begin to look for a free entry */
    struct tutti_gpumem_allocation mine[ENTRIES]; /* serial 0: the entry is free */
    uint32_t numbers[ENTRIES];       /* the number of each entry of this rank */
    uint32_t learned[TUTTI_KERNEL_RANKS];      /* `changes` of each rank's catalog when last read */
    uint32_t failed[TUTTI_KERNEL_RANKS];       /* bit per entry: it could not be opened here */
    struct tutti_gpumem (*opened)[ENTRIES]; /* [nranks]: mappings of the memory of peers */
    uint64_t (*seen)[ENTRIES];    /* [nranks]: number of each entry when last read */
};

static struct catalog *catalog_of(const struct tutti_cuda_gpu *gpu, int rank)
{
    return (struct catalog *)(void *)tutti_domain_area(gpu->host_domain, (uint32_t)rank);
}

int tutti_cuda_maps_create(struct tutti_cuda_gpu *gpu)
{
    size_t nranks = (size_t)gpu->args.nranks;
    struct tutti_cuda_maps *maps;

    if (gpu->host_domain == NULL)
        return TUTTI_OK;
    maps = gpu->maps = calloc(1, sizeof *maps);
    if (maps != NULL) {
        maps->opened = calloc(nranks, sizeof *maps->opened);
        maps->seen = calloc(nranks, sizeof *maps->seen);
    }
    return maps != NULL && maps->opened != NULL && maps->seen != NULL
               ? TUTTI_OK : tutti_fail(TUTTI_ERR_SYSTEM, "no memory for maps of %zu ranks", nranks);
}

void tutti_cuda_maps_destroy(struct tutti_cuda_gpu *gpu)
{
    struct tutti_cuda_maps *maps = gpu->maps;

    if (maps == NULL)
        return;
    for (int rank = 0; maps->opened != NULL && rank < gpu->args.nranks; rank++)
        for (int i = 0; i < ENTRIES; i++)
            tutti_gpumem_free(gpu->cuda, &maps->opened[rank][i]);
    free(maps->opened);
    free(maps->seen);
    free(maps);
    gpu->maps = NULL;
}

/* ---- this rank's catalog --------------------------------------------------------------------- */

/* Returns true if allocation `serial` is among the allocations of the process. */
static bool is_listed(const struct tutti_gpumem_allocation *parts, size_t count, uint64_t serial)
{
    for (size_t i = 0; i < count; i++)
        if (parts[i].serial == serial)
            return true;
    return false;
}

/* Returns true if this rank's catalog has an entry for allocation `serial`. */
static bool has_serial(const struct tutti_cuda_maps *maps, uint64_t serial)
{
    for (int i = 0; i < ENTRIES; i++)
        if (maps->mine[i].serial == serial)
            return true;
    return false;
}

/* There is always a free entry, because at most the oldest ENTRIES allocations are listed, and
 * the allocations that are already listed are among them. */
static int find_free_entry(struct tutti_cuda_maps *maps)
{
    while (maps->mine[maps->turn].serial != 0)
        maps->turn = (maps->turn + 1) % ENTRIES;
    return maps->turn;
}

/* Lists an allocation in this rank's catalog. */
static void list_allocation(struct tutti_cuda_gpu *gpu, const struct tutti_gpumem_allocation *part)
{
    struct tutti_cuda_maps *maps = gpu->maps;
    struct catalog *catalog = catalog_of(gpu, gpu->args.rank);
    uint32_t number = ++maps->last;
    int at = find_free_entry(maps);
    struct entry *entry = &catalog->entries[at];
    uint64_t token[TOKEN_WORDS];

    maps->turn = (at + 1) % ENTRIES;
    memcpy(token, &part->token, sizeof token);
    maps->mine[at] = *part;
    maps->numbers[at] = number;
    /* release: a reader that sees a word of the rest sees the zero before it; pairs with
     * read_entry */
    tutti_store_release(&entry->number, 0);
    tutti_store_release(&entry->begin, part->begin);
    for (int i = 0; i < TOKEN_WORDS; i++)
        tutti_store_release(&entry->token[i], token[i]);
    tutti_store_release(&entry->has_descriptor, part->fd >= 0 ? 1 : 0);
    tutti_store_release(&entry->number, number);
    tutti_store_release(&catalog->last, number);
}

/* Frees entry `at` of this rank's catalog. */
static void unlist_allocation(struct tutti_cuda_gpu *gpu, int at)
{
    gpu->maps->mine[at].serial = 0;
    /* release: pairs with the acquire in read_entry */
    tutti_store_release(&catalog_of(gpu, gpu->args.rank)->entries[at].number, 0);
}

/* Collects copies of the descriptors of all entries that some peer has not acknowledged. Returns
 * false if this process has no room for all of them. */
static bool collect_descriptors(const struct tutti_cuda_maps *maps,
                                struct tutti_board_notice *notice)
{
    bool has_all = true;

    for (int i = 0; i < ENTRIES; i++) {
        int fd;

        if (maps->mine[i].serial == 0 || maps->mine[i].fd < 0 || maps->numbers[i] <= maps->granted)
            continue;
        fd = tutti_gpumem_list_descriptor(maps->mine[i].serial);
        if (fd >= 0) {
            notice->numbers[notice->count] = maps->numbers[i];
            notice->fds[notice->count++] = fd;
        } else if (errno != ENOENT) { /* if it was freed meanwhile, the next call removes it */
            tutti_message_record("copy a descriptor: %s", strerror(errno));
            has_all = false;
        }
    }
    return has_all;
}

/* Shows these descriptors on this rank's board. If they cannot all be shown, the next call tries
 * again. */
static void update_board(struct tutti_cuda_gpu *gpu)
{
    struct tutti_cuda_maps *maps = gpu->maps;
    struct tutti_board_notice notice = {.count = 0};
    bool was_behind = maps->is_board_behind, has_all;

    if (gpu->board.near_fd < 0)
        return;
    has_all = collect_descriptors(maps, &notice);
    maps->is_board_behind = tutti_board_show(&gpu->board, &notice) != TUTTI_OK || !has_all;
    tutti_board_close_copies(&notice);
    if (maps->is_board_behind && !was_behind)
        tutti_log(TUTTI_LOG_INFO, "rank %d shows its buffers later: %s", gpu->args.rank,
                  tutti_message_last());
}

/* Removes freed allocations from the catalog, and then lists new allocations, oldest first, while
 * there is room. */
static void update_entries(struct tutti_cuda_gpu *gpu)
{
    struct tutti_gpumem_allocation parts[ENTRIES];
    struct tutti_cuda_maps *maps = gpu->maps;
    size_t count = tutti_gpumem_list_get(gpu->args.device, !gpu->is_one_process, parts, ENTRIES);

    for (int i = 0; i < ENTRIES; i++)
        if (maps->mine[i].serial != 0 && !is_listed(parts, count, maps->mine[i].serial))
            unlist_allocation(gpu, i);
    for (size_t i = 0; i < count; i++)
        if (!has_serial(maps, parts[i].serial))
            list_allocation(gpu, &parts[i]);
}

/* Brings the catalog and the board up to date. Peers look again whenever `changes` has grown, so it
 * grows last. */
static void update_catalog(struct tutti_cuda_gpu *gpu)
{
    struct tutti_cuda_maps *maps = gpu->maps;
    struct catalog *catalog = catalog_of(gpu, gpu->args.rank);
    uint64_t generation = tutti_gpumem_list_generation();
    bool has_changed = maps->generation != generation;

    if (!has_changed && !maps->is_board_behind)
        return;
    if (has_changed)
        update_entries(gpu);
    update_board(gpu);
    maps->generation = generation;
    if (has_changed || !maps->is_board_behind)
        /* release: pairs with the acquire in read_catalog */
        tutti_store_release(&catalog->changes, catalog->changes + 1);
}

/* Returns true if some peer cannot use the memory of entry `at`. The result is valid once the
 * number of the entry is granted. */
static bool is_refused(const struct tutti_cuda_maps *maps, int at)
{
    return (maps->refused >> at & 1) != 0;
}

/* Logs the allocations that all peers have acknowledged since the last time. */
static void log_granted(const struct tutti_cuda_gpu *gpu, uint32_t granted_before)
{
    const struct tutti_cuda_maps *maps = gpu->maps;

    for (int i = 0; i < ENTRIES; i++) {
        const struct tutti_gpumem_allocation *part = &maps->mine[i];

        if (part->serial != 0 && maps->numbers[i] > granted_before &&
            maps->numbers[i] <= maps->granted)
            tutti_log(TUTTI_LOG_DEBUG,
                      "rank %d: %s ranks can access the %zu bytes at %p directly",
                      gpu->args.rank, is_refused(maps, i) ? "not all" : "all", part->size_bytes,
                      (void *)(uintptr_t)part->begin);
    }
}

/* Reads the answers of all peers to this rank's catalog. */
static void read_answers(struct tutti_cuda_gpu *gpu)
{
    struct tutti_cuda_maps *maps = gpu->maps;
    uint32_t before = maps->granted, least = maps->last, refused = 0;

    for (int rank = 0; rank < gpu->args.nranks; rank++) {
        uint64_t answer;

        if (rank == gpu->args.rank)
            continue;
        /* acquire: pairs with the release in read_catalog */
        answer = tutti_load_acquire(&catalog_of(gpu, rank)->answers[gpu->args.rank]);
        refused |= (uint32_t)answer;
        least = answer >> 32 < least ? (uint32_t)(answer >> 32) : least;
    }
    maps->granted = least;
    maps->refused = refused;
    if (least == before)
        return;
    if (least == maps->last)
        update_board(gpu); /* no peer needs a descriptor any more */
    log_granted(gpu, before);
}

/* ---- the catalogs of peers ------------------------------------------------------------------- */

/* Copies an entry of a peer's catalog. Returns false if the entry is free or is being changed. */
static bool read_entry(const struct entry *shown, struct entry *ret_entry)
{
    /* All loads acquire: they pair with the releases in list_allocation. */
    ret_entry->number = tutti_load_acquire(&shown->number);
    ret_entry->begin = tutti_load_acquire(&shown->begin);
    for (int i = 0; i < TOKEN_WORDS; i++)
        ret_entry->token[i] = tutti_load_acquire(&shown->token[i]);
    ret_entry->has_descriptor = tutti_load_acquire(&shown->has_descriptor);
    return ret_entry->number != 0 && tutti_load_acquire(&shown->number) == ret_entry->number;
}

/* Opens an entry of a rank in this process. The address is the same there, but each device must be
 * allowed to use the memory. */
static int admit_entry(const struct tutti_cuda_gpu *gpu, int rank, const struct entry *entry,
                       const struct tutti_gpumem_token *token, tutti_cu_address *ret_address)
{
    struct tutti_gpumem memory = {.address = entry->begin, .size_bytes = token->size_bytes,
                                  .kind = token->kind, .fd = -1};

    if (memory.kind == TUTTI_GPUMEM_PLAIN && !tutti_cuda_may_access(gpu, gpu->args.rank, rank))
        return tutti_note(TUTTI_ERR_DEVICE, "its context is not its GPU's primary context");
    if (gpu->records[rank].device != gpu->args.device)
        TUTTI_TRY(tutti_gpumem_admit(gpu->cuda, &memory, gpu->args.device));
    *ret_address = entry->begin;
    return TUTTI_OK;
}

/* Opens the memory of a peer's entry. *memory is the mapping if the peer is in another process.
 * TUTTI_AGAIN: the peer has not shown the descriptor yet. */
static int open_entry(struct tutti_cuda_gpu *gpu, int rank, const struct entry *entry,
                      const struct tutti_board_notice *notice, struct tutti_gpumem *memory,
                      tutti_cu_address *ret_address)
{
    struct tutti_gpumem_token token;
    int fd = -1;

    memcpy(&token, entry->token, sizeof token);
    if (tutti_cuda_is_in_process(gpu, rank))
        return admit_entry(gpu, rank, entry, &token, ret_address);
    if (entry->has_descriptor != 0)
        TUTTI_TRY(tutti_cuda_board_find(gpu, rank, entry->number, notice, &fd));
    TUTTI_TRY(tutti_gpumem_open(gpu->cuda, gpu->args.device, &token, fd, memory));
    *ret_address = memory->address;
    return TUTTI_OK;
}

/* Writes the address into the table of peers, where kernels look it up. */
static int write_map(const struct tutti_cuda_gpu *gpu, int rank, uint32_t map,
                     tutti_cu_address address)
{
    uint64_t value = address;
    tutti_cu_address at = gpu->peers_at + (size_t)rank * sizeof(struct tutti_kernel_peer) +
                          offsetof(struct tutti_kernel_peer, maps) + map * sizeof value;

    return tutti_cuda_copy_and_wait(gpu, at, (tutti_cu_address)(uintptr_t)&value, sizeof value);
}

/* Maps the memory of a peer's entry `at`, if the entry has changed. Memory that cannot be opened is
 * not an error, because its owner learns of it and does not offer the memory. Lowers *last to the
 * number before the entry if it cannot be read yet. */
static int map_entry(struct tutti_cuda_gpu *gpu, int rank, int at,
                     const struct tutti_board_notice *notice, uint32_t *last)
{
    struct tutti_cuda_maps *maps = gpu->maps;
    struct tutti_gpumem *opened = &maps->opened[rank][at];
    uint32_t bit = UINT32_C(1) << at;
    tutti_cu_address address = 0;
    struct entry entry;
    int rc;

    if (!read_entry(&catalog_of(gpu, rank)->entries[at], &entry))
        entry.number = 0;
    if (entry.number == maps->seen[rank][at])
        return TUTTI_OK;
    maps->seen[rank][at] = entry.number;
    maps->failed[rank] &= ~bit;
    tutti_gpumem_free(gpu->cuda, opened);
    if (entry.number == 0)
        return TUTTI_OK;
    rc = open_entry(gpu, rank, &entry, notice, opened, &address);
    if (rc == TUTTI_AGAIN) {
        maps->seen[rank][at] = 0;
        *last = entry.number <= *last ? (uint32_t)entry.number - 1 : *last;
        return TUTTI_OK;
    }
    if (rc != TUTTI_OK) {
        maps->failed[rank] |= bit;
        tutti_log(TUTTI_LOG_INFO, "rank %d cannot access memory of rank %d's GPU directly: %s",
                  gpu->args.rank, rank, tutti_message_last());
        return TUTTI_OK;
    }
    return write_map(gpu, rank, (uint32_t)at + 1, address);
}

/* Maps the new allocations of a peer, and answers its catalog. */
static int read_catalog(struct tutti_cuda_gpu *gpu, int rank)
{
    struct tutti_cuda_maps *maps = gpu->maps;
    const struct catalog *theirs = catalog_of(gpu, rank);
    /* Both acquire: they pair with the releases in update_catalog and list_allocation. Entries and
     * the board are read after them. */
    uint32_t changes = tutti_load_acquire(&theirs->changes);
    uint32_t last = tutti_load_acquire(&theirs->last);
    struct tutti_board_notice notice;
    int rc = TUTTI_OK;

    if (changes == maps->learned[rank])
        return TUTTI_OK;
    tutti_cuda_board_read(gpu, rank, &notice);
    for (int i = 0; i < ENTRIES && rc == TUTTI_OK; i++)
        rc = map_entry(gpu, rank, i, &notice, &last);
    tutti_board_close_copies(&notice);
    TUTTI_TRY(rc);
    maps->learned[rank] = changes;
    /* release: pairs with the acquire in read_answers */
    tutti_store_release(&catalog_of(gpu, gpu->args.rank)->answers[rank],
                        (uint64_t)last << 32 | maps->failed[rank]);
    return TUTTI_OK;
}

int tutti_cuda_maps_refresh(struct tutti_cuda_gpu *gpu)
{
    if (gpu->maps == NULL)
        return TUTTI_OK;
    update_catalog(gpu);
    for (int rank = 0; rank < gpu->args.nranks; rank++)
        TUTTI_TRY(read_catalog(gpu, rank));
    if (gpu->maps->granted < gpu->maps->last)
        read_answers(gpu);
    return TUTTI_OK;
}

/* ---- offers ---------------------------------------------------------------------------------- */

/* Returns true for plain device memory. Such memory is accessible if access between contexts is
 * enabled. Memory of pools and virtual memory have access rights of their own, which the driver
 * does not tell. */
static bool is_plain(const struct tutti_cuda_gpu *gpu, const void *buffer)
{
    int is_plain = 0;
    int attributes[] = {TUTTI_CU_POINTER_IS_LEGACY_IPC_CAPABLE};
    void *values[] = {&is_plain};

    return gpu->cuda->pointer_attributes(1, attributes, values,
                                         (tutti_cu_address)(uintptr_t)buffer) ==
               TUTTI_CU_SUCCESS && is_plain;
}

/* A buffer must lie within one allocation. It may span several allocations, for example if virtual
 * memory was mapped side by side, but peers map each allocation at an unrelated address. */
static void find_entry(const struct tutti_cuda_gpu *gpu, uint64_t address, size_t size_bytes,
                       uint32_t *ret_map, uint64_t *ret_offset)
{
    const struct tutti_cuda_maps *maps = gpu->maps;

    for (uint32_t i = 0; maps != NULL && i < ENTRIES; i++) {
        const struct tutti_gpumem_allocation *part = &maps->mine[i];
        uint64_t offset = address - part->begin;

        if (part->serial == 0 || maps->numbers[i] > maps->granted || is_refused(maps, (int)i) ||
            offset >= part->size_bytes || size_bytes > part->size_bytes - offset)
            continue;
        *ret_map = i + 1;
        *ret_offset = offset;
    }
}

void tutti_cuda_locate(const struct tutti_cuda_gpu *gpu, const void *buffer, size_t size_bytes,
                       uint32_t *ret_map, uint64_t *ret_offset)
{
    uint64_t address = (uint64_t)(uintptr_t)buffer;

    *ret_map = TUTTI_KERNEL_NOT_MAPPED;
    *ret_offset = 0;
    if (buffer == NULL || !gpu->all_reach_all)
        return;
    if (gpu->is_all_open && (gpu->is_one_device || is_plain(gpu, buffer))) {
        *ret_map = 0;
        *ret_offset = address;
        return;
    }
    find_entry(gpu, address, size_bytes, ret_map, ret_offset);
}
