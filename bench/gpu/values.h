/* SPDX-License-Identifier: Apache-2.0
 * The contents of sources: small whole numbers, because zeros and NaNs may be faster or slower to
 * move and add than the numbers of programs. They repeat after VALUES_BYTES, so the contents of
 * any position are known. */
#ifndef BENCH_GPU_VALUES_H
#define BENCH_GPU_VALUES_H

#include "machine.h"

#include "base/types.h"

enum { VALUES_BYTES = 1 << 20 };

/* Fill `size_bytes` of the GPU's memory with those of source number `source`. */
void bench_values_fill(const struct bench_gpu *gpu, enum tutti_type type, uint32_t source, void *to,
                       size_t size_bytes);

/* Returns whether the GPU's memory holds the sum of sources 0 .. nsrcs - 1, as CPUs add them. The
 * size is a power of two of bytes. It checks the beginning and the end. */
int bench_values_are_sum(const struct bench_gpu *gpu, enum tutti_type type, uint32_t nsrcs,
                         const void *sum, size_t size_bytes);

#endif
