/* SPDX-License-Identifier: Apache-2.0
 * Opens the areas of the other ranks, so that this rank's kernels can use them. The areas of ranks
 * in this process only need access from this device. The areas of other processes are passed as
 * descriptors or handles, and mapped. Passes the boards in the same way, by which ranks later show
 * each other the descriptors of buffers. */
#include "executor/cuda/private.h"

#include "base/fork.h"
#include "base/log.h"
#include "transport/gpu_memory/loan.h"
#include "transport/shm/pass.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The driver may round the size of an area up by at most this many bytes. */
#define MOST_ROUNDING_BYTES ((size_t)1 << 30)

/* The values of gpu->step while areas or boards are passed. */
enum step {
    STEP_BEGIN,   /* begin the transfers of descriptors */
    STEP_PASSING, /* continue the transfers */
    STEP_OPEN,    /* open what has arrived */
};

/* Returns the token by which other processes open an area of `owner`. */
static const struct tutti_gpumem_token *token_of(const struct tutti_cuda_gpu *gpu, int owner,
                                                 bool is_host)
{
    return is_host ? &gpu->records[owner].host_token : &gpu->records[owner].own_token;
}

/* ---- descriptors ----------------------------------------------------------------------- */

/* Returns true if another process needs a file descriptor to open the memory. */
static bool needs_descriptor(const struct tutti_gpumem_token *token)
{
    return token->kind == TUTTI_GPUMEM_VIRTUAL || token->kind == TUTTI_GPUMEM_HOST;
}

static bool are_in_one_process(const struct tutti_cuda_gpu *gpu, int rank, int owner)
{
    return tutti_identity_same_process(&gpu->records[rank].identity, &gpu->records[owner].identity);
}

/* Counts the members of the transfer of `owner`'s descriptor: the owner, which is member 0, and
 * all ranks of other processes of its host. Returns this rank's index among them; UINT32_MAX: it is
 * not one of them. */
static uint32_t count_members(const struct tutti_cuda_gpu *gpu, int owner, uint32_t *ret_nmembers)
{
    uint32_t nmembers = 1, me = owner == gpu->args.rank ? 0 : UINT32_MAX;

    for (int rank = 0; rank < gpu->args.nranks; rank++) {
        if (are_in_one_process(gpu, rank, owner) || tutti_cuda_is_far(gpu, rank, owner))
            continue;
        if (rank == gpu->args.rank)
            me = nmembers;
        nmembers++;
    }
    *ret_nmembers = nmembers;
    return me;
}

/* The kinds of transfers. Each owner passes one descriptor of a kind. */
enum kind { KIND_AREA, KIND_HOST_AREA, KIND_BOARD };
static const char *const kind_names[] = {"gpu area", "gpu host area", "gpu board"};

/* Returns the descriptor that this rank passes; -1: there is none, for the reason in the thread's
 * last message. */
static int make_descriptor(struct tutti_cuda_gpu *gpu, enum kind kind)
{
    struct tutti_gpumem_token token;
    int fd = -1;

    if (kind != KIND_BOARD)
        return tutti_gpumem_export(gpu->cuda, kind == KIND_HOST_AREA ? &gpu->host : &gpu->own,
                                   &token, &fd) == TUTTI_OK ? fd : -1;
    tutti_message_record("it has no board");
    if (gpu->board.far_fd < 0)
        return -1;
    tutti_fork_hold();
    fd = tutti_fork_release(fcntl(gpu->board.far_fd, F_DUPFD_CLOEXEC, 0));
    if (fd < 0)
        tutti_message_record("a copy of a socket: %s", strerror(errno));
    return fd;
}

