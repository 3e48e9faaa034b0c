/* SPDX-License-Identifier: Apache-2.0
 * Reads the XML of hwloc (from lstopo or hwloc_topology_export_xmlbuffer), forms 1, 2 and 3, into
 * an inventory.
 *
 * A PCI switch is represented by its upstream port, as in NCCL's format, and root ports belong to
 * their cpu. The link of a device gets the speed and width that both its ends support. hwloc gives
 * a link's rate but not its lanes, so both are ASSUMED. Devices attached to more than one NUMA node
 * are placed below the first one, with source ASSUMED. A port that is known to be down gets no net,
 * but its card still gets a nic.
 */
#ifndef TUTTI_TOPOLOGY_FORMATS_HWLOC_XML_H
#define TUTTI_TOPOLOGY_FORMATS_HWLOC_XML_H

#include "topology/inventory/inventory.h"

/* Reads the XML. `name`, such as the file's name, begins error messages. `source` is recorded for
 * all values that the XML states. The caller destroys the inventory. TUTTI_ERR_ARGUMENT: the text
 * is not hwloc's XML, or holds no machine; the message begins with "name:line:column:".
 * TUTTI_ERR_SYSTEM: no memory. */
int tutti_hwloc_xml_read(const char *name, const char *text, size_t length,
                         enum tutti_source source, struct tutti_inventory **ret_inventory);

#endif
