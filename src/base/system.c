/* SPDX-License-Identifier: Apache-2.0
 * Provides randomness and pauses, from the system or from its replacement. */
#include "base/system.h"

#include "base/clock.h"
#include "base/result.h"

#include <pthread.h>
#include <sodium.h>
#include <time.h>

const struct tutti_system *tutti_system_replacement;

static pthread_once_t sodium_once = PTHREAD_ONCE_INIT;

static void start(void)
{
    /* sodium_init fails only if the system has no source of randomness. Secrets could then be
     * guessed, so the process must not go on. */
    tutti_assert(sodium_init() >= 0);
}

void tutti_sodium_init(void)
{
    pthread_once(&sodium_once, start);
}

void tutti_random_bytes(void *bytes, size_t size)
{
    const struct tutti_system *replaced = tutti_system_replaced();

    tutti_sodium_init();
    if (replaced != NULL)
        replaced->random_bytes(replaced->context, bytes, size);
    else
        randombytes_buf(bytes, size);
}

void tutti_pause_ns(uint64_t pause_ns)
{
    const struct tutti_system *replaced = tutti_system_replaced();

    if (replaced != NULL)
        replaced->pause_ns(replaced->context, pause_ns);
    else
        nanosleep(&(struct timespec){.tv_sec = (time_t)(pause_ns / TUTTI_NS_PER_S),
                                     .tv_nsec = (long)(pause_ns % TUTTI_NS_PER_S)},
                  NULL);
}

int tutti_system_timeout_ms(int timeout_ms)
{
    if (tutti_system_replaced() == NULL)
        return timeout_ms;
    tutti_pause_ns((uint64_t)timeout_ms * TUTTI_NS_PER_MS);
    return 0;
}