/* Begins the transfer of a descriptor of `owner`, if this rank takes part. */
static int begin_pass(struct tutti_cuda_gpu *gpu, int owner, enum kind kind)
{
    struct tutti_pass_args args = {.fd = -1,
                                   .deadline_ns = tutti_pass_deadline(gpu->args.deadline_ns)};

    args.me = count_members(gpu, owner, &args.nmembers);
    if (args.me == UINT32_MAX || args.nmembers < 2)
        return TUTTI_OK;
    tutti_secret_derive(gpu->secret, kind_names[kind], (uint64_t)owner, args.secret);
    /* If there is no descriptor, the others must not wait, so fd -1 tells them. */
    if (args.me == 0)
        args.fd = make_descriptor(gpu, kind);
    return tutti_pass_create(&args, &gpu->passes[owner]);
}

/* Continues all transfers, of `what`. A rank that does not get a descriptor does not reach its
 * owner, and the other ranks continue. TUTTI_AGAIN: some transfers are not complete. */
static int continue_passes(struct tutti_cuda_gpu *gpu, const char *what)
{
    int left = 0;

    for (int owner = 0; owner < gpu->args.nranks; owner++) {
        int rc, fd = -1;

        if (gpu->passes[owner] == NULL)
            continue;
        rc = tutti_pass_step(gpu->passes[owner], &fd);
        if (rc == TUTTI_AGAIN) {
            left++;
            continue;
        }
        if (rc != TUTTI_OK)
            tutti_log(TUTTI_LOG_INFO, "%s of rank %d's GPU has not arrived: %s", what, owner,
                      tutti_message_last());
        tutti_pass_destroy(gpu->passes[owner]);
        gpu->passes[owner] = NULL;
        gpu->passed_fds[owner] = fd;
    }
    return left == 0 ? TUTTI_OK : TUTTI_AGAIN;
}

/* ---- contexts ---------------------------------------------------------------------------- */

bool tutti_cuda_has_primary(const struct tutti_cuda_gpu *gpu)
{
    struct tutti_cu_context *primary;

    if (gpu->holds_primary)
        return true;
    if (gpu->cuda->primary_retain(&primary, gpu->args.device) != TUTTI_CU_SUCCESS)
        return false;
    gpu->cuda->primary_release(gpu->args.device);
    return primary == gpu->context;
}

bool tutti_cuda_may_access(const struct tutti_cuda_gpu *gpu, int from, int owner)
{
    const struct tutti_cuda_record *theirs = &gpu->records[owner];

    /* Access between devices is enabled for primary contexts alone. */
    return theirs->context == gpu->records[from].context ||
           (theirs->is_primary && theirs->device != gpu->records[from].device);
}

/* ---- opening ---------------------------------------------------------------------------- */

/* Gives this rank's device access to the area of a rank of this process. */
static int admit(struct tutti_cuda_gpu *gpu, int owner, bool is_host, tutti_cu_address *ret_address)
{
    const struct tutti_cuda_record *record = &gpu->records[owner];
    struct tutti_gpumem memory = {.address = record->own_address,
                                  .size_bytes = record->own_token.size_bytes,
                                  .kind = record->own_token.kind,
                                  .fd = -1};

    if (!is_host && memory.kind == TUTTI_GPUMEM_PLAIN &&
        !tutti_cuda_may_access(gpu, gpu->args.rank, owner))
        return tutti_note(TUTTI_ERR_DEVICE, "its context is not its GPU's primary context");
    if (!is_host && record->device != gpu->args.device) {
        struct tutti_cu_context *theirs;
        int can = 0, code;

        if (gpu->cuda->can_access_peer(&can, gpu->args.device, record->device) !=
                TUTTI_CU_SUCCESS ||
            !can)
            return tutti_note(TUTTI_ERR_DEVICE, "GPU %d cannot reach GPU %d", gpu->args.device,
                              record->device);
        /* Access is enabled once for each pair of devices in a process, and never disabled, because
         * the application may rely on it too. */
        code = gpu->cuda->primary_retain(&theirs, record->device);
        if (code == TUTTI_CU_SUCCESS) {
            code = gpu->cuda->enable_peer(theirs, 0);
            gpu->cuda->primary_release(record->device);
        }
        if (code != TUTTI_CU_SUCCESS && code != TUTTI_CU_PEER_ACCESS_ALREADY_ENABLED)
            return tutti_note(TUTTI_ERR_DEVICE, "access from GPU %d to GPU %d: %s",
                              gpu->args.device, record->device, tutti_cu_error(gpu->cuda, code));
        TUTTI_TRY(tutti_gpumem_admit(gpu->cuda, &memory, gpu->args.device));
    }
    TUTTI_TRY(tutti_gpumem_loan_join(is_host ? record->host_address : record->own_address));
    *ret_address = is_host ? record->host_address : record->own_address;
    return TUTTI_OK;
}

