/* SPDX-License-Identifier: Apache-2.0
 * The functions of cpu.h, composed of kernels for a few sources. They reduce any number of sources
 * into any number of destinations, with any scaling.
 *
 * A reduction that no single kernel can do runs block by block. Intermediate results stay in a
 * small buffer in the first-level cache, and the last pass writes the destinations. Blocks also
 * make it safe for a destination to equal a source, because all sources of a block have been read
 * before any destination of that block is written.
 */
#include "device/cpu/isa.h"

#include "base/hot.h"
#include "base/result.h"
#include "device/arithmetic/convert.h"

/* Streamed blocks are short enough that the loads of one block overlap the stores of the previous
 * one: a core's out-of-order window spans a few hundred instructions. With several destinations
 * each block takes more stores, so it is shorter. */
enum { BLOCK_BYTES = 4096, STREAM_BLOCK_BYTES = 1024, SPREAD_BLOCK_BYTES = 512 };

#define BLOCK_ALIGNED __attribute__((aligned(64)))

/* Orders non-temporal stores before everything that follows, such as the flag that tells a peer
 * that the data have arrived. */
static void stream_fence(void)
{
#if defined(__x86_64__)
    __builtin_ia32_sfence();
#endif
}

/* Copies bytes. If they are streamed, the caller must call stream_fence afterwards. */
static void copy_unfenced(const struct tutti_cpu_kernels *kernels, void *dst, const void *src,
                          size_t size_bytes, bool stream)
{
    if (dst == src || size_bytes == 0)
        return;
    if (stream && kernels->stream)
        kernels->stream(dst, src, size_bytes);
    else
        memcpy(dst, src, size_bytes);
}

/* Returns the largest group of kernels that takes at most `count` sources, or the smallest group if
 * `count` is 1. *ret_size is the number of sources that the group takes. */
static unsigned largest_group(uint32_t count, uint32_t *ret_size)
{
    static const uint8_t sizes[TUTTI_GROUP_COUNT] = {2, 3, 4, TUTTI_GROUP_MAX};
    unsigned group = TUTTI_GROUP_COUNT - 1;

    while (group > TUTTI_GROUP_2 && sizes[group] > count)
        group--;
    *ret_size = sizes[group];
    return group;
}

/* Reduces a block group by group in the element type. The result of each group is the first source
 * of the next group, which keeps the order of the sources. */
static void reduce_chained(const struct tutti_cpu_kernels *kernels,
                           const struct tutti_reduce_args *args, size_t at_bytes, size_t count,
                           void *target)
{
    BLOCK_ALIGNED char sum[BLOCK_BYTES];
    const void *members[TUTTI_GROUP_MAX];
    uint32_t taken = 0;

    while (taken < args->nsrcs) {
        uint32_t carried = taken > 0, size;
        unsigned group = largest_group(args->nsrcs - taken + carried, &size);
        bool is_last;

        members[0] = sum;
        for (uint32_t k = carried; k < size; k++)
            members[k] = (const char *)args->srcs[taken++] + at_bytes;
        is_last = taken == args->nsrcs;
        kernels->reduce[args->type][args->op][group](is_last ? target : sum, members, count,
                                                     is_last ? args->scale.multiply : 1.0);
    }
}

/* True if the reduction kernels also multiply, so that no further pass has to. */
static bool kernels_multiply(enum tutti_type type, enum tutti_op op)
{
    return type == TUTTI_FLOAT32 || type == TUTTI_FLOAT64 ||
           (tutti_type_is_narrow_float(type) && (op == TUTTI_SUM || op == TUTTI_PROD));
}

/* Reduces and scales one block into `target`. */
static void reduce_block(const struct tutti_cpu_kernels *kernels,
                         const struct tutti_reduce_args *args, size_t at_bytes, size_t count,
                         void *target)
{
    tutti_reduce_many_kernel *many = kernels->reduce_many[args->type][args->op];

    if (many) {
        many(target, args->srcs, args->nsrcs, at_bytes, count, args->scale.multiply);
    } else if (args->nsrcs == 1) {
        tutti_cpu_scale_by(kernels, args->type, target, (const char *)args->srcs[0] + at_bytes,
                           count, args->scale);
    } else {
        reduce_chained(kernels, args, at_bytes, count, target);
        if (!kernels_multiply(args->type, args->op))
            tutti_cpu_scale_by(kernels, args->type, target, target, count, args->scale);
    }
}

/* Returns the size of a block for a reduction. */
static size_t block_bytes(const struct tutti_reduce_args *args)
{
    if (!args->stream)
        return BLOCK_BYTES;
    return args->ndsts == 1 ? STREAM_BLOCK_BYTES : SPREAD_BLOCK_BYTES;
}

/* Reduces block by block. With streaming, a block is reduced into a small buffer first, unless its
 * first destination is kept in the cache. */
static void reduce_blocks(const struct tutti_cpu_kernels *kernels,
                          const struct tutti_reduce_args *args)
{
    BLOCK_ALIGNED char stage[BLOCK_BYTES];
    const size_t element_bytes = tutti_type_size(args->type);
    const size_t block = block_bytes(args) / element_bytes;

    for (size_t at = 0; at < args->count; at += block) {
        const size_t count = args->count - at < block ? args->count - at : block;
        const size_t at_bytes = at * element_bytes;
        char *first = (char *)args->dsts[0] + at_bytes;
        char *target = args->stream && args->nkept == 0 ? stage : first;

        reduce_block(kernels, args, at_bytes, count, target);
        for (uint32_t k = 0; k < args->ndsts; k++)
            copy_unfenced(kernels, (char *)args->dsts[k] + at_bytes, target, count * element_bytes,
                          args->stream && k >= args->nkept);
    }
    if (args->stream)
        stream_fence();
}

