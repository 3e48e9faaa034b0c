/* SPDX-License-Identifier: Apache-2.0
 * The bootstrap of a communicator of one rank. Its all-gather copies the rank's own record. */
#include "bootstrap/exchange.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

static int alone_allgather(struct tutti_bootstrap *boot, const void *mine, size_t size, void *all)
{
    (void)boot;
    TUTTI_TRY(tutti_exchange_check_size(size));
    if (size > 0)
        memmove(all, mine, size);
    return TUTTI_OK;
}

static int alone_wait_fd(struct tutti_bootstrap *boot)
{
    (void)boot;
    return -1; /* no round ever waits */
}

static void alone_destroy(struct tutti_bootstrap *boot, const char *reason)
{
    (void)reason;
    free(boot);
}

static const struct tutti_bootstrap_ops alone_ops = {
    .name = "alone",
    .allgather = alone_allgather,
    .wait_fd = alone_wait_fd,
    .destroy = alone_destroy,
};

int tutti_bootstrap_alone(struct tutti_bootstrap **ret_boot)
{
    struct tutti_bootstrap *boot = calloc(1, sizeof *boot);

    if (boot == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a bootstrap");
    *boot = (struct tutti_bootstrap){
        .ops = &alone_ops, .nranks = 1, .rank = 0, .deadline_ns = TUTTI_NEVER};
    tutti_random_bytes(boot->secret, sizeof boot->secret);
    *ret_boot = boot;
    return TUTTI_OK;
}
