/* SPDX-License-Identifier: Apache-2.0
 * Where on its host a thread runs: its package (socket), memory (NUMA node) and last-level cache.
 * Each is known only if all the CPUs that the thread may run on belong to the same one. Only the
 * few kernel files that tell this are read, without any other detection, because this runs whenever
 * a communicator forms.
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

/* The home of a set of CPUs. `root` is the directory that holds sys/, "" for this host. */
void tutti_home_of(const char *root, const cpu_set_t *cpus, struct tutti_home *ret_home);

/* The home of the calling thread, from the CPUs that the kernel lets it run on: its binding,
 * limited by its control group. */
void tutti_home_find(struct tutti_home *ret_home);

/* The home of a rank as set by the user. "auto": detect that of the calling thread. "off": unknown.
 * "0,0,1,1": numbers of ranks 0, 1, ..., repeated for further ranks; the number stands for package,
 * memory and cache alike. TUTTI_ERR_USAGE: `text` is none of these. */
int tutti_home_read(const char *text, uint32_t rank, struct tutti_home *ret_home);

#endif
