/* SPDX-License-Identifier: Apache-2.0
 * Converts the result of a search to channels of one width, which is their rate in B/s. In the
 * result each column (ring or tree) has a share of any size. */
#ifndef TUTTI_TOPOLOGY_SEARCH_CHANNELS_H
#define TUTTI_TOPOLOGY_SEARCH_CHANNELS_H

#include "topology/search/taste.h"

/* Makes the plan of a search whose solutions are known; the caller destroys it with
 * tutti_channels_destroy(). TUTTI_ERR_SYSTEM: no memory. */
int tutti_channels_make(struct tutti_search_state *search, const struct tutti_taste *taste,
                        const struct tutti_paths *paths, const struct tutti_search_options *options,
                        struct tutti_channels **ret_plan);

#endif
