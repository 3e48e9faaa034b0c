/* SPDX-License-Identifier: Apache-2.0
 * Holds the content of a line (line.h) between its text and the inventory. The reader fills these
 * structs from the words, and tutti_line_build() makes devices from them.
 */
#ifndef TUTTI_TOPOLOGY_FORMATS_LINE_PARTS_H
#define TUTTI_TOPOLOGY_FORMATS_LINE_PARTS_H

#include "topology/inventory/inventory.h"

/* Upper bounds for one host; anything larger is an error. */
#define TUTTI_LINE_MOST_GPUS 256u
#define TUTTI_LINE_MOST_NICS 256u /* of one item */
#define TUTTI_LINE_MOST_NIC_ITEMS 8u
#define TUTTI_LINE_MOST_SWITCHES 256u
#define TUTTI_LINE_MOST_SOCKETS 64u
#define TUTTI_LINE_MOST_NODES 64u /* NUMA nodes */
#define TUTTI_LINE_MOST_CORES 2048u /* per host, counting each thread */
#define TUTTI_LINE_MOST_CACHES 64u  /* of a socket */
#define TUTTI_LINE_MOST_LINKS 64u   /* between two devices */
#define TUTTI_LINE_MOST_LANES 32u
#define TUTTI_LINE_MOST_GENERATIONS 7u /* of PCI */

/* The properties that the name of a CPU model implies. */
struct tutti_line_cpu_model {
    const char *word;      /* in the line; NULL: end of the table */
    const char *name;      /* of the product; NULL: only the vendor is known */
    const char *arch;
    const char *vendor;    /* NULL: no vendor in the inventory */
    int64_t family, model; /* as in NCCL's files; 0: not used by the architecture */
    uint32_t cores;        /* per socket */
};

/* The properties that the name of a GPU model implies. */
struct tutti_line_gpu_model {
    const char *word;      /* in the line; NULL: end of the table */
    const char *name;      /* of the product; NULL: not known */
    int64_t device, class; /* PCI id and class */
    uint32_t sm;     /* NVIDIA: 90 for 9.0; AMD: number of compute units, as in RCCL's files */
    const char *gcn; /* NULL: not an AMD GPU */
    uint32_t generation;   /* of PCI */
    uint32_t switch_links; /* links to NVSwitches; 0: this model is never behind any */
    bool has_gdr;          /* NICs may access its memory */
};

/* The properties that a kind of NIC implies. */
struct tutti_line_nic_kind {
    const char *word;              /* in the line; NULL: end of the table */
    int64_t class, vendor, device; /* PCI class and ids; device 0: depends on the speed */
    const char *prefix, *layer;    /* "mlx5_": ports are mlx5_0, mlx5_1, ... */
    bool has_gdr;                  /* it may access the memory of GPUs */
};

/* Tables end with an entry whose word is NULL; the first entry is the default. */
extern const struct tutti_line_cpu_model tutti_line_cpu_models[];
extern const struct tutti_line_gpu_model tutti_line_gpu_models[];
extern const struct tutti_line_nic_kind tutti_line_nic_kinds[];
/* GPUs that are described by sm or gcn alone. */
extern const struct tutti_line_gpu_model tutti_line_other_nvidia, tutti_line_other_amd;

/* Whether the line has a word such as gdr or no-gdr. UNSAID: neither; the default may depend on
 * other words. */
enum tutti_line_answer { TUTTI_LINE_UNSAID, TUTTI_LINE_YES, TUTTI_LINE_NO };

/* The PCI link of a device toward the root. */
struct tutti_line_pci {
    uint32_t generation; /* 0: the default */
    uint32_t lanes;      /* 0: not known */
    bool has_lanes;      /* false: the line gives no lanes, so the default is used */
};

/* How devices are placed. */
enum tutti_line_placing {
    TUTTI_LINE_DEALT,    /* distributed over the switches, or the NUMA nodes if there are none */
    TUTTI_LINE_ON_CPU,   /* distributed over the listed NUMA nodes */
    TUTTI_LINE_NEAR_GPU, /* distributed over the places of the listed GPUs */
};

struct tutti_line_place {
    enum tutti_line_placing how;
    uint32_t count; /* entries of `number` */
    uint16_t number[TUTTI_LINE_MOST_NICS]; /* the listed NUMA nodes or GPUs */
};

struct tutti_line_cpus {
    const struct tutti_line_cpu_model *model;
    uint32_t sockets;
    uint32_t cores, nodes, caches; /* per socket; caches 0: not described */
    uint32_t threads;              /* per core */
};

