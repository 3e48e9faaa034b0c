/* SPDX-License-Identifier: Apache-2.0
 * What the library takes from the system that a simulation replaces: time, pauses, and randomness.
 * With these replaced, one thread can drive many ranks through hours of deadlines in no time, and
 * repeat a run from its seed. */
#ifndef TUTTI_BASE_SYSTEM_H
#define TUTTI_BASE_SYSTEM_H

#include <stddef.h>
#include <stdint.h>

struct tutti_system {
    /* Nanoseconds on a clock that never goes back. Required. */
    uint64_t (*now_ns)(void *context);

    /* Let time pass, about as much as is asked for. The caller has nothing to do meanwhile, or some
     * event ends its wait early where the system is not replaced. Required. */
    void (*pause_ns)(void *context, uint64_t pause_ns);

    /* Fill `bytes` with random bytes. Required. */
    void (*random_bytes)(void *context, void *bytes, size_t size);

    void *context;
};

/* What takes the system's place; NULL: nothing does. */
extern const struct tutti_system *tutti_system_replacement;

/* Replace the system for all of the process, or stop doing so (NULL). While no other thread is in
 * the library and no communicator lives: times of before and after do not go together. */
static inline void tutti_system_replace(const struct tutti_system *system)
{
    tutti_system_replacement = system;
}

/* Is it replaced? Then nothing may sleep by the system's own clock. */
static inline const struct tutti_system *tutti_system_replaced(void)
{
    return __builtin_expect(tutti_system_replacement != NULL, 0) ? tutti_system_replacement : NULL;
}

/* Before the first use of libsodium. Thread-safe. */
void tutti_sodium_init(void);

/* Fill `bytes` with cryptographically secure random bytes. Thread-safe. */
void tutti_random_bytes(void *bytes, size_t size);

/* Sleep for about that long. */
void tutti_pause_ns(uint64_t pause_ns);

/* How long a wait for an event may last by the system's clock: `timeout_ms`. If the system is
 * replaced, lets that time pass and returns 0. */
int tutti_wait_ms(int timeout_ms);

#endif
