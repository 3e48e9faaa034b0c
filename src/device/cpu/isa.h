/* SPDX-License-Identifier: Apache-2.0
 * What an instruction set provides, and the functions of cpu.h for a given one: inside this room
 * and for its tests only.
 */
#ifndef TUTTI_DEVICE_ISA_H
#define TUTTI_DEVICE_ISA_H

#include "device/cpu/cpu.h"

/* Numbers of sources for which kernels keep everything in registers, in ascending order; other
 * numbers are made of these. */
enum { TUTTI_GROUP_2, TUTTI_GROUP_3, TUTTI_GROUP_4, TUTTI_GROUP_8, TUTTI_GROUP_COUNT };
#define TUTTI_GROUP_MAX 8

/* dst[i] = round((srcs[0][i] op ... op srcs[n - 1][i]) * multiply); integers, and min and max of
 * narrow floats, ignore `multiply`. */
typedef void tutti_reduce_kernel(void *dst, const void *const *srcs, size_t count,
                                 double multiply);

/* The same for any number of sources from 1, which start `at_bytes` into their buffers. */
typedef void tutti_reduce_many_kernel(void *dst, const void *const *srcs, uint32_t nsrcs,
                                      size_t at_bytes, size_t count, double multiply);

/* Every member but `name` may be NULL in the reference's table; in the others as it says. In all
 * of them dst may equal a source exactly, unless the element sizes differ. */
struct tutti_cpu_kernels {
    const char *name;
    bool is_reference;

    /* Required. */
    tutti_reduce_kernel *reduce[TUTTI_TYPE_COUNT][TUTTI_OP_COUNT][TUTTI_GROUP_COUNT];

    /* Required for sums and products of narrow floats, whose results so far have more bits than an
     * element and stay in registers. NULL for all else, which is made of the groups above. */
    tutti_reduce_many_kernel *reduce_many[TUTTI_TYPE_COUNT][TUTTI_OP_COUNT];

    /* Required for the narrow floating types, NULL for others. */
    void (*widen[TUTTI_TYPE_COUNT])(float *dst, const void *src, size_t count, float multiply);
    void (*narrow[TUTTI_TYPE_COUNT])(void *dst, const float *src, size_t count, float multiply);

    /* dst[i] = src[i] * factor, one element of the type. Required except for narrow floats. */
    void (*multiply[TUTTI_TYPE_COUNT])(void *dst, const void *src, size_t count,
                                       const void *factor);

    /* dst[i] = src[i] / divisor, truncated. Required for integers, NULL for others. */
    void (*divide[TUTTI_TYPE_COUNT])(void *dst, const void *src, size_t count, int64_t divisor);

    /* memcpy by non-temporal stores without a fence. NULL: the plain memcpy serves. */
    void (*stream)(void *dst, const void *src, size_t size_bytes);
};

extern const struct tutti_cpu_kernels tutti_cpu_plain;
extern const struct tutti_cpu_kernels tutti_cpu_avx2;
extern const struct tutti_cpu_kernels tutti_cpu_avx512;
extern const struct tutti_cpu_kernels tutti_cpu_neon;

/* What this processor can run, best first, the plain reference last; NULL past the end. */
const struct tutti_cpu_kernels *tutti_cpu_available(size_t index);

/* cpu.h with a given table; with the reference's table these go to the functions below. */
void tutti_cpu_reduce_by(const struct tutti_cpu_kernels *kernels,
                         const struct tutti_reduce_args *args);
void tutti_cpu_widen_by(const struct tutti_cpu_kernels *kernels, enum tutti_type type, float *dst,
                        const void *src, size_t count, float multiply);
void tutti_cpu_narrow_by(const struct tutti_cpu_kernels *kernels, enum tutti_type type, void *dst,
                         const float *src, size_t count, float multiply);
void tutti_cpu_scale_by(const struct tutti_cpu_kernels *kernels, enum tutti_type type, void *dst,
                        const void *src, size_t count, struct tutti_scale scale);
void tutti_cpu_premultiply_by(const struct tutti_cpu_kernels *kernels, enum tutti_type type,
                              void *dst, const void *src, size_t count, const void *scalar);
void tutti_cpu_copy_by(const struct tutti_cpu_kernels *kernels, void *dst, const void *src,
                       size_t size_bytes, bool stream);

/* The reference: one element at a time, as cpu.h defines it. */
void tutti_cpu_plain_reduce(const struct tutti_reduce_args *args);
void tutti_cpu_plain_widen(enum tutti_type type, float *dst, const void *src, size_t count,
                           float multiply);
void tutti_cpu_plain_narrow(enum tutti_type type, void *dst, const float *src, size_t count,
                            float multiply);
void tutti_cpu_plain_premultiply(enum tutti_type type, void *dst, const void *src, size_t count,
                                 const void *scalar);

static inline bool tutti_type_is_floating(enum tutti_type type)
{
    return type == TUTTI_FLOAT32 || type == TUTTI_FLOAT64 || tutti_type_is_narrow_float(type);
}

#endif
