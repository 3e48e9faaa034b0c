/* SPDX-License-Identifier: Apache-2.0
 * Replaces struct tutti_system (base/system.h) for a test. Its time passes only when the test lets
 * it pass, or when the library pauses. Its randomness follows from a seed. */
#ifndef TESTS_SUPPORT_SIMULATED_H
#define TESTS_SUPPORT_SIMULATED_H

#include "base/system.h"

#include <stdint.h>

struct simulated {
    struct tutti_system system;
    uint64_t now_ns;
    uint64_t state; /* of the generator */
    uint64_t draws; /* number of draws of random bytes */
    uint64_t sum;   /* hash of the random bytes and of the times */
};

/* Replaces the system by this one until simulated_end. */
void simulated_begin(struct simulated *simulated, uint64_t seed);
void simulated_end(void);

/* Lets time pass. */
void simulated_pass(struct simulated *simulated, uint64_t ns);

#endif
