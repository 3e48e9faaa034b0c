/* SPDX-License-Identifier: Apache-2.0
 * Does arithmetic on integer elements that are packed in 32 bits, and divides the elements of a
 * word. */
#ifndef TUTTI_DEVICE_CUDA_INTEGER_CUH
#define TUTTI_DEVICE_CUDA_INTEGER_CUH

#include "device/cuda/platform.cuh"

#include "base/types.h"
#include "device/cuda/words.cuh"

/* ---- facts about types ------------------------------------------------------------------- */

/* Facts are bits of a constant, so looking one up takes a shift instead of branches. There is room
 * for 32 types. */
#define GPU_TYPE_LOG_BYTES(NAME, number, name, FAMILY, code, bits, ...)                         \
    | (uint64_t)((bits) == 64 ? 3 : (bits) / 16) << 2 * (number)
#define GPU_TYPE_IS_SIGNED(NAME, number, name, FAMILY, ...)                                     \
    | (uint32_t)(TUTTI_##FAMILY == TUTTI_SIGNED) << (number)
#define GPU_TYPE_IS_FLOATING(NAME, number, name, FAMILY, ...)                                   \
    | (uint32_t)(TUTTI_##FAMILY == TUTTI_FLOATING || TUTTI_##FAMILY == TUTTI_NARROW) << (number)
#define GPU_TYPE_IS_BOOLEAN(NAME, number, name, FAMILY, ...)                                    \
    | (uint32_t)(TUTTI_##FAMILY == TUTTI_BOOLEAN) << (number)

GPU_INLINE uint32_t gpu_type_bytes(uint32_t type)
{
    return 1u << ((UINT64_C(0) TUTTI_TYPES(GPU_TYPE_LOG_BYTES)) >> 2 * type & 3);
}

GPU_INLINE bool gpu_is_signed(uint32_t type)
{
    return (0u TUTTI_TYPES(GPU_TYPE_IS_SIGNED)) >> type & 1;
}

GPU_INLINE bool gpu_is_floating(uint32_t type)
{
    return (0u TUTTI_TYPES(GPU_TYPE_IS_FLOATING)) >> type & 1;
}

GPU_INLINE bool gpu_is_boolean(uint32_t type)
{
    return (0u TUTTI_TYPES(GPU_TYPE_IS_BOOLEAN)) >> type & 1;
}

/* ---- elements packed in 32 bits, the first one lowest -------------------------------------- */

/* Adds elements of `bits` bits without carries from one element to the next. */
template <uint32_t bits> GPU_INLINE uint32_t gpu_packed_sum(uint32_t a, uint32_t b)
{
    const uint32_t low = bits == 8 ? 0x7f7f7f7fu : 0x7fff7fffu;

    return bits == 32 ? a + b : ((a & low) + (b & low)) ^ ((a ^ b) & ~low);
}

/* Multiplies elements of `bits` bits. Each product wraps around. */
template <uint32_t bits> GPU_INLINE uint32_t gpu_packed_product(uint32_t a, uint32_t b)
{
    uint32_t product = 0;

    GPU_UNROLL
    for (uint32_t at = 0; at < 32; at += bits) {
        const uint32_t mask = ~0u >> (32 - bits) << at;

        product |= ((a >> at) * (b & mask)) & mask;
    }
    return product;
}

/* Returns the maximum of each pair of unsigned elements. */
template <uint32_t bits> GPU_INLINE uint32_t gpu_packed_max(uint32_t a, uint32_t b)
{
    uint32_t best = 0;

    GPU_UNROLL
    for (uint32_t at = 0; at < 32; at += bits) {
        const uint32_t mask = ~0u >> (32 - bits) << at;

        best |= (b & mask) > (a & mask) ? b & mask : a & mask;
    }
    return best;
}

/* Returns 1 for each element that is not 0, and else 0. */
template <uint32_t bits> GPU_INLINE uint32_t gpu_packed_truth(uint32_t a)
{
    const uint32_t ones = bits == 8 ? 0x01010101u : bits == 16 ? 0x00010001u : 1u;
    const uint32_t low = ~(ones << (bits - 1));

    /* The addition carries into the top bit of an element if any of its lower bits is set. */
    return (((a & low) + low) | a) >> (bits - 1) & ones;
}

/* ---- quotients ------------------------------------------------------------------------------- */

struct gpu_divisor {
    uint64_t by; /* > 0; 1: values are not changed */
    uint32_t element_bytes;
    bool is_signed; /* of the elements */
};

/* Returns the quotient, truncated toward zero. The caller has extended `value` to 64 bits. */
GPU_INLINE uint64_t gpu_divided(uint64_t value, gpu_divisor divisor)
{
    const bool is_negative = divisor.is_signed && value >> 63 != 0;
    const uint64_t quotient = (is_negative ? 0 - value : value) / divisor.by;

    return is_negative ? 0 - quotient : quotient;
}

/* Divides the elements in half a word. */
GPU_INLINE uint64_t gpu_divided_half(uint64_t half, gpu_divisor divisor)
{
    const uint32_t bits = 8 * divisor.element_bytes;
    const uint64_t mask = ~UINT64_C(0) >> (64 - bits);
    const uint64_t sign = divisor.is_signed ? UINT64_C(1) << (bits - 1) : 0;
    uint64_t quotients = 0;

    GPU_NO_UNROLL
    for (uint32_t at = 0; at < 64; at += bits) {
        const uint64_t value = ((half >> at & mask) ^ sign) - sign;

        quotients |= (gpu_divided(value, divisor) & mask) << at;
    }
    return quotients;
}

/* Divides all elements of a word. This function is not inlined, because it is large and only
 * averages of integers use it. */
GPU_FUNCTION gpu_word gpu_divided_word(gpu_word word, gpu_divisor divisor)
{
    return gpu_word_of(gpu_divided_half(gpu_half(word, 0), divisor),
                       gpu_divided_half(gpu_half(word, 1), divisor));
}

#endif
