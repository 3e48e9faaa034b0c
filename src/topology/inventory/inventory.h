/* SPDX-License-Identifier: Apache-2.0
 * What a machine consists of, as far as somebody has found out: a tree of devices, each with
 * properties, each property with who found it. Detectors and readers of files fill it in any order;
 * graph/ makes a graph of it.
 *
 *   system > cpu > pci > ... > pci > gpu > nvlink, c2c
 *                                  > nic > net
 *                cpu > nic > net                       (devices without a place on a PCI bus)
 *
 * A `cpu` is a NUMA node; a `pci` without children is a device that nobody has named yet, one with
 * pci below it a bridge or a switch. Kinds and properties are those of NCCL's topology XML, so that
 * form holds an inventory without loss (formats/nccl_xml.h).
 */
#ifndef TUTTI_TOPOLOGY_INVENTORY_INVENTORY_H
#define TUTTI_TOPOLOGY_INVENTORY_INVENTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A larger machine is not believed. */
#define TUTTI_INVENTORY_DEVICES 16384
#define TUTTI_NO_DEVICE UINT32_MAX

enum tutti_device_kind {
    TUTTI_DEVICE_SYSTEM,  /* the root: one host, or hosts that cpus tell apart by host_hash */
    TUTTI_DEVICE_CPU,     /* a NUMA node */
    TUTTI_DEVICE_PCI,
    TUTTI_DEVICE_PCILINK, /* of a PCI switch to another one, beside the tree */
    TUTTI_DEVICE_GPU,     /* what its pci is */
    TUTTI_DEVICE_NVLINK,  /* all links of the gpu to one target; AMD's xGMI too */
    TUTTI_DEVICE_C2C,     /* the gpu's coherent link to its CPU */
    TUTTI_DEVICE_NIC,     /* what its pci is: one or more ports */
    TUTTI_DEVICE_NET,     /* a port */
    TUTTI_DEVICE_COUNT
};

/* Who says so; of two that differ the later in this list wins. */
enum tutti_source {
    TUTTI_SOURCE_NOBODY,   /* not known */
    TUTTI_SOURCE_ASSUMED,  /* ours, from what such devices usually have */
    TUTTI_SOURCE_SYSFS,    /* the kernel: /sys and /proc */
    TUTTI_SOURCE_HWLOC,
    TUTTI_SOURCE_VERBS,
    TUTTI_SOURCE_NVML,
    TUTTI_SOURCE_FILE,     /* the user's file, or line */
    TUTTI_SOURCE_MEASURED,
    TUTTI_SOURCE_COUNT
};

/* How a property is held, read and written. */
enum tutti_property_form {
    TUTTI_FORM_NUMBER, /* decimal; 0x is read too */
    TUTTI_FORM_HEX,    /* 0x... */
    TUTTI_FORM_ID,     /* 0x...; of other text, such as a redaction leaves, a number is made */
    TUTTI_FORM_REAL,
    TUTTI_FORM_BUSID,  /* dddd:bb:dd.f, lower case */
    TUTTI_FORM_GTS,    /* "16.0 GT/s PCIe"; a real */
    TUTTI_FORM_MASK,   /* of CPUs: "ffff0000,0000ffff", the highest word first */
    TUTTI_FORM_TEXT,
};

