/* SPDX-License-Identifier: Apache-2.0
 * Does arithmetic on the elements of 16-byte words. A word is unpacked into values, the values are
 * combined and scaled, and the result is packed into a word again.
 *
 * The results have exactly the bits that device/cpu/cpu.h defines. Conversions are the same source
 * (device/arithmetic), or instructions that give the same bits. Compile with -fmad=false.
 *
 * A kind defines how a word's elements are opened into values, how two values are combined, and how
 * values are closed into elements. Closing makes every NaN the canonical one. Loops are templates
 * over gpu_reducer<kind>; GPU_WITH_KIND chooses the kind by the type, outside the loop. The
 * operation stays a run-time variable. Testing it once per word costs next to nothing and saves
 * three quarters of the code.
 */
#ifndef TUTTI_DEVICE_CUDA_ARITHMETIC_CUH
#define TUTTI_DEVICE_CUDA_ARITHMETIC_CUH

#include "device/cuda/platform.cuh"

#include "base/types.h"
#include "device/arithmetic/combine.h"
#include "device/arithmetic/convert.h"
#include "device/arithmetic/scale.h"

#include "device/cuda/convert.cuh"
#include "device/cuda/integer.cuh"
#include "device/cuda/words.cuh"

/* The operation that combines two values. Integer kinds have only the maximum of unsigned values.
 * If the bits of `flip` are flipped before and after it, the result is the maximum of signed
 * values, or the minimum. */
struct gpu_operation {
    uint32_t op; /* enum tutti_op */
    uint64_t flip;
};

/* Returns the logical operation that `op` is on bool, as tutti_op_on_bool does. */
GPU_INLINE uint32_t gpu_op_on_bool(uint32_t op)
{
    if (op == TUTTI_PROD || op == TUTTI_MIN || op == TUTTI_BAND || op == TUTTI_LAND)
        return TUTTI_LAND;
    return op == TUTTI_BXOR || op == TUTTI_LXOR ? TUTTI_LXOR : TUTTI_LOR;
}

GPU_INLINE gpu_operation gpu_operation_of(uint32_t type, uint32_t op)
{
    const uint32_t bits = 8 * gpu_type_bytes(type);
    const gpu_word signs = gpu_word_filled(gpu_is_signed(type) ? UINT64_C(1) << (bits - 1) : 0,
                                           bits / 8);
    const uint64_t flip = gpu_half(signs, 0);

    return gpu_operation{gpu_is_boolean(type) ? gpu_op_on_bool(op) : op,
                         op == TUTTI_MIN ? ~flip : flip};
}

/* ---- floats ------------------------------------------------------------------------------- */

GPU_INLINE float gpu_float_max(float a, float b)
{
#if defined(__CUDA_ARCH__)
    float best;

    asm("max.NaN.f32 %0, %1, %2;" : "=f"(best) : "f"(a), "f"(b));
    return best;
#else
    return tutti_f32_max(a, b);
#endif
}

GPU_INLINE float gpu_float_min(float a, float b)
{
#if defined(__CUDA_ARCH__)
    float best;

    asm("min.NaN.f32 %0, %1, %2;" : "=f"(best) : "f"(a), "f"(b));
    return best;
#else
    return tutti_f32_min(a, b);
#endif
}

GPU_INLINE double gpu_float_max(double a, double b) { return tutti_f64_max(a, b); }
GPU_INLINE double gpu_float_min(double a, double b) { return tutti_f64_min(a, b); }

/* ---- kinds -------------------------------------------------------------------------------- */