struct tutti_line_switches {
    uint32_t count; /* switches that devices are below; 0: none */
    uint32_t upper; /* switches above these; 0: none */
    struct tutti_line_pci pci;
};

/* How links join the GPUs of a host. */
enum tutti_line_shape {
    TUTTI_LINE_PCIE, /* no links */
    TUTTI_LINE_NVSWITCH,
    TUTTI_LINE_MESH,
    TUTTI_LINE_RING,
    TUTTI_LINE_PAIRS,
    TUTTI_LINE_CUBE,
    TUTTI_LINE_LIST, /* the links of each pair are listed */
    TUTTI_LINE_SHAPES
};

struct tutti_line_gpus {
    const struct tutti_line_gpu_model *model;
    uint32_t count;
    uint32_t sm;      /* 0: that of the model */
    char gcn[16];     /* "": that of the model */
    struct tutti_line_pci pci;
    enum tutti_line_shape shape;
    uint32_t links;   /* parallel links of the shape; 0: the model's, to the NVSwitches */
    uint32_t hives;   /* equal runs of GPUs that have the shape each */
    uint8_t *between; /* between[a * count + b]: links between GPUs a and b */
    uint32_t switch_links, cpu_links; /* from each GPU, to NVSwitches and to its CPU; 0: none */
    int64_t c2c_mb;  /* MB/s of the coherent link to the CPU; 0: none */
    int64_t fabric;  /* number of the fabric that joins hosts; 0: none */
    enum tutti_line_answer gdr;
    struct tutti_line_place place;
};

struct tutti_line_nics {
    const struct tutti_line_nic_kind *kind;
    uint32_t count; /* cards */
    uint32_t ports; /* per card */
    int64_t mbits;  /* Mbit/s of each port */
    enum tutti_line_answer rails, gdr;
    struct tutti_line_pci pci;
    struct tutti_line_place place;
};

/* A zeroed host has no devices. */
struct tutti_line_host {
    struct tutti_line_cpus cpus;
    struct tutti_line_switches switches;
    struct tutti_line_gpus gpus;
    struct tutti_line_nics nics[TUTTI_LINE_MOST_NIC_ITEMS];
    uint32_t nnics; /* items of nics, not cards */
};

/* Frees the contents of a host and leaves it zeroed. */
void tutti_line_host_fini(struct tutti_line_host *host);

/* Returns true if the GPUs are AMD's. */
static inline bool tutti_line_is_amd(const struct tutti_line_gpus *gpus)
{
    return gpus->model->gcn != NULL;
}

/* Returns the name of a shape, such as "mesh". */
const char *tutti_line_shape_name(enum tutti_line_shape shape);
/* Sets between[a * count + b] to the links of a shape between `count` GPUs in `hives` equal runs.
 * Returns false if the shape is not possible for these numbers of GPUs and hives. */
bool tutti_line_shape(enum tutti_line_shape shape, uint32_t count, uint32_t hives, uint8_t links,
                      uint8_t *between);

/* These functions return the values in effect: those of the line, or else the defaults. */
bool tutti_line_gpu_gdr(const struct tutti_line_gpus *gpus);
bool tutti_line_nic_gdr(const struct tutti_line_nics *nics);
bool tutti_line_nic_rails(const struct tutti_line_host *host, const struct tutti_line_nics *nics);
struct tutti_line_pci tutti_line_gpu_pci(const struct tutti_line_gpus *gpus);
struct tutti_line_pci tutti_line_nic_pci(const struct tutti_line_nics *nics);
struct tutti_line_pci tutti_line_switch_pci(const struct tutti_line_host *host);
int64_t tutti_line_nic_device(const struct tutti_line_nics *nics);
/* Returns the GT/s of one lane. */
double tutti_line_generation_speed(uint32_t generation);

/* Returns the place of device i of n, out of `places` places. */
static inline uint32_t tutti_line_deal(uint32_t i, uint32_t n, uint32_t places)
{
    return (uint32_t)((uint64_t)i * places / n);
}

/* Adds the host with index `host` to the inventory. Ranks of its GPUs begin at first_rank.
 * TUTTI_ERR_ARGUMENT: the inventory is full; TUTTI_ERR_SYSTEM: no memory. */
int tutti_line_build(struct tutti_inventory *inventory, const struct tutti_line_host *parts,
                     uint32_t host, uint32_t first_rank);
/* Sets host_hash on the cpus of an inventory with several hosts. Each NUMA node 0 begins a new
 * host. Gpus without a fabric get the fabric 0, which says that no NVLinks leave their host. */
void tutti_line_hash_hosts(struct tutti_inventory *inventory);

#endif
