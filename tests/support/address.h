/* SPDX-License-Identifier: Apache-2.0
 * Addresses from text. */
#ifndef TUTTI_TESTS_ADDRESS_H
#define TUTTI_TESTS_ADDRESS_H

#include "base/result.h"
#include "base/socket.h"

/* The first address of a text that tutti_address_resolve takes. Results as of that. */
static inline int address_parse(const char *text, struct tutti_address *ret_address)
{
    size_t count;

    return tutti_address_resolve(text, ret_address, 1, &count);
}

#endif
