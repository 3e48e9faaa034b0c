/* SPDX-License-Identifier: Apache-2.0
 * Find out what a machine consists of. Several phases look, each where it is at home: what one says
 * of a device stays with its name, and of two that differ the better source wins (inventory.h).
 *
 * A directory that holds another machine's sys/ and proc/ can stand for this one; then the phases
 * run as they do here, but for those that ask drivers, which know this machine only.
 */
#ifndef TUTTI_TOPOLOGY_DETECT_DETECT_H
#define TUTTI_TOPOLOGY_DETECT_DETECT_H

#include "topology/inventory/cpu_mask.h"
#include "topology/inventory/inventory.h"

struct tutti_detect_options {
    const char *root;  /* NULL or "": this machine; else a directory that holds sys/ and proc/ */
    const char *given; /* NULL; else what tutti_inventory_load() takes: that stands for it all */
    bool is_cpus_only; /* no devices, which take the most time; nothing to what is given */
};

/* TUTTI_ERR_SYSTEM: hwloc fails, or there is no memory; TUTTI_ERR_ARGUMENT: what is given is none.
 * What is not there is no failure: the least that comes out is one cpu.
 *
 * hwloc takes another root from the environment only. So with a root the environment is changed for
 * a while, and no other thread may look at it meanwhile: that is for tools and tests. */
int tutti_detect(const struct tutti_detect_options *options,
                 struct tutti_inventory **ret_inventory);

/* What holds this process within its machine. */
struct tutti_confines {
    struct tutti_cpu_mask cpus; /* those that it may use */
    uint32_t ncpus;             /* so many; 0: not known */
    bool is_container;
    bool is_vm;                 /* links may have no rates, and bridges may be missing */
};

/* Of the process that calls, or with a root, of whoever recorded it. Never fails: what does not
 * show is not there. */
void tutti_detect_confines(const char *root, struct tutti_confines *ret_confines);

#endif
