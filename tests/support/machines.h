/* SPDX-License-Identifier: Apache-2.0
 * Opens descriptions of machines for tests of searches, and verifies the results of searches. */
#ifndef TUTTI_TESTS_MACHINES_H
#define TUTTI_TESTS_MACHINES_H

#include "topology/search/search.h"

struct machine {
    struct tutti_inventory *inventory;
    struct tutti_graph *graph;
    struct tutti_paths *paths;
};

/* From whatever tutti_formats_load takes. Fails the test with the reason where it is not good. */
struct machine open_machine(const char *what);
void close_machine(struct machine *machine);

/* Fails the test if orders are not whole, or links do not carry what these channels put on them, or
 * they carry more than their bound. `what` is named then. */
void check_channels(const char *what, const struct tutti_paths *paths,
                    const struct tutti_channels *channels);

/* Fails the test if a plan costs more than 2 % of its bound against the one that a search for the
 * rate only finds, besides what weak ports would add, or if it has more channels. */
void check_taste(const char *what, const struct tutti_paths *paths, enum tutti_pattern pattern,
                 struct tutti_search_options options, const struct tutti_channels *plan);

#endif
