/* SPDX-License-Identifier: Apache-2.0
 * Holds the devices of a machine, as far as they are known, as a tree of devices with properties.
 * Each property records the source that found its value. Detectors and file readers fill the tree
 * in any order, and graph/ builds a graph from the tree.
 *
 *   system > cpu > pci > ... > pci > gpu > nvlink, c2c
 *                                  > nic > net
 *                cpu > nic > net                       (devices without a place on a PCI bus)
 *
 * A `cpu` is a NUMA node. A `pci` without children is a device whose function is not known; a `pci`
 * that has other pci below it is a bridge or a switch. Kinds and properties are those of NCCL's
 * topology XML, so that format holds an inventory without loss (formats/nccl_xml.h).
 */
#ifndef TUTTI_TOPOLOGY_INVENTORY_INVENTORY_H
#define TUTTI_TOPOLOGY_INVENTORY_INVENTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Upper bound on devices; anything larger is taken for an error. */
#define TUTTI_INVENTORY_DEVICES 16384
#define TUTTI_NO_DEVICE UINT32_MAX

enum tutti_device_kind {
    TUTTI_DEVICE_SYSTEM,  /* the root: one host, or several, whose cpus differ in host_hash */
    TUTTI_DEVICE_CPU,     /* a NUMA node */
    TUTTI_DEVICE_PCI,     /* a PCI function, switch or bridge */
    TUTTI_DEVICE_PCILINK, /* a link from a PCI switch to another one, outside the tree */
    TUTTI_DEVICE_GPU,     /* the driver's view of the GPU; its parent is the GPU's pci */
    TUTTI_DEVICE_NVLINK,  /* all links of the gpu to one target; also AMD's xGMI */
    TUTTI_DEVICE_C2C,     /* the gpu's coherent link to its CPU */
    TUTTI_DEVICE_NIC,     /* a network card with one or more ports; its parent is the card's pci */
    TUTTI_DEVICE_NET,     /* a port */
    TUTTI_DEVICE_COUNT
};

/* The source of a value. If two sources differ, the later source in this list wins. */
enum tutti_source {
    TUTTI_SOURCE_NONE,   /* not known */
    TUTTI_SOURCE_ASSUMED,  /* filled in by this library with the usual value of such devices */
    TUTTI_SOURCE_PRODUCT,  /* known by a PCI id or the name of a product */
    TUTTI_SOURCE_SYSFS,    /* the kernel: /sys and /proc */
    TUTTI_SOURCE_HWLOC,
    TUTTI_SOURCE_VERBS,
    TUTTI_SOURCE_NVML,
    TUTTI_SOURCE_FILE,     /* the user's file or line */
    TUTTI_SOURCE_MEASURED,
    TUTTI_SOURCE_COUNT
};

/* The type of a property and its text format. */
enum tutti_property_form {
    TUTTI_FORM_NUMBER, /* decimal; 0x is accepted too */
    TUTTI_FORM_HEX,    /* 0x... */
    TUTTI_FORM_ID,     /* 0x...; other text, such as a redacted id, is hashed to a number */
    TUTTI_FORM_REAL,
    TUTTI_FORM_BUSID,  /* dddd:bb:dd.f, lower case */
    TUTTI_FORM_GTS,    /* "16.0 GT/s PCIe"; a real number */
    TUTTI_FORM_MASK,   /* a set of CPUs: "ffff0000,0000ffff", highest word first */
    TUTTI_FORM_TEXT,
};

/* The bit of a kind of device in a set of kinds. */
#define TUTTI_ON(kind) (1u << TUTTI_DEVICE_##kind)
/* The columns are: identifier, name in files, kinds of device that have the property, form,
 * meaning. */
