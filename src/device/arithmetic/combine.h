/* SPDX-License-Identifier: Apache-2.0
 * Minimum and maximum of two floats, as IEEE 754-2019 defines them. The result is the canonical NaN
 * if either operand is NaN, and -0 is less than +0. These functions take one pair of values at a
 * time and serve the reference implementations. CPUs and GPUs compile the same source. */
#ifndef TUTTI_DEVICE_COMBINE_H
#define TUTTI_DEVICE_COMBINE_H

#include "device/arithmetic/convert.h"

#define TUTTI_DEFINE_FLOAT_ORDER(name, type, nan, signbit)                          \
    TUTTI_INLINE type tutti_##name##_max(const type a, const type b)                \
    {                                                                               \
        return a != a || b != b ? (type)nan("")                                     \
             : a == b           ? (signbit(a) ? b : a)                              \
             : a > b            ? a                                                 \
                                : b;                                                \
    }                                                                               \
    TUTTI_INLINE type tutti_##name##_min(const type a, const type b)                \
    {                                                                               \
        return a != a || b != b ? (type)nan("")                                     \
             : a == b           ? (signbit(a) ? a : b)                              \
             : a < b            ? a                                                 \
                                : b;                                                \
    }

TUTTI_DEFINE_FLOAT_ORDER(f32, float, __builtin_nanf, __builtin_signbitf)
TUTTI_DEFINE_FLOAT_ORDER(f64, double, __builtin_nan, __builtin_signbit)

#endif
