/* SPDX-License-Identifier: Apache-2.0
 * The table of collectives. Everything that other code needs to know about a collective stands in
 * its row, so a new collective is a row, its algorithms and its kernels.
 *
 * This file is valid C11, C++17 and CUDA C++: hosts and kernels read the same rows. The functions
 * below fold a column into one constant, so reading it takes a shift and a mask, and no memory.
 */
#ifndef TUTTI_SCHEDULE_COLLECTIVE_H
#define TUTTI_SCHEDULE_COLLECTIVE_H

#include "base/inline.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The columns:
 *
 *   collective   constant of enum tutti_collective. Its value is the index of the row.
 *   name         as users write it and messages show it; "v" is appended for the v-form
 *   call, v      the collective's number in signatures, and that of its v-form, which has counts
 *                per rank. TUTTI_NO_CALL: there is no v-form. The numbers travel between ranks, so
 *                they never change, and none is used twice. 18 is taken by signature.h.
 *   input,       the blocks of the buffers, and which ranks have the buffers
 *   output
 *   work         what is done with the inputs
 *   in place     how an in-place call overlays INPUT and OUTPUT
 *   sources      the ranks whose inputs the output of a rank depends on. A rank without sources has
 *                no output. */
/* clang-format off */
#define TUTTI_COLLECTIVES(ROW)                                                                     \
    /*  collective, name, call, v,             input, output,                                      \
     *                                         work, in place, sources */                          \
    ROW(TUTTI_ALLREDUCE, "allreduce",           0, TUTTI_NO_CALL,                                  \
        TUTTI_ONE_BLOCK,                        TUTTI_ONE_BLOCK,                                   \
        TUTTI_REDUCES, TUTTI_AT_SAME_PLACE, TUTTI_FROM_ALL)                                        \
    ROW(TUTTI_REDUCE, "reduce",                 1, TUTTI_NO_CALL,                                  \
        TUTTI_ONE_BLOCK,                        TUTTI_ONE_BLOCK | TUTTI_AT_ROOT,                   \
        TUTTI_REDUCES, TUTTI_AT_SAME_PLACE, TUTTI_FROM_ALL)                                        \
    ROW(TUTTI_BROADCAST, "broadcast",           2, TUTTI_NO_CALL,                                  \
        TUTTI_ONE_BLOCK | TUTTI_AT_ROOT,        TUTTI_ONE_BLOCK,                                   \
        TUTTI_COPIES, TUTTI_AT_SAME_PLACE, TUTTI_FROM_ROOT)                                        \
    ROW(TUTTI_ALLGATHER, "allgather",           3, 12,                                             \
        TUTTI_ONE_BLOCK,                        TUTTI_BLOCK_PER_RANK,                              \
        TUTTI_COPIES, TUTTI_AT_OWN_BLOCK, TUTTI_FROM_ALL)                                          \
    ROW(TUTTI_REDUCE_SCATTER, "reduce_scatter", 4, 13,                                             \
        TUTTI_BLOCK_PER_RANK,                   TUTTI_ONE_BLOCK,                                   \
        TUTTI_REDUCES, TUTTI_AT_OWN_BLOCK, TUTTI_FROM_ALL)                                         \
    ROW(TUTTI_ALLTOALL, "alltoall",             5, 14,                                             \
        TUTTI_BLOCK_PER_RANK,                   TUTTI_BLOCK_PER_RANK,                              \
        TUTTI_COPIES, TUTTI_AFTER_COPY, TUTTI_FROM_ALL)                                            \
    ROW(TUTTI_GATHER, "gather",                 6, 15,                                             \
        TUTTI_ONE_BLOCK,                        TUTTI_BLOCK_PER_RANK | TUTTI_AT_ROOT,              \
        TUTTI_COPIES, TUTTI_AT_OWN_BLOCK, TUTTI_FROM_ALL)                                          \
    ROW(TUTTI_SCATTER, "scatter",               7, 16,                                             \
        TUTTI_BLOCK_PER_RANK | TUTTI_AT_ROOT,   TUTTI_ONE_BLOCK,                                   \
        TUTTI_COPIES, TUTTI_AT_OWN_BLOCK, TUTTI_FROM_ROOT)                                         \
    ROW(TUTTI_BARRIER, "barrier",               8, TUTTI_NO_CALL,                                  \
        TUTTI_NO_BLOCKS,                        TUTTI_NO_BLOCKS,                                   \
        TUTTI_WAITS, TUTTI_NEVER_IN_PLACE, TUTTI_FROM_NONE)                                        \
    ROW(TUTTI_SCAN, "scan",                    19, TUTTI_NO_CALL,                                  \
        TUTTI_ONE_BLOCK,                        TUTTI_ONE_BLOCK,                                   \
        TUTTI_REDUCES, TUTTI_AT_SAME_PLACE, TUTTI_FROM_UP_TO)                                      \
    ROW(TUTTI_EXCLUSIVE_SCAN, "exclusive_scan", 20, TUTTI_NO_CALL,                                 \
        TUTTI_ONE_BLOCK,                        TUTTI_ONE_BLOCK,                                   \
        TUTTI_REDUCES, TUTTI_AT_SAME_PLACE, TUTTI_FROM_BELOW)
