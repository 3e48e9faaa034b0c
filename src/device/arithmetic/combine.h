/* SPDX-License-Identifier: Apache-2.0
 * Minimum and maximum of two floats as IEEE 754-2019 defines them: NaN, the canonical one, if either
 * is, and -0 below +0. One at a time, for the references; the same source for processors and GPUs. */
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
