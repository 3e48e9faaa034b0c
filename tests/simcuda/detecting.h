/* SPDX-License-Identifier: Apache-2.0
 * Runs the NVML phase of detection on simulated machines, for several tests. */
#ifndef TUTTI_TESTS_SIMCUDA_DETECTING_H
#define TUTTI_TESTS_SIMCUDA_DETECTING_H

#include "topology/inventory/inventory.h"

#define NOTHING_HERE "/nonexistent" /* a root without what the kernel says */

/* The machines in topologies/. */
#define NMACHINES 7
extern const char *const machines[NMACHINES];
/* The file of one, until the next call. */
const char *path_of(const char *machine);
/* Adds the contents of a file as if hwloc had found them. */
struct tutti_inventory *load(const char *path);

/* Make the driver be `library`, on the machine of a file; no faults. */
void use(const char *library, const char *path);
/* Run the phase quietly; the lines that it logged. */
const char *detect(const char *root, struct tutti_inventory *inventory);
/* The result of this phase alone. */
struct tutti_inventory *detected(const char *root);

uint32_t count_of(const struct tutti_inventory *inventory, enum tutti_device_kind kind);
/* The gpu at the address that the other inventory's gpu has. */
uint32_t same_gpu(const struct tutti_inventory *other, uint32_t gpu,
                  const struct tutti_inventory *inventory);
/* A gpu's nvlink to a target. */
uint32_t find_link(const struct tutti_inventory *inventory, uint32_t gpu, int64_t target);

#endif