#define TUTTI_PROPERTIES(X)                                                                        \
    X(VERSION, "version", TUTTI_ON(SYSTEM), NUMBER, "of the file format: 1 in NCCL's, 2 in AMD's") \
    X(MODEL_NAME, "model", TUTTI_ON(SYSTEM) | TUTTI_ON(CPU) | TUTTI_ON(GPU), TEXT,                 \
      "the name of the product")                                                                   \
    X(HOST_HASH, "host_hash", TUTTI_ON(CPU), ID, "tells hosts of one system apart")                \
    X(COPIES, "copies", TUTTI_ON(CPU), NUMBER,                                                     \
      "like hosts for which its host stands, itself included; default: 1")                         \
    X(NUMA, "numaid", TUTTI_ON(CPU), NUMBER, "number of the NUMA node")                            \
    X(PACKAGE, "package", TUTTI_ON(CPU), NUMBER, "number of its socket")                           \
    X(AFFINITY, "affinity", TUTTI_ON(CPU), MASK, "its CPUs")                                       \
    X(CACHES, "caches", TUTTI_ON(CPU), TEXT,                                                       \
      "masks of CPUs that share a last-level cache, separated by ';'")                             \
    X(MEMORY_RATE, "memory", TUTTI_ON(CPU), REAL,                                                  \
      "bytes/s that all its cores were measured to load and store together")                       \
    X(MESSAGE_RATE, "messages", TUTTI_ON(CPU), REAL,                                               \
      "bytes/s that were measured from one process to another")                                    \
    X(CPU_ARCH, "arch", TUTTI_ON(CPU), TEXT, "x86_64, arm64, ppc64")                               \
    X(CPU_VENDOR, "vendor", TUTTI_ON(CPU), TEXT, "GenuineIntel, AuthenticAMD, ...")                \
    X(CPU_FAMILY, "familyid", TUTTI_ON(CPU), NUMBER, "its family as in CPUID")                     \
    X(CPU_MODEL, "modelid", TUTTI_ON(CPU), NUMBER, "its model as in CPUID")                        \
    X(BUSID, "busid", TUTTI_ON(PCI), BUSID, "domain, bus, device, function")                       \
    X(CLASS, "class", TUTTI_ON(PCI), HEX, "the PCI class, 24 bits")                                \
    X(PCI_VENDOR, "vendor", TUTTI_ON(PCI), HEX, "PCI id of the maker of the chip")                 \
    X(PCI_DEVICE, "device", TUTTI_ON(PCI), HEX, "PCI id of the chip")                              \
    X(SUBVENDOR, "subsystem_vendor", TUTTI_ON(PCI), HEX, "PCI id of the maker of the board")       \
    X(SUBDEVICE, "subsystem_device", TUTTI_ON(PCI), HEX, "PCI id of the board")                    \
    X(LINK_SPEED, "link_speed", TUTTI_ON(PCI), GTS, "of its link upwards, GT/s; 0: not known")     \
    X(LINK_WIDTH, "link_width", TUTTI_ON(PCI), NUMBER,                                             \
      "of its link upwards, lanes; 0: not known")                                                  \
    X(DEV, "dev", TUTTI_ON(GPU) | TUTTI_ON(NET), NUMBER, "its number in the driver")               \
    X(SM, "sm", TUTTI_ON(GPU), NUMBER, "compute capability, 90 for 9.0")                           \
    X(GCN, "gcn", TUTTI_ON(GPU), TEXT, "its AMD architecture: 910, gfx942")                        \
    X(GPU_ARCH, "arch", TUTTI_ON(GPU), NUMBER, "a number in AMD's files; not interpreted")         \
    X(RANK, "rank", TUTTI_ON(GPU), NUMBER, "the rank that uses it")                                \
    X(GDR, "gdr", TUTTI_ON(GPU) | TUTTI_ON(NET), NUMBER, "1: NICs reach the GPU's memory")         \
    X(P2P, "p2p", TUTTI_ON(GPU), NUMBER, "0: other GPUs do not reach its memory over PCI")         \
    X(UUID, "uuid", TUTTI_ON(GPU), TEXT, "the driver's name of it, unique and permanent")          \
    X(FABRIC, "fabric", TUTTI_ON(GPU), ID,                                                         \
      "equal for the GPUs of all hosts behind one NVSwitch; 0: none")                              \
    X(TARGET, "target", TUTTI_ON(NVLINK) | TUTTI_ON(PCILINK), BUSID, "bus id of the other end")    \
    X(LINKS, "count", TUTTI_ON(NVLINK) | TUTTI_ON(C2C), NUMBER, "links side by side")              \
    X(TCLASS, "tclass", TUTTI_ON(NVLINK), HEX, "the PCI class of the target")                      \
    X(BW, "bw", TUTTI_ON(C2C), NUMBER, "MB/s of one link")                                         \
    X(NET_NAME, "name", TUTTI_ON(NET), TEXT, "mlx5_0, eth0, ...")                                  \
    X(LATENCY, "latency", TUTTI_ON(NET), REAL, "us")                                               \
    X(SPEED, "speed", TUTTI_ON(NET), NUMBER, "Mbit/s")                                             \
    X(PORT, "port", TUTTI_ON(NET), NUMBER, "number among the ports of its card, from 1")           \
    X(GUID, "guid", TUTTI_ON(NET), ID, "equal for the ports of one card")                          \
    X(MAXCONN, "maxconn", TUTTI_ON(NET), NUMBER, "largest number of connections")                  \
    X(COLL, "coll", TUTTI_ON(NET), NUMBER, "1: the network can compute reductions")                \
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
    uint32_t parent;      /* TUTTI_NO_DEVICE at the root */
    uint32_t first_child, last_child; /* in the order of adding; TUTTI_NO_DEVICE: no children */
    uint32_t next;                    /* next child of the parent; TUTTI_NO_DEVICE: the last one */
    enum tutti_source found_by;       /* the best source that lists the device */
    struct tutti_value value[TUTTI_PROPERTY_COUNT]; /* by enum tutti_property */
};