/* Each kind has
 *
 *   value, nvalues     type and number of the values that a word is opened into
 *   element_bytes      bytes of an element
 *   has_min            0: the minimum is a maximum of flipped bits (gpu_operation)
 *   open, close        unpacks a word into its values; packs values into a word
 *   combine            combines two values; `op`, TUTTI_SUM to TUTTI_MIN, is a compile-time
 *                      constant
 *   has_bits           1 if there are bitwise and logical operations: truth, and combine_bits
 *   truth              makes each element of a value 1 if it is not 0
 *   combine_bits       combines two values by TUTTI_BAND, TUTTI_BOR or TUTTI_BXOR
 *   factor, factor_of  type of the scaling factor; computes a factor from a type and a tutti_scale
 *   scale              scales a value before it is closed; integers are not changed
 *   divide             divides the elements of a closed word; floats are not changed
 */

/* The common part of floating types. */
template <typename type> struct gpu_float_kind {
    typedef type value;
    typedef type factor;
    enum { has_min = 1, has_bits = 0 };

    template <uint32_t op> GPU_INLINE type combine(type a, type b, uint64_t)
    {
        return op == TUTTI_SUM    ? a + b
               : op == TUTTI_PROD ? a * b
               : op == TUTTI_MAX  ? gpu_float_max(a, b)
                                  : gpu_float_min(a, b);
    }
    GPU_INLINE type factor_of(uint32_t, tutti_scale scale) { return (type)scale.multiply; }
    GPU_INLINE type scale(type value, type by) { return value * by; }
    GPU_INLINE gpu_word divide(gpu_word word, type) { return word; }
    GPU_INLINE type truth(type value) { return value; }
    GPU_INLINE type combine_bits(uint32_t, type value, type) { return value; }
};

/* Floats of less than 32 bits, combined as float32. `format` converts 4 bytes of them at a time
 * (convert.cuh). */
template <typename format> struct gpu_narrow_kind : gpu_float_kind<float> {
    enum { element_bytes = format::element_bytes, nvalues = 16 / element_bytes };

    GPU_INLINE void open(gpu_word word, float *values)
    {
        const uint32_t n = nvalues / 4;

        format::widen(word.x, values);
        format::widen(word.y, values + n);
        format::widen(word.z, values + 2 * n);
        format::widen(word.w, values + 3 * n);
    }
    GPU_INLINE gpu_word close(const float *values)
    {
        const uint32_t n = nvalues / 4;

        return gpu_word{format::narrow(values), format::narrow(values + n),
                        format::narrow(values + 2 * n), format::narrow(values + 3 * n)};
    }
};

struct gpu_float32_kind : gpu_float_kind<float> {
    enum { element_bytes = 4, nvalues = 4 };

    GPU_INLINE void open(gpu_word word, float *values)
    {
        values[0] = tutti_f32_from_bits(word.x);
        values[1] = tutti_f32_from_bits(word.y);
        values[2] = tutti_f32_from_bits(word.z);
        values[3] = tutti_f32_from_bits(word.w);
    }
    GPU_INLINE gpu_word close(const float *values)
    {
        return gpu_word{tutti_f32_bits(tutti_f32_quieted(values[0])),
                        tutti_f32_bits(tutti_f32_quieted(values[1])),
                        tutti_f32_bits(tutti_f32_quieted(values[2])),
                        tutti_f32_bits(tutti_f32_quieted(values[3]))};
    }
};

struct gpu_float64_kind : gpu_float_kind<double> {
    enum { element_bytes = 8, nvalues = 2 };

    GPU_INLINE void open(gpu_word word, double *values)
    {
        values[0] = tutti_f64_from_bits(gpu_half(word, 0));
        values[1] = tutti_f64_from_bits(gpu_half(word, 1));
    }
    GPU_INLINE gpu_word close(const double *values)
    {
        return gpu_word_of(tutti_f64_bits(tutti_f64_quieted(values[0])),
                           tutti_f64_bits(tutti_f64_quieted(values[1])));
    }
};

/* The common part of integer types. Values are unsigned, because sums and products of signed ones
 * have the same bits. */
