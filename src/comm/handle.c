/* SPDX-License-Identifier: Apache-2.0
 * Handles: small objects that outlive their communicators, so that the use of a destroyed
 * communicator is an error instead of a crash. Released handles are reused in the order of their
 * release, and only while more than REST are released. So stale handles stay recognizable for long.
 *
 * A handle also keeps threads apart. Calls that change a communicator go through its gate, one at
 * a time. Short calls that any thread may make are counted as visits. Gate and count are part of
 * the handle, because a thread that comes too late must be refused without touching freed memory.
 *
 * Handles are allocated in a few blocks, each twice as large as the one before. So an address that
 * never was a handle is recognized without reading the memory there. */
#include "comm/comm.h"

#include "base/fence.h"
#include "base/hot.h"

#include <sched.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

enum { MAGIC_LIVE = 0x54434f4d, MAGIC_DEAD = 0x44454144 };
enum { REST = 64 };                      /* handles that stay released */
enum { BLOCKS = 24, FIRST_BLOCK = 128 }; /* the most blocks; handles of the first one */

struct tuttiComm {
    alignas(TUTTI_CACHE_LINE) struct tutti_gate gate;
    struct tutti_comm *comm;
    struct tuttiComm *next; /* released after this one */
    uint32_t magic;    /* stores release, paired with the acquire in is_live */
    uint32_t visitors; /* threads in short calls; atomic */
    uint32_t fork_generation;
    int rank;
};
_Static_assert(sizeof(struct tuttiComm) == TUTTI_CACHE_LINE, "an entry touches one line");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tuttiComm *oldest, *newest; /* released handles, first in first out */
static size_t released;
static struct tuttiComm *blocks[BLOCKS]; /* stores release, paired with the acquire in is_handle */
static size_t used_in_last;              /* handles in use of the newest block */
static int block_count;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static uint32_t fork_generation;
static uint32_t last_serial;
static pthread_once_t fence_once = PTHREAD_ONCE_INIT;
static bool gates_may_be_owned;

static void note_fork(void)
{
    fork_generation++;
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, note_fork);
}

uint32_t tutti_comm_fork_generation(void)
{
    pthread_once(&fork_once, watch_forks);
    return fork_generation;
}

static void join_fences(void)
{
    gates_may_be_owned = tutti_fence_join();
}

static struct tuttiComm *take_released(void)
{
    struct tuttiComm *handle = oldest;

    if (released <= REST)
        return NULL;
    oldest = handle->next;
    released--;
    return handle;
}

static size_t block_size(int block)
{
    return (size_t)FIRST_BLOCK << block;
}

static struct tuttiComm *take_new(void)
{
    if (block_count == 0 || used_in_last == block_size(block_count - 1)) {
        size_t size_bytes = block_size(block_count) * sizeof(struct tuttiComm);
        struct tuttiComm *block;

        if (block_count == BLOCKS)
            return NULL;
        block = aligned_alloc(TUTTI_CACHE_LINE, size_bytes);
        if (block == NULL)
            return NULL;
        memset(block, 0, size_bytes);
        /* release: pairs with the acquire in is_handle; the block is zeroed */
        tutti_store_release(&blocks[block_count], block);
        block_count++;
        used_in_last = 0;
    }
    return &blocks[block_count - 1][used_in_last++];
}

static bool is_handle(const struct tuttiComm *handle)
{
    for (int i = 0; i < BLOCKS; i++) {
        /* acquire: pairs with the release in take_new */
        uintptr_t base = (uintptr_t)tutti_load_acquire(&blocks[i]);
        uintptr_t offset = (uintptr_t)handle - base;

        if (base == 0)
            return false;
        if (offset < block_size(i) * sizeof *handle)
            return offset % sizeof *handle == 0;
    }
    return false;
}

tuttiComm_t tutti_handle_create(struct tutti_comm *comm)
{
    struct tuttiComm *handle;

    pthread_once(&fence_once, join_fences);
    pthread_mutex_lock(&lock);
    handle = take_released();
    if (handle == NULL)
        handle = take_new();
    if (handle != NULL) {
        tutti_gate_init(&handle->gate, gates_may_be_owned);
        handle->comm = comm;
        handle->rank = comm->rank;
        handle->fork_generation = tutti_comm_fork_generation();
        comm->handle = handle;
        comm->serial = ++last_serial;
        /* release: pairs with the acquire in is_live; the handle is complete */
        tutti_store_release(&handle->magic, (uint32_t)MAGIC_LIVE);
    }
    pthread_mutex_unlock(&lock);
    return handle;
}

void tutti_handle_close(tuttiComm_t handle)
{
    /* The fence pairs with the one in tutti_handle_visit: either a visitor sees that the handle is
     * dead, or this thread sees the visitor and waits for it. */
    tutti_store_release(&handle->magic, (uint32_t)MAGIC_DEAD);
    tutti_fence_full();
    while (tutti_load_acquire(&handle->visitors) != 0)
        sched_yield();
}

void tutti_handle_release(tuttiComm_t handle)
{
    pthread_mutex_lock(&lock);
    /* release: pairs with the acquires of the magic; earlier uses are over */
    tutti_store_release(&handle->magic, (uint32_t)MAGIC_DEAD);
    handle->comm = NULL;
    handle->next = NULL;
    if (released++ == 0)
        oldest = handle;
    else
        newest->next = handle;
    newest = handle;
    pthread_mutex_unlock(&lock);
}

