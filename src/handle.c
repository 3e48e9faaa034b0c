/* SPDX-License-Identifier: Apache-2.0
 * Handles: small objects that outlive their communicators, so that the use of a
 * destroyed one is an error and no crash. Released handles are used again, but
 * only after many others, so that stale ones stay recognisable for long.
 *
 * They lie in a few blocks, each twice as large as the one before, so that an address that never
 * was a handle is known without being looked at. */
#include "comm.h"

#include <stdlib.h>

enum { MAGIC_LIVE = 0x54434f4d, MAGIC_DEAD = 0x44454144, REST = 64 };
enum { BLOCKS = 24, FIRST_BLOCK = 128 };

struct tuttiComm {
    uint32_t magic;
    struct tutti_comm *comm;
    struct tuttiComm *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tuttiComm *oldest, *newest; /* released handles, first in first out */
static size_t released;
static struct tuttiComm *blocks[BLOCKS]; /* release: pairs with the acquire in is_handle */
static size_t used_in_last;              /* of the block begun last */
static int block_count;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static uint32_t fork_generation;
static uint32_t last_serial;

static void note_fork(void)
{
    fork_generation++;
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, note_fork);
}

uint32_t tutti_fork_generation(void)
{
    pthread_once(&fork_once, watch_forks);
    return fork_generation;
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
        struct tuttiComm *block;

        if (block_count == BLOCKS)
            return NULL;
        block = calloc(block_size(block_count), sizeof *block);
        if (block == NULL)
            return NULL;
        tutti_store_release(&blocks[block_count], block);
        block_count++;
        used_in_last = 0;
    }
    return &blocks[block_count - 1][used_in_last++];
}

static bool is_handle(const struct tuttiComm *handle)
{
    for (int i = 0; i < BLOCKS; i++) {
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

    pthread_mutex_lock(&lock);
    handle = take_released();
    if (handle == NULL)
        handle = take_new();
    if (handle != NULL) {
        *handle = (struct tuttiComm){.magic = MAGIC_LIVE, .comm = comm};
        comm->fork_generation = tutti_fork_generation();
        comm->serial = ++last_serial;
    }
    pthread_mutex_unlock(&lock);
    return handle;
}

void tutti_handle_release(tuttiComm_t handle)
{
    pthread_mutex_lock(&lock);
    handle->magic = MAGIC_DEAD;
    handle->comm = NULL;
    handle->next = NULL;
    if (released++ == 0)
        oldest = handle;
    else
        newest->next = handle;
    newest = handle;
    pthread_mutex_unlock(&lock);
}

/* A communicator of this process that was not destroyed? */
static bool is_live(const struct tuttiComm *handle)
{
    return is_handle(handle) && handle->magic == MAGIC_LIVE &&
           handle->comm->fork_generation == fork_generation;
}

static int fail_handle(const struct tuttiComm *handle, const char *function)
{
    if (handle == NULL)
        return tutti_fail(TUTTI_ERR_ARGUMENT,
                          "%s: comm is NULL; pass a communicator that tuttiCommInit* has made",
                          function);
    if (!is_handle(handle) || (handle->magic != MAGIC_LIVE && handle->magic != MAGIC_DEAD))
        return tutti_fail(TUTTI_ERR_ARGUMENT,
                          "%s: comm is not a communicator; pass one that tuttiCommInit* has made",
                          function);
    if (handle->magic == MAGIC_DEAD)
        return tutti_fail(TUTTI_ERR_ARGUMENT,
                          "%s: comm has been destroyed; do not use it after tuttiCommDestroy",
                          function);
    return tutti_fail(TUTTI_ERR_USAGE,
                      "%s: comm (rank %d) was made before fork; a child must make its own",
                      function, handle->comm->rank);
}

int tutti_handle_get(tuttiComm_t handle, const char *function, struct tutti_comm **ret_comm)
{
    if (!is_live(handle))
        return fail_handle(handle, function);
    *ret_comm = handle->comm;
    return TUTTI_OK;
}

int tutti_handle_ready(tuttiComm_t handle, const char *function, struct tutti_comm **ret_comm)
{
    struct tutti_comm *comm;
    int state;

    TUTTI_TRY(tutti_handle_get(handle, function, &comm));
    state = tutti_load_acquire(&comm->state);
    *ret_comm = comm;
    if (state == TUTTI_COMM_READY)
        return TUTTI_OK;
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
