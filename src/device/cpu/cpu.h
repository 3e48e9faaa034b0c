/* SPDX-License-Identifier: Apache-2.0
 * Per-chunk arithmetic and copies on CPU cores.
 *
 * One table of functions per instruction set, chosen once from what the
 * processor and the operating system offer; the plain reference is always there
 * and is the oracle of the tests: every variant gives its bits exactly.
 *
 * Semantics (tutti.h): integers wrap; float16, bfloat16 and the float8 types are
 * widened to float32, combined there in source order, scaled, and rounded once (nearest
 * even; float16 and E5M2 overflow to infinity, E4M3 saturates... see numerics in reduce.h);
 * min and max propagate NaN (a canonical quiet NaN); -0 and +0 compare equal, and the first source
 * wins ties. Buffers are element-aligned, nothing more. Destinations may equal
 * a source exactly, never overlap it otherwise.
 */
#ifndef TUTTI_DEVICE_CPU_H
#define TUTTI_DEVICE_CPU_H

#include "base/types.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What happens to a value after the last source: multiplied (floating types) or divided with
 * truncation (integers), in the accumulator's type, before rounding. */
struct tutti_scale {
    double multiply;  /* floating types: 1.0 for none */
    int64_t divide;   /* integer types: 1 for none; always > 0 */
};

#define TUTTI_NO_SCALE ((struct tutti_scale){.multiply = 1.0, .divide = 1})

/* dsts[k][i] = round(scale(srcs[0][i] op srcs[1][i] op ... )) for all k < ndsts, i < count.
 * nsrcs and ndsts >= 1. Sources are combined strictly left to right.
 * `stream` asks for non-temporal stores: set it when the destinations will
 * not be read soon and the footprint exceeds the last-level cache. */
struct tutti_reduce_args {
    enum tutti_type type;
    enum tutti_op op;
    bool stream;
    uint32_t nsrcs, ndsts;
    const void *const *srcs;
    void *const *dsts;
    size_t count;
    struct tutti_scale scale;
};
void tutti_cpu_reduce(const struct tutti_reduce_args *args);

/* dst[i] = a[i] op b[i]: the two-source case without the array ceremony. */
void tutti_cpu_reduce2(enum tutti_type type, enum tutti_op op, void *dst, const void *a,
                       const void *b, size_t count);

/* Convert between a narrow floating type and float32, scaling on the way (in float32, before
 * rounding when narrowing, after widening when widening). */
void tutti_cpu_widen(enum tutti_type type, float *dst, const void *src, size_t count, float multiply);
void tutti_cpu_narrow(enum tutti_type type, void *dst, const float *src, size_t count, float multiply);

/* dst[i] = src[i] scaled, in place or not; any type. */
void tutti_cpu_scale(enum tutti_type type, void *dst, const void *src, size_t count,
                     struct tutti_scale scale);

/* dst[i] = src[i] * scalar: the pre-multiplication; `scalar` points at one element of `type`;
 * integers wrap. */
void tutti_cpu_premultiply(enum tutti_type type, void *dst, const void *src, size_t count,
                           const void *scalar);

/* memcpy; with `stream` by non-temporal stores, fenced before return. */
void tutti_cpu_copy(void *dst, const void *src, size_t size_bytes, bool stream);

/* "avx512", "avx2", "neon", "plain": what was chosen. TUTTI_CPU_ISA overrides (param CPU_ISA). */
const char *tutti_cpu_isa(void);

#endif
