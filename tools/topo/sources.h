/* SPDX-License-Identifier: Apache-2.0
 * Writes which source tells which property of a device. If memory runs out, the program ends. */
#ifndef TUTTI_TOPO_SOURCES_H
#define TUTTI_TOPO_SOURCES_H

#include "topo/subject.h"

/* Returns the properties of a node's device by source, for instance "sysfs: link_speed link_width;
 * nvml: dev sm". If the device's PCI function is a device without a node, its properties are
 * included. The caller frees the text. */
char *sources_text(const struct subject *subject, uint32_t node);

#endif
