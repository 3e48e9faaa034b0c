/* SPDX-License-Identifier: Apache-2.0
 * Counts the bytes that cross between the memories of devices, if SIMCUDA_TRAFFIC is 1. A device
 * that loads from another's memory counts as a receiver, and one that stores there as a sender.
 * Copies of the driver count, too. Tests read the counts by cuSimTraffic. */
#ifndef TUTTI_TESTS_SIMCUDA_TRAFFIC_H
#define TUTTI_TESTS_SIMCUDA_TRAFFIC_H

#include "simcuda/cuda/state.h"

enum { SIM_TRAFFIC_SIDES = SIM_DEVICES + 1 }; /* the host's memory is number 0, device d is d + 1 */

/* `from` and `to` are ordinals, or -1 for the host. Thread-safe. Does nothing unless traffic is
 * counted. */
void sim_traffic_add(int from, int to, size_t size_bytes);

/* Gives the bytes from each side to each other, and starts anew. Exported, for tests. */
__attribute__((visibility("default"))) void cuSimTraffic(
    uint64_t ret_bytes[SIM_TRAFFIC_SIDES][SIM_TRAFFIC_SIDES]);

#endif
