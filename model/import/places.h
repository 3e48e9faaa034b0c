/* SPDX-License-Identifier: Apache-2.0
 * Where the cells of a program are kept in the ranks' memory, step after step.
 *
 * A cell is not tied to one place. Input stays where the caller put it until the cell is written.
 * Written data goes to OUTPUT if the cell is part of it, else to SCRATCH. So INPUT is never
 * written, and nothing is copied that need not be.
 *
 * A chunk of SCRATCH has the size of the chunk of a block that it is congruent to. So a cell of
 * scratch memory needs as many places as chunks of different sizes are kept in it over time.
 */
#ifndef TUTTI_IMPORT_PLACES_H
#define TUTTI_IMPORT_PLACES_H

#include "import/program.h"
#include "schedule/build.h"

#define TUTTI_IMPORT_NOWHERE UINT32_MAX

struct tutti_import_place {
    uint32_t buffer; /* enum tutti_buffer; NONE: the cell is empty */
    uint32_t chunk;
};

struct tutti_import_content {
    struct tutti_import_place place;
    uint32_t class;  /* the chunk of a block that it has the size of */
    uint32_t lowest; /* lowest rank whose input is in it */
    uint32_t since;  /* the event that put it there */
    uint32_t home;   /* the chunk of SCRATCH that was its last place there, or NOWHERE */
};

struct tutti_import_places {
    const struct tutti_import_program *program;
    struct tutti_import_content *contents; /* per cell */
    uint32_t *used;                        /* per rank and class: chunks of SCRATCH in use */
};

int tutti_import_places_init(struct tutti_import_places *places,
                             const struct tutti_import_program *program);
void tutti_import_places_fini(struct tutti_import_places *places);

/* Allocate a chunk of SCRATCH of `rank` that nothing else uses. TUTTI_ERR_ARGUMENT: there are too
 * many. */
int tutti_import_scratch(struct tutti_import_places *places, uint32_t rank, uint32_t class,
                         struct tutti_import_place *ret_place);
/* Number of chunks of SCRATCH that `rank` needs, gaps included. */
uint32_t tutti_import_scratch_count(const struct tutti_import_places *places, uint32_t rank);

/* Find the place for what is written into a cell of `rank`; it has the size of `class`.
 * TUTTI_ERR_ARGUMENT as above. */
int tutti_import_home(struct tutti_import_places *places, uint32_t rank, uint32_t cell,
                      uint32_t class, struct tutti_import_place *ret_place);

/* The cell that begins in the chunk of INPUT that an in-place call overlays with chunk `output` of
 * OUTPUT. NOWHERE if there is none. *ret_chunk: the chunk of INPUT. */
uint32_t tutti_import_overlaid(const struct tutti_import_places *places, uint32_t rank,
                               uint32_t output, uint32_t *ret_chunk);

/* True if an in-place call makes the two places the same. */
bool tutti_import_is_overlay(const struct tutti_import_places *places, uint32_t rank,
                             struct tutti_import_place input, struct tutti_import_place output);

#endif
