/* SPDX-License-Identifier: Apache-2.0
 * The choice of the kernels that this process uses, and the functions of cpu.h on these kernels. */
#include "device/cpu/isa.h"

#include "base/atomic.h"
#include "base/param.h"

#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#if defined(__x86_64__)
/* Clang's __builtin_cpu_supports does not know "f16c". */
static bool has_f16c(void)
{
    unsigned eax, ebx, ecx = 0, edx;

    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && has_f16c();
}

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && has_f16c();
}
#endif

static bool always(void)
{
    return true;
}

static const struct {
    const struct tutti_cpu_kernels *kernels;
    bool (*is_supported)(void); /* true only if the operating system saves the registers, too */
} variants[] = {
#if defined(__x86_64__)
    {&tutti_cpu_avx512, has_avx512},
    {&tutti_cpu_avx2, has_avx2},
#elif defined(__aarch64__)
    {&tutti_cpu_neon, always},
#endif
    {&tutti_cpu_plain, always},
};

const struct tutti_cpu_kernels *tutti_cpu_available(size_t index)
{
    for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]); i++)
        if (variants[i].is_supported() && index-- == 0)
            return variants[i].kernels;
    return NULL;
}

/* Returns the table that TUTTI_CPU_ISA names, or else the fastest that the processor can run. */
static const struct tutti_cpu_kernels *choose(void)
{
    /* The order must be that of the parameter's choices in base/param_table.h. */
    static const char *const names[] = {"auto", "plain", "avx2", "avx512", "neon"};
    const char *name = names[tutti_param_int(TUTTI_PARAM_CPU_ISA)];
    const struct tutti_cpu_kernels *kernels = tutti_cpu_available(0);

    if (strcmp(name, "auto") == 0)
        return kernels;
    for (size_t i = 0; (kernels = tutti_cpu_available(i)) != NULL; i++)
        if (strcmp(kernels->name, name) == 0)
            return kernels;
    return &tutti_cpu_plain;
}

/* Returns the table that this process uses. The first call chooses it. */
static const struct tutti_cpu_kernels *chosen(void)
{
    static const struct tutti_cpu_kernels *choice;
    /* Relaxed order is enough: the tables are constants, and racing threads choose the same one. */
    const struct tutti_cpu_kernels *kernels = tutti_load_relaxed(&choice);

    if (__builtin_expect(kernels == NULL, 0)) {
        kernels = choose();
        tutti_store_relaxed(&choice, kernels);
    }
    return kernels;
}

const char *tutti_cpu_isa(void)
{
    return chosen()->name;
}

void tutti_cpu_reduce(const struct tutti_reduce_args *args)
{
    tutti_cpu_reduce_by(chosen(), args);
}

void tutti_cpu_reduce2(enum tutti_type type, enum tutti_op op, void *dst, const void *a,
                       const void *b, size_t count)
{
    const struct tutti_cpu_kernels *kernels = chosen();
    tutti_reduce_kernel *kernel = kernels->reduce[type][op][TUTTI_GROUP_2];
    const void *const srcs[2] = {a, b};

    if (kernel) {
        kernel(dst, srcs, count, 1.0);
        return;
    }
    tutti_cpu_reduce_by(kernels, &(struct tutti_reduce_args){
        .type = type, .op = op, .nsrcs = 2, .ndsts = 1, .srcs = srcs, .dsts = &dst,
        .count = count, .scale = TUTTI_NO_SCALE,
    });
}

void tutti_cpu_widen(enum tutti_type type, float *dst, const void *src, size_t count,
                     float multiply)
{
    tutti_cpu_widen_by(chosen(), type, dst, src, count, multiply);
}

void tutti_cpu_narrow(enum tutti_type type, void *dst, const float *src, size_t count,
                      float multiply)
{
    tutti_cpu_narrow_by(chosen(), type, dst, src, count, multiply);
}

void tutti_cpu_scale(enum tutti_type type, void *dst, const void *src, size_t count,
                     struct tutti_scale scale)
{
    tutti_cpu_scale_by(chosen(), type, dst, src, count, scale);
}

void tutti_cpu_premultiply(enum tutti_type type, void *dst, const void *src, size_t count,
                           const void *scalar)
{
    tutti_cpu_premultiply_by(chosen(), type, dst, src, count, scalar);
}

void tutti_cpu_copy(void *dst, const void *src, size_t size_bytes, bool stream)
{
    if (stream)
        tutti_cpu_copy_by(chosen(), dst, src, size_bytes, stream);
    else if (size_bytes > 0)
        memcpy(dst, src, size_bytes); /* as all kernels do, but without looking them up */
}
