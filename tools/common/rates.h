/* SPDX-License-Identifier: Apache-2.0
 * Tells the user which rates of a machine are guesses, and replaces guesses by what the options
 * --gpu, --nic and --cpu say. All lines go to stderr and begin with the command.
 */
#ifndef TUTTI_TOOLS_RATES_H
#define TUTTI_TOOLS_RATES_H

#include "topology/formats/hints.h"
#include "topology/graph/graph.h"

/* Applies the hints, and prints what contradicts them. The errors are those of
 * tutti_hints_apply(). */
int rates_apply_hints(const char *command, const struct tutti_hints *hints,
                      struct tutti_inventory *inventory);

/* Prints one line that says which rates are guesses and how to say better, if there are any. */
void rates_print_guesses(const char *command, const struct tutti_graph *graph);

#endif
