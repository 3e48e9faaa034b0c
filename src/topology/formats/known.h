/* SPDX-License-Identifier: Apache-2.0
 * Built-in machines that have a name: examples to start from and to test with. Their figures come
 * from what their makers publish.
 */
#ifndef TUTTI_TOPOLOGY_FORMATS_KNOWN_H
#define TUTTI_TOPOLOGY_FORMATS_KNOWN_H

#include <stddef.h>

struct tutti_known_machine {
    const char *name;
    const char *about; /* one line */
    const char *line;  /* for tutti_line_read */
};

/* NULL if index is past the last one. */
const struct tutti_known_machine *tutti_known_machine(size_t index);

#endif
