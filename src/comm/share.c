/* SPDX-License-Identifier: Apache-2.0
 * Shares the bytes of files that rank 0 has read with all ranks, down a binomial tree. */
#include "comm/share.h"

#include "base/result.h"
#include "transport/fabric.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the offset of an item in share->bytes, or, for TUTTI_SHARE_ITEM_COUNT, their size. */
static size_t item_at(const struct tutti_share *share, int item)
{
    size_t at = 0;

    for (int i = 0; i < item; i++)
        at += share->size_bytes[i] > 0 ? share->size_bytes[i] + 1 : 0;
    return at;
}

int tutti_share_offer(struct tutti_share *share, enum tutti_share_item item, const void *bytes,
                      size_t size_bytes)
{
    size_t before = item_at(share, (int)item), after;
    char *grown;

    if (size_bytes == 0)
        return TUTTI_OK;
    if (size_bytes > TUTTI_SHARE_ITEM_MAX)
        return tutti_fail(TUTTI_ERR_USAGE,
                          "%zu bytes to share among the ranks, which is more than %zu; give a "
                          "smaller file",
                          size_bytes, TUTTI_SHARE_ITEM_MAX);
    tutti_assert(share->size_bytes[item] == 0);
    after = item_at(share, TUTTI_SHARE_ITEM_COUNT) - before;
    grown = realloc(share->bytes, before + size_bytes + 1 + after);
    if (grown == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %zu bytes to share", size_bytes);
    memmove(grown + before + size_bytes + 1, grown + before, after);
    memcpy(grown + before, bytes, size_bytes);
    grown[before + size_bytes] = '\0';
    share->bytes = grown;
    share->size_bytes[item] = size_bytes;
    return TUTTI_OK;
}

void tutti_share_fail(struct tutti_share *share, int rc, const char *message)
{
    if (share->failure != TUTTI_OK)
        return;
    share->failure = rc;
    tutti_message_copy(share->message, sizeof share->message, message);
}

/* ---- the header ------------------------------------------------------------------------- */

struct head {
    int32_t failure; /* TUTTI_OK, or the error of rank 0 */
    uint32_t sizes[TUTTI_SHARE_ITEM_COUNT];
    char message[TUTTI_SHARE_MESSAGE_BYTES];
};

_Static_assert(sizeof(struct head) <= TUTTI_SHARE_HEAD_BYTES,
               "the header has room for the sizes of all items");

void tutti_share_head(const struct tutti_share *share, uint8_t ret_head[TUTTI_SHARE_HEAD_BYTES])
{
    struct head head = {.failure = share->failure};

    for (int i = 0; i < TUTTI_SHARE_ITEM_COUNT; i++)
        head.sizes[i] = (uint32_t)share->size_bytes[i];
    memcpy(head.message, share->message, sizeof head.message);
    memset(ret_head, 0, TUTTI_SHARE_HEAD_BYTES);
    memcpy(ret_head, &head, sizeof head);
}

/* Returns child number `index` of `rank` in the binomial tree, or -1. The children are rank + 1,
 * rank + 2, rank + 4, and so on, with steps below the lowest set bit of `rank`. */
static int child_of(int nranks, int rank, int index)
{
    int64_t step = (int64_t)1 << index;

    if (rank != 0 && step >= (rank & -rank))
        return -1;
    return rank + step < nranks ? (int)(rank + step) : -1;
}

/* Returns the rank from which `rank` receives: `rank` without its lowest bit. `rank` must not be
 * 0. */
static int parent_of(int rank)
{
    return rank & (rank - 1);
}

static int count_children(int nranks, int rank)
{
    int count = 0;

    while (child_of(nranks, rank, count) >= 0)
        count++;
    return count;
}

/* Returns the code of rank 0's failure, or TUTTI_ERR_REMOTE if this version does not know it. */
static int as_failure(int32_t code)
{
    switch (code) {
    case TUTTI_ERR_DEVICE: return TUTTI_ERR_DEVICE;
    case TUTTI_ERR_SYSTEM: return TUTTI_ERR_SYSTEM;
    case TUTTI_ERR_INTERNAL: return TUTTI_ERR_INTERNAL;
    case TUTTI_ERR_ARGUMENT: return TUTTI_ERR_ARGUMENT;
    case TUTTI_ERR_USAGE: return TUTTI_ERR_USAGE;
    case TUTTI_ERR_TIMEOUT: return TUTTI_ERR_TIMEOUT;
    default: return TUTTI_ERR_REMOTE;
    }
}

int tutti_share_expect(struct tutti_share *share, const uint8_t bytes[TUTTI_SHARE_HEAD_BYTES],
                       int nranks, int rank)
{
    struct head head;

    memcpy(&head, bytes, sizeof head);
    if (head.failure != TUTTI_OK) {
        head.message[sizeof head.message - 1] = '\0';
        return tutti_fail(as_failure(head.failure), "rank 0: %s", head.message);
    }
    for (int i = 0; i < TUTTI_SHARE_ITEM_COUNT; i++) {
        if (head.sizes[i] > TUTTI_SHARE_ITEM_MAX)
            return tutti_fail(TUTTI_ERR_REMOTE,
                              "rank 0 announces %u bytes to share; use one "
                              "version of the library on all ranks",
                              head.sizes[i]);
        share->size_bytes[i] = head.sizes[i];
    }
    share->total_bytes = item_at(share, TUTTI_SHARE_ITEM_COUNT);
    if (share->total_bytes == 0)
        return TUTTI_OK;
    share->passed = calloc((size_t)count_children(nranks, rank) + 1, sizeof *share->passed);
    if (share->passed == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %zu shared bytes", share->total_bytes);
    if (rank == 0) {
        share->arrived = share->total_bytes;
        return TUTTI_OK;
    }
    share->bytes = malloc(share->total_bytes);
    if (share->bytes == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %zu shared bytes", share->total_bytes);
    return TUTTI_OK;
}

/* ---- the bytes ------------------------------------------------------------------------ */

static int receive(struct tutti_share *share, struct tutti_fabric *fabric, int rank)
{
    struct tutti_conn *conn;
    size_t got;

    if (share->arrived == share->total_bytes)
        return TUTTI_OK;
    TUTTI_TRY(tutti_fabric_connect(fabric, parent_of(rank), TUTTI_CHANNEL_COLLECTIVE, &conn));
    do {
        TUTTI_TRY(conn->ops->recv(conn, share->bytes + share->arrived,
                                  share->total_bytes - share->arrived, &got));
        share->arrived += got;
    } while (got > 0 && share->arrived < share->total_bytes);
    return share->arrived == share->total_bytes ? TUTTI_OK : TUTTI_AGAIN;
}

static int pass_on(struct tutti_share *share, struct tutti_fabric *fabric, int child,
                   size_t *passed)
{
    struct tutti_conn *conn;
    size_t taken;

    if (*passed == share->total_bytes)
        return TUTTI_OK;
    TUTTI_TRY(tutti_fabric_connect(fabric, child, TUTTI_CHANNEL_COLLECTIVE, &conn));
    do {
        TUTTI_TRY(conn->ops->send(conn, share->bytes + *passed, share->arrived - *passed, &taken));
        *passed += taken;
    } while (taken > 0 && *passed < share->arrived);
    return *passed == share->total_bytes ? TUTTI_OK : TUTTI_AGAIN;
}

static int move_on(struct tutti_share *share, struct tutti_fabric *fabric, int nranks, int rank)
{
    int rc = receive(share, fabric, rank), child;

    if (rc != TUTTI_OK && rc != TUTTI_AGAIN)
        return rc;
    for (int i = 0; (child = child_of(nranks, rank, i)) >= 0; i++) {
        int child_rc = pass_on(share, fabric, child, &share->passed[i]);

        if (child_rc != TUTTI_OK && child_rc != TUTTI_AGAIN)
            return child_rc;
        rc = child_rc == TUTTI_AGAIN ? TUTTI_AGAIN : rc;
    }
    return rc;
}

int tutti_share_progress(struct tutti_share *share, struct tutti_fabric *fabric, int nranks,
                         int rank)
{
    int rc = TUTTI_AGAIN;

    if (share->total_bytes == 0)
        return TUTTI_OK;
    /* The connection may copy a large item straight from a peer's memory. Between enter and exit
     * the peer does not free that memory. */
    if (tutti_fabric_enter(fabric)) {
        rc = move_on(share, fabric, nranks, rank);
        if (!tutti_fabric_exit(fabric) && rc == TUTTI_OK)
            rc = TUTTI_AGAIN;
    }
    if (rc == TUTTI_AGAIN)
        TUTTI_TRY(tutti_fabric_check(fabric));
    return rc;
}

const char *tutti_share_bytes(const struct tutti_share *share, enum tutti_share_item item,
                              size_t *ret_size_bytes)
{
    *ret_size_bytes = share->size_bytes[item];
    return *ret_size_bytes > 0 ? share->bytes + item_at(share, (int)item) : NULL;
}

void tutti_share_fini(struct tutti_share *share)
{
    free(share->bytes);
    free(share->passed);
    *share = (struct tutti_share){.bytes = NULL};
}
