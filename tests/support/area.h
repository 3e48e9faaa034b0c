/* SPDX-License-Identifier: Apache-2.0
 * Buffers between guard bytes. Tests compare a buffer and its guards with the expected contents, so
 * that they find writes outside of the buffer. */
#ifndef TUTTI_TEST_AREA_H
#define TUTTI_TEST_AREA_H

#include <stddef.h>
#include <stdint.h>

#include "support/crowd.h"

struct area {
    uint8_t *memory; /* guard, bytes, guard, all poisoned at first */
    uint8_t *base;   /* the bytes: one element past a cache line when shifted */
    size_t total, bytes;
};

/* Make a poisoned area of `bytes`; `shift` bytes past the alignment of a cache line. */
void area_open(struct area *area, size_t bytes, size_t shift);
void area_close(struct area *area);

/* A copy of the area that is poisoned as it was when opened. */
void area_open_image(struct area *image, const struct area *area);

/* Complain, with `what`, where the area differs from its image, guards included. */
void area_compare(struct member *member, const struct area *area, const struct area *image,
                  const char *what);

/* Bytes that only `key` gives: the same for equal keys, unlike for others. */
void stream_fill(uint8_t *at, size_t bytes, uint64_t key);

#endif
