/* SPDX-License-Identifier: Apache-2.0
 * Holds the content of hwloc's XML: objects within objects, infos of objects, and matrices between
 * objects. Forms 1, 2 and 3 of the XML have the same representation here, and hwloc_xml.c builds an
 * inventory from this representation.
 */
#ifndef TUTTI_TOPOLOGY_FORMATS_HWLOC_OBJECTS_H
#define TUTTI_TOPOLOGY_FORMATS_HWLOC_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TUTTI_NO_OBJECT UINT32_MAX

enum tutti_hwloc_kind {
    TUTTI_HWLOC_OTHER, /* cores, groups, ...: kept because of what is within them */
    TUTTI_HWLOC_MACHINE,
    TUTTI_HWLOC_PACKAGE,
    TUTTI_HWLOC_NUMA,
    TUTTI_HWLOC_CACHE,
    TUTTI_HWLOC_BRIDGE, /* a host bridge, or a PCI bridge; this and all below are I/O objects */
    TUTTI_HWLOC_PCI,    /* a PCI device that is no bridge */
    TUTTI_HWLOC_OSDEV,  /* a device of the operating system, such as eth0 or cuda0 */
};

/* Types of an operating system's device. Storage and other types have none of these bits. */
enum {
    TUTTI_HWLOC_COMPUTES = 1,
    TUTTI_HWLOC_NETWORK = 2,
    TUTTI_HWLOC_OPENFABRICS = 4,
};

struct tutti_hwloc_info {
    char *name, *value;
    uint32_t next; /* next info of the same object; TUTTI_NO_OBJECT: the last */
};

struct tutti_hwloc_object {
    enum tutti_hwloc_kind kind;
    uint32_t parent;     /* TUTTI_NO_OBJECT: the outermost object */
    uint32_t end;        /* objects within it are those from the next one up to, not including,
                          * `end` */
    uint32_t first_info; /* index in `infos`; TUTTI_NO_OBJECT: none */
    int64_t os_index;    /* number in the operating system; -1: none */
    uint64_t gp_index;   /* persistent number; 0: none */
    char *cpuset;        /* NULL: not given, or unbounded */
    char *name;          /* of an OSDEV; NULL: none */
    uint32_t level;      /* of a CACHE */
    uint32_t osdev;      /* bits TUTTI_HWLOC_COMPUTES, ... */
    bool is_host_bridge; /* of a BRIDGE: it joins the CPUs and a PCI bus */
    int64_t busid;       /* this and below: of a PCI, and of a BRIDGE other than a host bridge */
    uint32_t pci_class, vendor, device, subvendor, subdevice;
    double gbytes_per_s; /* of a PCI link, all lanes; 0: not known */
};

struct tutti_hwloc_matrix {
    char *name;        /* NVLinkBandwidth, XGMIBandwidth (both in MB/s) or XGMIHops */
    uint32_t nobjects;
    uint64_t *objects; /* gp_index of each object */
    uint64_t *values;  /* from objects[i] to objects[j]: values[i * nobjects + j] */
};

/* A zeroed struct is empty. */
struct tutti_hwloc {
    struct tutti_hwloc_object *objects; /* in the order of the text: outer objects first */
    uint32_t nobjects, capacity;
    struct tutti_hwloc_info *infos;
    uint32_t ninfos, info_capacity;
    uint32_t first_info; /* of the whole topology; form 3 has these besides the machine's */
    struct tutti_hwloc_matrix *matrices;
    uint32_t nmatrices, matrix_capacity;
};

/* Reads the XML; the caller frees *ret_hwloc with tutti_hwloc_fini(). `name` begins error messages.
 * TUTTI_ERR_ARGUMENT: the text is not hwloc's XML, and the message says where; TUTTI_ERR_SYSTEM: no
 * memory. */
int tutti_hwloc_read(const char *name, const char *text, size_t length,
                     struct tutti_hwloc *ret_hwloc);
/* Frees the contents and leaves the struct zeroed. */
void tutti_hwloc_fini(struct tutti_hwloc *hwloc);

/* Returns the value of an object's info; NULL: the object has no info of this name. */
const char *tutti_hwloc_info(const struct tutti_hwloc *hwloc, uint32_t object, const char *name);
/* Returns the value of an info of the machine, or else of the whole topology; NULL: none. */
const char *tutti_hwloc_machine_info(const struct tutti_hwloc *hwloc, const char *name);
/* Returns the object itself if it is of this kind, else the nearest object of this kind around it;
 * TUTTI_NO_OBJECT: none. */
uint32_t tutti_hwloc_enclosing(const struct tutti_hwloc *hwloc, uint32_t object,
                               enum tutti_hwloc_kind kind);

#endif