/* True if the communicator was made by this process and is not destroyed. */
static bool is_live(const struct tuttiComm *handle)
{
    /* acquire: pairs with the release in tutti_handle_create */
    return is_handle(handle) && tutti_load_acquire(&handle->magic) == MAGIC_LIVE &&
           handle->fork_generation == fork_generation;
}

static int fail_handle(const struct tuttiComm *handle, const char *function)
{
    uint32_t magic;

    tutti_log_enter(NULL);
    if (handle == NULL)
        return tutti_fail(TUTTI_ERR_ARGUMENT,
                          "%s: comm is NULL; pass a communicator that tuttiCommInit* has made",
                          function);
    /* acquire: pairs with the releases of the magic */
    magic = is_handle(handle) ? tutti_load_acquire(&handle->magic) : 0;
    if (magic != MAGIC_LIVE && magic != MAGIC_DEAD)
        return tutti_fail(TUTTI_ERR_ARGUMENT,
                          "%s: comm is not a communicator; pass one that tuttiCommInit* has made",
                          function);
    if (magic == MAGIC_DEAD)
        return tutti_fail(TUTTI_ERR_ARGUMENT,
                          "%s: comm has been destroyed; do not use it after tuttiCommDestroy",
                          function);
    return tutti_fail(TUTTI_ERR_USAGE,
                      "%s: comm (rank %d) was made before fork; a child must make its own",
                      function, handle->rank);
}

int tutti_handle_visit(tuttiComm_t handle, const char *function, struct tutti_comm **ret_comm)
{
    if (!is_live(handle))
        return fail_handle(handle, function);
    /* The fence pairs with the one in tutti_handle_close, and the acquire with its release. */
    (void)tutti_fetch_add(&handle->visitors, 1);
    tutti_fence_full();
    if (tutti_load_acquire(&handle->magic) != MAGIC_LIVE) {
        tutti_handle_unvisit(handle);
        return fail_handle(handle, function);
    }
    tutti_log_enter(&handle->comm->scope);
    *ret_comm = handle->comm;
    return TUTTI_OK;
}

void tutti_handle_unvisit(tuttiComm_t handle)
{
    /* release: pairs with the acquire in tutti_handle_close; the visit is over */
    uint32_t visitors = tutti_fetch_add(&handle->visitors, -1u);

    tutti_assert(visitors > 0);
}

static int fail_occupied(const struct tuttiComm *handle, const char *function)
{
    const char *occupant = tutti_gate_occupant(&handle->gate);

    return tutti_fail(TUTTI_ERR_USAGE,
                      "%s: another thread is inside %s on the same communicator (rank %d); one "
                      "thread at a time may use a communicator: wait for that call to return, or "
                      "make a communicator for each thread",
                      function, occupant != NULL ? occupant : "a call", handle->rank);
}

TUTTI_HOT
int tutti_handle_enter(tuttiComm_t handle, const char *function, struct tutti_comm **ret_comm)
{
    const char **pass;

    if (!is_live(handle))
        return fail_handle(handle, function);
    pass = tutti_gate_enter(&handle->gate, function);
    if (pass == NULL)
        return fail_occupied(handle, function);
    /* The thread that was inside before may have destroyed the communicator.
     * acquire: pairs with the release in tutti_handle_close */
    if (tutti_load_acquire(&handle->magic) != MAGIC_LIVE) {
        tutti_gate_leave(pass);
        return fail_handle(handle, function);
    }
    handle->comm->pass = pass;
    tutti_log_enter(&handle->comm->scope);
    *ret_comm = handle->comm;
    return TUTTI_OK;
}

int tutti_comm_enter(struct tutti_comm *comm, const char *function)
{
    return tutti_handle_enter(comm->handle, function, &comm);
}

void tutti_comm_leave(struct tutti_comm *comm)
{
    tutti_gate_leave(comm->pass);
}

const char **tutti_comm_try_enter(struct tutti_comm *comm, const char *function)
{
    return tutti_gate_enter(&comm->handle->gate, function);
}

static int fail_unready(struct tutti_comm *comm, int state, const char *function)
{
    switch (state) {
    case TUTTI_COMM_FAILED: return tutti_comm_error(comm);
    case TUTTI_COMM_FORMING:
        return tutti_fail(TUTTI_ERR_USAGE,
                          "%s: comm (rank %d) is still being formed; call tuttiCommGetAsyncError "
                          "until it is not tuttiInProgress",
                          function, comm->rank);
    default:
        return tutti_fail(TUTTI_ERR_USAGE, "%s: comm (rank %d) is finalized; only destroy it",
                          function, comm->rank);
    }
}

int tutti_handle_enter_ready(tuttiComm_t handle, const char *function,
                             struct tutti_comm **ret_comm)
{
    struct tutti_comm *comm;
    int state, rc;

    TUTTI_TRY(tutti_handle_enter(handle, function, &comm));
    state = tutti_comm_state(comm);
    if (state != TUTTI_COMM_READY) {
        rc = fail_unready(comm, state, function);
        tutti_comm_leave(comm);
        return rc;
    }
    *ret_comm = comm;
    return TUTTI_OK;
}