/* True if scaling would not change the result. */
static bool is_unscaled(const struct tutti_reduce_args *args)
{
    return tutti_type_is_floating(args->type) ? args->scale.multiply == 1.0
                                             : args->scale.divide == 1;
}

/* Several destinations are written block by block, so that the source is read from memory once. */
static void copy_source(const struct tutti_cpu_kernels *kernels,
                        const struct tutti_reduce_args *args)
{
    const size_t size_bytes = args->count * tutti_type_size(args->type);
    const size_t block = args->ndsts == 1 ? size_bytes : block_bytes(args);

    for (size_t at = 0; at < size_bytes; at += block) {
        const size_t bytes = size_bytes - at < block ? size_bytes - at : block;

        for (uint32_t k = 0; k < args->ndsts; k++)
            copy_unfenced(kernels, (char *)args->dsts[k] + at, (const char *)args->srcs[0] + at,
                          bytes, args->stream && k >= args->nkept);
    }
    if (args->stream)
        stream_fence();
}

TUTTI_HOT
void tutti_cpu_reduce_by(const struct tutti_cpu_kernels *kernels,
                         const struct tutti_reduce_args *args)
{
    uint32_t size;
    unsigned group;

    if (args->count == 0)
        return;
    /* Small calls of two ranks end here. */
    if (args->nsrcs == 2 && args->ndsts == 1 && !args->stream && !kernels->is_reference &&
        args->scale.multiply == 1.0 && args->scale.divide == 1) {
        kernels->reduce[args->type][args->op][TUTTI_GROUP_2](args->dsts[0], args->srcs,
                                                             args->count, 1.0);
        return;
    }
    if (args->nsrcs == 1 && is_unscaled(args)) {
        copy_source(kernels, args);
        return;
    }
    if (kernels->is_reference) {
        tutti_cpu_plain_reduce(args);
        return;
    }
    group = largest_group(args->nsrcs, &size);
    if (args->ndsts > 1 || args->stream ||
        !(is_unscaled(args) || kernels_multiply(args->type, args->op)))
        reduce_blocks(kernels, args);
    else if (size == args->nsrcs)
        kernels->reduce[args->type][args->op][group](args->dsts[0], args->srcs, args->count,
                                                     args->scale.multiply);
    else if (kernels->reduce_many[args->type][args->op])
        kernels->reduce_many[args->type][args->op](args->dsts[0], args->srcs, args->nsrcs, 0,
                                                   args->count, args->scale.multiply);
    else
        reduce_blocks(kernels, args);
}

void tutti_cpu_widen_by(const struct tutti_cpu_kernels *kernels, enum tutti_type type, float *dst,
                        const void *src, size_t count, float multiply)
{
    tutti_assert(tutti_type_is_narrow_float(type));
    if (kernels->is_reference)
        tutti_cpu_plain_widen(type, dst, src, count, multiply);
    else
        kernels->widen[type](dst, src, count, multiply);
}

void tutti_cpu_narrow_by(const struct tutti_cpu_kernels *kernels, enum tutti_type type, void *dst,
                         const float *src, size_t count, float multiply)
{
    tutti_assert(tutti_type_is_narrow_float(type));
    if (kernels->is_reference)
        tutti_cpu_plain_narrow(type, dst, src, count, multiply);
    else
        kernels->narrow[type](dst, src, count, multiply);
}

void tutti_cpu_scale_by(const struct tutti_cpu_kernels *kernels, enum tutti_type type, void *dst,
                        const void *src, size_t count, struct tutti_scale scale)
{
    const float factor = (float)scale.multiply;
    const struct tutti_reduce_args args = {
        .type = type, .nsrcs = 1, .ndsts = 1, .srcs = &src, .dsts = &dst, .count = count,
        .scale = scale,
    };

    if (count == 0)
        return;
    if (is_unscaled(&args))
        copy_source(kernels, &args);
    else if (kernels->is_reference)
        tutti_cpu_plain_reduce(&args);
    else if (tutti_type_is_narrow_float(type))
        kernels->reduce_many[type][TUTTI_SUM](dst, &src, 1, 0, count, scale.multiply);
    else if (type == TUTTI_FLOAT32)
        kernels->multiply[type](dst, src, count, &factor);
    else if (type == TUTTI_FLOAT64)
        kernels->multiply[type](dst, src, count, &scale.multiply);
    else
        kernels->divide[type](dst, src, count, scale.divide);
}

void tutti_cpu_premultiply_by(const struct tutti_cpu_kernels *kernels, enum tutti_type type,
                              void *dst, const void *src, size_t count, const void *scalar)
{
    uint16_t aligned = 0;
    float factor;

    if (count == 0)
        return;
    if (kernels->is_reference) {
        tutti_cpu_plain_premultiply(type, dst, src, count, scalar);
    } else if (tutti_type_is_narrow_float(type)) {
        memcpy(&aligned, scalar, tutti_type_size(type));
        kernels->widen[type](&factor, &aligned, 1, 1.0f);
        kernels->reduce_many[type][TUTTI_SUM](dst, &src, 1, 0, count, (double)factor);
    } else {
        kernels->multiply[type](dst, src, count, scalar);
    }
}

void tutti_cpu_copy_by(const struct tutti_cpu_kernels *kernels, void *dst, const void *src,
                       size_t size_bytes, bool stream)
{
    copy_unfenced(kernels, dst, src, size_bytes, stream);
    if (stream)
        stream_fence();
}
