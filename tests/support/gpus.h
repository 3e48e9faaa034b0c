/* SPDX-License-Identifier: Apache-2.0
 * Puts the ranks of a test on GPUs. Each rank then has a device, whose context is current on its
 * thread, and buffers in the memory of that device. TUTTI_CUDA_LIBRARY names the driver, which is
 * simulated or real. */
#ifndef TUTTI_TEST_GPUS_H
#define TUTTI_TEST_GPUS_H

#include "support/crowd.h"
#include "wrap/cuda.h"

#include <stdint.h>

/* How ranks get device memory. */
enum gpu_memory { GPU_MEMORY_PLAIN, GPU_MEMORY_TUTTI, GPU_MEMORY_EITHER };

/* From now on ranks r of crowds are on device r modulo `ndevices`; but those that leave `on_cpu`
 * when divided by 3 stay on the CPU, -1: none of them. Call it before any crowd. */
void gpus_use(int ndevices, int on_cpu, enum gpu_memory memory);
/* The number of a rank's device. On a machine with fewer devices than the test wants, more ranks
 * share each. */
int gpus_device(const struct member *member);

bool gpus_are_used(void);

/* True if that rank is on a GPU. */
bool gpus_has(const struct member *member);

/* Make the rank's device current on this thread; what members begin with. */
void gpus_enter(struct member *member);

/* Frees everything when all ranks are done. */
void gpus_leave(struct member *member);

/* Returns the driver, for other uses of a test. */
const struct tutti_cu_driver *gpus_driver(void);

/* Copies between host and device, and waits until the copy has arrived. Alone, cuMemcpy from
 * pageable memory returns once the driver has a copy of its own, and streams that do not wait for
 * the default one could see the old data. Returns a code of the driver. */
int gpus_copy(void *to, const void *from, size_t bytes);

/* A copy of `bytes` of host memory on the rank's device, and back, freeing it. */
uint8_t *gpus_put(struct member *member, const void *host, size_t bytes);
void gpus_take_back(struct member *member, void *host, uint8_t *device, size_t bytes);

/* A CUDA stream that waits for no other, as the calls take it. */
tuttiStream_t gpus_stream(struct member *member);
void gpus_drop_stream(struct member *member, tuttiStream_t stream);
/* Until everything on it is done. */
void gpus_synchronize(struct member *member, tuttiStream_t stream);

#endif
