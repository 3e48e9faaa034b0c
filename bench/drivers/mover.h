/* SPDX-License-Identifier: Apache-2.0
 * The fastest ways of this machine to copy, add, store and load memory, for programs that measure
 * its limits. */
#ifndef BENCH_MOVER_H
#define BENCH_MOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mover_style {
    MOVER_PLAIN,
    MOVER_STREAMING, /* stores past the caches */
    MOVER_STRINGS,   /* the processor's own string copy; copies only */
    MOVER_STYLES
};

/* dests[j][i] = sources[0][i] + sources[1][i] + ... for i below `count`, for all `ndests`; one
 * source: a copy. False if the style cannot do it. */
bool mover_move(enum mover_style style, const float *const *sources, int nsources,
                float *const *dests, int ndests, size_t count);

/* Only stores, past the caches, and only loads; whole cache lines. A machine may store zeros twice
 * as fast as other numbers. The result of the loads, all bits or'ed, exists so that no compiler
 * removes them. */
void mover_store(float *dest, size_t count, bool zeros);
uint32_t mover_load(const float *source, size_t count);

#endif
