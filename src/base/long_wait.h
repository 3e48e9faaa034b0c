/* SPDX-License-Identifier: Apache-2.0
 * Decides when a long wait is worth a log line: after TUTTI_WAIT_WARN_MS, and again each time the
 * wait has doubled. */
#ifndef TUTTI_BASE_LONG_WAIT_H
#define TUTTI_BASE_LONG_WAIT_H

#include <stdbool.h>
#include <stdint.h>

/* The caller zeroes it when a wait begins, and whenever there has been progress. */
struct tutti_long_wait {
    uint64_t since_ns; /* time of the first check; 0: not yet checked */
    uint32_t lines;    /* log lines due so far */
};

/* Check the wait at time `now_ns`. True if a log line is due now; then *ret_seconds is how long the
 * wait has been. Always false if TUTTI_WAIT_WARN_MS is 0. */
bool tutti_long_wait_is_due(struct tutti_long_wait *wait, uint64_t now_ns, double *ret_seconds);

#endif
