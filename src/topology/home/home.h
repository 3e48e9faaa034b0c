/* SPDX-License-Identifier: Apache-2.0
 * Finds where on its host a thread runs: its package (socket), memory (NUMA node) and last-level
 * cache. Each is known only if all the CPUs that the thread may run on belong to the same one. The
 * functions read only a few kernel files, without any other detection, because they run whenever a
 * communicator forms. They never fail because of missing files.
 */
#ifndef TUTTI_TOPOLOGY_HOME_H
#define TUTTI_TOPOLOGY_HOME_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

/* Numbers that are equal for threads of a host that run in the same package, memory or cache. -1:
 * not known, or the thread's CPUs belong to more than one. */
struct tutti_home {
    int32_t package, memory, cache;
};

#define TUTTI_HOME_UNKNOWN ((struct tutti_home){-1, -1, -1})

/* Finds the home of a set of CPUs. `root` is the directory that holds sys/, "" for this host. */
void tutti_home_of(const char *root, const cpu_set_t *cpus, struct tutti_home *ret_home);

/* Finds the home of the calling thread, from the CPUs that the kernel lets it run on: the thread's
 * binding, limited by its control group. */
void tutti_home_find(struct tutti_home *ret_home);

/* Reads the home of a rank as set by the user in TUTTI_CELLS. "auto" finds the home of the calling
 * thread, and "off" makes the home unknown. "0,0,1,1" numbers ranks 0, 1, ..., and repeats for
 * further ranks; each number stands for package, memory and cache alike. TUTTI_ERR_USAGE: `text` is
 * none of these. */
int tutti_home_read(const char *text, uint32_t rank, struct tutti_home *ret_home);

#endif
