/* SPDX-License-Identifier: Apache-2.0
 * Elements in 16-byte words: taken apart into values, combined, scaled, put back.
 *
 * The numerics are those of device/cpu/cpu.h, bit for bit: the conversions are the same source
 * (device/arithmetic), or instructions that give the same bits. Needs -fmad=false.
 *
<<<<<<< HEAD
 * A kind says how a word's elements are opened into values, and how values are closed into elements:
 * every NaN is then the canonical one. An operation combines two values of any kind. Together they
 * are a gpu_reducer, which is what loops are written over; GPU_WITH_REDUCER and GPU_WITH_KIND choose
 * one by a type and an operation that are known only at run time, outside of those loops.
=======
 * A kind says how a word's elements are opened into values, how two values are combined, and how
 * values are closed into elements; every NaN is then the canonical one. Loops are written over
 * gpu_reducer<kind>, which GPU_WITH_KIND chooses by the type outside of them. The operation stays a
 * variable: it is looked at once per word, which costs next to nothing, and spares three quarters of
 * the code.
>>>>>>> main
 */
#ifndef TUTTI_DEVICE_CUDA_ARITHMETIC_CUH
#define TUTTI_DEVICE_CUDA_ARITHMETIC_CUH

#include "device/cuda/platform.cuh"

#include "base/types.h"
#include "device/arithmetic/combine.h"
#include "device/arithmetic/convert.h"
#include "device/arithmetic/scale.h"

#include "device/cuda/convert.cuh"
<<<<<<< HEAD
=======
#include "device/cuda/integer.cuh"
#include "device/cuda/words.cuh"
>>>>>>> main

GPU_INLINE uint32_t gpu_type_bytes(uint32_t type)
{
    switch (type) {
    case TUTTI_INT8: case TUTTI_UINT8: case TUTTI_FLOAT8E4M3: case TUTTI_FLOAT8E5M2: return 1;
    case TUTTI_FLOAT16: case TUTTI_BFLOAT16: return 2;
    case TUTTI_INT32: case TUTTI_UINT32: case TUTTI_FLOAT32: return 4;
    default: return 8;
    }
}

<<<<<<< HEAD
/* The four quarters of a word, by number. */
GPU_INLINE uint32_t gpu_quarter(gpu_word word, uint32_t i)
{
    return i == 0 ? word.x : i == 1 ? word.y : i == 2 ? word.z : word.w;
}

GPU_INLINE uint64_t gpu_half(gpu_word word, uint32_t i)
{
    return i == 0 ? word.x | (uint64_t)word.y << 32 : word.z | (uint64_t)word.w << 32;
}

