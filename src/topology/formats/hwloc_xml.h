/* SPDX-License-Identifier: Apache-2.0
 * The XML of hwloc (lstopo's, and what hwloc_topology_export_xmlbuffer gives) into an inventory:
 * forms 1, 2 and 3.
 *
 * Of a PCI switch its upstream port stands for the whole, as in NCCL's form, and root ports belong
 * to their cpu; the link of each device is what both its ends can. hwloc tells a link's rate, not
 * its lanes, so these are ASSUMED. Devices attached to more than one NUMA node are found ASSUMED
 * below the first. A port that is known to be down is no net, though its card is a nic.
 */
#ifndef TUTTI_TOPOLOGY_FORMATS_HWLOC_XML_H
#define TUTTI_TOPOLOGY_FORMATS_HWLOC_XML_H

#include "topology/inventory/inventory.h"

/* `name` is what errors begin with, such as the file's; `source` who found what it says.
 * TUTTI_ERR_ARGUMENT: it is none of hwloc's XML, or no machine; "name:line:column: what". */
int tutti_hwloc_xml_read(const char *name, const char *text, size_t length,
                         enum tutti_source source, struct tutti_inventory **ret_inventory);

#endif