/* clang-format on */

/* Columns input and output: bits. */
enum tutti_blocks {
    TUTTI_NO_BLOCKS = 0,
    TUTTI_ONE_BLOCK = 1,
    TUTTI_BLOCK_PER_RANK = 2,
    TUTTI_AT_ROOT = 4, /* only the root has the buffer */
};

/* Column work. */
enum tutti_work {
    TUTTI_COPIES,  /* blocks of the output are blocks of inputs */
    TUTTI_REDUCES, /* the output combines blocks of the inputs of `sources` */
    TUTTI_WAITS,   /* nothing is moved; ranks only wait for each other */
};

/* Column in place. */
enum tutti_collective_overlay {
    TUTTI_NEVER_IN_PLACE,
    TUTTI_AT_SAME_PLACE, /* both buffers begin at the same address */
    TUTTI_AT_OWN_BLOCK,  /* the buffer of one block is this rank's block of the other buffer */
    /* Both buffers begin at the same address, but no schedule is right for that, so the library
     * copies the input first. */
    TUTTI_AFTER_COPY,
};

/* Column sources. */
enum tutti_sources {
    TUTTI_FROM_NONE,
    TUTTI_FROM_ALL,
    TUTTI_FROM_ROOT,
    TUTTI_FROM_UP_TO, /* the ranks up to the own rank */
    TUTTI_FROM_BELOW, /* the ranks below the own rank; rank 0 has no sources */
};

#define TUTTI_NO_CALL 255

enum tutti_collective {
#define TUTTI_CONSTANT(collective, ...) collective,
    TUTTI_COLLECTIVES(TUTTI_CONSTANT)
#undef TUTTI_CONSTANT
    TUTTI_COLLECTIVE_COUNT
};

/* A column as one number: four bits for each row. */
#define TUTTI_IN_COLUMN(row, value) | (uint64_t)(value) << 4 * (row)
#define TUTTI_COLUMN(row_to_value) (UINT64_C(0) TUTTI_COLLECTIVES(row_to_value))
#define TUTTI_IN_INPUT(row, name, call, v, input, output, work, in_place, sources)                 \
    TUTTI_IN_COLUMN(row, input)
#define TUTTI_IN_OUTPUT(row, name, call, v, input, output, work, in_place, sources)                \
    TUTTI_IN_COLUMN(row, output)
#define TUTTI_IN_WORK(row, name, call, v, input, output, work, in_place, sources)                  \
    TUTTI_IN_COLUMN(row, work)
#define TUTTI_IN_PLACE(row, name, call, v, input, output, work, in_place, sources)                 \
    TUTTI_IN_COLUMN(row, in_place)
#define TUTTI_IN_SOURCES(row, name, call, v, input, output, work, in_place, sources)               \
    TUTTI_IN_COLUMN(row, sources)

/* ---- the columns -------------------------------------------------------------------------
 * `collective` is an enum tutti_collective other than TUTTI_COLLECTIVE_COUNT. */

