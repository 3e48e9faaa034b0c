/* SPDX-License-Identifier: Apache-2.0
 * Runs a search: the optimum, the choice among optima, and the channels. */
#include "topology/search/search.h"

#include "base/result.h"
#include "topology/search/channels.h"
#include "topology/search/taste.h"

#include <math.h>
#include <stdlib.h>

const char *tutti_pattern_name(enum tutti_pattern pattern)
{
    static const char *const names[TUTTI_PATTERN_COUNT] = {"ring", "tree", "broadcast"};

    return names[pattern];
}

/* Makes the only column for a single gpu, or for gpus of one device. No link is used, so nothing
 * limits the rate. */
static int make_free_column(struct tutti_search_state *search)
{
    double cost, least;

    search->columns = calloc(1, sizeof *search->columns);
    if (search->columns == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a ring");
    TUTTI_TRY(tutti_column_create(&search->pricing, &search->columns[0]));
    search->ncolumns = 1;
    search->bound = INFINITY;
    return tutti_search_cheapest(search, false, &search->columns[0], &cost, &least);
}

int tutti_search(const struct tutti_paths *paths, enum tutti_pattern pattern,
                 const struct tutti_search_options *options, struct tutti_channels **ret_plan)
{
    struct tutti_search_state search = {.pattern = pattern};
    struct tutti_taste taste = {.nlevels = 0};
    int rc;

    TUTTI_TRY_OR(drop_search, rc, tutti_search_open(&search, paths, options));
    TUTTI_TRY_OR(drop_search, rc, search.pricing.nlinks == 0
                                      ? make_free_column(&search)
                                      : tutti_search_generate(&search, true));
    TUTTI_TRY_OR(drop_search, rc,
                 tutti_taste_find(&search, paths, options->for_rate_only, &taste));
    rc = tutti_channels_make(&search, &taste, paths, options, ret_plan);

drop_search:
    tutti_taste_fini(&taste);
    tutti_search_close(&search);
    return rc;
}
