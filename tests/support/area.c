/* SPDX-License-Identifier: Apache-2.0
 * Implements buffers between guard bytes. */
#include "support/area.h"

#include <stdlib.h>
#include <string.h>

enum { GUARD_BYTES = 256, LINE_BYTES = 64, POISON = 0xC3 };

void area_open(struct area *area, size_t bytes, size_t shift)
{
    area->total = (bytes + shift + 2 * GUARD_BYTES + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
    area->memory = aligned_alloc(LINE_BYTES, area->total);
    if (area->memory == NULL)
        abort();
    memset(area->memory, POISON, area->total);
    area->base = area->memory + GUARD_BYTES + shift;
    area->bytes = bytes;
}

void area_close(struct area *area)
{
    free(area->memory);
    *area = (struct area){.memory = NULL};
}

void area_open_image(struct area *image, const struct area *area)
{
    area_open(image, area->bytes, (size_t)(area->base - area->memory) - GUARD_BYTES);
}

void area_compare(struct member *member, const struct area *area, const struct area *image,
                  const char *what)
{
    size_t at = 0, differ = 0;

    if (memcmp(area->memory, image->memory, area->total) == 0)
        return;
    while (area->memory[at] == image->memory[at])
        at++;
    for (size_t i = at; i < area->total; i++)
        differ += area->memory[i] != image->memory[i];
    member_complain(member, "%s: %zu bytes are wrong, first byte %td of %zu: 0x%02x, not 0x%02x",
                    what, differ, (area->memory + at) - area->base, area->bytes, area->memory[at],
                    image->memory[at]);
}

void stream_fill(uint8_t *at, size_t bytes, uint64_t key)
{
    uint64_t state = key * UINT64_C(0x9E3779B97F4A7C15) + 1;

    for (size_t i = 0; i < bytes; i += sizeof state) {
        uint64_t word;

        state += UINT64_C(0x9E3779B97F4A7C15);
        word = (state ^ (state >> 29)) * UINT64_C(0xBF58476D1CE4E5B9);
        word ^= word >> 32;
        memcpy(at + i, &word, bytes - i < sizeof word ? bytes - i : sizeof word);
    }
}
