/* SPDX-License-Identifier: Apache-2.0
 * Tells where the facts about a device come from. */
#ifndef TUTTI_TOPO_SOURCES_H
#define TUTTI_TOPO_SOURCES_H

#include "topo/subject.h"

/* Returns the source of each property of a node's device, such as "sysfs: link_speed link_width;
 * nvml: dev sm". If the device's PCI function is a device without a node, its properties are
 * included. The caller frees the text. If memory runs out, the program ends. */
char *sources_text(const struct subject *subject, uint32_t node);

#endif
