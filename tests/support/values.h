/* SPDX-License-Identifier: Apache-2.0
 * Makes inputs of reductions and their expected results, bit for bit.
 *
 * Floating values are small integers. They are chosen so that every result is exact in its type, in
 * any order of summation. Integers use all their bits and wrap around. Nothing here uses the
 * library, except for its table of types. */
#ifndef TUTTI_TEST_VALUES_H
#define TUTTI_TEST_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <tutti.h>

/* The reductions: those of the header, then sums multiplied before, by a scalar given at once and
 * by one that is read when the operation runs. */
enum { OP_PREMUL_IMMEDIATE = tuttiNumOps, OP_PREMUL_DEVICE, OP_COUNT };

extern const char *const value_op_names[OP_COUNT];
extern const char *const value_type_names[tuttiNumTypes];

size_t value_size(tuttiDataType_t type);

/* False if the library refuses the reduction for the type. */
bool value_has_op(tuttiDataType_t type, int op);

/* A reduction that the type has. Numbers go through all of them in turn. */
int value_op(tuttiDataType_t type, size_t number);

/* Elements `first` to `first` + `count` - 1 of what `rank` of `nranks` contributes. */
void values_fill(void *at, tuttiDataType_t type, int op, int rank, int nranks, size_t first,
                 size_t count);

/* The same elements of the result over the first `summands` of `nranks` ranks. */
void values_reduce(void *at, tuttiDataType_t type, int op, int summands, int nranks, size_t first,
                   size_t count);

/* The scalar of `rank` for the operations multiplied before. */
void values_scalar(void *at, tuttiDataType_t type, int rank);

#endif
