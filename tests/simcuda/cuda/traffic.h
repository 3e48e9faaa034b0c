/* SPDX-License-Identifier: Apache-2.0
 * Counts the bytes that cross between the memories of devices, if SIMCUDA_TRAFFIC names a file. At
 * its end each process appends a line "FROM TO BYTES" for each pair; -1 stands for the host's
 * memory. A device that loads from another's memory counts as a receiver, and one that stores there
 * as a sender. Copies of the driver count, too. */
#ifndef TUTTI_TESTS_SIMCUDA_TRAFFIC_H
#define TUTTI_TESTS_SIMCUDA_TRAFFIC_H

#include "simcuda/cuda/state.h"

/* `from` and `to` are ordinals, or -1 for the host. Thread-safe. Does nothing unless traffic is
 * counted. */
void sim_traffic_add(int from, int to, size_t size_bytes);

#endif