#define TUTTI_ON(kind) (1u << TUTTI_DEVICE_##kind)
/* name, its name in files, the kinds of device that have it, form, what it means */
#define TUTTI_PROPERTIES(X)                                                                        \
    X(VERSION, "version", TUTTI_ON(SYSTEM), NUMBER, "of NCCL's form; AMD's has 2")                 \
    X(MODEL_NAME, "model", TUTTI_ON(SYSTEM) | TUTTI_ON(CPU) | TUTTI_ON(GPU), TEXT,                 \
      "what a person calls it")                                                                    \
    X(HOST_HASH, "host_hash", TUTTI_ON(CPU), ID, "tells hosts of one system apart")               \
    X(NUMA, "numaid", TUTTI_ON(CPU), NUMBER, "the NUMA node's number")                             \
    X(PACKAGE, "package", TUTTI_ON(CPU), NUMBER, "the socket that it is of")                       \
    X(AFFINITY, "affinity", TUTTI_ON(CPU), MASK, "its CPUs")                                       \
    X(CACHES, "caches", TUTTI_ON(CPU), TEXT,                                                       \
      "masks of CPUs that share a last-level cache, by ';'")                                       \
    X(MEMORY_RATE, "memory", TUTTI_ON(CPU), REAL,                                                  \
      "bytes/s that all its cores were measured to load and store together")                       \
    X(MESSAGE_RATE, "messages", TUTTI_ON(CPU), REAL,                                               \
      "bytes/s that were measured from one process to another")                                    \
    X(CPU_ARCH, "arch", TUTTI_ON(CPU), TEXT, "x86_64, arm64, ppc64")                               \
    X(CPU_VENDOR, "vendor", TUTTI_ON(CPU), TEXT, "GenuineIntel, AuthenticAMD, ...")                \
    X(CPU_FAMILY, "familyid", TUTTI_ON(CPU), NUMBER, "as CPUID says")                              \
    X(CPU_MODEL, "modelid", TUTTI_ON(CPU), NUMBER, "as CPUID says")                                \
    X(BUSID, "busid", TUTTI_ON(PCI), BUSID, "domain, bus, device, function")                       \
    X(CLASS, "class", TUTTI_ON(PCI), HEX, "the PCI class, 24 bits")                                \
    X(PCI_VENDOR, "vendor", TUTTI_ON(PCI), HEX, "")                                                \
    X(PCI_DEVICE, "device", TUTTI_ON(PCI), HEX, "")                                                \
    X(SUBVENDOR, "subsystem_vendor", TUTTI_ON(PCI), HEX, "")                                       \
    X(SUBDEVICE, "subsystem_device", TUTTI_ON(PCI), HEX, "")                                       \
    X(LINK_SPEED, "link_speed", TUTTI_ON(PCI), GTS, "of its link upwards, GT/s; 0: not known")     \
    X(LINK_WIDTH, "link_width", TUTTI_ON(PCI), NUMBER,                                             \
      "of its link upwards, lanes; 0: not known")                                                  \
    X(DEV, "dev", TUTTI_ON(GPU) | TUTTI_ON(NET), NUMBER, "the driver's number of it")              \
    X(SM, "sm", TUTTI_ON(GPU), NUMBER, "compute capability, 90 for 9.0")                           \
    X(GCN, "gcn", TUTTI_ON(GPU), TEXT, "AMD's architecture: 910, gfx942")                          \
    X(GPU_ARCH, "arch", TUTTI_ON(GPU), NUMBER, "as AMD's files have it")                           \
    X(RANK, "rank", TUTTI_ON(GPU), NUMBER, "that uses it")                                         \
    X(GDR, "gdr", TUTTI_ON(GPU) | TUTTI_ON(NET), NUMBER, "1: NICs reach the GPU's memory")         \
    X(P2P, "p2p", TUTTI_ON(GPU), NUMBER, "0: other GPUs do not reach its memory over PCI")         \
    X(UUID, "uuid", TUTTI_ON(GPU), TEXT, "the driver's lasting name of it")                        \
    X(FABRIC, "fabric", TUTTI_ON(GPU), ID,                                                        \
      "GPUs of several hosts behind one NVSwitch have it alike")                                   \
    X(TARGET, "target", TUTTI_ON(NVLINK) | TUTTI_ON(PCILINK), BUSID, "the other end")              \
    X(LINKS, "count", TUTTI_ON(NVLINK) | TUTTI_ON(C2C), NUMBER, "links side by side")              \
    X(TCLASS, "tclass", TUTTI_ON(NVLINK), HEX, "the PCI class of the target")                      \
    X(BW, "bw", TUTTI_ON(C2C), NUMBER, "MB/s of one link")                                         \
    X(NET_NAME, "name", TUTTI_ON(NET), TEXT, "mlx5_0, eth0, ...")                                  \
    X(LATENCY, "latency", TUTTI_ON(NET), REAL, "us")                                               \
    X(SPEED, "speed", TUTTI_ON(NET), NUMBER, "Mbit/s")                                             \
    X(PORT, "port", TUTTI_ON(NET), NUMBER, "of the device, from 1 on")                             \
    X(GUID, "guid", TUTTI_ON(NET), ID, "alike on the ports of one card")                          \
    X(MAXCONN, "maxconn", TUTTI_ON(NET), NUMBER, "connections at most")                            \
    X(COLL, "coll", TUTTI_ON(NET), NUMBER, "1: the network reduces")                               \
    X(RAIL, "rail", TUTTI_ON(NET), NUMBER, "ports of one rail reach each other")                   \
    X(LAYER, "layer", TUTTI_ON(NET), TEXT, "infiniband, ethernet, ...")                            \
    X(MEASURED, "measured",                                                                        \
      TUTTI_ON(CPU) | TUTTI_ON(PCI) | TUTTI_ON(NVLINK) | TUTTI_ON(C2C) | TUTTI_ON(NET), REAL,      \
      "bytes/s that its link was measured to carry")

