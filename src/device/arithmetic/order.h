/* SPDX-License-Identifier: Apache-2.0
 * Minimum and maximum of the narrow floating types, computed as the maximum of signed integers.
 *
 * The bits of each float are mapped to an integer key, and the float with the larger key is the
 * result. Keys order -0 below +0, and NaN of either sign above all numbers, so an integer
 * comparison also propagates NaN. The largest key does not depend on the order of the sources.
 * There are no branches, so the compiler vectorizes loops of these functions.
 */
#ifndef TUTTI_DEVICE_ORDER_H
#define TUTTI_DEVICE_ORDER_H

#include "device/arithmetic/convert.h"

/* `special` is the largest code, without its sign, that is not NaN. With the sign as the top bit,
 * codes ordered by value are
 *
 *     -NaN ... -special ... -0, +0 ... +special ... +NaN
 *
 * Subtracting `gap`, the number of negative NaN codes, wraps these codes around to the top. For the
 * minimum, the whole order is reversed first.
 *
 * max_key and min_key map the bits of a float to its key for the maximum or the minimum;
 * max_unkeyed and min_unkeyed map a key back to bits. */
#define TUTTI_ORDER_GAP(type, special) ((type)(((type)~(type)0 >> 1) - (special)))
#define TUTTI_DEFINE_ORDER(name, type, special, nan)                                            \
    TUTTI_INLINE type tutti_##name##_ordered(const type bits)                                   \
    {                                                                                           \
        const u##type ones = (u##type)((u##type)~(u##type)0 >> 1);                              \
                                                                                                \
        return (type)(bits ^ ((type)-(type)(bits < 0) & (type)ones));                           \
    }                                                                                           \
    TUTTI_INLINE type tutti_##name##_max_key(const type bits)                                   \
    {                                                                                           \
        const u##type gap = TUTTI_ORDER_GAP(u##type, special);                                  \
                                                                                                \
        return (type)((u##type)tutti_##name##_ordered(bits) - gap);                             \
    }                                                                                           \
    TUTTI_INLINE type tutti_##name##_min_key(const type bits)                                   \
    {                                                                                           \
        const u##type gap = TUTTI_ORDER_GAP(u##type, special);                                  \
                                                                                                \
        return (type)((u##type)~gap - (u##type)tutti_##name##_ordered(bits));                   \
    }                                                                                           \
    /* `ordered` is its own inverse. A NaN becomes some NaN. */                                 \
    TUTTI_INLINE type tutti_##name##_max_unkeyed(const type key)                                \
    {                                                                                           \
        const u##type gap = TUTTI_ORDER_GAP(u##type, special);                                  \
                                                                                                \
        return tutti_##name##_ordered((type)((u##type)key + gap));                              \
    }                                                                                           \
    TUTTI_INLINE type tutti_##name##_min_unkeyed(const type key)                                \
    {                                                                                           \
        const u##type gap = TUTTI_ORDER_GAP(u##type, special);                                  \
                                                                                                \
        return tutti_##name##_ordered((type)((u##type)~gap - (u##type)key));                    \
    }                                                                                           \
    /* `bits`, or the canonical NaN if `key`, the key of `bits`, is above those of all          \
     * numbers. */                                                                              \
    TUTTI_INLINE type tutti_##name##_canonical(const type bits, const type key)                 \
    {                                                                                           \
        const u##type gap = TUTTI_ORDER_GAP(u##type, special);                                  \
                                                                                                \
        return key > (type)((u##type)(special) - gap) ? (type)(nan) : bits;                     \
    }

TUTTI_DEFINE_ORDER(bf16, int16_t, 0x7f80, 0x7fc0)
TUTTI_DEFINE_ORDER(f16, int16_t, 0x7c00, 0x7e00)
TUTTI_DEFINE_ORDER(e4m3, int8_t, 0x7e, 0x7f)
TUTTI_DEFINE_ORDER(e5m2, int8_t, 0x7c, 0x7e)

#endif
