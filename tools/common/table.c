/* SPDX-License-Identifier: Apache-2.0
 * Collects the cells of a table and prints them in columns. */
#include "common/table.h"

#include "common/memory.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void add_cell(struct table *table, char *cell)
{
    if (table->ncells == table->capacity) {
        table->capacity = table->capacity == 0 ? 64 : 2 * table->capacity;
        table->cells = must_have(realloc(table->cells, table->capacity * sizeof *table->cells));
    }
    table->cells[table->ncells++] = cell;
}

void table_reserve(struct table *table, size_t column, const char *text)
{
    size_t length = strlen(text);

    table->width[column] = length > table->width[column] ? length : table->width[column];
}

void table_init(struct table *table, const char *heads)
{
    *table = (struct table){.ncolumns = 0};
    while (*heads != '\0') {
        size_t length = strcspn(heads, "|"), column = table->ncolumns++;
        bool is_right = *heads == '>';

        table->is_right[column] = is_right;
        add_cell(table, must_have(strndup(heads + is_right, length - is_right)));
        table_reserve(table, column, table->cells[column]);
        heads += length + (heads[length] == '|');
    }
}

void table_add(struct table *table, const char *format, ...)
{
    char *cell;
    va_list args;

    va_start(args, format);
    if (vasprintf(&cell, format, args) < 0)
        cell = must_have(NULL);
    va_end(args);
    table_reserve(table, table->ncells % table->ncolumns, cell);
    add_cell(table, cell);
}

void table_add_rest(struct table *table, const char *format, ...)
{
    char *cell;
    va_list args;

    va_start(args, format);
    if (vasprintf(&cell, format, args) < 0)
        cell = must_have(NULL);
    va_end(args);
    add_cell(table, cell);
    while (table->ncells % table->ncolumns != 0)
        add_cell(table, NULL);
}

void table_print(const struct table *table, FILE *out)
{
    for (size_t i = 0; i < table->ncells; i++) {
        size_t column = i % table->ncolumns;
        bool is_last = column + 1 == table->ncolumns;
        bool has_rest = !is_last && table->cells[i + 1] == NULL;
        int pad = (int)table->width[column];

        if (table->cells[i] == NULL)
            continue;
        if (has_rest)
            fprintf(out, "%s\n", table->cells[i]);
        else if (table->is_right[column])
            fprintf(out, "%*s%s", pad, table->cells[i], is_last ? "\n" : "  ");
        else if (is_last)
            fprintf(out, "%s\n", table->cells[i]);
        else
            fprintf(out, "%-*s  ", pad, table->cells[i]);
    }
}

static void free_cells(struct table *table)
{
    for (size_t i = 0; i < table->ncells; i++)
        free(table->cells[i]);
    table->ncells = 0;
}

void table_flush(struct table *table, FILE *out)
{
    table_print(table, out);
    fflush(out);
    free_cells(table);
}

void table_fini(struct table *table)
{
    free_cells(table);
    free(table->cells);
    *table = (struct table){.ncolumns = 0};
}