/* All areas have the same size, except that drivers may round it up. */
static bool has_right_size(const struct tutti_cuda_gpu *gpu, const struct tutti_gpumem_token *token)
{
    size_t wanted = tutti_cuda_area_bytes(&gpu->grid.layout);

    return token->size_bytes >= wanted && token->size_bytes - wanted < MOST_ROUNDING_BYTES;
}

/* Opens the area of `owner`, unless it is open already. */
static int open_area(struct tutti_cuda_gpu *gpu, int owner, bool is_host)
{
    struct tutti_cuda_neighbor *neighbor = &gpu->neighbors[owner];
    struct tutti_gpumem *memory = is_host ? &neighbor->host : &neighbor->own;
    tutti_cu_address *at = is_host ? &neighbor->host_at : &neighbor->own_at;
    const struct tutti_gpumem_token *token = token_of(gpu, owner, is_host);

    if (token->kind == TUTTI_GPUMEM_NONE || *at != 0)
        return TUTTI_OK;
    if (owner == gpu->args.rank) {
        *at = is_host ? gpu->host.address : gpu->own.address;
        return TUTTI_OK;
    }
    if (!has_right_size(gpu, token))
        return tutti_note(TUTTI_ERR_DEVICE, "its area has %llu bytes instead of %zu",
                          (unsigned long long)token->size_bytes,
                          tutti_cuda_area_bytes(&gpu->grid.layout));
    if (tutti_cuda_is_in_process(gpu, owner))
        return admit(gpu, owner, is_host, at);
    if (needs_descriptor(token) && gpu->passed_fds[owner] < 0)
        return tutti_note(TUTTI_ERR_DEVICE, "no descriptor of its memory has arrived");
    TUTTI_TRY(tutti_gpumem_open(gpu->cuda, gpu->args.device, token, gpu->passed_fds[owner],
                                memory));
    *at = memory->address;
    return TUTTI_OK;
}

static void close_fds(struct tutti_cuda_gpu *gpu)
{
    for (int owner = 0; gpu->passed_fds != NULL && owner < gpu->args.nranks; owner++) {
        if (gpu->passed_fds[owner] >= 0)
            close(gpu->passed_fds[owner]);
        gpu->passed_fds[owner] = -1;
    }
}

int tutti_cuda_share_areas(struct tutti_cuda_gpu *gpu, bool is_host)
{
    if (gpu->step == STEP_BEGIN) {
        for (int owner = 0; owner < gpu->args.nranks; owner++)
            if (needs_descriptor(token_of(gpu, owner, is_host)))
                TUTTI_TRY(begin_pass(gpu, owner, is_host ? KIND_HOST_AREA : KIND_AREA));
        gpu->step = STEP_PASSING;
    }
    if (gpu->step == STEP_PASSING) {
        TUTTI_TRY(continue_passes(gpu, "memory"));
        gpu->step = STEP_OPEN;
    }
    for (int owner = 0; owner < gpu->args.nranks; owner++)
        if (!tutti_cuda_is_far(gpu, gpu->args.rank, owner) &&
            open_area(gpu, owner, is_host) != TUTTI_OK)
            tutti_log(TUTTI_LOG_INFO, "rank %d does not reach the %s of rank %d: %s",
                      gpu->args.rank, is_host ? "host memory" : "GPU", owner,
                      tutti_message_last());
    close_fds(gpu);
    gpu->step = STEP_BEGIN;
    return TUTTI_OK;
}

