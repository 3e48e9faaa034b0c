/* SPDX-License-Identifier: Apache-2.0
 * Prints remarks and doubts about a machine. */
#include "common/topo_remarks.h"

#include "common/memory.h"
#include "topology/graph/doubts.h"

#include <stdlib.h>
#include <string.h>

static void print_lines(const char *lines, FILE *out)
{
    while (*lines != '\0') {
        int length = (int)strcspn(lines, "\n");

        fprintf(out, "note: %.*s\n", length, lines);
        lines += length + (lines[length] == '\n');
    }
}

void topo_remarks_print(const struct tutti_graph *graph, FILE *out)
{
    char *doubts = NULL;
    size_t size;
    FILE *lines = must_have(open_memstream(&doubts, &size));

    tutti_graph_write_doubts(graph, lines);
    if (fclose(lines) != 0)
        must_have(NULL);
    if (graph->inventory->remarks != NULL)
        print_lines(graph->inventory->remarks, out);
    print_lines(doubts, out);
    free(doubts);
}
