/* SPDX-License-Identifier: Apache-2.0
 * Between our addresses and the kernel's: for the files of base that make system calls. */
#ifndef TUTTI_BASE_ADDRESS_NATIVE_H
#define TUTTI_BASE_ADDRESS_NATIVE_H

#include "base/socket.h"

#include <sys/socket.h>

/* The kernel's form of `address` (family 4 or 6) and its length in bytes. */
socklen_t tutti_address_to_native(const struct tutti_address *address,
                                  struct sockaddr_storage *ret_native);

/* Ours of the kernel's. IPv4 in IPv6 clothes becomes IPv4; other families give family 0. */
void tutti_address_from_native(const struct sockaddr *native, struct tutti_address *ret_address);

#endif
