/* SPDX-License-Identifier: Apache-2.0
 * What the kernel tells of a network interface. */
#ifndef TUTTI_BASE_INTERFACE_H
#define TUTTI_BASE_INTERFACE_H

#include <stdint.h>

/* The rate of the link, in Mbit/s; 0: not known. `root` is what the kernel's files lie below: ""
 * for this host. Interfaces behind which there is no device (loopback, veth, bridges) are not
 * asked: some of them name a rate that nothing has. */
uint32_t tutti_interface_mbits(const char *root, const char *name);

#endif