template <typename type> struct gpu_integer_kind {
    typedef type value;
    typedef gpu_divisor factor;
    enum { has_min = 0, has_bits = 1 };

    GPU_INLINE gpu_divisor factor_of(uint32_t type_of_elements, tutti_scale scale)
    {
        return gpu_divisor{(uint64_t)scale.divide, gpu_type_bytes(type_of_elements),
                           gpu_is_signed(type_of_elements)};
    }
    GPU_INLINE type scale(type value, gpu_divisor) { return value; }
    GPU_INLINE gpu_word divide(gpu_word word, gpu_divisor by)
    {
        return by.by == 1 ? word : gpu_divided_word(word, by);
    }
    GPU_INLINE type combine_bits(uint32_t op, type a, type b)
    {
        return op == TUTTI_BAND ? a & b : op == TUTTI_BOR ? a | b : a ^ b;
    }
};

/* Elements of at most 32 bits. Each value holds as many of them as fit 32 bits. */
template <uint32_t bits> struct gpu_packed_kind : gpu_integer_kind<uint32_t> {
    enum { element_bytes = bits / 8, nvalues = 4 };

    GPU_INLINE void open(gpu_word word, uint32_t *values)
    {
        values[0] = word.x;
        values[1] = word.y;
        values[2] = word.z;
        values[3] = word.w;
    }
    GPU_INLINE gpu_word close(const uint32_t *values)
    {
        return gpu_word{values[0], values[1], values[2], values[3]};
    }
    template <uint32_t op> GPU_INLINE uint32_t combine(uint32_t a, uint32_t b, uint64_t flip)
    {
        const uint32_t turned = (uint32_t)flip;

        return op == TUTTI_SUM    ? gpu_packed_sum<bits>(a, b)
               : op == TUTTI_PROD ? gpu_packed_product<bits>(a, b)
                                  : gpu_packed_max<bits>(a ^ turned, b ^ turned) ^ turned;
    }
    GPU_INLINE uint32_t truth(uint32_t value) { return gpu_packed_truth<bits>(value); }
};

struct gpu_int64_kind : gpu_integer_kind<uint64_t> {
    enum { element_bytes = 8, nvalues = 2 };

    GPU_INLINE void open(gpu_word word, uint64_t *values)
    {
        values[0] = gpu_half(word, 0);
        values[1] = gpu_half(word, 1);
    }
    GPU_INLINE gpu_word close(const uint64_t *values) { return gpu_word_of(values[0], values[1]); }
    template <uint32_t op> GPU_INLINE uint64_t combine(uint64_t a, uint64_t b, uint64_t flip)
    {
        if (op == TUTTI_SUM)
            return a + b;
        if (op == TUTTI_PROD)
            return a * b;
        return (b ^ flip) > (a ^ flip) ? b : a;
    }
    GPU_INLINE uint64_t truth(uint64_t value) { return value != 0; }
};

typedef gpu_packed_kind<8> gpu_int8_kind;
typedef gpu_packed_kind<16> gpu_int16_kind;
typedef gpu_packed_kind<32> gpu_int32_kind;
typedef gpu_narrow_kind<gpu_float16> gpu_float16_kind;
typedef gpu_narrow_kind<gpu_bfloat16> gpu_bfloat16_kind;
typedef gpu_narrow_kind<gpu_e4m3> gpu_e4m3_kind;
typedef gpu_narrow_kind<gpu_e5m2> gpu_e5m2_kind;

/* ---- reducers ------------------------------------------------------------------------------- */

/* The operations that loops over words need. A word may be partly filled: bytes that are no element
 * give undefined bytes in the same place of the result, and do not affect the others. */
