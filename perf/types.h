/* SPDX-License-Identifier: Apache-2.0
 * Names the types of elements and the reductions on the command line and in reports. */
#ifndef PERF_TYPES_H
#define PERF_TYPES_H

#include "perf.h"

/* The names that reports show. perf_op_name accepts PERF_NO_OP. */
const char *perf_op_name(enum perf_op op);
const char *perf_type_name(tuttiDataType_t type);

/* Returns the size of one element in bytes. */
size_t perf_type_bytes(tuttiDataType_t type);

/* Returns false if the library refuses the reduction for the type. */
bool perf_type_has_op(tuttiDataType_t type, enum perf_op op);

/* Parse the name of a type or a reduction, or "all". Store a set that has bit 1 << n for each type
 * or reduction of number n. Return false if there is no such name. */
bool perf_parse_types(const char *text, unsigned *ret_types);
bool perf_parse_ops(const char *text, unsigned *ret_ops);

/* Bytes of the longest text of perf_name_types and perf_name_ops. */
enum { PERF_NAMES_BYTES = 512 };

/* Write the names of all types or reductions, each followed by a comma, for the help of the command
 * line, which adds more words. Each line after the first begins with `indent` blanks. */
void perf_name_types(int indent, char ret_text[PERF_NAMES_BYTES]);
void perf_name_ops(int indent, char ret_text[PERF_NAMES_BYTES]);

#endif
