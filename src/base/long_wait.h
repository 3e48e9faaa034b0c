/* SPDX-License-Identifier: Apache-2.0
 * Decides when a long wait is worth a log line: after TUTTI_WAIT_WARN_MS, and again each time the
 * wait has doubled. */
#ifndef TUTTI_BASE_LONG_WAIT_H
#define TUTTI_BASE_LONG_WAIT_H

#include <stdbool.h>
#include <stdint.h>

/* State of one wait. The caller zeroes it when the wait begins, and after each progress. */
struct tutti_long_wait {
    uint64_t since_ns; /* time of the first check; 0: not yet checked */
    uint32_t lines;    /* number of log lines that were due so far */
};

/* Check the wait at time `now_ns` of tutti_now_ns(). True if a log line is due now; *ret_seconds is
 * then the length of the wait so far. Always false if TUTTI_WAIT_WARN_MS is 0. */
bool tutti_long_wait_is_due(struct tutti_long_wait *wait, uint64_t now_ns, double *ret_seconds);

#endif
