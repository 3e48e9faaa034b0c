/* SPDX-License-Identifier: Apache-2.0
 * NCCL's and RCCL's XML of a machine, both ways: what NCCL_TOPO_FILE and NCCL_TOPO_DUMP_FILE name.
 * Its elements and attributes are the kinds and properties of an inventory, so nothing is lost.
 *
 *   <system version="1">
 *     <cpu numaid="0" affinity="0000ffff" arch="x86_64">
 *       <cache cpus="000000ff"/>                         (ours; NCCL passes over it)
 *       <pci busid="0000:3b:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
 *         <gpu dev="0" sm="80">
 *           <nvlink target="0000:86:00.0" count="12" tclass="0x030200"/>
 *
 * What NCCL asks of a file beside well-formed XML is kept in writing: no declaration at the
 * beginning, an element on one line, one blank between attributes. It takes no values of 254 bytes
 * or more; only a person's text, or a mask of more than 800 CPUs, is that long.
 */
#ifndef TUTTI_TOPOLOGY_FORMATS_NCCL_XML_H
#define TUTTI_TOPOLOGY_FORMATS_NCCL_XML_H

#include "topology/inventory/inventory.h"

/* Read a text that need not end in zero; `name` is what errors begin with, `source` who says what
 * it says. Unknown elements, and known ones in a wrong place, are passed over with all inside,
 * unknown attributes are ignored; <apu> is a gpu, <xgmi> an nvlink. A known number or mask
 * that is empty (numaid="") is as if it were not there, a speed of a link that says nothing is 0.
 * A known attribute with another value that cannot be: TUTTI_ERR_ARGUMENT, with line and column.
 * What the file leaves out stays out: tutti_inventory_complete() fills it in. */
int tutti_nccl_xml_read(const char *name, const char *text, size_t length,
                        enum tutti_source source, struct tutti_inventory **ret_inventory);

/* Write an inventory; reading that gives an equal one. Of a machine with GPUs of AMD (version 2, or
 * a gpu with gcn), nvlinks are <xgmi>. *ret_text ends in zero and is for the caller to free. */
int tutti_nccl_xml_write(const struct tutti_inventory *inventory, char **ret_text);

#endif
