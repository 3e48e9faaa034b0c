/* SPDX-License-Identifier: Apache-2.0
 * Per-chunk arithmetic and copies on CPU cores.
 *
 * One table of kernels per instruction set, chosen once from what the processor and the
 * operating system offer. The plain reference is always there and is the oracle of the
 * tests: every variant gives its bits exactly, on every processor.
 *
 * Numerics, for all functions here:
 *
 *  - Integers wrap around.
 *  - float32 and float64 are computed in their own type; float16, bfloat16, E4M3 and E5M2 are
 *    widened to float32 exactly, combined there, scaled, and rounded once. Sources are combined
 *    strictly from left to right; nothing is contracted into fused multiply-adds.
 *  - Narrowing rounds to nearest, ties to even; subnormals are exact in both directions. float16,
 *    bfloat16 and E5M2 overflow to infinity as IEEE 754 says. E4M3 has no infinity: every value
 *    beyond its range, infinities included, saturates to +-448, as CUDA's conversion to
 *    __nv_fp8_e4m3 does (SATFINITE), while NaN stays NaN.
 *  - Every NaN that is computed is the canonical one: sign clear, of the fraction only the quiet
 *    bit: 0x7fc00000 in float32, 0x7ff8000000000000 in float64, 0x7e00 in float16, 0x7fc0 in
 *    bfloat16, 0x7e in E5M2, and 0x7f, the only one, in E4M3.
 *  - Min and max are IEEE 754-2019's minimum and maximum: NaN if any source is, and -0 is less
 *    than +0. All operations on two sources are commutative bit for bit.
 *  - One source without scaling is a copy of its bits, whatever they mean.
 *  - The caller's floating-point environment must be the default one (round to nearest, no
 *    flushing of subnormals).
 *
 * Buffers are aligned to one element, nothing more. A destination may equal a source exactly and
 * never overlaps it otherwise; destinations never overlap each other. With a count of 0 pointers
 * may be NULL. Nothing here fails, blocks or allocates (up to 12 KiB of stack are used), and all
 * functions are thread-safe.
 */
#ifndef TUTTI_DEVICE_CPU_H
#define TUTTI_DEVICE_CPU_H

#include "base/types.h"
#include "device/arithmetic/scale.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TUTTI_NO_SCALE ((struct tutti_scale){.multiply = 1.0, .divide = 1})

/* dsts[k][i] = round(scale(srcs[0][i] op srcs[1][i] op ... )) for all k < ndsts, i < count.
 * nsrcs and ndsts >= 1; the arrays belong to the caller.
 * `stream` asks for non-temporal stores, ordered before any later store when the call
 * returns, to all destinations but the first `nkept`: set it when they are not in the cache and
 * will not be read soon. */
struct tutti_reduce_args {
    enum tutti_type type;
    enum tutti_op op;
    bool stream;
    uint32_t nsrcs, ndsts, nkept;
    const void *const *srcs;
    void *const *dsts;
    size_t count; /* in elements */
    struct tutti_scale scale;
};
void tutti_cpu_reduce(const struct tutti_reduce_args *args);

/* dst[i] = a[i] op b[i]: the two-source case without the array ceremony, for small counts. */
void tutti_cpu_reduce2(enum tutti_type type, enum tutti_op op, void *dst, const void *a,
                       const void *b, size_t count);

/* Convert between a narrow floating type (float16, bfloat16, E4M3, E5M2) and float32, multiplying
 * in float32: after widening, before narrowing. Not in place. */
void tutti_cpu_widen(enum tutti_type type, float *dst, const void *src, size_t count,
                     float multiply);
void tutti_cpu_narrow(enum tutti_type type, void *dst, const float *src, size_t count,
                      float multiply);

/* dst[i] = src[i] scaled, in place or not; any type. */
void tutti_cpu_scale(enum tutti_type type, void *dst, const void *src, size_t count,
                     struct tutti_scale scale);

/* dst[i] = src[i] * scalar: the pre-multiplication; `scalar` points at one element of `type`,
 * of any alignment. Integers wrap. */
void tutti_cpu_premultiply(enum tutti_type type, void *dst, const void *src, size_t count,
                           const void *scalar);

/* memcpy, also onto itself; with `stream` by non-temporal stores, fenced before return. */
void tutti_cpu_copy(void *dst, const void *src, size_t size_bytes, bool stream);

/* "avx512", "avx2", "neon" or "plain": what was chosen. TUTTI_CPU_ISA (param CPU_ISA), read at the
 * first use of any function here, overrides. Lives for ever. */
const char *tutti_cpu_isa(void);

#endif
