/* SPDX-License-Identifier: Apache-2.0
 * When a wait has become so long that somebody should be told: after TUTTI_WAIT_WARN_MS, and again
 * each time its length has doubled. */
#ifndef TUTTI_BASE_LONG_WAIT_H
#define TUTTI_BASE_LONG_WAIT_H

#include <stdbool.h>
#include <stdint.h>

/* Zeroed when a wait begins, and whenever it turns out that something has moved. */
struct tutti_long_wait {
    uint64_t since_ns; /* of the first look; 0: none yet */
    uint32_t lines;    /* said so far */
};

/* Look. True when a line is due; then *ret_seconds is how long the wait has been. */
bool tutti_long_wait_is_due(struct tutti_long_wait *wait, uint64_t now_ns, double *ret_seconds);

#endif