/* Device 0 is the root, of kind system. A zeroed inventory has no devices, not even a root. */
struct tutti_inventory {
    struct tutti_device *devices;
    uint32_t count;    /* entries of `devices` in use, including those of removed devices */
    uint32_t capacity; /* entries of `devices` for which there is memory */
    char *remarks;     /* lines for people, each with its newline; NULL: none */
};

/* ---- life ------------------------------------------------------------------------------------ */

/* Creates an inventory that holds only its root, with version 1 as an assumed value.
 * TUTTI_ERR_SYSTEM: no memory. */
int tutti_inventory_create(struct tutti_inventory **ret_inventory);
/* Frees an inventory with all its values; NULL is allowed. */
void tutti_inventory_destroy(struct tutti_inventory *inventory);

/* Adds a device as the last child of `parent`. TUTTI_ERR_ARGUMENT: the inventory is full, or this
 * kind cannot be below that parent; TUTTI_ERR_SYSTEM: no memory. The message of TUTTI_ERR_ARGUMENT
 * is recorded but not logged. The call may move `devices`, so callers keep indexes instead of
 * pointers. */
int tutti_inventory_add(struct tutti_inventory *inventory, uint32_t parent,
                        enum tutti_device_kind kind, enum tutti_source source,
                        uint32_t *ret_device);
/* Returns true if a device of this kind may be a child of a device of kind `parent`. */
bool tutti_device_fits(enum tutti_device_kind parent, enum tutti_device_kind kind);
/* Moves a device, with all devices below it, to the end of another parent's children.
 * TUTTI_ERR_ARGUMENT: the kind cannot be there, or the parent is below the device. */
int tutti_inventory_move(struct tutti_inventory *inventory, uint32_t device, uint32_t parent);
/* Takes a device, with all devices below it, out of the tree. Its entry stays in the array, so
 * indexes of other devices stay valid. The entry becomes its own parent, which marks a removed
 * device. */
void tutti_inventory_remove(struct tutti_inventory *inventory, uint32_t device);
/* Returns true if a device is still in the tree. */
bool tutti_inventory_has(const struct tutti_inventory *inventory, uint32_t device);

/* Iterates over the tree, parents before their children. Returns the device after `device`, the
 * root for TUTTI_NO_DEVICE, and TUTTI_NO_DEVICE at the end. */
