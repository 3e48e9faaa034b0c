/* SPDX-License-Identifier: Apache-2.0
 * Time and randomness under a test's control. */
#include "support/simulated.h"

#include "base/clock.h"

#include <string.h>

static uint64_t now(void *context)
{
    return ((struct simulated *)context)->now_ns;
}

static void pause_for(void *context, uint64_t pause_ns)
{
    simulated_pass(context, pause_ns);
}

/* splitmix64 */
static uint64_t draw(struct simulated *simulated)
{
    uint64_t word = simulated->state += UINT64_C(0x9e3779b97f4a7c15);

    word = (word ^ word >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    word = (word ^ word >> 27) * UINT64_C(0x94d049bb133111eb);
    return word ^ word >> 31;
}

static void random_bytes(void *context, void *bytes, size_t size)
{
    struct simulated *simulated = context;
    uint8_t *to = bytes;

    simulated->draws++;
    for (size_t i = 0; i < size; i++)
        to[i] = (uint8_t)draw(simulated);
    simulated->sum =
        (simulated->sum ^ draw(simulated) ^ simulated->now_ns ^ size) * UINT64_C(0x100000001b3);
}

void simulated_begin(struct simulated *simulated, uint64_t seed)
{
    *simulated = (struct simulated){.system = {.now_ns = now,
                                               .pause_ns = pause_for,
                                               .random_bytes = random_bytes,
                                               .context = simulated},
                                    .now_ns = TUTTI_NS_PER_S,
                                    .state = seed};
    tutti_system_replace(&simulated->system);
}

void simulated_end(void)
{
    tutti_system_replace(NULL);
}

void simulated_pass(struct simulated *simulated, uint64_t ns)
{
    simulated->now_ns += ns;
}
