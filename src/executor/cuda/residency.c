/* SPDX-License-Identifier: Apache-2.0
 * Divides the blocks that can be resident on a device among the communicators of this process.
 *
 * The kernels of one call wait for each other, so all their blocks must be resident at once.
 * Waiting kernels of other communicators must not take the room that they need. So each
 * communicator claims a number of resident blocks, and its launches never use more. A claim takes
 * at most half of the blocks that are left, so that some remain for the next communicator. When all
 * ranks that hold the claim have said how many blocks they need (settle), the rest become free. */
#include "executor/cuda/private.h"

#include "base/log.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A communicator gets at least 1/32 of the device's blocks, even if others have claimed all. The
 * claims together then exceed the blocks of the device. This is acceptable, because 1/32 is only a
 * few blocks, and all communicators rarely run at once. */
enum { LEAST_PART_DIVISOR = 32 };

struct tutti_cuda_claim {
    /* `secret` identifies the communicator, and `uuid` identifies the device. */
    uint8_t secret[TUTTI_SECRET_BYTES], uuid[TUTTI_CU_UUID_BYTES];
    uint32_t blocks, total;    /* blocks claimed, and all that can be resident on the device */
    uint32_t nranks, nsettled; /* ranks that hold the claim, and ranks that have settled */
    struct tutti_cuda_claim *next;
};

/* The list of all claims of this process, guarded by `lock`. */
static struct tutti_cuda_claim *claims;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Returns this communicator's claim on the device, or NULL. *ret_taken is the number of blocks in
 * all claims on the device. */
static struct tutti_cuda_claim *find_claim(const struct tutti_cuda_gpu *gpu, const uint8_t *uuid,
                                           uint32_t *ret_taken)
{
    struct tutti_cuda_claim *found = NULL;

    *ret_taken = 0;
    for (struct tutti_cuda_claim *claim = claims; claim != NULL; claim = claim->next) {
        if (memcmp(claim->uuid, uuid, sizeof claim->uuid) != 0)
            continue;
        *ret_taken += claim->blocks;
        if (memcmp(claim->secret, gpu->secret, sizeof claim->secret) == 0)
            found = claim;
    }
    return found;
}

/* Returns the blocks that a new claim takes, if `taken` of the `total` blocks are claimed already.
 */
static uint32_t fair_part(uint32_t total, uint32_t taken)
{
    uint32_t half = taken < total ? (total - taken + 1) / 2 : 0;
    uint32_t least = (total + LEAST_PART_DIVISOR - 1) / LEAST_PART_DIVISOR;

    return half > least ? half : least;
}

int tutti_cuda_residency_claim(struct tutti_cuda_gpu *gpu, const uint8_t *uuid, uint32_t total,
                               uint32_t *ret_blocks)
{
    struct tutti_cuda_claim *claim;
    uint32_t taken;

    pthread_mutex_lock(&lock);
    claim = find_claim(gpu, uuid, &taken);
    if (claim == NULL && (claim = calloc(1, sizeof *claim)) != NULL) {
        memcpy(claim->secret, gpu->secret, sizeof claim->secret);
        memcpy(claim->uuid, uuid, sizeof claim->uuid);
        claim->total = total;
        claim->blocks = fair_part(total, taken);
        claim->next = claims;
        claims = claim;
    }
    if (claim != NULL) {
        claim->nranks++;
        *ret_blocks = claim->blocks;
    }
    pthread_mutex_unlock(&lock);
    gpu->claim = claim;
    return claim != NULL ? TUTTI_OK
                         : tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a claim on a GPU's blocks");
}

void tutti_cuda_residency_settle(struct tutti_cuda_gpu *gpu, uint32_t blocks)
{
    struct tutti_cuda_claim *claim = gpu->claim;
    uint32_t taken, total = claim->total;

    pthread_mutex_lock(&lock);
    /* Only the last rank reduces the claim. Until then other ranks rely on the whole claim. */
    if (++claim->nsettled == claim->nranks)
        claim->blocks = blocks;
    find_claim(gpu, claim->uuid, &taken);
    pthread_mutex_unlock(&lock);
    if (taken > total && gpu->args.rank == 0)
        tutti_log(TUTTI_LOG_INFO, "the communicators on GPU %d may use %u blocks, of which %u "
                  "can be resident: if all of them run large calls at once, some may wait for "
                  "others",
                  gpu->args.device, taken, total);
}

void tutti_cuda_residency_leave(struct tutti_cuda_gpu *gpu)
{
    struct tutti_cuda_claim **at = &claims, *claim = gpu->claim;

    if (claim == NULL)
        return;
    pthread_mutex_lock(&lock);
    if (--claim->nranks == 0) {
        while (*at != claim)
            at = &(*at)->next;
        *at = claim->next;
        free(claim);
    }
    pthread_mutex_unlock(&lock);
    gpu->claim = NULL;
}
