/* SPDX-License-Identifier: Apache-2.0
 * Does integer arithmetic on four 8-bit elements at once, and divides the elements of a word. */
#ifndef TUTTI_DEVICE_CUDA_INTEGER_CUH
#define TUTTI_DEVICE_CUDA_INTEGER_CUH

#include "device/cuda/platform.cuh"

#include "base/types.h"
#include "device/cuda/words.cuh"

GPU_INLINE bool gpu_is_signed(uint32_t type)
{
    return type == TUTTI_INT8 || type == TUTTI_INT32 || type == TUTTI_INT64;
}

/* ---- four bytes at once, the first one lowest ---------------------------------------------- */

/* Adds the bytes without carries from one byte to the next. */
GPU_INLINE uint32_t gpu_bytes_sum(uint32_t a, uint32_t b)
{
    const uint32_t low = 0x7f7f7f7fu;

    return ((a & low) + (b & low)) ^ ((a ^ b) & ~low);
}

GPU_INLINE uint32_t gpu_bytes_product(uint32_t a, uint32_t b)
{
    const uint32_t first = (a * b) & 0xffu;
    const uint32_t second = ((a >> 8) * (b & 0xff00u)) & 0xff00u;
    const uint32_t third = ((a >> 16) * (b & 0xff0000u)) & 0xff0000u;
    const uint32_t fourth = (a >> 24) * (b & 0xff000000u);

    return first | second | third | fourth;
}

/* Returns the maximum of each pair of unsigned bytes. */
GPU_INLINE uint32_t gpu_bytes_max(uint32_t a, uint32_t b)
{
    uint32_t best = 0;

    GPU_UNROLL
    for (uint32_t mask = 0xff; mask != 0; mask <<= 8)
        best |= (b & mask) > (a & mask) ? b & mask : a & mask;
    return best;
}

/* ---- quotients ------------------------------------------------------------------------------- */

struct gpu_divisor {
    uint64_t by; /* > 0; 1: values are not changed */
    uint32_t element_bytes;
    bool is_signed;
};

/* Returns the quotient, truncated toward zero. The caller has extended `value` to 64 bits. */
GPU_INLINE uint64_t gpu_divided(uint64_t value, gpu_divisor divisor)
{
    const bool is_negative = divisor.is_signed && value >> 63 != 0;
    const uint64_t quotient = (is_negative ? 0 - value : value) / divisor.by;

    return is_negative ? 0 - quotient : quotient;
}

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
