/* SPDX-License-Identifier: Apache-2.0
 * Lists the network interfaces of this host with their addresses and rates, as the kernel reports
 * them. */
#ifndef TUTTI_BASE_INTERFACE_H
#define TUTTI_BASE_INTERFACE_H

#include "base/socket.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TUTTI_INTERFACE_NAME_BYTES = 16 }; /* of the kernel */

/* Returns the rate of interface `name` in Mbit/s; 0: not known. `root` is the directory that
 * contains /sys: "" for this host, another one in tests. Returns 0 for interfaces without a device
 * (loopback, veth, bridges), since some of them report a made-up rate. */
uint32_t tutti_interface_mbits(const char *root, const char *name);

/* Finds the interface of a network port. `port` is the name of an interface, or of an RDMA device
 * ("mlx5_0") that has one; of several, the first by name is taken. False: there is none. */
bool tutti_interface_of_port(const char *root, const char *port,
                             char ret_name[TUTTI_INTERFACE_NAME_BYTES]);

/* One IP address of an interface of this host. */
struct tutti_interface {
    char name[TUTTI_INTERFACE_NAME_BYTES];
    struct tutti_address address; /* with port 0 */
    uint32_t mbits;               /* from tutti_interface_mbits */
    bool is_up;
};

/* List the IP addresses of this host in the kernel's order, one entry per address. *ret_count is at
 * most `capacity`; further addresses are left out. TUTTI_ERR_SYSTEM: the kernel cannot list
 * them. */
int tutti_interface_list(struct tutti_interface *interfaces, size_t capacity, size_t *ret_count);

/* Write a rate as text, such as "25 Gbit/s", or "rate unknown" if `mbits` is 0. Returns `text`. */
#define TUTTI_INTERFACE_RATE_BYTES 32
const char *tutti_interface_format_rate(uint32_t mbits, char text[TUTTI_INTERFACE_RATE_BYTES]);

#endif