/* Bits of enum tutti_blocks. */
TUTTI_INLINE uint32_t tutti_collective_input(uint32_t collective)
{
    return (uint32_t)(TUTTI_COLUMN(TUTTI_IN_INPUT) >> 4 * collective) & 15;
}

TUTTI_INLINE uint32_t tutti_collective_output(uint32_t collective)
{
    return (uint32_t)(TUTTI_COLUMN(TUTTI_IN_OUTPUT) >> 4 * collective) & 15;
}

TUTTI_INLINE enum tutti_work tutti_collective_work(uint32_t collective)
{
    return (enum tutti_work)(TUTTI_COLUMN(TUTTI_IN_WORK) >> 4 * collective & 15);
}

TUTTI_INLINE enum tutti_collective_overlay tutti_collective_in_place(uint32_t collective)
{
    return (enum tutti_collective_overlay)(TUTTI_COLUMN(TUTTI_IN_PLACE) >> 4 * collective & 15);
}

TUTTI_INLINE enum tutti_sources tutti_collective_sources(uint32_t collective)
{
    return (enum tutti_sources)(TUTTI_COLUMN(TUTTI_IN_SOURCES) >> 4 * collective & 15);
}

/* ---- what follows from the columns -------------------------------------------------------- */

TUTTI_INLINE bool tutti_collective_reduces(uint32_t collective)
{
    return tutti_collective_work(collective) == TUTTI_REDUCES;
}

/* False for a barrier. */
TUTTI_INLINE bool tutti_collective_has_data(uint32_t collective)
{
    return tutti_collective_work(collective) != TUTTI_WAITS;
}

TUTTI_INLINE bool tutti_collective_has_root(uint32_t collective)
{
    return ((tutti_collective_input(collective) | tutti_collective_output(collective)) &
            TUTTI_AT_ROOT) != 0;
}

/* True if the input, or the output, has a block for each rank. */
TUTTI_INLINE bool tutti_input_is_per_rank(uint32_t collective)
{
    return (tutti_collective_input(collective) & TUTTI_BLOCK_PER_RANK) != 0;
}

TUTTI_INLINE bool tutti_output_is_per_rank(uint32_t collective)
{
    return (tutti_collective_output(collective) & TUTTI_BLOCK_PER_RANK) != 0;
}

/* True if each pair of ranks has a block of its own: an all-to-all. */
TUTTI_INLINE bool tutti_collective_is_pairwise(uint32_t collective)
{
    return tutti_input_is_per_rank(collective) && tutti_output_is_per_rank(collective);
}

/* True if each count of the v-form concerns one pair of ranks, and other ranks need not know it.
 * The pairs are all pairs of ranks in an all-to-all, and the root with each rank in a collective
 * with a root. False if all ranks must know all counts. */
TUTTI_INLINE bool tutti_collective_counts_by_pair(uint32_t collective)
{
    return tutti_collective_is_pairwise(collective) || tutti_collective_has_root(collective);
}

/* True if results may be averages. An average has one divisor, so each rank must combine all
 * ranks. */
TUTTI_INLINE bool tutti_collective_can_average(uint32_t collective)
{
    return tutti_collective_reduces(collective) &&
           tutti_collective_sources(collective) == TUTTI_FROM_ALL;
}

/* True if every rank gets the same sum over all ranks: an all-reduce. */
TUTTI_INLINE bool tutti_collective_gives_one_result(uint32_t collective)
{
    return tutti_collective_can_average(collective) &&
           tutti_collective_input(collective) == TUTTI_ONE_BLOCK &&
           tutti_collective_output(collective) == TUTTI_ONE_BLOCK;
}

/* Number of blocks, over nranks ranks, of a buffer with these bits of enum tutti_blocks. */
TUTTI_INLINE uint32_t tutti_blocks_count(uint32_t blocks, uint32_t nranks)
{
    return (blocks & TUTTI_BLOCK_PER_RANK) != 0 ? nranks : blocks & TUTTI_ONE_BLOCK;
}

/* True if `rank` has a buffer with these bits of enum tutti_blocks. */
TUTTI_INLINE bool tutti_blocks_exist(uint32_t blocks, uint32_t rank, uint32_t root)
{
    return blocks != TUTTI_NO_BLOCKS && ((blocks & TUTTI_AT_ROOT) == 0 || rank == root);
}

