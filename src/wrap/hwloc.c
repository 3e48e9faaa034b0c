/* SPDX-License-Identifier: Apache-2.0
 * Loading of hwloc. */
#include "wrap/hwloc.h"

#include "base/result.h"
#include "wrap/library.h"

#include <pthread.h>
#include <stdio.h>

/* The library with the interface of hwloc 2. */
#define LIBRARY "libhwloc.so.15"

#define AT(member) offsetof(struct tutti_libhwloc, member)
static const struct tutti_library_function functions[] = {
    {"hwloc_get_api_version", AT(get_api_version), true},
    {"hwloc_topology_init", AT(topology_init), true},
    {"hwloc_topology_set_flags", AT(topology_set_flags), true},
    {"hwloc_topology_set_io_types_filter", AT(topology_set_io_types_filter), true},
    {"hwloc_topology_set_components", AT(topology_set_components), true},
    {"hwloc_topology_load", AT(topology_load), true},
    {"hwloc_topology_export_xmlbuffer", AT(topology_export_xmlbuffer), true},
    {"hwloc_free_xmlbuffer", AT(free_xmlbuffer), true},
    {"hwloc_topology_destroy", AT(topology_destroy), true},
};
#undef AT

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct tutti_libhwloc loaded;
static bool is_loaded;
static char why_not[256];

static void load(void)
{
    void *library; /* stays loaded */

    is_loaded = tutti_library_open(LIBRARY, functions, sizeof functions / sizeof functions[0],
                                   &loaded, &library) == TUTTI_OK;
    if (!is_loaded)
        snprintf(why_not, sizeof why_not, "%s", tutti_message_last());
}

const struct tutti_libhwloc *tutti_libhwloc_get(void)
{
    pthread_once(&once, load);
    if (is_loaded)
        return &loaded;
    tutti_message_set_last(why_not);
    return NULL;
}
