/* SPDX-License-Identifier: Apache-2.0
 * hwloc, which knows the CPUs, memories and buses of a host. It is loaded at run time, so that
 * programs that use only CPUs run without it. The types are those of hwloc 2. */
#ifndef TUTTI_WRAP_HWLOC_H
#define TUTTI_WRAP_HWLOC_H

#include <hwloc.h>

/* The functions of hwloc.h, without their prefix. */
struct tutti_libhwloc {
    unsigned (*get_api_version)(void);
    int (*topology_init)(hwloc_topology_t *topology);
    int (*topology_set_flags)(hwloc_topology_t topology, unsigned long flags);
    int (*topology_set_io_types_filter)(hwloc_topology_t topology,
                                        enum hwloc_type_filter_e filter);
    int (*topology_set_components)(hwloc_topology_t topology, unsigned long flags,
                                   const char *name);
    int (*topology_load)(hwloc_topology_t topology);
    int (*topology_export_xmlbuffer)(hwloc_topology_t topology, char **text, int *length,
                                     unsigned long flags);
    void (*free_xmlbuffer)(hwloc_topology_t topology, char *text);
    void (*topology_destroy)(hwloc_topology_t topology);
};

/* Loads the library at the first call, and returns its functions. They stay loaded until the process
 * ends. NULL: the host does not have it; the thread's last message says why. Thread-safe. */
const struct tutti_libhwloc *tutti_libhwloc_get(void);

#endif