#define TUTTI_PROPERTY_ENUM(name, text, kinds, form, about) TUTTI_PROPERTY_##name,
enum tutti_property { TUTTI_PROPERTIES(TUTTI_PROPERTY_ENUM) TUTTI_PROPERTY_COUNT };
#undef TUTTI_PROPERTY_ENUM

struct tutti_value {
    enum tutti_source found_by; /* NOBODY: the device does not have the property */
    union {
        int64_t number; /* NUMBER, HEX, ID, BUSID */
        double real;    /* REAL, GTS */
        char *text;     /* MASK, TEXT */
    };
};

struct tutti_device {
    enum tutti_device_kind kind;
    uint32_t parent;      /* TUTTI_NO_DEVICE: the root */
    uint32_t first_child, last_child, next; /* in the order of adding */
    enum tutti_source found_by;             /* who said that there is such a device here */
    struct tutti_value value[TUTTI_PROPERTY_COUNT];
};

/* Device 0 is the root, of kind system. Zeroed, it has none. */
struct tutti_inventory {
    struct tutti_device *devices;
    uint32_t count, capacity;
};

/* ---- life ------------------------------------------------------------------------------------ */

/* An inventory with its root alone, whose version is assumed to be 1. */
int tutti_inventory_create(struct tutti_inventory **ret_inventory);
void tutti_inventory_destroy(struct tutti_inventory *inventory);

/* Add a device below another. TUTTI_ERR_ARGUMENT: too many, or none of that kind goes there. */
int tutti_inventory_add(struct tutti_inventory *inventory, uint32_t parent,
                        enum tutti_device_kind kind, enum tutti_source source,
                        uint32_t *ret_device);
/* May such a device stand below such another? */
bool tutti_device_fits(enum tutti_device_kind parent, enum tutti_device_kind kind);
/* Move a device with all below it to another parent, as its last child. */
int tutti_inventory_move(struct tutti_inventory *inventory, uint32_t device, uint32_t parent);
/* Take a device with all below it out of the tree: it stays in the array, with itself as parent. */
void tutti_inventory_remove(struct tutti_inventory *inventory, uint32_t device);
bool tutti_inventory_has(const struct tutti_inventory *inventory, uint32_t device);

/* The devices in the tree's order, root first: the one after `device` (TUTTI_NO_DEVICE: the first),
 * TUTTI_NO_DEVICE at the end. */
uint32_t tutti_inventory_next(const struct tutti_inventory *inventory, uint32_t device);
/* The same, of one kind only. */
uint32_t tutti_inventory_next_of(const struct tutti_inventory *inventory, uint32_t device,
                                 enum tutti_device_kind kind);
/* The nearest of that kind above a device, or itself; TUTTI_NO_DEVICE: none. */
uint32_t tutti_inventory_above(const struct tutti_inventory *inventory, uint32_t device,
                               enum tutti_device_kind kind);
/* The first pci with that bus id; TUTTI_NO_DEVICE: none. */
uint32_t tutti_inventory_find_pci(const struct tutti_inventory *inventory, int64_t busid);

/* Are both trees alike: kinds, order, values? Who found what does not count. */
bool tutti_inventory_equal(const struct tutti_inventory *a, const struct tutti_inventory *b);
int tutti_inventory_copy(const struct tutti_inventory *inventory,
                         struct tutti_inventory **ret_copy);

/* Put in what another view of the same hosts has, or knows better: devices are the same if they
 * have the same bus id, NUMA number, name or target. On error part of it is in. */
int tutti_inventory_merge(struct tutti_inventory *into, const struct tutti_inventory *from);

