/* SPDX-License-Identifier: Apache-2.0
 * Kernels for AArch64, where Advanced SIMD is always there. C has no word for its non-temporal
 * stores, so streaming is plain copying. */
#include "device/cpu/isa.h"

#include <arm_neon.h>

#define KERNEL_TABLE tutti_cpu_neon
#define KERNEL_NAME "neon"
#define HALF_LANES 4
#define HAS_STREAM 0

typedef uint16_t half_unit __attribute__((vector_size(8), aligned(2), may_alias));
typedef float half_floats __attribute__((vector_size(16)));
typedef int32_t half_ints __attribute__((vector_size(16)));

static inline __attribute__((always_inline)) half_floats half_widen(const half_unit unit)
{
    return (half_floats)vcvt_f32_f16((float16x4_t)unit);
}

static inline __attribute__((always_inline)) half_unit half_narrow(const half_floats wide)
{
    return (half_unit)vcvt_f16_f32((float32x4_t)wide);
}

#include "device/cpu/kernels.h"
