/* SPDX-License-Identifier: Apache-2.0
 * Monotonic time and deadlines. */
#ifndef TUTTI_BASE_CLOCK_H
#define TUTTI_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define TUTTI_NS_PER_MS UINT64_C(1000000)
#define TUTTI_NS_PER_S UINT64_C(1000000000)
#define TUTTI_NEVER UINT64_MAX

/* Nanoseconds on the monotonic clock. */
static inline uint64_t tutti_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * TUTTI_NS_PER_S + (uint64_t)now.tv_nsec;
}

/* The time `timeout_ms` from now, on the clock of tutti_now_ns. TUTTI_NEVER if timeout_ms <= 0,
 * which means no limit. */
static inline uint64_t tutti_deadline_ns(int64_t timeout_ms)
{
    return timeout_ms <= 0 ? TUTTI_NEVER : tutti_now_ns() + (uint64_t)timeout_ms * TUTTI_NS_PER_MS;
}

#endif
