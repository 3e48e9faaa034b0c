/* SPDX-License-Identifier: Apache-2.0
 * Prints text as a table. Each column is as wide as its widest cell. If memory runs out, the
 * program ends. */
#ifndef TUTTI_TOOLS_TABLE_H
#define TUTTI_TOOLS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define TABLE_COLUMNS 1040 /* enough for the matrix of a large machine */

struct table {
    size_t ncolumns;
    bool is_right[TABLE_COLUMNS]; /* true for columns of numbers, which are right-aligned */
    char **cells;                 /* row by row; the first row has the heads; owned */
    size_t ncells, capacity;
};

/* Initializes a table. `heads` holds the column heads, separated by '|', at most TABLE_COLUMNS. A
 * head that begins with '>' makes a column of numbers. The caller releases the table with
 * table_fini. */
void table_init(struct table *table, const char *heads);
/* Adds one cell. The cells fill the table row by row. */
void table_add(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints the heads and all cells. The last row must be complete. */
void table_print(const struct table *table, FILE *out);
void table_fini(struct table *table);

#endif
