/* SPDX-License-Identifier: Apache-2.0
 * RDMA devices through libibverbs, loaded at run time: the few functions that finding devices
 * takes. */
#ifndef TUTTI_WRAP_IBV_H
#define TUTTI_WRAP_IBV_H

#include <stdbool.h>
#include <stdint.h>

struct ibv_device;
struct ibv_context;
struct ibv_device_attr;

/* libibverbs' own functions, by their names. */
struct tutti_ibv {
    void *library;
    struct ibv_device **(*get_device_list)(int *ret_count);
    void (*free_device_list)(struct ibv_device **devices);
    const char *(*get_device_name)(struct ibv_device *device);
    uint64_t (*get_device_guid)(struct ibv_device *device); /* big-endian */
    struct ibv_context *(*open_device)(struct ibv_device *device);
    int (*close_device)(struct ibv_context *context);
    int (*query_device)(struct ibv_context *context, struct ibv_device_attr *ret_attributes);
    /* Fills a struct shorter than struct ibv_port_attr, that of its first version. */
    int (*query_port)(struct ibv_context *context, uint8_t port, void *ret_attributes);
};

struct tutti_ibv_device {
    uint64_t guid; /* the card's where it has one, else the device's; 0: none */
    uint32_t nports;
    uint32_t max_connections;
};

enum tutti_ibv_layer { TUTTI_IBV_LAYER_UNKNOWN, TUTTI_IBV_INFINIBAND, TUTTI_IBV_ETHERNET };

struct tutti_ibv_port {
    bool is_active;
    const char *state; /* in words */
    enum tutti_ibv_layer layer;
    uint32_t rate_mbits_per_s; /* 0: a speed or width that we do not know */
};

/* Load the library, TUTTI_IBVERBS_LIBRARY if that is set. TUTTI_ERR_SYSTEM, said in one line and
 * noted: there is none that works. */
int tutti_ibv_open(struct tutti_ibv *ret_ibv);
/* Takes a zeroed one, too. */
void tutti_ibv_close(struct tutti_ibv *ibv);

/* Facts of an open device, and of one of its ports (from 1 on). TUTTI_ERR_SYSTEM, noted: the
 * device does not answer. */
int tutti_ibv_query_device(const struct tutti_ibv *ibv, struct ibv_context *context,
                           struct tutti_ibv_device *ret_device);
int tutti_ibv_query_port(const struct tutti_ibv *ibv, struct ibv_context *context, uint32_t port,
                         struct tutti_ibv_port *ret_port);

#endif