GPU_INLINE gpu_word gpu_word_of(uint64_t low, uint64_t high)
{
    gpu_word word = {(uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high, (uint32_t)(high >> 32)};

    return word;
}

/* A word full of the element that the low bytes of `bits` are. */
GPU_INLINE gpu_word gpu_word_filled(uint64_t bits, uint32_t element_bytes)
{
    if (element_bytes == 1)
        bits = (bits & 0xff) * UINT64_C(0x0101010101010101);
    else if (element_bytes == 2)
        bits = (bits & 0xffff) * UINT64_C(0x0001000100010001);
    else if (element_bytes == 4)
        bits = (bits & 0xffffffffu) * UINT64_C(0x0000000100000001);
    return gpu_word_of(bits, bits);
}

/* ---- operations ------------------------------------------------------------------------- */

/* Four elements of 8 bits, the first one lowest: signed and unsigned ones are compared
 * differently. */
struct gpu_unsigned_bytes {
    uint32_t bits;
};
struct gpu_signed_bytes {
    uint32_t bits;
};

/* Without carries from one byte to the next. */
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

template <bool is_max> GPU_INLINE uint32_t gpu_bytes_best(gpu_unsigned_bytes a, gpu_unsigned_bytes b)
{
    uint32_t best = 0;

    GPU_UNROLL
    for (uint32_t at = 0; at < 32; at += 8) {
        const uint32_t one = a.bits & (0xffu << at), other = b.bits & (0xffu << at);

        best |= (other > one) == is_max ? other : one;
    }
    return best;
}

/* Signed bytes are ordered as unsigned ones whose first bit is turned. */
template <bool is_max> GPU_INLINE uint32_t gpu_bytes_best(gpu_signed_bytes a, gpu_signed_bytes b)
{
    const uint32_t first = 0x80808080u;
    const gpu_unsigned_bytes one = {a.bits ^ first}, other = {b.bits ^ first};

    return gpu_bytes_best<is_max>(one, other) ^ first;
}
=======
/* What is done with two values. Integers have one order: that of unsigned ones, from small to large.
 * With the bits of `flip` turned before and after it serves for signed ones, and for the minimum. */
struct gpu_operation {
    uint32_t op; /* enum tutti_op */
    uint64_t flip;
};

GPU_INLINE gpu_operation gpu_operation_of(uint32_t type, uint32_t op)
{
    const uint32_t bits = 8 * gpu_type_bytes(type);
    const gpu_word signs = gpu_word_filled(gpu_is_signed(type) ? UINT64_C(1) << (bits - 1) : 0,
                                           bits / 8);
    const uint64_t flip = gpu_half(signs, 0);

    return gpu_operation{op, op == TUTTI_MIN ? ~flip : flip};
}

/* ---- floats ------------------------------------------------------------------------------- */
>>>>>>> main

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

<<<<<<< HEAD
struct gpu_sum {
    template <typename T> GPU_INLINE T combine(T a, T b) { return a + b; }
    GPU_INLINE gpu_unsigned_bytes combine(gpu_unsigned_bytes a, gpu_unsigned_bytes b)
    {
        return gpu_unsigned_bytes{gpu_bytes_sum(a.bits, b.bits)};
    }
};

struct gpu_prod {
    template <typename T> GPU_INLINE T combine(T a, T b) { return a * b; }
    GPU_INLINE gpu_unsigned_bytes combine(gpu_unsigned_bytes a, gpu_unsigned_bytes b)
    {
        return gpu_unsigned_bytes{gpu_bytes_product(a.bits, b.bits)};
    }
};

struct gpu_max {
    template <typename T> GPU_INLINE T combine(T a, T b) { return b > a ? b : a; }
    GPU_INLINE float combine(float a, float b) { return gpu_float_max(a, b); }
    GPU_INLINE double combine(double a, double b) { return tutti_f64_max(a, b); }
    GPU_INLINE gpu_unsigned_bytes combine(gpu_unsigned_bytes a, gpu_unsigned_bytes b)
    {
        return gpu_unsigned_bytes{gpu_bytes_best<true>(a, b)};
    }
    GPU_INLINE gpu_signed_bytes combine(gpu_signed_bytes a, gpu_signed_bytes b)
    {
        return gpu_signed_bytes{gpu_bytes_best<true>(a, b)};
    }
};

struct gpu_min {
    template <typename T> GPU_INLINE T combine(T a, T b) { return b < a ? b : a; }
    GPU_INLINE float combine(float a, float b) { return gpu_float_min(a, b); }
    GPU_INLINE double combine(double a, double b) { return tutti_f64_min(a, b); }
    GPU_INLINE gpu_unsigned_bytes combine(gpu_unsigned_bytes a, gpu_unsigned_bytes b)
    {
        return gpu_unsigned_bytes{gpu_bytes_best<false>(a, b)};
    }
    GPU_INLINE gpu_signed_bytes combine(gpu_signed_bytes a, gpu_signed_bytes b)
    {
        return gpu_signed_bytes{gpu_bytes_best<false>(a, b)};
    }
};

/* ---- kinds ------------------------------------------------------------------------------ */
=======
GPU_INLINE double gpu_float_max(double a, double b) { return tutti_f64_max(a, b); }
GPU_INLINE double gpu_float_min(double a, double b) { return tutti_f64_min(a, b); }

/* ---- kinds -------------------------------------------------------------------------------- */
>>>>>>> main

/* Each has
 *
 *   value, nvalues    what a word is opened into
 *   element_bytes
<<<<<<< HEAD
 *   modular           the kind of the type's sums and products
 *   factor            what values are scaled by, made of the type and a tutti_scale
 *   open, close       a word into its values and back
 *   scale             one value
 */

/* Floats of less than 32 bits, combined as float32. `format` converts 4 bytes of them. */
template <typename format> struct gpu_narrow_kind {
    typedef float value;
    typedef gpu_narrow_kind modular;
    typedef float factor;
=======
 *   has_min           0: the minimum is made of the maximum
 *   open, close       a word into its values and back
 *   combine           two values; `op` is a constant
 *   factor            what results are scaled by, made of the type and a tutti_scale; of integers,
 *   scale, divide     each value is scaled before it is closed, or words are divided as they are
 */

/* What floats have in common. */
template <typename type> struct gpu_float_kind {
    typedef type value;
    typedef type factor;
    enum { has_min = 1 };

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
};

/* Floats of less than 32 bits, combined as float32. `format` converts 4 bytes of them. */
template <typename format> struct gpu_narrow_kind : gpu_float_kind<float> {
>>>>>>> main
    enum { element_bytes = format::element_bytes, nvalues = 16 / element_bytes };

    GPU_INLINE void open(gpu_word word, float *values)
    {
<<<<<<< HEAD
        GPU_UNROLL
        for (uint32_t i = 0; i < 4; i++)
            format::widen(gpu_quarter(word, i), values + i * (nvalues / 4));
=======
        const uint32_t n = nvalues / 4;

        format::widen(word.x, values);
        format::widen(word.y, values + n);
        format::widen(word.z, values + 2 * n);
        format::widen(word.w, values + 3 * n);
>>>>>>> main
    }
    GPU_INLINE gpu_word close(const float *values)
    {
        const uint32_t n = nvalues / 4;
<<<<<<< HEAD
        gpu_word word = {format::narrow(values), format::narrow(values + n),
                         format::narrow(values + 2 * n), format::narrow(values + 3 * n)};

        return word;
    }
    GPU_INLINE float factor_of(uint32_t, tutti_scale scale) { return (float)scale.multiply; }
    GPU_INLINE float scale(float value, float by) { return value * by; }
};

struct gpu_float32_kind {
    typedef float value;
    typedef gpu_float32_kind modular;
    typedef float factor;
=======

        return gpu_word{format::narrow(values), format::narrow(values + n),
                        format::narrow(values + 2 * n), format::narrow(values + 3 * n)};
    }
};

struct gpu_float32_kind : gpu_float_kind<float> {
>>>>>>> main
    enum { element_bytes = 4, nvalues = 4 };

    GPU_INLINE void open(gpu_word word, float *values)
    {
<<<<<<< HEAD
        GPU_UNROLL
        for (uint32_t i = 0; i < 4; i++)
            values[i] = tutti_f32_from_bits(gpu_quarter(word, i));
    }
    GPU_INLINE gpu_word close(const float *values)
    {
        gpu_word word = {gpu_bits(values[0]), gpu_bits(values[1]), gpu_bits(values[2]),
                         gpu_bits(values[3])};

        return word;
    }
    GPU_INLINE uint32_t gpu_bits(float value) { return tutti_f32_bits(tutti_f32_quieted(value)); }
    GPU_INLINE float factor_of(uint32_t, tutti_scale scale) { return (float)scale.multiply; }
    GPU_INLINE float scale(float value, float by) { return value * by; }
};

struct gpu_float64_kind {
    typedef double value;
    typedef gpu_float64_kind modular;
    typedef double factor;
=======
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
>>>>>>> main
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
<<<<<<< HEAD
    GPU_INLINE double factor_of(uint32_t, tutti_scale scale) { return scale.multiply; }
    GPU_INLINE double scale(double value, double by) { return value * by; }
};

/* Sums and products are the same for signed and unsigned integers, but quotients are not. */
struct gpu_divisor {
    uint64_t by;
    bool is_signed;
};

GPU_INLINE gpu_divisor gpu_divisor_of(uint32_t type, tutti_scale scale)
{
    gpu_divisor divisor = {(uint64_t)scale.divide, type == TUTTI_INT8 || type == TUTTI_INT32 ||
                                                       type == TUTTI_INT64};

    return divisor;
}

/* Truncated. A divisor beyond 32 bits leaves nothing. */
GPU_INLINE uint32_t gpu_divided(uint32_t value, gpu_divisor divisor)
{
    const bool is_negative = divisor.is_signed && (int32_t)value < 0;
    const uint32_t size = is_negative ? 0u - value : value;
    const uint32_t quotient = divisor.by >> 32 != 0 ? 0 : size / (uint32_t)divisor.by;

    return is_negative ? 0u - quotient : quotient;
}

GPU_INLINE uint64_t gpu_divided(uint64_t value, gpu_divisor divisor)
{
    const bool is_negative = divisor.is_signed && (int64_t)value < 0;
    const uint64_t quotient = (is_negative ? 0 - value : value) / divisor.by;

    return is_negative ? 0 - quotient : quotient;
}

/* `bytes` is one of the two structs of four above. */
template <typename bytes> struct gpu_bytes_kind {
    typedef bytes value;
    typedef gpu_bytes_kind<gpu_unsigned_bytes> modular;
    typedef gpu_divisor factor;
    enum { element_bytes = 1, nvalues = 4 };

    GPU_INLINE void open(gpu_word word, bytes *values)
    {
        GPU_UNROLL
        for (uint32_t i = 0; i < 4; i++)
            values[i].bits = gpu_quarter(word, i);
    }
    GPU_INLINE gpu_word close(const bytes *values)
    {
        gpu_word word = {values[0].bits, values[1].bits, values[2].bits, values[3].bits};

        return word;
    }
    GPU_INLINE gpu_divisor factor_of(uint32_t type, tutti_scale scale)
    {
        return gpu_divisor_of(type, scale);
    }
    GPU_INLINE bytes scale(bytes value, gpu_divisor by)
    {
        bytes scaled = {0};

        if (by.by == 1)
            return value;
        GPU_UNROLL
        for (uint32_t at = 0; at < 32; at += 8) {
            const uint32_t one = value.bits >> at & 0xff;
            const uint32_t extended = by.is_signed ? (one ^ 0x80) - 0x80 : one;

            scaled.bits |= (gpu_divided(extended, by) & 0xff) << at;
        }
        return scaled;
    }
};

/* `type` is uint32_t or int32_t. */
template <typename type_of_value> struct gpu_int32_kind {
    typedef type_of_value value;
    typedef gpu_int32_kind<uint32_t> modular;
    typedef gpu_divisor factor;
    enum { element_bytes = 4, nvalues = 4 };

    GPU_INLINE void open(gpu_word word, value *values)
    {
        GPU_UNROLL
        for (uint32_t i = 0; i < 4; i++)
            values[i] = (value)gpu_quarter(word, i);
    }
    GPU_INLINE gpu_word close(const value *values)
    {
        gpu_word word = {(uint32_t)values[0], (uint32_t)values[1], (uint32_t)values[2],
                         (uint32_t)values[3]};

        return word;
    }
    GPU_INLINE gpu_divisor factor_of(uint32_t type, tutti_scale scale)
    {
        return gpu_divisor_of(type, scale);
    }
    GPU_INLINE value scale(value v, gpu_divisor by)
    {
        return by.by == 1 ? v : (value)gpu_divided((uint32_t)v, by);
    }
};

/* uint64_t or int64_t. */
template <typename type_of_value> struct gpu_int64_kind {
    typedef type_of_value value;
    typedef gpu_int64_kind<uint64_t> modular;
    typedef gpu_divisor factor;
    enum { element_bytes = 8, nvalues = 2 };

    GPU_INLINE void open(gpu_word word, value *values)
    {
        values[0] = (value)gpu_half(word, 0);
        values[1] = (value)gpu_half(word, 1);
    }
    GPU_INLINE gpu_word close(const value *values)
    {
        return gpu_word_of((uint64_t)values[0], (uint64_t)values[1]);
    }
    GPU_INLINE gpu_divisor factor_of(uint32_t type, tutti_scale scale)
    {
        return gpu_divisor_of(type, scale);
    }
    GPU_INLINE value scale(value v, gpu_divisor by)
    {
        return by.by == 1 ? v : (value)gpu_divided((uint64_t)v, by);
    }
};

/* ---- reducers --------------------------------------------------------------------------- */

/* What loops over words are written with. A word that is only partly filled does no harm: what is
 * not an element comes out as rubbish in the same place. */
template <typename kind_of_elements, typename op> struct gpu_reducer {
=======
};

/* What integers have in common: values are unsigned, for sums and products are the same. */
template <typename type> struct gpu_integer_kind {
    typedef type value;
    typedef gpu_divisor factor;
    enum { has_min = 0 };

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
};

/* Four elements are a value. */
struct gpu_int8_kind : gpu_integer_kind<uint32_t> {
    enum { element_bytes = 1, nvalues = 4 };

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

        return op == TUTTI_SUM    ? gpu_bytes_sum(a, b)
               : op == TUTTI_PROD ? gpu_bytes_product(a, b)
                                  : gpu_bytes_max(a ^ turned, b ^ turned) ^ turned;
    }
};

