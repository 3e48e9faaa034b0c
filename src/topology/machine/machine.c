/* SPDX-License-Identifier: Apache-2.0
 * Loads a machine from a name, a description or a file, computes its rates at a given footprint,
 * and destroys it. */
#include "topology/machine/machine_draft.h"

#include "base/file.h"
#include "base/result.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for rings and trees of a million ranks; a larger file cannot be a description. */
#define MOST_FILE_BYTES ((size_t)256 << 20)

static int load_file(const char *name, uint32_t nranks, struct tutti_machine **ret_machine)
{
    char cure[TUTTI_MESSAGE_BYTES];
    size_t length;
    char *text;
    int rc;

    snprintf(cure, sizeof cure, "give a machine's file, a description such as \"ranks 8; level top "
             "overhead 5us bandwidth 50GB/s\", or a known name such as \"%s\"",
             tutti_machine_example_at(0)->name);
    TUTTI_TRY(tutti_file_read(name, MOST_FILE_BYTES, cure, &text, &length));
    rc = tutti_machine_parse(name, text, nranks, ret_machine);
    free(text);
    return rc;
}

int tutti_machine_load(const char *text, uint32_t nranks, struct tutti_machine **ret_machine)
{
    const struct tutti_machine_example *named;

    for (size_t i = 0; (named = tutti_machine_example_at(i)) != NULL; i++)
        if (strcmp(named->name, text) == 0)
            return tutti_machine_parse(named->name, named->text, nranks, ret_machine);
    if (strpbrk(text, " ;") != NULL)
        return tutti_machine_parse("machine", text, nranks, ret_machine);
    return load_file(text, nranks, ret_machine);
}

void tutti_machine_destroy(struct tutti_machine *machine)
{
    if (machine == NULL)
        return;
    tutti_links_free_array(machine->places.node);
    tutti_links_free_array(machine->places.group);
    tutti_links_free_array(machine->places.cell);
    tutti_links_free_array(machine->places.rings);
    tutti_links_free_array(machine->places.trees);
    tutti_links_fini(&machine->links);
    tutti_links_free_array(machine->ring_rates);
    free(machine);
}

double tutti_machine_footprint(enum tutti_collective collective, uint32_t nranks,
                               double block_bytes)
{
    return block_bytes * ((double)tutti_input_blocks(collective, nranks) +
                          (double)tutti_output_blocks(collective, nranks));
}

/* Replaces the rate by the one that applies to the footprint, and clears the `beyond` entries. */
static void choose_rate(double footprint_bytes, double *bytes_per_s,
                        struct tutti_footprint_rate *beyond)
{
    for (int i = 0; i < TUTTI_MACHINE_FOOTPRINTS; i++) {
        if (beyond[i].bytes_per_s > 0 && footprint_bytes > beyond[i].bytes)
            *bytes_per_s = beyond[i].bytes_per_s;
        beyond[i] = (struct tutti_footprint_rate){0};
    }
}

void tutti_machine_for_footprint(const struct tutti_machine *machine, double footprint_bytes,
                                 struct tutti_machine *ret_machine)
{
    struct tutti_machine at = *machine;

    for (int i = 0; i < TUTTI_MACHINE_LEVELS; i++) {
        choose_rate(footprint_bytes, &at.level[i].bytes_per_s, at.level[i].beyond);
        choose_rate(footprint_bytes, &at.level[i].core_bytes_per_s, at.level[i].core_beyond);
    }
    choose_rate(footprint_bytes, &at.memory_bytes_per_s, at.memory_beyond);
    choose_rate(footprint_bytes, &at.copy_bytes_per_s, at.copy_beyond);
    choose_rate(footprint_bytes, &at.reduce_bytes_per_s, at.reduce_beyond);
    choose_rate(footprint_bytes, &at.load_bytes_per_s, at.load_beyond);
    *ret_machine = at;
}

uint32_t tutti_machine_level(const struct tutti_machine *machine, uint32_t a, uint32_t b)
{
    const struct tutti_placement *places = &machine->places;

    if (places->node == NULL ? a == b : places->node[a] == places->node[b])
        return 0;
    return places->group != NULL && places->group[a] == places->group[b] ? 1 : 2;
}
