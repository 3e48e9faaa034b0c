/* SPDX-License-Identifier: Apache-2.0
 * Reads and writes NCCL's and RCCL's XML of a machine, as named by NCCL_TOPO_FILE and
 * NCCL_TOPO_DUMP_FILE. The elements and attributes of this XML are the kinds and properties of an
 * inventory, so nothing is lost.
 *
 *   <system version="1">
 *     <cpu numaid="0" affinity="0000ffff" arch="x86_64">
 *       <cache cpus="000000ff"/>                         (ours; NCCL ignores it)
 *       <pci busid="0000:3b:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
 *         <gpu dev="0" sm="80">
 *           <nvlink target="0000:86:00.0" count="12" tclass="0x030200"/>
 *
 * The writer meets NCCL's requirements beyond well-formed XML: no declaration at the beginning,
 * each element on one line, one blank between attributes. NCCL accepts no values of 254 bytes or
 * more; only text written by a person, or a mask of more than 800 CPUs, is that long.
 */
#ifndef TUTTI_TOPOLOGY_FORMATS_NCCL_XML_H
#define TUTTI_TOPOLOGY_FORMATS_NCCL_XML_H

#include "topology/inventory/inventory.h"

/* Reads a text that need not end in zero. `name` begins error messages; `source` is recorded for
 * all values. Unknown elements, and known ones in a wrong place, are skipped with all their
 * content; unknown attributes are ignored. <apu> is a gpu, <xgmi> an nvlink. A known number or mask
 * that is empty (numaid="") counts as missing, and a link speed that is no number is 0. Ids that
 * are no numbers are compared as texts. Invalid values that graphs and searches do not need, such
 * as those of affinity and maxconn, are left out, and a remark says so. Any other invalid value of
 * a known attribute is TUTTI_ERR_ARGUMENT, with line and column. Values that the file leaves out
 * stay unset; see tutti_inventory_complete(). The caller destroys the inventory. TUTTI_ERR_SYSTEM:
 * no memory. */
int tutti_xml_read_nccl(const char *name, const char *text, size_t length,
                        enum tutti_source source, struct tutti_inventory **ret_inventory);

/* Writes an inventory; reading the result gives an equal inventory. On a machine with AMD GPUs
 * (version 2, or a gpu with gcn) nvlinks are written as <xgmi>. *ret_text ends in zero, and the
 * caller frees *ret_text. TUTTI_ERR_SYSTEM: no memory. */
int tutti_xml_write_nccl(const struct tutti_inventory *inventory, char **ret_text);

#endif
