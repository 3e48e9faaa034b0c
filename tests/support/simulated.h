/* SPDX-License-Identifier: Apache-2.0
 * A system for tests in which time passes only when the test says so, or when the library pauses,
 * and whose randomness follows from a seed. */
#ifndef TESTS_SUPPORT_SIMULATED_H
#define TESTS_SUPPORT_SIMULATED_H

#include "base/system.h"

#include <stdint.h>

struct simulated {
    struct tutti_system system;
    uint64_t now_ns;
    uint64_t state; /* of the generator */
    uint64_t draws,
        sum; /* how often random bytes were drawn, and a hash of them and of the times */
};

/* Replace the system by this one until simulated_end. */
void simulated_begin(struct simulated *simulated, uint64_t seed);
void simulated_end(void);

/* Let time pass. */
void simulated_pass(struct simulated *simulated, uint64_t ns);

#endif
