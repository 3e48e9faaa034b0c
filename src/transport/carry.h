/* SPDX-License-Identifier: Apache-2.0
 * A small buffer for transports whose streams come in parts. An element that spans two parts is put
 * together in it before the transport shows the element to its reader. */
#ifndef TUTTI_TRANSPORT_CARRY_H
#define TUTTI_TRANSPORT_CARRY_H

#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>

#define TUTTI_CARRY_BYTES 64

struct tutti_carry {
    alignas(8) uint8_t bytes[TUTTI_CARRY_BYTES]; /* the next bytes of the stream */
    size_t have; /* bytes in use */
};

/* Move the first `size` bytes to `data`, at most as many as there are. Returns their number. */
size_t tutti_carry_take(struct tutti_carry *carry, void *data, size_t size);

/* Drop the first `size` bytes, at most as many as there are. Returns their number. */
size_t tutti_carry_drop(struct tutti_carry *carry, size_t size);

/* Returns the alignment for elements of `least` bytes: the largest power of two that divides
 * `least`, up to 8. */
static inline size_t tutti_peek_alignment(size_t least)
{
    size_t lowest_bit = least & (~least + 1);

    return lowest_bit > 8 ? 8 : lowest_bit;
}

#endif