/* Number of blocks of INPUT and OUTPUT over nranks ranks. */
TUTTI_INLINE uint32_t tutti_input_blocks(uint32_t collective, uint32_t nranks)
{
    return tutti_blocks_count(tutti_collective_input(collective), nranks);
}

TUTTI_INLINE uint32_t tutti_output_blocks(uint32_t collective, uint32_t nranks)
{
    return tutti_blocks_count(tutti_collective_output(collective), nranks);
}

/* True if `rank` has the buffer, that is, if its caller provides the buffer. */
TUTTI_INLINE bool tutti_collective_has_input(uint32_t collective, uint32_t rank, uint32_t root)
{
    return tutti_blocks_exist(tutti_collective_input(collective), rank, root);
}

TUTTI_INLINE bool tutti_collective_has_output(uint32_t collective, uint32_t rank, uint32_t root)
{
    return tutti_blocks_exist(tutti_collective_output(collective), rank, root) &&
           (rank > 0 || tutti_collective_sources(collective) != TUTTI_FROM_BELOW);
}

/* True if the output of rank `to` depends on the input of rank `from`. */
TUTTI_INLINE bool tutti_collective_is_source(uint32_t collective, uint32_t from, uint32_t to,
                                             uint32_t root)
{
    if (!tutti_collective_has_output(collective, to, root))
        return false;
    switch (tutti_collective_sources(collective)) {
    case TUTTI_FROM_ALL: return true;
    case TUTTI_FROM_ROOT: return from == root;
    case TUTTI_FROM_UP_TO: return from <= to;
    case TUTTI_FROM_BELOW: return from < to;
    default: return false;
    }
}

/* Number of ranks whose inputs rank `to` combines, if the collective reduces. They are ranks 0 to
 * that number - 1. */
TUTTI_INLINE uint32_t tutti_collective_summands(uint32_t collective, uint32_t to, uint32_t nranks)
{
    switch (tutti_collective_sources(collective)) {
    case TUTTI_FROM_UP_TO: return to + 1;
    case TUTTI_FROM_BELOW: return to;
    default: return nranks;
    }
}

/* ---- collective.c, for hosts only ------------------------------------------------------- */

#if !defined(__cplusplus)

/* Find how in-place calls overlay the buffers: INPUT chunk c is OUTPUT chunk c + *ret_shift.
 * Returns false, and leaves *ret_shift alone, if this rank has no in-place call. */
bool tutti_collective_in_place_shift(enum tutti_collective collective, uint32_t rank, uint32_t root,
                                     uint32_t chunks_per_block, int64_t *ret_shift);

/* "allreduce", "reduce_scatter", ...; "unknown" if out of range. */
const char *tutti_collective_name(enum tutti_collective collective);

/* The collective whose name is the `length` characters at `name`; TUTTI_COLLECTIVE_COUNT if there
 * is none. */
enum tutti_collective tutti_collective_find(const char *name, size_t length);

/* Bits that select the names of a list. */
enum {
    TUTTI_LIST_VECTORS = 1 << 0,   /* also the names of v-forms */
    TUTTI_LIST_WITH_DATA = 1 << 1, /* only collectives that move data */
};
#define TUTTI_COLLECTIVE_LIST_BYTES 256

/* Write names to `text` in the order of the table, for messages: "allreduce, reduce, ..., barrier".
 * Returns `text`. */
const char *tutti_collective_list(uint32_t which, char text[TUTTI_COLLECTIVE_LIST_BYTES]);

/* The number of a collective in signatures, or, if is_vector, that of its v-form. TUTTI_NO_CALL if
 * the collective has no v-form. */
uint8_t tutti_collective_call(enum tutti_collective collective, bool is_vector);

/* The collective that has this number in signatures; *ret_is_vector tells whether the number is
 * that of its v-form. TUTTI_COLLECTIVE_COUNT if there is none, for example because a peer has sent
 * garbage. */
enum tutti_collective tutti_collective_of_call(uint8_t call, bool *ret_is_vector);

#endif

#endif
