/* SPDX-License-Identifier: Apache-2.0
 * The contents of sources: small whole numbers, because zeros and NaNs may be faster or slower to
 * move and add than the numbers of programs. They repeat after VALUES_BYTES, so the contents of
 * any position are known. */
#ifndef BENCH_GPU_VALUES_H
#define BENCH_GPU_VALUES_H

#include "machine.h"

#include "base/types.h"

enum { VALUES_BYTES = 1 << 20 };

/* Fills `size_bytes` of the GPU's memory with the contents of source number `source`. */
void bench_values_fill(const struct bench_gpu *gpu, enum tutti_type type, uint32_t source, void *to,
                       size_t size_bytes);

/* Returns 1 if the GPU's memory holds the sum of sources 0 to nsrcs - 1 with the bits that a CPU
 * computes, and 0 otherwise. The size is a power of two. Only the beginning and the end are
 * compared. */
int bench_values_are_sum(const struct bench_gpu *gpu, enum tutti_type type, uint32_t nsrcs,
                         const void *sum, size_t size_bytes);

#endif