struct gpu_int32_kind : gpu_int8_kind {
    enum { element_bytes = 4 };

    template <uint32_t op> GPU_INLINE uint32_t combine(uint32_t a, uint32_t b, uint64_t flip)
    {
        const uint32_t turned = (uint32_t)flip;

        if (op == TUTTI_SUM)
            return a + b;
        if (op == TUTTI_PROD)
            return a * b;
        return (b ^ turned) > (a ^ turned) ? b : a;
    }
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
};

typedef gpu_narrow_kind<gpu_float16> gpu_float16_kind;
typedef gpu_narrow_kind<gpu_bfloat16> gpu_bfloat16_kind;
typedef gpu_narrow_kind<gpu_e4m3> gpu_e4m3_kind;
typedef gpu_narrow_kind<gpu_e5m2> gpu_e5m2_kind;

/* ---- reducers ------------------------------------------------------------------------------- */

/* What loops over words are written with. A word that is only partly filled does no harm: what is
 * not an element comes out as rubbish in the same place. */
template <typename kind_of_elements> struct gpu_reducer {
>>>>>>> main
    typedef kind_of_elements kind;
    typedef typename kind::factor factor;
    typedef typename kind::value value;
    enum { element_bytes = kind::element_bytes, nvalues = kind::nvalues };
    /* So far, of the elements of one word. */
    struct sum {
        value at[nvalues];
    };

    /* The first source. */
    GPU_INLINE sum open(gpu_word word)
    {
        sum opened;

        kind::open(word, opened.at);
        return opened;
    }
    /* One more. */
<<<<<<< HEAD
    GPU_INLINE void add(sum *so_far, gpu_word word)
=======
    GPU_INLINE void add(sum *so_far, gpu_word word, gpu_operation operation)
>>>>>>> main
    {
        value more[nvalues];

        kind::open(word, more);
<<<<<<< HEAD
        GPU_UNROLL
        for (uint32_t i = 0; i < nvalues; i++)
            so_far->at[i] = op::combine(so_far->at[i], more[i]);
=======
        if (operation.op == TUTTI_SUM)
            combine<TUTTI_SUM>(so_far->at, more, 0);
        else if (operation.op == TUTTI_PROD)
            combine<TUTTI_PROD>(so_far->at, more, 0);
        else if (!kind::has_min || operation.op == TUTTI_MAX)
            combine<TUTTI_MAX>(so_far->at, more, operation.flip);
        else
            combine<TUTTI_MIN>(so_far->at, more, operation.flip);
>>>>>>> main
    }
    /* The result, scaled and rounded once. */
    GPU_INLINE gpu_word close(const sum *so_far, factor by)
    {
        value scaled[nvalues];

        GPU_UNROLL
        for (uint32_t i = 0; i < nvalues; i++)
            scaled[i] = kind::scale(so_far->at[i], by);
<<<<<<< HEAD
        return kind::close(scaled);
    }
};

