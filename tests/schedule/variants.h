/* SPDX-License-Identifier: Apache-2.0
 * The variants of an algorithm that tests try: values of its options, and places of the ranks. */
#ifndef TUTTI_TESTS_SCHEDULE_VARIANTS_H
#define TUTTI_TESTS_SCHEDULE_VARIANTS_H

#include "algorithms/algorithm.h"

struct variant {
    char name[64];               /* "segments=3", "nodes of 4, cyclic", ...; "" for variant 0 */
    struct tutti_shape shape;    /* nranks, options, places; rank and root are 0 */
    struct tutti_placement places;
    uint32_t *numbers;           /* what places points to */
};

/* Variant 0 has nothing but the usual values. */
size_t variants_count(const struct tutti_algorithm *algorithm);
void variant_create(const struct tutti_algorithm *algorithm, size_t index, uint32_t nranks,
                    struct variant *ret_variant);
void variant_destroy(struct variant *variant);

#endif
