/* SPDX-License-Identifier: Apache-2.0
 * Lets a simulation replace the system's time, pauses and randomness. One thread can then drive
 * many ranks through hours of deadlines in a moment, and repeat a run from its seed. */
#ifndef TUTTI_BASE_SYSTEM_H
#define TUTTI_BASE_SYSTEM_H

#include <stddef.h>
#include <stdint.h>

struct tutti_system {
    /* Returns the nanoseconds of a clock that never goes back. Required. */
    uint64_t (*now_ns)(void *context);

    /* Let about `pause_ns` nanoseconds pass on the replaced clock. The caller has nothing to do
     * meanwhile. The library also calls this where it would otherwise wait for an event with a
     * time limit. Required. */
    void (*pause_ns)(void *context, uint64_t pause_ns);

    /* Fill `bytes` with random bytes. Required. */
    void (*random_bytes)(void *context, void *bytes, size_t size);

    void *context;
};

/* The replacement; NULL if the system is not replaced. */
extern const struct tutti_system *tutti_system_replacement;

/* Replace the system for the whole process, or stop doing so (NULL). Call it only while no other
 * thread is in the library and no communicator exists, because times from before and after the call
 * cannot be compared. */
static inline void tutti_system_replace(const struct tutti_system *system)
{
    tutti_system_replacement = system;
}

/* Returns the replacement, or NULL. If there is one, nothing may sleep by the system's own
 * clock. */
static inline const struct tutti_system *tutti_system_replaced(void)
{
    return __builtin_expect(tutti_system_replacement != NULL, 0) ? tutti_system_replacement : NULL;
}

/* Initialize libsodium. Call it before the first use of libsodium, any number of times.
 * Thread-safe. */
void tutti_sodium_init(void);

/* Fill `bytes` with cryptographically secure random bytes. Thread-safe. */
void tutti_random_bytes(void *bytes, size_t size);

/* Sleep for about `pause_ns` nanoseconds. */
void tutti_pause_ns(uint64_t pause_ns);

/* Call it before a wait for an event, such as poll(2), and pass the result to the wait. Returns
 * `timeout_ms`. If the system is replaced, this function lets that time pass and returns 0. */
int tutti_system_timeout_ms(int timeout_ms);

#endif
