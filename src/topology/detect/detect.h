/* SPDX-License-Identifier: Apache-2.0
 * Detects the devices of a machine, in several phases, each of which queries one kind of source.
 * Each value is stored with its source; if two sources differ, the better source wins
 * (inventory.h).
 *
 * Instead of this machine, a directory with another machine's sys/ and proc/ can be examined. The
 * same phases run then, except those that query drivers, because drivers know only this machine.
 */
#ifndef TUTTI_TOPOLOGY_DETECT_DETECT_H
#define TUTTI_TOPOLOGY_DETECT_DETECT_H

#include "topology/inventory/cpu_mask.h"
#include "topology/inventory/inventory.h"

struct tutti_detect_options {
    const char *root;  /* NULL or "": this machine; else a directory that contains sys/ and proc/ */
    const char *given; /* replaces detection by tutti_formats_load(given); NULL: detect */
    bool is_cpus_only; /* find only CPUs and caches, because devices take the most time; ignored if
                        * `given` is set */
};

/* Detects a machine; the caller destroys the inventory. Missing hardware and files are not errors:
 * the result has at least one cpu. TUTTI_ERR_SYSTEM: hwloc fails, or no memory; TUTTI_ERR_ARGUMENT:
 * `given` does not describe a machine.
 *
 * hwloc takes another root only from environment variables. With `root` set, the call changes the
 * environment and restores it, and no other thread may read the environment meanwhile. `root` is
 * meant for tools and tests. */
int tutti_detect(const struct tutti_detect_options *options,
                 struct tutti_inventory **ret_inventory);

/* The limits of a process within its machine. */
struct tutti_confines {
    struct tutti_cpumask cpus;  /* CPUs that the process may use */
    uint32_t ncpus;             /* number of CPUs in `cpus`; 0: not known */
    bool is_container;
    bool is_vm;                 /* virtual machine: links may lack rates, and bridges may be
                                 * missing */
};

/* Finds the limits of the calling process if `root` is NULL or "", or else of the process that
 * recorded the directory `root`. The function never fails: limits that it cannot find count as
 * absent. */
void tutti_detect_confines(const char *root, struct tutti_confines *ret_confines);

#endif
