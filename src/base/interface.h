/* SPDX-License-Identifier: Apache-2.0
 * Network interfaces of this host: addresses and rates, as the kernel tells them. */
#ifndef TUTTI_BASE_INTERFACE_H
#define TUTTI_BASE_INTERFACE_H

#include "base/socket.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The rate of the link, in Mbit/s; 0: not known. `root` is what the kernel's files lie below: ""
 * for this host. Interfaces behind which there is no device (loopback, veth, bridges) are not
 * asked: some of them name a rate that nothing has. */
uint32_t tutti_interface_mbits(const char *root, const char *name);

/* One IP address of an interface of this host. */
struct tutti_interface {
    char name[16];
    struct tutti_address address; /* its port is 0 */
    uint32_t mbits;               /* as tutti_interface_mbits */
    bool is_up;
};

/* The IP addresses of this host, in the kernel's order; *ret_count is at most `capacity`.
 * TUTTI_ERR_SYSTEM: the kernel does not tell. */
int tutti_interface_list(struct tutti_interface *interfaces, size_t capacity, size_t *ret_count);

/* "25 Gbit/s", "rate unknown". Returns `text`. */
#define TUTTI_INTERFACE_RATE_BYTES 32
const char *tutti_interface_format_rate(uint32_t mbits, char text[TUTTI_INTERFACE_RATE_BYTES]);

#endif
