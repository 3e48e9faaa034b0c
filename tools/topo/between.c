/* SPDX-License-Identifier: Apache-2.0
 * Prints the ports between two parts of a cluster. */
#include "topo/between.h"

#include "base/result.h"
#include "common/memory.h"
#include "common/table.h"
#include "topology/graph/ports.h"

#include <stdio.h>
#include <stdlib.h>

/* The most columns that fit in a line of 80 characters. */
#define COLUMNS 8

/* Returns the next part after `part` that has gpus; the number of parts: there is none. */
static uint32_t next_part(const struct subject *subject, uint32_t part)
{
    for (part++; part < subject->parts.nparts; part++)
        if (subject->parts.part[part].ngpus > 0)
            return part;
    return subject->parts.nparts;
}

/* Returns the number of the net at the begin or the end of a path across the network. */
static uint32_t net_at(const struct subject *subject, const struct tutti_path *path, bool is_end)
{
    const struct tutti_paths *paths = subject->paths;
    size_t index = (size_t)(path - paths->path);
    uint32_t end = (uint32_t)(is_end ? index % paths->nends : index / paths->nends);

    return subject->graph->nodes[paths->end[end]].number;
}

/* Adds a cell such as "6>14": leaves by net 6 and arrives at net 14. */
static void add_cell(const struct subject *subject, const struct tutti_ports *ports,
                     struct table *table, uint32_t from, uint32_t to)
{
    const struct tutti_path *parts[TUTTI_PORTS_PARTS];

    if (tutti_ports_way(ports, from, to, parts) == TUTTI_PORTS_PARTS)
        table_add(table, "%u>%u", net_at(subject, parts[1], false), net_at(subject, parts[1], true));
    else
        table_add(table, "%s", tutti_path_class_name(parts[0]->class));
}

/* Prints the columns of the gpus first .. end - 1, with a row for each gpu of a part. */
static void print_columns(const struct subject *subject, const struct tutti_ports *ports,
                          const struct tutti_graph_part *rows, uint32_t first, uint32_t end)
{
    char *heads = NULL;
    size_t size;
    FILE *out = must_have(open_memstream(&heads, &size));
    struct table table;

    fputc(' ', out); /* head of the column of names */
    for (uint32_t to = first; to < end; to++)
        fprintf(out, "|GPU%u", to);
    if (fclose(out) != 0)
        must_have(NULL);
    table_init(&table, heads);
    free(heads);
    for (uint32_t from = rows->first_gpu; from < rows->first_gpu + rows->ngpus; from++) {
        table_add(&table, "GPU%u", from);
        for (uint32_t to = first; to < end; to++)
            add_cell(subject, ports, &table, from, to);
    }
    table_print(&table, stdout);
    table_fini(&table);
}

void between_print(const struct subject *subject)
{
    uint32_t from = next_part(subject, UINT32_MAX), to = next_part(subject, from);
    const struct tutti_graph_part *rows, *columns;
    struct tutti_ports *ports;

    if (to >= subject->parts.nparts || subject->graph->count[TUTTI_NODE_NET] == 0)
        return;
    rows = &subject->parts.part[from];
    columns = &subject->parts.part[to];
    if (tutti_ports_deal(subject->paths, &ports) != TUTTI_OK)
        must_have(NULL);
    puts("\nBetween hosts, from the gpu of the row to that of the column: the net by which data leaves,\n"
         "and the net at which it arrives");
    for (uint32_t first = 0; first < columns->ngpus; first += COLUMNS) {
        uint32_t end = first + COLUMNS < columns->ngpus ? first + COLUMNS : columns->ngpus;

        print_columns(subject, ports, rows, columns->first_gpu + first, columns->first_gpu + end);
    }
    tutti_ports_destroy(ports);
}