typedef gpu_narrow_kind<gpu_float16> gpu_float16_kind;
typedef gpu_narrow_kind<gpu_bfloat16> gpu_bfloat16_kind;
typedef gpu_narrow_kind<gpu_e4m3> gpu_e4m3_kind;
typedef gpu_narrow_kind<gpu_e5m2> gpu_e5m2_kind;

/* Calls `function<reducer>(...)` with the reducer of a type and an operation. Returns what it
 * returns; what has no reducer returns `otherwise`. */
#define GPU_CASE(type, op, kind, functor, function, ...) \
    case (type) * TUTTI_OP_COUNT + (op): return function<gpu_reducer<kind, functor> >(__VA_ARGS__);
#define GPU_TYPE_CASES(type, modular, ordered, function, ...)                  \
    GPU_CASE(type, TUTTI_SUM, modular, gpu_sum, function, __VA_ARGS__)         \
    GPU_CASE(type, TUTTI_PROD, modular, gpu_prod, function, __VA_ARGS__)       \
    GPU_CASE(type, TUTTI_MAX, ordered, gpu_max, function, __VA_ARGS__)         \
    GPU_CASE(type, TUTTI_MIN, ordered, gpu_min, function, __VA_ARGS__)
#define GPU_FLOAT_CASES(type, kind, function, ...) \
    GPU_TYPE_CASES(type, kind, kind, function, __VA_ARGS__)
