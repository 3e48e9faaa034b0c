/* SPDX-License-Identifier: Apache-2.0
 * A table of text, whose columns are as wide as what stands in them. */
#ifndef TUTTI_TOOLS_TABLE_H
#define TUTTI_TOOLS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define TABLE_COLUMNS 1040 /* a matrix of a large machine has most */

struct table {
    size_t ncolumns;
    bool is_right[TABLE_COLUMNS]; /* numbers stand on the right */
    char **cells;                 /* row after row, each row ncolumns; owned */
    size_t ncells, capacity;
};

/* Heads of columns, separated by '|'; a head that begins with '>' is that of numbers. */
void table_init(struct table *table, const char *heads);
/* Fill the next cell. */
void table_add(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
void table_print(const struct table *table, FILE *out);
void table_fini(struct table *table);

#endif
