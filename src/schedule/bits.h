/* SPDX-License-Identifier: Apache-2.0
 * A set of numbers 0 .. size-1 in which the neighbors of a number are found quickly. 64 numbers
 * share a word; each level above has a bit for each word below, set if that word is not empty.
 *
 *   level 1   1   0   1   1         set if the word below is not empty
 *   level 0   .x. ... x.. .xx       numbers, here three to a word
 *
 * To find the next number of the set, a search goes up one level whenever the current word has no
 * further number, and then down again. It goes up at most five levels, whatever the distance. Not
 * thread-safe.
 */
#ifndef TUTTI_SCHEDULE_BITS_H
#define TUTTI_SCHEDULE_BITS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define TUTTI_BITS_LEVELS 6 /* enough for all 32-bit numbers: 64^6 > 2^32 */

struct tutti_bits {
    uint64_t *level[TUTTI_BITS_LEVELS]; /* level[0] owns the memory of all levels */
};

/* Begin an empty set of numbers less than `size`; false if memory runs out. */
static inline bool tutti_bits_init(struct tutti_bits *bits, uint32_t size)
{
    size_t first[TUTTI_BITS_LEVELS], nwords = 0, nbits = size;

    for (int level = 0; level < TUTTI_BITS_LEVELS; level++) {
        first[level] = nwords;
        nbits = nbits / 64 + 1;
        nwords += nbits;
    }
    bits->level[0] = calloc(nwords, sizeof(uint64_t));
    for (int level = 1; level < TUTTI_BITS_LEVELS && bits->level[0] != NULL; level++)
        bits->level[level] = bits->level[0] + first[level];
    return bits->level[0] != NULL;
}

/* Free the memory; a zeroed object is ignored. */
static inline void tutti_bits_fini(struct tutti_bits *bits)
{
    free(bits->level[0]);
    *bits = (struct tutti_bits){.level = {NULL}};
}

static inline bool tutti_bits_has(const struct tutti_bits *bits, uint32_t number)
{
    return (bits->level[0][number / 64] >> number % 64 & 1) != 0;
}

static inline void tutti_bits_add(struct tutti_bits *bits, uint32_t number)
{
    bool was_empty = true;

    for (int level = 0; level < TUTTI_BITS_LEVELS && was_empty; level++, number /= 64) {
        uint64_t *word = &bits->level[level][number / 64];

        was_empty = *word == 0;
        *word |= UINT64_C(1) << number % 64;
    }
}

static inline void tutti_bits_remove(struct tutti_bits *bits, uint32_t number)
{
    bool is_empty = true;

    for (int level = 0; level < TUTTI_BITS_LEVELS && is_empty; level++, number /= 64) {
        uint64_t *word = &bits->level[level][number / 64];

        *word &= ~(UINT64_C(1) << number % 64);
        is_empty = *word == 0;
    }
}

/* The greatest number of the set that is at most `number`; there must be one. */
static inline uint32_t tutti_bits_upto(const struct tutti_bits *bits, uint32_t number)
{
    uint64_t word = bits->level[0][number / 64] & (UINT64_MAX >> (63 - number % 64));
    int level = 0;

    while (word == 0) {
        number /= 64;
        level++;
        word = bits->level[level][number / 64] & ((UINT64_C(1) << number % 64) - 1);
    }
    number = number / 64 * 64 + 63 - (uint32_t)__builtin_clzll(word);
    while (level-- > 0)
        number = number * 64 + 63 - (uint32_t)__builtin_clzll(bits->level[level][number]);
    return number;
}

/* The least number of the set that is at least `number`; there must be one. */
static inline uint32_t tutti_bits_from(const struct tutti_bits *bits, uint32_t number)
{
    uint64_t word = bits->level[0][number / 64] & (UINT64_MAX << number % 64);
    int level = 0;

    while (word == 0) {
        number /= 64;
        level++;
        word = bits->level[level][number / 64] & ((UINT64_MAX - 1) << number % 64);
    }
    number = number / 64 * 64 + (uint32_t)__builtin_ctzll(word);
    while (level-- > 0)
        number = number * 64 + (uint32_t)__builtin_ctzll(bits->level[level][number]);
    return number;
}

#endif
