/* SPDX-License-Identifier: Apache-2.0
 * Machines that have a name: examples to start from, and to test with. What they have is taken from
 * what their makers publish.
 */
#ifndef TUTTI_TOPOLOGY_FORMATS_KNOWN_H
#define TUTTI_TOPOLOGY_FORMATS_KNOWN_H

#include <stddef.h>

struct tutti_known_machine {
    const char *name;
    const char *about; /* one line */
    const char *line;  /* for tutti_line_read */
};

/* NULL from the last one on. */
const struct tutti_known_machine *tutti_known_machine(size_t index);

#endif
