/* SPDX-License-Identifier: Apache-2.0
 * Conversion between struct tutti_address and the kernel's sockaddr. Only the files of base that
 * make system calls include it. */
#ifndef TUTTI_BASE_ADDRESS_NATIVE_H
#define TUTTI_BASE_ADDRESS_NATIVE_H

#include "base/socket.h"

#include <sys/socket.h>

/* Write the kernel's form of `address`, whose family must be 4 or 6. Returns its length in
 * bytes. */
socklen_t tutti_address_to_native(const struct tutti_address *address,
                                  struct sockaddr_storage *ret_native);

/* Convert the kernel's form to ours. An IPv4-mapped IPv6 address becomes IPv4. A family other than
 * IPv4 and IPv6 gives family 0. */
void tutti_address_from_native(const struct sockaddr *native, struct tutti_address *ret_address);

#endif
