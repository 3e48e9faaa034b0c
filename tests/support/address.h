/* SPDX-License-Identifier: Apache-2.0
 * Makes addresses from text. */
#ifndef TUTTI_TESTS_ADDRESS_H
#define TUTTI_TESTS_ADDRESS_H

#include "base/result.h"
#include "base/socket.h"

/* Finds the first address of a text. The results are those of tutti_address_resolve. */
static inline int address_parse(const char *text, struct tutti_address *ret_address)
{
    size_t count;

    return tutti_address_resolve(text, ret_address, 1, &count);
}

#endif
