/* SPDX-License-Identifier: Apache-2.0
 * Reads monotonic time and computes deadlines. A simulator or a test can replace the clock
 * (system.h). */
#ifndef TUTTI_BASE_CLOCK_H
#define TUTTI_BASE_CLOCK_H

#include "base/system.h"

#include <stdint.h>
#include <time.h>

#define TUTTI_NS_PER_MS UINT64_C(1000000)
#define TUTTI_NS_PER_S UINT64_C(1000000000)
#define TUTTI_NEVER UINT64_MAX

/* Returns nanoseconds on the monotonic clock, or on the clock that replaces it (system.h). */
static inline uint64_t tutti_now_ns(void)
{
    const struct tutti_system *replaced = tutti_system_replaced();
    struct timespec now;

    if (replaced != NULL)
        return replaced->now_ns(replaced->context);
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * TUTTI_NS_PER_S + (uint64_t)now.tv_nsec;
}

/* Returns the time `timeout_ms` from now, on the clock of tutti_now_ns. Returns TUTTI_NEVER if
 * timeout_ms <= 0, which means no limit. */
static inline uint64_t tutti_deadline_ns(int64_t timeout_ms)
{
    return timeout_ms <= 0 ? TUTTI_NEVER : tutti_now_ns() + (uint64_t)timeout_ms * TUTTI_NS_PER_MS;
}

#endif