#define GPU_WITH_REDUCER(type, op, function, ...)                                                  \
    switch ((type) * TUTTI_OP_COUNT + (op)) {                                                      \
    GPU_TYPE_CASES(TUTTI_INT8, gpu_bytes_kind<gpu_unsigned_bytes>,                                 \
                   gpu_bytes_kind<gpu_signed_bytes>, function, __VA_ARGS__)                        \
    GPU_TYPE_CASES(TUTTI_UINT8, gpu_bytes_kind<gpu_unsigned_bytes>,                                \
                   gpu_bytes_kind<gpu_unsigned_bytes>, function, __VA_ARGS__)                      \
    GPU_TYPE_CASES(TUTTI_INT32, gpu_int32_kind<uint32_t>, gpu_int32_kind<int32_t>, function,       \
                   __VA_ARGS__)                                                                    \
    GPU_TYPE_CASES(TUTTI_UINT32, gpu_int32_kind<uint32_t>, gpu_int32_kind<uint32_t>, function,     \
                   __VA_ARGS__)                                                                    \
    GPU_TYPE_CASES(TUTTI_INT64, gpu_int64_kind<uint64_t>, gpu_int64_kind<int64_t>, function,       \
                   __VA_ARGS__)                                                                    \
    GPU_TYPE_CASES(TUTTI_UINT64, gpu_int64_kind<uint64_t>, gpu_int64_kind<uint64_t>, function,     \
                   __VA_ARGS__)                                                                    \
    GPU_FLOAT_CASES(TUTTI_FLOAT16, gpu_float16_kind, function, __VA_ARGS__)                        \
    GPU_FLOAT_CASES(TUTTI_BFLOAT16, gpu_bfloat16_kind, function, __VA_ARGS__)                      \
    GPU_FLOAT_CASES(TUTTI_FLOAT8E4M3, gpu_e4m3_kind, function, __VA_ARGS__)                        \
    GPU_FLOAT_CASES(TUTTI_FLOAT8E5M2, gpu_e5m2_kind, function, __VA_ARGS__)                        \
    GPU_FLOAT_CASES(TUTTI_FLOAT32, gpu_float32_kind, function, __VA_ARGS__)                        \
    GPU_FLOAT_CASES(TUTTI_FLOAT64, gpu_float64_kind, function, __VA_ARGS__)                        \
    default: break;                                                                                \
=======
        return kind::divide(kind::close(scaled), by);
    }
    /* Each element times the one that `scalar` begins with, rounded: tutti_cpu_premultiply. */
    GPU_INLINE gpu_word multiplied(gpu_word word, uint64_t scalar)
    {
        sum product = open(word), factors = open(gpu_word_filled(scalar, element_bytes));

        combine<TUTTI_PROD>(product.at, factors.at, 0);
        return kind::close(product.at);
    }
    template <uint32_t op>
    GPU_INLINE void combine(value *so_far, const value *more, uint64_t flip)
    {
        GPU_UNROLL
        for (uint32_t i = 0; i < nvalues; i++)
            so_far[i] = kind::template combine<op>(so_far[i], more[i], flip);
    }
};

/* Returns `function<kind>(...)` with the kind of a type. */
#define GPU_WITH_KIND(type, function, ...)                                                     \
    switch (type) {                                                                            \
    case TUTTI_INT8: case TUTTI_UINT8: return function<gpu_int8_kind>(__VA_ARGS__);            \
    case TUTTI_INT32: case TUTTI_UINT32: return function<gpu_int32_kind>(__VA_ARGS__);         \
    case TUTTI_INT64: case TUTTI_UINT64: return function<gpu_int64_kind>(__VA_ARGS__);         \
    case TUTTI_FLOAT16: return function<gpu_float16_kind>(__VA_ARGS__);                        \
    case TUTTI_BFLOAT16: return function<gpu_bfloat16_kind>(__VA_ARGS__);                      \
    case TUTTI_FLOAT8E4M3: return function<gpu_e4m3_kind>(__VA_ARGS__);                        \
    case TUTTI_FLOAT8E5M2: return function<gpu_e5m2_kind>(__VA_ARGS__);                        \
    case TUTTI_FLOAT32: return function<gpu_float32_kind>(__VA_ARGS__);                        \
    default: return function<gpu_float64_kind>(__VA_ARGS__);                                   \
>>>>>>> main
    }

#endif
