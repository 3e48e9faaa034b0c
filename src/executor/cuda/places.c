/* SPDX-License-Identifier: Apache-2.0
 * Which of a device's places the communicators of this process have: blocks that run at once.
 * Kernels that wait for each other must all have one, whatever else waits there. So a communicator
 * takes half of what others have left, at most, and the next finds half of the rest; a launch never
 * takes more. What it turns out not to need goes back. */
#include "executor/cuda/private.h"

#include "base/log.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A communicator gets so much of a device even if others have it all: that is a few blocks, and
 * they rarely all run at once. */
enum { LEAST_PART = 32 };

struct tutti_gpu_claim {
    uint8_t secret[TUTTI_SECRET_BYTES], uuid[TUTTI_CU_UUID_BYTES]; /* of whom, on what */
    uint32_t places, total;
    uint32_t nranks, nsettled; /* that hold it; that know what they need */
    struct tutti_gpu_claim *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tutti_gpu_claim *claims;

/* Of this communicator on this device, else NULL; and what all have there. */
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
    /* The last of them: until then another still counts on what was offered first. */
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
