/* SPDX-License-Identifier: Apache-2.0
 * Minimum and maximum of narrow floating types as the maximum of signed integers.
 *
 * The bits of a float become a key that is larger the more the float wins: -0 is below +0, and
 * NaN of either sign is above everything, so one integer comparison propagates it. Whichever order
 * the sources come in, the largest key is the same. No branches: loops of these are vectorised.
 */
#ifndef TUTTI_DEVICE_ORDER_H
#define TUTTI_DEVICE_ORDER_H

#include "device/arithmetic/convert.h"

/* `special` is the last code that is no NaN, of either sign. With the sign as the top bit, codes
 * ordered by value are
 *
 *     -NaN ... -special ... -0, +0 ... +special ... +NaN
 *
 * and subtracting `gap`, the number of negative NaN, wraps those around to the top. For the
 * minimum all of it is mirrored first. */
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
    /* Back to bits: ordering is its own inverse. NaN becomes some NaN. */                      \
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
    /* What stands for NaN is above the key of the best number. */                              \
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
