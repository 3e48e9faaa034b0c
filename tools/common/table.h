/* SPDX-License-Identifier: Apache-2.0
 * Prints text as a table. Each column is as wide as its widest cell. A table may also be printed row
 * by row, while the cells of later rows are not known. If memory runs out, the program ends. */
#ifndef TUTTI_TOOLS_TABLE_H
#define TUTTI_TOOLS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define TABLE_COLUMNS 1040 /* enough for the matrix of a large machine */

struct table {
    size_t ncolumns;
    bool is_right[TABLE_COLUMNS]; /* true for columns of numbers, which are right-aligned */
    size_t width[TABLE_COLUMNS];  /* of the widest text so far */
    /* Row by row; the first row has the heads. NULL: a text before it takes this place, too. The
     * table owns the texts. */
    char **cells;
    size_t ncells, capacity;
};

/* Initializes a table. `heads` holds the column heads, separated by '|', at most TABLE_COLUMNS. A
 * head that begins with '>' makes a column of numbers. The caller releases the table with
 * table_fini. */
void table_init(struct table *table, const char *heads);
/* Adds one cell. The cells fill the table row by row. */
void table_add(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Adds a text that takes the rest of the row. Columns do not get wider for it. */
void table_add_rest(struct table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Makes a column at least as wide as this text. */
void table_reserve(struct table *table, size_t column, const char *text);
/* Prints the heads and all cells. The last row must be complete. */
void table_print(const struct table *table, FILE *out);
/* Prints the rows that were added since the last flush, and forgets them. The first flush prints the
 * heads, too. Wider cells that follow do not fit the rows before them, so reserve their widths. */
void table_flush(struct table *table, FILE *out);
void table_fini(struct table *table);

#endif
