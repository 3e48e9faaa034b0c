/* SPDX-License-Identifier: Apache-2.0
 * The binary trees that join the parts of a cluster. Two trees alternate from channel to channel.
 * The second tree is the mirror image of the first, so that a part that is inside one of them is a
 * leaf of the other, and no port serves two children with all data (Sanders, Speck, Traeff, 2009).
 *
 *   0 - 1 - 3        0 - 2 - 3        4 parts: part 1 has two children in the first tree and is a
 *    \- 2             1 - /           leaf of the second one
 */
#ifndef TUTTI_TOPOLOGY_SEARCH_JOINT_H
#define TUTTI_TOPOLOGY_SEARCH_JOINT_H

#include <stdint.h>

/* Returns the number of different trees of so many parts: two, or one for fewer than three. */
uint32_t tutti_search_joints(uint32_t nparts);
/* Returns the parent of a part in tree number `which`, 0 or 1; TUTTI_NO_NODE (graph.h): it is the
 * root. */
uint32_t tutti_search_parent_part(uint32_t part, uint32_t nparts, uint32_t which);
/* Returns how many edges the part with the most has in the average tree: how often its ports carry
 * each byte, in and out. Fewer than two parts stand for many. */
double tutti_search_joint_load(uint32_t nparts);

#endif
