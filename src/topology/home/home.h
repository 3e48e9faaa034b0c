/* SPDX-License-Identifier: Apache-2.0
 * Where on its host a thread lives: in the package (socket), at the memory (NUMA node) and behind
 * the last-level cache that all the CPUs belong to which it may run on. The few files of the kernel
 * that tell are read, nothing else is detected: this is done whenever a communicator forms.
 */
#ifndef TUTTI_TOPOLOGY_HOME_H
#define TUTTI_TOPOLOGY_HOME_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

/* Numbers that are the same for threads of the host that live in the same; -1: not known, or the
 * CPUs are of several. */
struct tutti_home {
    int32_t package, memory, cache;
};

#define TUTTI_HOME_UNKNOWN ((struct tutti_home){-1, -1, -1})

/* Of these CPUs. `root` is what the kernel's files lie below: "" for this host. */
void tutti_home_of(const char *root, const cpu_set_t *cpus, struct tutti_home *ret_home);

/* Of the calling thread, by the CPUs that the kernel lets it run on: its binding, and those of its
 * control group. */
void tutti_home_find(struct tutti_home *ret_home);

/* Of a rank, as the user says: "auto" finds it, "off" says that it is not known; "0,0,1,1" are the
 * numbers of ranks 0, 1, ..., and again from the first on. TUTTI_ERR_USAGE: `text` is none of
 * these. */
int tutti_home_read(const char *text, uint32_t rank, struct tutti_home *ret_home);

#endif
