/* SPDX-License-Identifier: Apache-2.0
 * Prints the cases of a sweep as a table, each as soon as it has been simulated. The usual table
 * fits in 80 columns unless names are very long. A wide one also has the pieces, the bound, the
 * shares of the longest path and the busiest link. */
#ifndef TUTTI_SIM_VIEW_TABLE_H
#define TUTTI_SIM_VIEW_TABLE_H

#include "common/table.h"
#include "sim/sweep.h"

struct view_table {
    struct table table;
    bool is_wide, has_ranks; /* true if the table has these columns */
    FILE *out;
};

/* Starts a table. `has_ranks` is true if the cases differ in their number of ranks. The caller
 * releases the table with view_table_fini. */
void view_table_init(bool is_wide, bool has_ranks, FILE *out, struct view_table *ret_view);
void view_table_fini(struct view_table *view);

/* Makes the columns wide enough for all cases of the sweep, and for `most_ranks`. */
void view_table_reserve(struct view_table *view, const struct sweep *sweep, uint32_t most_ranks);

/* Prints a case. The first row follows the heads. */
void view_table_row(struct view_table *view, const struct sim_case *one);
/* Prints that all cases with the ranks and the size of this one were left out. */
void view_table_no_row(struct view_table *view, const struct sim_case *one);

#endif
