/* SPDX-License-Identifier: Apache-2.0
 * Divides the places of a device, the blocks that can run on it at once, among the communicators
 * of this process. Kernels that wait for each other must all have places, whatever other kernels
 * wait on the device. So a communicator gets at most half of the places that are left, which
 * leaves some for the next one, and its launches never use more. Places that it turns out not to
 * need become free. */
#include "executor/cuda/private.h"

#include "base/log.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A communicator gets at least a 32nd part of the device, even if others have all places. That is a
 * few blocks, and all communicators rarely run at once. */
enum { LEAST_PART = 32 };

struct tutti_gpu_claim {
    uint8_t secret[TUTTI_SECRET_BYTES], uuid[TUTTI_CU_UUID_BYTES]; /* communicator, device */
    uint32_t places, total;
    uint32_t nranks, nsettled; /* ranks that hold it; ranks that have settled */
    struct tutti_gpu_claim *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tutti_gpu_claim *claims;

/* Returns this communicator's claim on the device, or NULL. *ret_taken: places of all claims
 * there. */
static struct tutti_gpu_claim *find(const struct tutti_gpu *gpu, const uint8_t *uuid,
                                    uint32_t *ret_taken)
{
    struct tutti_gpu_claim *found = NULL;

    *ret_taken = 0;
    for (struct tutti_gpu_claim *claim = claims; claim != NULL; claim = claim->next) {
        if (memcmp(claim->uuid, uuid, sizeof claim->uuid) != 0)
            continue;
        *ret_taken += claim->places;
        if (memcmp(claim->secret, gpu->secret, sizeof claim->secret) == 0)
            found = claim;
    }
    return found;
}

static uint32_t fair_part(uint32_t total, uint32_t taken)
{
    uint32_t half = taken < total ? (total - taken + 1) / 2 : 0;
    uint32_t least = (total + LEAST_PART - 1) / LEAST_PART;

    return half > least ? half : least;
}

int tutti_gpu_places_claim(struct tutti_gpu *gpu, const uint8_t *uuid, uint32_t total,
                           uint32_t *ret_places)
{
    struct tutti_gpu_claim *claim;
    uint32_t taken;

    pthread_mutex_lock(&lock);
    claim = find(gpu, uuid, &taken);
    if (claim == NULL && (claim = calloc(1, sizeof *claim)) != NULL) {
        memcpy(claim->secret, gpu->secret, sizeof claim->secret);
        memcpy(claim->uuid, uuid, sizeof claim->uuid);
        claim->total = total;
        claim->places = fair_part(total, taken);
        claim->next = claims;
        claims = claim;
    }
    if (claim != NULL) {
        claim->nranks++;
        *ret_places = claim->places;
    }
    pthread_mutex_unlock(&lock);
    gpu->claim = claim;
    return claim != NULL ? TUTTI_OK
                         : tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a share of a GPU");
}

void tutti_gpu_places_settle(struct tutti_gpu *gpu, uint32_t places)
{
    struct tutti_gpu_claim *claim = gpu->claim;
    uint32_t taken, total = claim->total;

    pthread_mutex_lock(&lock);
    /* Only the last rank reduces the claim: until then others still rely on the number offered. */
    if (++claim->nsettled == claim->nranks)
        claim->places = places;
    find(gpu, claim->uuid, &taken);
    pthread_mutex_unlock(&lock);
    if (taken > total && gpu->args.rank == 0)
        tutti_log(TUTTI_LOG_INFO, "the communicators on GPU %d may use %u places of its %u: if all "
                  "of them run large calls at once, some may wait for others",
                  gpu->args.device, taken, total);
}

void tutti_gpu_places_leave(struct tutti_gpu *gpu)
{
    struct tutti_gpu_claim **at = &claims, *claim = gpu->claim;

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
