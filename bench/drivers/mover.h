/* SPDX-License-Identifier: Apache-2.0
 * The fastest ways of this machine to copy, add, store and load memory, for programs that measure
 * its limits. */
#ifndef BENCH_MOVER_H
#define BENCH_MOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mover_style {
    MOVER_PLAIN,     /* ordinary stores */
    MOVER_STREAMING, /* stores past the caches, if all destinations are aligned to 64 bytes */
    MOVER_STRINGS,   /* the string copy of the processor: copies only */
    MOVER_STYLES     /* their number */
};

/* Computes dests[j][i] = sources[0][i] + sources[1][i] + ... for all i below `count` and all j
 * below `ndests`. With one source it is a copy. Returns false if the style cannot do this. */
bool mover_move(enum mover_style style, const float *const *sources, int nsources,
                float *const *dests, int ndests, size_t count);

/* Stores `count` floats past the caches, and loads nothing. `dest` is aligned to 64 bytes, and
 * `count` is a multiple of 16. The caller can choose zeros, because a machine may store zeros twice
 * as fast as other numbers. */
void mover_store(float *dest, size_t count, bool zeros);

/* Loads `count` floats, a multiple of 16, and stores nothing. Returns the bitwise or of them, so
 * that no compiler removes the loads. */
uint32_t mover_load(const float *source, size_t count);

#endif
