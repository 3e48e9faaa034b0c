/* SPDX-License-Identifier: Apache-2.0
 * The exchange over an embedder's own all-gather. Only this exchange may block, because it calls
 * code of the embedder. */
#include "base/system.h"
#include "bootstrap/exchange.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

struct callback {
    struct tutti_bootstrap base;
    tutti_allgather_fn allgather;
    void *context;
};

/* A rank's record in the first round. */
struct introduction {
    uint8_t nranks[4];
    uint8_t rank[4];
    uint8_t secret[TUTTI_SECRET_BYTES]; /* random; rank 0's becomes the communicator's */
};

static int call(struct callback *callback, const void *mine, size_t size, void *all)
{
    int answer = callback->allgather(callback->context, mine, all, size);

    if (answer != 0)
        return tutti_fail(TUTTI_ERR_REMOTE, "the caller's own all-gather failed with %d on rank %d",
                          answer, callback->base.rank);
    return TUTTI_OK;
}

/* All ranks check the same table, so either all of them fail or none does. */
static int check_introductions(const struct tutti_bootstrap *boot,
                               const struct introduction *everybody)
{
    for (int i = 0; i < boot->nranks; i++) {
        uint32_t nranks = tutti_frame_get_u32(everybody[i].nranks);
        uint32_t rank = tutti_frame_get_u32(everybody[i].rank);

        if (nranks != (uint32_t)boot->nranks)
            return tutti_fail(TUTTI_ERR_USAGE,
                              "ranks disagree on nranks: rank %d says %d, rank %u says %u",
                              boot->rank, boot->nranks, rank, nranks);
        if (rank != (uint32_t)i)
            return tutti_fail(TUTTI_ERR_USAGE,
                              "the caller's all-gather gives rank %u's input in place %d; it must "
                              "order them by rank, and each rank needs a number of its own",
                              rank, i);
    }
    return TUTTI_OK;
}

static int introduce(struct callback *callback)
{
    struct introduction mine;
    struct introduction *everybody = calloc((size_t)callback->base.nranks, sizeof *everybody);
    int rc;

    if (everybody == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %d ranks", callback->base.nranks);
    tutti_frame_put_u32(mine.nranks, (uint32_t)callback->base.nranks);
    tutti_frame_put_u32(mine.rank, (uint32_t)callback->base.rank);
    tutti_random_bytes(mine.secret, sizeof mine.secret);
    TUTTI_TRY_OR(free_table, rc, call(callback, &mine, sizeof mine, everybody));
    TUTTI_TRY_OR(free_table, rc, check_introductions(&callback->base, everybody));
    memcpy(callback->base.secret, everybody[0].secret, TUTTI_SECRET_BYTES);

free_table:
    sodium_memzero(everybody, (size_t)callback->base.nranks * sizeof *everybody);
    sodium_memzero(&mine, sizeof mine);
    free(everybody);
    return rc;
}

static int callback_allgather(struct tutti_bootstrap *boot, const void *mine, size_t size,
                              void *all)
{
    TUTTI_TRY(tutti_exchange_check_size(size));
    return call((struct callback *)boot, mine, size, all);
}

static int callback_wait_fd(struct tutti_bootstrap *boot)
{
    (void)boot;
    return -1;
}

static void callback_destroy(struct tutti_bootstrap *boot, const char *reason)
{
    (void)reason; /* the embedder's all-gather cannot pass it on */
    free(boot);
}

static const struct tutti_bootstrap_ops callback_ops = {
    .name = "callback",
    .allgather = callback_allgather,
    .wait_fd = callback_wait_fd,
    .destroy = callback_destroy,
};

int tutti_bootstrap_from_callback(tutti_allgather_fn allgather, void *context, int nranks, int rank,
                                  uint64_t deadline_ns, struct tutti_bootstrap **ret_boot)
{
    struct callback *callback;
    int rc;

    TUTTI_TRY(tutti_exchange_check(nranks, rank));
    if (allgather == NULL)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "the all-gather callback is NULL");
    callback = calloc(1, sizeof *callback);
    if (callback == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a bootstrap");
    callback->base = (struct tutti_bootstrap){
        .ops = &callback_ops, .nranks = nranks, .rank = rank, .deadline_ns = deadline_ns};
    callback->allgather = allgather;
    callback->context = context;
    rc = introduce(callback);
    if (rc != TUTTI_OK) {
        free(callback);
        return rc;
    }
    *ret_boot = &callback->base;
    return TUTTI_OK;
}
