/* SPDX-License-Identifier: Apache-2.0
 * The table of kernels that an instruction set provides, and the functions of cpu.h on a given
 * table. Only this folder and its tests include this header. The rules of cpu.h on numerics,
 * aliasing and threads apply here, too.
 */
#ifndef TUTTI_DEVICE_ISA_H
#define TUTTI_DEVICE_ISA_H

#include "device/cpu/cpu.h"

/* Numbers of sources for which a kernel keeps all intermediate values in registers, in ascending
 * order. Any other number of sources is split into such groups. */
enum { TUTTI_GROUP_2, TUTTI_GROUP_3, TUTTI_GROUP_4, TUTTI_GROUP_8, TUTTI_GROUP_COUNT };
#define TUTTI_GROUP_MAX 8

/* dst[i] = round((srcs[0][i] op ... op srcs[n - 1][i]) * multiply), where n is the size of the
 * kernel's group. Kernels for integers, and those for min and max of narrow floats, ignore
 * `multiply`. */
typedef void tutti_reduce_kernel(void *dst, const void *const *srcs, size_t count,
                                 double multiply);

/* A kernel for any number of sources from 1. The data of each source start `at_bytes` into its
 * buffer, and `dst` has no offset. `multiply` is as above. */
typedef void tutti_reduce_many_kernel(void *dst, const void *const *srcs, uint32_t nsrcs,
                                      size_t at_bytes, size_t count, double multiply);

/* In the reference's table only `name` and `is_reference` are set. In other tables a member may be
 * NULL only where its comment says so. `dst` may equal a source unless element sizes differ. */
struct tutti_cpu_kernels {
    const char *name;
    bool is_reference;

    /* Required. */
    tutti_reduce_kernel *reduce[TUTTI_TYPE_COUNT][TUTTI_OP_COUNT][TUTTI_GROUP_COUNT];

    /* Required for sums and products of narrow floats: their intermediate results have more bits
     * than an element, so they must stay in registers. NULL for all other types and operations,
     * which are split into the groups above. */
    tutti_reduce_many_kernel *reduce_many[TUTTI_TYPE_COUNT][TUTTI_OP_COUNT];

    /* Required for the narrow floating types, NULL for others. */
    void (*widen[TUTTI_TYPE_COUNT])(float *dst, const void *src, size_t count, float multiply);
    void (*narrow[TUTTI_TYPE_COUNT])(void *dst, const float *src, size_t count, float multiply);

    /* dst[i] = src[i] * *factor; `factor` points at one element of the type, at any alignment.
     * Required for all types except narrow floats, for which it is NULL. */
    void (*multiply[TUTTI_TYPE_COUNT])(void *dst, const void *src, size_t count,
                                       const void *factor);

    /* dst[i] = src[i] / divisor, truncated toward zero; divisor > 0. Required for integers, NULL
     * for others. */
    void (*divide[TUTTI_TYPE_COUNT])(void *dst, const void *src, size_t count, int64_t divisor);

    /* Copies by non-temporal stores, after which the caller fences. NULL: memcpy is used
     * instead. */
    void (*stream)(void *dst, const void *src, size_t size_bytes);
};

extern const struct tutti_cpu_kernels tutti_cpu_plain;
extern const struct tutti_cpu_kernels tutti_cpu_avx2;
extern const struct tutti_cpu_kernels tutti_cpu_avx512;
extern const struct tutti_cpu_kernels tutti_cpu_neon;

/* Returns the index-th table that this processor can run, from the fastest to the plain reference.
 * Returns NULL past the end. */
const struct tutti_cpu_kernels *tutti_cpu_available(size_t index);

/* The functions of cpu.h on a given table. With the reference's table they call the functions
 * below. */
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

/* The reference implementation, which handles one element at a time as cpu.h defines it. */
void tutti_cpu_plain_reduce(const struct tutti_reduce_args *args);
void tutti_cpu_plain_widen(enum tutti_type type, float *dst, const void *src, size_t count,
                           float multiply);
void tutti_cpu_plain_narrow(enum tutti_type type, void *dst, const float *src, size_t count,
                            float multiply);
void tutti_cpu_plain_premultiply(enum tutti_type type, void *dst, const void *src, size_t count,
                                 const void *scalar);

/* True if the type is float32, float64 or a narrow float. */
static inline bool tutti_cpu_is_floating(enum tutti_type type)
{
    return type == TUTTI_FLOAT32 || type == TUTTI_FLOAT64 || tutti_type_is_narrow_float(type);
}

#endif
