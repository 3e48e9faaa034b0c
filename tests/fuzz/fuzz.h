/* SPDX-License-Identifier: Apache-2.0
 * The parts that all fuzz targets share. Each target is one file with one entry. libFuzzer calls
 * the entry (scripts/fuzz), and replay.c calls it with the corpus. */
#ifndef TUTTI_TESTS_FUZZ_H
#define TUTTI_TESTS_FUZZ_H

#include "base/result.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One input. Always returns 0; what must not happen aborts. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* Abort with the claim that did not hold and the library's last message. */
static inline void fuzz_require(bool is_so, const char *claim)
{
    if (is_so)
        return;
    fprintf(stderr, "this must hold and does not: %s\nlast message: %s\n", claim,
            tutti_message_last());
    abort();
}

/* An input that is consumed piece by piece. */
struct fuzz_input {
    const uint8_t *bytes;
    size_t left;
};

/* The next byte, 0 at the end. */
static inline uint8_t fuzz_byte(struct fuzz_input *input)
{
    if (input->left == 0)
        return 0;
    input->left--;
    return *input->bytes++;
}

/* Up to `most` bytes; returns how many there are. */
static inline size_t fuzz_bytes(struct fuzz_input *input, size_t most, const uint8_t **ret_bytes)
{
    size_t size = most < input->left ? most : input->left;

    *ret_bytes = input->bytes;
    input->bytes += size;
    input->left -= size;
    return size;
}

/* Copy up to `size` bytes over what `to` holds; the rest of it stays. */
static inline void fuzz_overwrite(struct fuzz_input *input, void *to, size_t size)
{
    const uint8_t *bytes;
    size_t count = fuzz_bytes(input, size, &bytes);

    if (count > 0)
        memcpy(to, bytes, count);
}

/* The input as a text that ends with a zero. The caller frees it. */
static inline char *fuzz_text(const uint8_t *bytes, size_t size)
{
    char *text = malloc(size + 1);

    fuzz_require(text != NULL, "there is memory for the input");
    if (size > 0)
        memcpy(text, bytes, size);
    text[size] = '\0';
    return text;
}

#endif