/* ---- boards ------------------------------------------------------------------------------ */

/* Makes this rank's board, and begins to pass all boards. A failure is only logged. Without a
 * board, the buffers of a rank that need a descriptor go through windows. */
static void begin_boards(struct tutti_cuda_gpu *gpu)
{
    if (tutti_board_open(&gpu->board) != TUTTI_OK)
        tutti_log(TUTTI_LOG_INFO, "rank %d cannot show buffers to other processes: %s",
                  gpu->args.rank, tutti_message_last());
    for (int owner = 0; owner < gpu->args.nranks; owner++)
        if (begin_pass(gpu, owner, KIND_BOARD) != TUTTI_OK)
            tutti_log(TUTTI_LOG_INFO, "rank %d does not take part in passing the board of rank %d: "
                      "%s", gpu->args.rank, owner, tutti_message_last());
}

int tutti_cuda_share_boards(struct tutti_cuda_gpu *gpu)
{
    if (gpu->is_one_process || gpu->maps == NULL)
        return TUTTI_OK;
    if (gpu->step == STEP_BEGIN) {
        begin_boards(gpu);
        gpu->step = STEP_PASSING;
    }
    TUTTI_TRY(continue_passes(gpu, "the board"));
    for (int owner = 0; owner < gpu->args.nranks; owner++) {
        if (owner == gpu->args.rank)
            continue;
        gpu->board_fds[owner] = gpu->passed_fds[owner];
        gpu->passed_fds[owner] = -1;
    }
    close_fds(gpu);
    gpu->step = STEP_BEGIN;
    return TUTTI_OK;
}

/* ---- closing ----------------------------------------------------------------------------- */

/* Closes both areas of `owner`. */
static void close_areas(struct tutti_cuda_gpu *gpu, int owner)
{
    struct tutti_cuda_neighbor *neighbor = &gpu->neighbors[owner];

    if (owner != gpu->args.rank) {
        tutti_gpumem_loan_end(neighbor->own_at);
        tutti_gpumem_loan_end(neighbor->host_at);
    }
    tutti_gpumem_free(gpu->cuda, &neighbor->own);
    tutti_gpumem_free(gpu->cuda, &neighbor->host);
}

int tutti_cuda_lend(const struct tutti_cuda_gpu *gpu, const struct tutti_gpumem *memory)
{
    return tutti_gpumem_loan_begin(
        &(struct tutti_gpumem_loan_terms){.cuda = gpu->cuda,
                                          .context = gpu->context,
                                          .device = gpu->args.device,
                                          .holds_primary = gpu->holds_primary},
        memory);
}

void tutti_cuda_take_back(const struct tutti_cuda_gpu *gpu, struct tutti_gpumem *memory)
{
    if (!tutti_gpumem_loan_end(memory->address))
        tutti_gpumem_free(gpu->cuda, memory);
    *memory = (struct tutti_gpumem){.kind = TUTTI_GPUMEM_NONE, .fd = -1};
}

void tutti_cuda_unshare(struct tutti_cuda_gpu *gpu)
{
    close_fds(gpu);
    for (int owner = 0; owner < gpu->args.nranks; owner++) {
        if (gpu->passes != NULL)
            tutti_pass_destroy(gpu->passes[owner]);
        if (gpu->neighbors != NULL)
            close_areas(gpu, owner);
    }
    free(gpu->passes);
    free(gpu->passed_fds);
    free(gpu->neighbors);
    gpu->passes = NULL;
    gpu->passed_fds = NULL;
    gpu->neighbors = NULL;
}
