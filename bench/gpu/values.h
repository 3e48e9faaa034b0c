/* SPDX-License-Identifier: Apache-2.0
 * What sources hold: small whole numbers, for zeros and NaNs may be quicker or slower to move and
 * add than what programs have. They repeat after VALUES_BYTES, so that any place's are known. */
#ifndef BENCH_GPU_VALUES_H
#define BENCH_GPU_VALUES_H

#include "machine.h"

#include "base/types.h"

enum { VALUES_BYTES = 1 << 20 };

/* Fill `size_bytes` of the GPU's memory with those of source number `source`. */
void bench_values_fill(const struct bench_gpu *gpu, enum tutti_type type, uint32_t source, void *to,
                       size_t size_bytes);

/* Of a power of two of bytes: does the GPU's memory hold the sum of sources 0 .. nsrcs - 1, as
 * processors add them? Looks at its beginning and end. */
int bench_values_are_sum(const struct bench_gpu *gpu, enum tutti_type type, uint32_t nsrcs,
                         const void *sum, size_t size_bytes);

#endif
