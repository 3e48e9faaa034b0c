/* SPDX-License-Identifier: Apache-2.0
 * The few functions of libibverbs that the search for RDMA devices needs. The library is loaded at
 * run time, so that one build runs with and without it. */
#ifndef TUTTI_WRAP_IBV_H
#define TUTTI_WRAP_IBV_H

#include <stdbool.h>
#include <stdint.h>

struct ibv_device;
struct ibv_context;
struct ibv_device_attr;

/* Functions of libibverbs, with their names without "ibv_". */
struct tutti_ibv {
    void *library; /* handle of dlopen; NULL: not open */
    struct ibv_device **(*get_device_list)(int *ret_count);
    void (*free_device_list)(struct ibv_device **devices);
    const char *(*get_device_name)(struct ibv_device *device);
    uint64_t (*get_device_guid)(struct ibv_device *device); /* big-endian */
    struct ibv_context *(*open_device)(struct ibv_device *device);
    int (*close_device)(struct ibv_context *context);
    int (*query_device)(struct ibv_context *context, struct ibv_device_attr *ret_attributes);
    /* Fills in only the first version of struct ibv_port_attr, which was shorter. */
    int (*query_port)(struct ibv_context *context, uint8_t port, void *ret_attributes);
};

struct tutti_ibv_device {
    uint64_t guid; /* of the card if it has one, else of the device; 0: none */
    uint32_t nports;          /* number of physical ports */
    uint32_t max_connections; /* the most queue pairs */
};

enum tutti_ibv_layer { TUTTI_IBV_LAYER_UNKNOWN, TUTTI_IBV_INFINIBAND, TUTTI_IBV_ETHERNET };

struct tutti_ibv_port {
    bool is_active;
    const char *state; /* for messages; a static string */
    enum tutti_ibv_layer layer;
    uint32_t rate_mbits_per_s; /* 0: the port's speed or width is unknown to us */
};

/* Load libibverbs, or the library that TUTTI_IBVERBS_LIBRARY names. The caller closes *ret_ibv.
 * TUTTI_ERR_SYSTEM: the library cannot be loaded. The error is recorded as the thread's last
 * message, and logged in one line. */
int tutti_ibv_open(struct tutti_ibv *ret_ibv);
/* Unload the library. Does nothing for a zeroed struct. */
void tutti_ibv_close(struct tutti_ibv *ibv);

/* Query an open device, or one of its ports. Ports are numbered from 1. TUTTI_ERR_SYSTEM: the
 * device does not answer. The error is recorded as the thread's last message, but not logged. */
int tutti_ibv_query_device(const struct tutti_ibv *ibv, struct ibv_context *context,
                           struct tutti_ibv_device *ret_device);
int tutti_ibv_query_port(const struct tutti_ibv *ibv, struct ibv_context *context, uint32_t port,
                         struct tutti_ibv_port *ret_port);

#endif
