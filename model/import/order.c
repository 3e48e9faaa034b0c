/* SPDX-License-Identifier: Apache-2.0
 * Sorts the steps of a rank, so that sends return to their original positions (order.h). */
#include "import/order.h"

#include "base/array.h"
#include "base/result.h"

#include <stdlib.h>

int tutti_import_order_note(struct tutti_import_order *order, uint32_t nsteps, uint32_t wished,
                            uint32_t event)
{
    TUTTI_TRY(TUTTI_ARRAY_RESERVE(order->stamps, nsteps, order->capacity, "steps to sort"));
    while (order->count < nsteps)
        order->stamps[order->count++] = (struct tutti_import_stamp){wished, event};
    return TUTTI_OK;
}

void tutti_import_order_fini(struct tutti_import_order *order)
{
    free(order->stamps);
    *order = (struct tutti_import_order){.stamps = NULL};
}

/* A step to sort, by its key and then by its index before. */
struct item {
    uint32_t key, index;
    struct tutti_step step;
};

static int compare(const void *a, const void *b)
{
    const struct item *one = a, *other = b;

    if (one->key != other->key)
        return one->key < other->key ? -1 : 1;
    return (one->index > other->index) - (one->index < other->index);
}

/* Finds the peers to which sorting would change the order of the sends. All sends to these peers
 * stay where they were emitted. `last_wished` is scratch. Both arrays are per peer, and zero at
 * first. */
static void find_swaps(const struct tutti_import_order *order,
                       const struct tutti_schedule *schedule, uint32_t *last_wished,
                       bool *ret_swaps)
{
    for (uint32_t i = 0; i < order->count; i++) {
        int32_t to = schedule->steps[i].to;

        if (to < 0)
            continue;
        ret_swaps[to] = ret_swaps[to] || order->stamps[i].wished < last_wished[to];
        last_wished[to] = order->stamps[i].wished;
    }
}

int tutti_import_order_apply(const struct tutti_import_order *order,
                             struct tutti_schedule *schedule)
{
    struct item *items = malloc((order->count + 1) * sizeof(*items));
    uint32_t *last_wished = calloc(schedule->nranks, sizeof(*last_wished));
    bool *swaps = calloc(schedule->nranks, sizeof(*swaps));
    int rc = TUTTI_OK;

    if (items == NULL || last_wished == NULL || swaps == NULL) {
        rc = tutti_fail(TUTTI_ERR_SYSTEM, "no memory to order %u steps", order->count);
        goto release;
    }
    find_swaps(order, schedule, last_wished, swaps);
    for (uint32_t i = 0; i < order->count; i++) {
        const struct tutti_step *step = &schedule->steps[i];
        bool stays = step->to < 0 || swaps[step->to];

        items[i] = (struct item){.key = stays ? order->stamps[i].event : order->stamps[i].wished,
                                 .index = i,
                                 .step = *step};
    }
    qsort(items, order->count, sizeof(*items), compare);
    for (uint32_t i = 0; i < order->count; i++)
        schedule->steps[i] = items[i].step;

release:
    free(items);
    free(last_wished);
    free(swaps);
    return rc;
}