uint32_t tutti_inventory_next(const struct tutti_inventory *inventory, uint32_t device);
/* Does the same as tutti_inventory_next(), but visits only devices of one kind. */
uint32_t tutti_inventory_next_of(const struct tutti_inventory *inventory, uint32_t device,
                                 enum tutti_device_kind kind);
/* Returns the nearest device of this kind among a device and its ancestors; TUTTI_NO_DEVICE:
 * none. */
uint32_t tutti_inventory_above(const struct tutti_inventory *inventory, uint32_t device,
                               enum tutti_device_kind kind);
/* Returns the first pci with this bus id, on any host; TUTTI_NO_DEVICE: none. */
uint32_t tutti_inventory_find_pci(const struct tutti_inventory *inventory, int64_t busid);

/* Copies an inventory; devices keep their indexes. The caller destroys the copy. TUTTI_ERR_SYSTEM:
 * no memory. */
int tutti_inventory_copy(const struct tutti_inventory *inventory,
                         struct tutti_inventory **ret_copy);

/* Merges `from`, another view of the same hosts, into `into`: adds the devices that are missing,
 * and copies each value whose source is better. Devices are matched by bus id, NUMA number, name or
 * target. On error the merge is incomplete. TUTTI_ERR_ARGUMENT: the inventory is full;
 * TUTTI_ERR_SYSTEM: no memory. */
int tutti_inventory_merge(struct tutti_inventory *into, const struct tutti_inventory *from);

/* Adds the devices that a file leaves for the driver to find, so that a graph can be built. Their
 * source is ASSUMED:
 * - A pci of a GPU's or NIC's class that has nothing below it gets its gpu, or its nic and net.
 *   They are numbered in tree order, after the numbers already in use.
 * - In a file with bus ids only, devices whose bus ids ascend in steps of one are taken for gpus.
 *   Devices that break this order are taken for nics. If no device breaks this order, or gpus are
 *   not the majority, all stay unnamed, and the log says so.
 * - A net that is on no bus and is listed below several cpus of a host stays only below the
 *   first.
 * - Gpus of one bus id are brought together below one pci, and share its links.
 * - If a NUMA number is repeated under one host_hash, each repetition is taken for another host.
 * - If gpus of several hosts lead to NVSwitches without an address, and none has a fabric, all of
 *   them get the same fabric, as NCCL reads such a file.
 * Known values are kept. Values that cannot be guessed (speeds, sm) stay unset. TUTTI_ERR_ARGUMENT:
 * the inventory is full; TUTTI_ERR_SYSTEM: no memory. */
int tutti_inventory_complete(struct tutti_inventory *inventory);

/* Adds a line for people about the machine: what was ignored in its file, or assumed. The line has
 * no newline. It is also logged. TUTTI_ERR_SYSTEM: no memory. */
