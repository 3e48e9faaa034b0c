/* SPDX-License-Identifier: Apache-2.0
 * Gives access to the built-in machines. They have names, and serve as examples and for tests.
 * Their figures are those that their makers publish.
 */
#ifndef TUTTI_TOPOLOGY_FORMATS_KNOWN_H
#define TUTTI_TOPOLOGY_FORMATS_KNOWN_H

#include <stddef.h>

struct tutti_known_machine {
    const char *name;
    const char *about; /* one line */
    const char *line;  /* for tutti_line_read */
};

/* Returns the machine with this index, which stays valid; NULL: the index is past the last one. */
const struct tutti_known_machine *tutti_known_machine(size_t index);

#endif
