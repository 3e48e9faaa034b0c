/* SPDX-License-Identifier: Apache-2.0
 * Replaces packed channels one by one by better ones of the same width, so that the rate stays the
 * same. A channel is better if its paths have better classes. Among equally good channels, it is
 * better if the ports that it uses are less full. Among these, the one whose links are less full is
 * taken, so that links in both directions and of all gpus carry about the same.
 */
#ifndef TUTTI_TOPOLOGY_SEARCH_SPREAD_H
#define TUTTI_TOPOLOGY_SEARCH_SPREAD_H

#include "topology/search/packing.h"

/* Replaces channels that have nets. Without nets it changes nothing. TUTTI_ERR_SYSTEM: no
 * memory. */
int tutti_search_spread(struct tutti_packing *packing, const struct tutti_paths *paths);

#endif