int tutti_inventory_remark(struct tutti_inventory *inventory, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Adds a remark if there are several gpus below one pci, which are ranks or partitions of one
 * device. TUTTI_ERR_SYSTEM: no memory. */
int tutti_inventory_remark_shared(struct tutti_inventory *inventory);

/* ---- values ---------------------------------------------------------------------------------- */

/* Set a property, unless the property has a value of a better source. The device's kind must have
 * the property, which is asserted. Numbers and reals never fail. Texts are copied.
 * TUTTI_ERR_ARGUMENT: a mask is invalid; TUTTI_ERR_SYSTEM: no memory. */
int tutti_device_set_number(struct tutti_inventory *inventory, uint32_t device,
                            enum tutti_property property, enum tutti_source source,
                            int64_t number);
int tutti_device_set_real(struct tutti_inventory *inventory, uint32_t device,
                          enum tutti_property property, enum tutti_source source, double real);
int tutti_device_set_text(struct tutti_inventory *inventory, uint32_t device,
                          enum tutti_property property, enum tutti_source source,
                          const char *text);
/* Sets a property from its text format. A link speed that is no number ("", "Unknown") is stored as
 * 0. TUTTI_ERR_ARGUMENT: the text does not have this format, and the message is recorded but not
 * logged. TUTTI_ERR_SYSTEM: no memory. */
int tutti_device_set_parsed(struct tutti_inventory *inventory, uint32_t device,
                            enum tutti_property property, enum tutti_source source,
                            const char *written);

/* Copies a property of device `other` of `from`, with its source. Replaces the old value even if
 * that has a better source. TUTTI_ERR_SYSTEM: no memory. */
int tutti_device_copy_value(struct tutti_inventory *into, uint32_t device,
                            enum tutti_property property, const struct tutti_inventory *from,
                            uint32_t other);
/* Removes the property from the device. */
void tutti_device_clear(struct tutti_inventory *inventory, uint32_t device,
                        enum tutti_property property);

/* Return the value, or `fallback` if the device does not have the property. */
int64_t tutti_device_number(const struct tutti_inventory *inventory, uint32_t device,
                            enum tutti_property property, int64_t fallback);
double tutti_device_real(const struct tutti_inventory *inventory, uint32_t device,
                         enum tutti_property property, double fallback);
/* Returns the text, or "" if the device does not have the property. The text is valid until the
 * value changes. */
const char *tutti_device_text(const struct tutti_inventory *inventory, uint32_t device,
                              enum tutti_property property);
static inline bool tutti_device_has(const struct tutti_inventory *inventory, uint32_t device,
                                    enum tutti_property property)
{
    return inventory->devices[device].value[property].found_by != TUTTI_SOURCE_NONE;
}
/* Writes a value in its text format, which reads back as the same value. Returns the length in
 * bytes as snprintf does. The device must have the property. */
int tutti_device_write(const struct tutti_inventory *inventory, uint32_t device,
                       enum tutti_property property, char *ret_text, size_t size_bytes);

/* ---- names ----------------------------------------------------------------------------------- */

struct tutti_property_info {
    const char *name; /* in files */
    uint32_t kinds;   /* bits of enum tutti_device_kind */
    enum tutti_property_form form;
    const char *about; /* meaning, for readers */
};

/* Returns the static description of a property. */
const struct tutti_property_info *tutti_property_info(enum tutti_property property);
/* Returns true if the values of a property are kept as text, which the inventory owns. */
bool tutti_property_is_text(enum tutti_property property);
/* Returns the property of this name for a kind of device; TUTTI_PROPERTY_COUNT: none. */
enum tutti_property tutti_property_named(enum tutti_device_kind kind, const char *name);
/* Returns a kind's name, such as "cpu". */
const char *tutti_device_kind_name(enum tutti_device_kind kind);
/* Returns the kind with this name; "xgmi" is another name of nvlink. TUTTI_DEVICE_COUNT: none. */
enum tutti_device_kind tutti_device_kind_named(const char *name);
/* Returns a source's name, such as "sysfs" or "nvml". */
const char *tutti_source_name(enum tutti_source source);

/* The domain and the bus id that files and drivers give to a device whose address is hidden, such
 * as an NVSwitch in a virtual machine: fffffff:ff:ff.0. No real device has them. */
#define TUTTI_BUSID_HIDDEN_DOMAIN INT64_C(0xfffffff)
#define TUTTI_BUSID_HIDDEN        (TUTTI_BUSID_HIDDEN_DOMAIN << 20 | 0xff << 12 | 0xff << 4)

/* Convert between "0000:3b:00.0" and its number; the domain may have up to 8 digits. Parsing
 * returns false if the text is no bus id. Writing returns the length as snprintf does. */
bool tutti_busid_parse(const char *text, int64_t *ret_busid);
int tutti_busid_write(int64_t busid, char *ret_text, size_t size_bytes);
/* Parse a decimal or 0x... integer, and a finite decimal real in any locale. Return false if the
 * text is no such number. */
bool tutti_number_parse(const char *text, int64_t *ret_number);
bool tutti_real_parse(const char *text, double *ret_real);
/* Writes the fewest digits that read back as the same value, in any locale. Returns the length as
 * snprintf does. */
int tutti_real_write(double real, char *ret_text, size_t size_bytes);

#endif
