/* SPDX-License-Identifier: Apache-2.0
 * Scripts of well-known algorithms: rings, trees, all pairs, hierarchies, one pass. */
#ifndef TUTTI_TESTS_IMPORT_GRAMMAR_H
#define TUTTI_TESTS_IMPORT_GRAMMAR_H

#include <stddef.h>

#include "import/script.h"

struct pattern {
    const char *name;
    enum tutti_collective collective;
    uint32_t chunks; /* chunks per block; 0: as many as ranks */
    bool may_be_in_place;
    bool needs_groups; /* the number of ranks is even and at least 4; groups are of 2 */
    /* Ranks exchange data in one go, so chunks of different channels stay apart. */
    void (*write)(struct script *script, uint32_t channels);
};

/* NULL from the end on. */
const struct pattern *pattern(size_t index);

/* The script of a pattern. The caller frees it with script_free. */
struct script pattern_script(const struct pattern *pattern, uint32_t nranks, uint32_t channels,
                             bool is_in_place);

#endif