template <typename kind_of_elements> struct gpu_reducer {
    typedef kind_of_elements kind;
    typedef typename kind::factor factor;
    typedef typename kind::value value;
    enum { element_bytes = kind::element_bytes, nvalues = kind::nvalues };
    /* The intermediate result for the elements of one word. */
    struct sum {
        value at[nvalues];
    };

    /* Returns the intermediate result for the word of the first source. */
    GPU_INLINE sum open(gpu_word word)
    {
        sum opened;

        kind::open(word, opened.at);
        return opened;
    }
    /* Combines the word of one more source with the result so far. */
    GPU_INLINE void add(sum *so_far, gpu_word word, gpu_operation operation)
    {
        value more[nvalues];

        kind::open(word, more);
        if (kind::has_bits && operation.op >= TUTTI_BAND)
            combine_bits(so_far->at, more, operation.op);
        else if (operation.op == TUTTI_SUM)
            combine<TUTTI_SUM>(so_far->at, more, 0);
        else if (operation.op == TUTTI_PROD)
            combine<TUTTI_PROD>(so_far->at, more, 0);
        else if (!kind::has_min || operation.op == TUTTI_MAX)
            combine<TUTTI_MAX>(so_far->at, more, operation.flip);
        else
            combine<TUTTI_MIN>(so_far->at, more, operation.flip);
    }
    /* Returns the final result, scaled and rounded once. */
    GPU_INLINE gpu_word close(const sum *so_far, factor by)
    {
        value scaled[nvalues];

        GPU_UNROLL
        for (uint32_t i = 0; i < nvalues; i++)
            scaled[i] = kind::scale(so_far->at[i], by);
        return kind::divide(kind::close(scaled), by);
    }
    /* Multiplies each element by the element in the first bytes of `scalar`, and rounds the
     * product, as tutti_cpu_premultiply does. */
    GPU_INLINE gpu_word multiplied(gpu_word word, uint64_t scalar)
    {
        sum product = open(word), factors = open(gpu_word_filled(scalar, element_bytes));

        combine<TUTTI_PROD>(product.at, factors.at, 0);
        return kind::close(product.at);
    }
    /* A logical operation is the bitwise one on truth values. */
    GPU_INLINE void combine_bits(value *so_far, const value *more, uint32_t op)
    {
        const bool is_logical = op >= TUTTI_LAND;
        const uint32_t bitwise = is_logical ? op - TUTTI_LAND + TUTTI_BAND : op;

        GPU_UNROLL
        for (uint32_t i = 0; i < nvalues; i++)
            so_far[i] = kind::combine_bits(bitwise, is_logical ? kind::truth(so_far[i]) : so_far[i],
                                           is_logical ? kind::truth(more[i]) : more[i]);
    }
    template <uint32_t op>
    GPU_INLINE void combine(value *so_far, const value *more, uint64_t flip)
    {
        GPU_UNROLL
        for (uint32_t i = 0; i < nvalues; i++)
            so_far[i] = kind::template combine<op>(so_far[i], more[i], flip);
    }
};

/* Returns `function<kind>(...)` with the kind of `type`, an enum tutti_type. */
#define GPU_WITH_KIND(type, function, ...)                                                     \
    switch (type) {                                                                            \
    case TUTTI_INT8: case TUTTI_UINT8: case TUTTI_BOOL:                                        \
        return function<gpu_int8_kind>(__VA_ARGS__);                                           \
    case TUTTI_INT16: case TUTTI_UINT16: return function<gpu_int16_kind>(__VA_ARGS__);         \
    case TUTTI_INT32: case TUTTI_UINT32: return function<gpu_int32_kind>(__VA_ARGS__);         \
    case TUTTI_INT64: case TUTTI_UINT64: return function<gpu_int64_kind>(__VA_ARGS__);         \
    case TUTTI_FLOAT16: return function<gpu_float16_kind>(__VA_ARGS__);                        \
    case TUTTI_BFLOAT16: return function<gpu_bfloat16_kind>(__VA_ARGS__);                      \
    case TUTTI_FLOAT8E4M3: return function<gpu_e4m3_kind>(__VA_ARGS__);                        \
    case TUTTI_FLOAT8E5M2: return function<gpu_e5m2_kind>(__VA_ARGS__);                        \
    case TUTTI_FLOAT32: return function<gpu_float32_kind>(__VA_ARGS__);                        \
    default: return function<gpu_float64_kind>(__VA_ARGS__);                                   \
    }

#endif
