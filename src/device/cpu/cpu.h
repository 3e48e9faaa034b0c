/* SPDX-License-Identifier: Apache-2.0
 * Arithmetic and copies on CPU cores. One call handles one chunk of a collective operation's data.
 *
 * Each instruction set has one table of kernels. The table is chosen once, from what the processor
 * and the operating system support. The plain reference implementation is always available and is
 * the reference of the tests: every variant gives exactly the same bits, on every processor.
 *
 * Numerics, for all functions here:
 *
 *  - Integers wrap around. Bitwise and logical operations take integers and bool
 *    (tutti_op_takes). On bool all operations are logical, and nothing is scaled.
 *  - float32 and float64 are computed in their own type; float16, bfloat16, E4M3 and E5M2 are
 *    widened to float32 exactly, combined there, scaled, and rounded once. Sources are combined
 *    strictly from left to right; nothing is contracted into fused multiply-adds.
 *  - Narrowing rounds to nearest, ties to even; subnormals are exact in both directions. float16,
 *    bfloat16 and E5M2 overflow to infinity as IEEE 754 says. E4M3 has no infinity: every value
 *    beyond its range, infinities included, saturates to +-448, as CUDA's conversion to
 *    __nv_fp8_e4m3 does (SATFINITE), while NaN stays NaN.
 *  - Every computed NaN is the canonical one: the sign is clear, and only the quiet bit of the
 *    fraction is set. That is 0x7fc00000 in float32, 0x7ff8000000000000 in float64, 0x7e00 in
 *    float16, 0x7fc0 in bfloat16 and 0x7e in E5M2. In E4M3 it is 0x7f, which is the only NaN apart
 *    from its sign.
 *  - Min and max are IEEE 754-2019's minimum and maximum: the result is NaN if any source is NaN,
 *    and -0 is less than +0. All operations on two sources are commutative bit for bit.
 *  - A single source that is not scaled is copied bit for bit, so a NaN keeps its payload.
 *  - The caller's floating-point environment must be the default one (round to nearest, no
 *    flushing of subnormals).
 *
 * Buffers need only be aligned to one element. A destination may be the same buffer as a source;
 * any other overlap of the two is forbidden, and destinations never overlap each other. If the
 * count is 0, pointers may be NULL. No function here fails, blocks or allocates memory; they use up
 * to 12 KiB of stack. All are thread-safe.
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
 *
 * nsrcs and ndsts are at least 1. The arrays remain the caller's.
 *
 * `stream` asks for non-temporal stores to all destinations except the first `nkept`. Set it if
 * those destinations are not in the cache and will not be read soon. When the call returns, these
 * stores are ordered before any later store. */
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

/* dst[i] = a[i] op b[i], without scaling. This function has less overhead per call than
 * tutti_cpu_reduce, which matters for small counts. */
void tutti_cpu_reduce2(enum tutti_type type, enum tutti_op op, void *dst, const void *a,
                       const void *b, size_t count);

/* Convert between a narrow floating type (float16, bfloat16, E4M3, E5M2) and float32. `type` is the
 * narrow type. The product with `multiply` is taken in float32: after widening or before narrowing.
 * `dst` and `src` must not overlap. */
void tutti_cpu_widen(enum tutti_type type, float *dst, const void *src, size_t count,
                     float multiply);
void tutti_cpu_narrow(enum tutti_type type, void *dst, const float *src, size_t count,
                      float multiply);

/* dst[i] = src[i] scaled, for any type. `dst` may equal `src`. */
void tutti_cpu_scale(enum tutti_type type, void *dst, const void *src, size_t count,
                     struct tutti_scale scale);

/* dst[i] = src[i] * scalar, for reductions that multiply each input before combining. `scalar`
 * points at one element of `type`, at any alignment. Integers wrap. `dst` may equal `src`. */
void tutti_cpu_premultiply(enum tutti_type type, void *dst, const void *src, size_t count,
                           const void *scalar);

/* Copies like memcpy, but `dst` may equal `src`. With `stream` the function uses non-temporal
 * stores, which are ordered before any later store when the function returns. */
void tutti_cpu_copy(void *dst, const void *src, size_t size_bytes, bool stream);

/* Returns the name of the table in use: "avx512", "avx2", "neon" or "plain". The first use of any
 * function in this file chooses the table. The variable TUTTI_CPU_ISA (param CPU_ISA) overrides the
 * choice. An instruction set that the processor lacks gives "plain". The string is static. */
const char *tutti_cpu_isa(void);

#endif
