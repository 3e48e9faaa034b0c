/* SPDX-License-Identifier: Apache-2.0
 * Finds the home of a thread, which is the place on its host where the thread runs: the package
 * (socket), the memory (NUMA node) and the last-level cache. Each of the three is known only if all
 * CPUs on which the thread may run belong to the same one. The functions read only a few kernel
 * files, without any other detection, because they run whenever a communicator forms. They never
 * fail because of missing files.
 */
#ifndef TUTTI_TOPOLOGY_HOME_H
#define TUTTI_TOPOLOGY_HOME_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

/* Each number is equal for the threads of a host that run in the same package, memory or cache. -1:
 * not known, or the thread's CPUs belong to more than one. */
struct tutti_home {
    int32_t package, memory, cache;
};

#define TUTTI_HOME_UNKNOWN ((struct tutti_home){-1, -1, -1})

/* Finds the home of a set of CPUs. `root` is the directory that holds sys/, "" for this host. */
void tutti_home_of_cpus(const char *root, const cpu_set_t *cpus, struct tutti_home *ret_home);

/* Finds the home of the calling thread, from the CPUs that the kernel lets it run on: the thread's
 * binding, limited by its control group. */
void tutti_home_of_thread(struct tutti_home *ret_home);

/* Reads the home of a rank as set by the user in TUTTI_CELLS. "auto" finds the home of the calling
 * thread, and "off" makes the home unknown. A list such as "0,0,1,1" holds the number of
 * rank 0, 1, ..., and repeats for further ranks; the number is used for package, memory and cache.
 * TUTTI_ERR_USAGE: `text` is none of these. */
int tutti_home_read(const char *text, uint32_t rank, struct tutti_home *ret_home);

struct tutti_inventory;

/* Improves the home of a set of CPUs by a description of the host. Where the description tells
 * packages, NUMA nodes or caches, these replace the ones in *home. If it describes several hosts,
 * or none of the CPUs, *home stays as it is. */
void tutti_home_describe(const struct tutti_inventory *host, const cpu_set_t *cpus,
                         struct tutti_home *home);

/* Returns the name of the network port near these CPUs for a rank, or NULL if the description tells
 * none. Of several that are equally fast, ranks take turns. It belongs to `host`. */
const char *tutti_home_port(const struct tutti_inventory *host, const cpu_set_t *cpus,
                            uint32_t rank);

/* Does both for the CPUs of the calling thread. `what` is a file, line or name of
 * tutti_formats_load, whose errors it returns. *ret_port is "" if there is no port near the CPUs,
 * or if its name is too long for an interface or an RDMA device. */
#define TUTTI_HOME_PORT_BYTES 64
int tutti_home_load(const char *what, uint32_t rank, struct tutti_home *home,
                    char ret_port[TUTTI_HOME_PORT_BYTES]);

#endif
