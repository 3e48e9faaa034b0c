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

void table_init(struct table *table, const char *heads)
{
    *table = (struct table){.ncolumns = 0};
    while (*heads != '\0') {
        size_t length = strcspn(heads, "|");
        bool is_right = *heads == '>';

        table->is_right[table->ncolumns++] = is_right;
        add_cell(table, must_have(strndup(heads + is_right, length - is_right)));
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
    add_cell(table, cell);
}

void table_print(const struct table *table, FILE *out)
{
    size_t width[TABLE_COLUMNS] = {0};

    for (size_t i = 0; i < table->ncells; i++) {
        size_t length = strlen(table->cells[i]), column = i % table->ncolumns;

        width[column] = length > width[column] ? length : width[column];
    }
    for (size_t i = 0; i < table->ncells; i++) {
        size_t column = i % table->ncolumns;
        bool is_last = column + 1 == table->ncolumns;
        int pad = (int)width[column];

        if (table->is_right[column])
            fprintf(out, "%*s%s", pad, table->cells[i], is_last ? "\n" : "  ");
        else if (is_last)
            fprintf(out, "%s\n", table->cells[i]);
        else
            fprintf(out, "%-*s  ", pad, table->cells[i]);
    }
}

void table_fini(struct table *table)
{
    for (size_t i = 0; i < table->ncells; i++)
        free(table->cells[i]);
    free(table->cells);
    *table = (struct table){.ncolumns = 0};
}