/* Fill in, as assumed, what a file leaves to the driver, so that a graph can be made of it:
 * - a pci of a GPU's or NIC's class that has nothing below it gets its gpu, or nic and net,
 *   numbered on in the tree's order after those that are there;
 * - where a file has bus ids and nothing else, those that ascend one by one are gpus, and those
 *   that break that order nics; if none does, all stay unnamed, and the log says so;
 * - a net without a place on a bus that is listed below several cpus of a host stays below the
 *   first.
 * What is known stays as it is, and what nobody can know (speeds, sm) stays out. */
int tutti_inventory_complete(struct tutti_inventory *inventory);

/* ---- values ---------------------------------------------------------------------------------- */

/* Set a property unless a better source has. What does not fit the kind is our bug. */
int tutti_device_set_number(struct tutti_inventory *inventory, uint32_t device,
                            enum tutti_property property, enum tutti_source source,
                            int64_t number);
int tutti_device_set_real(struct tutti_inventory *inventory, uint32_t device,
                          enum tutti_property property, enum tutti_source source, double real);
int tutti_device_set_text(struct tutti_inventory *inventory, uint32_t device,
                          enum tutti_property property, enum tutti_source source,
                          const char *text);
/* From its written form. TUTTI_ERR_ARGUMENT, noted not logged: no value of that form. A speed that
 * says nothing ("", "Unknown") is 0. */
int tutti_device_set_written(struct tutti_inventory *inventory, uint32_t device,
                             enum tutti_property property, enum tutti_source source,
                             const char *written);

/* Take the value over as it is, with who found it, whoever has spoken before. */
int tutti_device_copy_value(struct tutti_inventory *into, uint32_t device,
                            enum tutti_property property, const struct tutti_inventory *from,
                            uint32_t other);
/* The device does not have the property any more. */
void tutti_device_clear(struct tutti_inventory *inventory, uint32_t device,
                        enum tutti_property property);

/* The value, or `fallback` where there is none. */
int64_t tutti_device_number(const struct tutti_inventory *inventory, uint32_t device,
                            enum tutti_property property, int64_t fallback);
double tutti_device_real(const struct tutti_inventory *inventory, uint32_t device,
                         enum tutti_property property, double fallback);
/* "" where there is none. */
const char *tutti_device_text(const struct tutti_inventory *inventory, uint32_t device,
                              enum tutti_property property);
static inline bool tutti_device_has(const struct tutti_inventory *inventory, uint32_t device,
                                    enum tutti_property property)
{
    return inventory->devices[device].value[property].found_by != TUTTI_SOURCE_NOBODY;
}
/* The written form; reading it gives the same value. Its length as snprintf's. */
int tutti_device_write(const struct tutti_inventory *inventory, uint32_t device,
                       enum tutti_property property, char *ret_text, size_t size_bytes);

/* ---- names ----------------------------------------------------------------------------------- */

struct tutti_property_info {
    const char *name; /* in files */
    uint32_t kinds;   /* bits of enum tutti_device_kind */
    enum tutti_property_form form;
    const char *about;
};

const struct tutti_property_info *tutti_property_info(enum tutti_property property);
/* The property of that name that such a device has; TUTTI_PROPERTY_COUNT: none. */
enum tutti_property tutti_property_named(enum tutti_device_kind kind, const char *name);
/* "cpu", "pci", ... and back; "xgmi" is read as nvlink. COUNT: none. */
const char *tutti_device_kind_name(enum tutti_device_kind kind);
enum tutti_device_kind tutti_device_kind_named(const char *name);
/* "sysfs", "nvml", ... */
const char *tutti_source_name(enum tutti_source source);

/* "0000:3b:00.0" to a number and back; domains of up to 8 digits. false: it is none. */
bool tutti_busid_parse(const char *text, int64_t *ret_busid);
int tutti_busid_write(int64_t busid, char *ret_text, size_t size_bytes);
/* Decimal, or 0x...; and a finite decimal one, in any locale. false: it is none. */
bool tutti_number_parse(const char *text, int64_t *ret_number);
bool tutti_real_parse(const char *text, double *ret_real);
/* The fewest digits that read as the same value. */
int tutti_real_write(double real, char *ret_text, size_t size_bytes);

#endif
