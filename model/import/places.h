/* SPDX-License-Identifier: Apache-2.0
 * Keeps track of the places in the ranks' memory where the cells of a program are, step after step.
 *
 * The place of a cell changes over time. Input stays where the caller put it until the cell is
 * written. Data that are written go to OUTPUT if the cell is part of OUTPUT, and otherwise to
 * SCRATCH. So INPUT is never written, and there are no needless copies.
 *
 * The chunks of a block may differ in size. Chunk c of SCRATCH has the size of chunk
 * c % program->chunks of a block. This remainder is the class of the chunk. Data can be kept only
 * in a chunk of their own class. So a cell gets a new place in SCRATCH if data of another class are
 * written into it.
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

/* The data in a cell. */
struct tutti_import_content {
    struct tutti_import_place place;
    uint32_t class;  /* the data have the size of this chunk of a block */
    uint32_t lowest; /* lowest rank whose input is in the data */
    uint32_t since;  /* the event that put the data there */
    uint32_t home;   /* the last chunk of SCRATCH that was chosen for the cell, or NOWHERE */
};

struct tutti_import_places {
    const struct tutti_import_program *program;
    struct tutti_import_content *contents; /* per cell */
    uint32_t *used;                        /* per rank and class: chunks of SCRATCH in use */
};

/* At first, cells of INPUT are where the caller put the input, and all other cells are empty.
 * `program` is borrowed. Returns TUTTI_ERR_SYSTEM if there is no memory. */
int tutti_import_places_init(struct tutti_import_places *places,
                             const struct tutti_import_program *program);
void tutti_import_places_fini(struct tutti_import_places *places);

/* Allocates a chunk of SCRATCH of `rank`, with the size of `class`. No other data use the chunk.
 * Returns TUTTI_ERR_ARGUMENT if the rank needs too many chunks. */
int tutti_import_scratch(struct tutti_import_places *places, uint32_t rank, uint32_t class,
                         struct tutti_import_place *ret_place);
/* Returns the number of chunks of SCRATCH that `rank` needs, including gaps between used chunks. */
uint32_t tutti_import_scratch_count(const struct tutti_import_places *places, uint32_t rank);

/* Chooses the place for data of class `class` that are about to be written into a cell of `rank`.
 * Returns TUTTI_ERR_ARGUMENT if the rank needs too many chunks of SCRATCH. */
int tutti_import_home(struct tutti_import_places *places, uint32_t rank, uint32_t cell,
                      uint32_t class, struct tutti_import_place *ret_place);

/* Finds the chunk of INPUT that shares memory with chunk `output` of OUTPUT in an in-place call.
 * Stores its number in *ret_chunk. Returns the cell whose input is there, or NOWHERE if there is no
 * such chunk. */
uint32_t tutti_import_overlaid(const struct tutti_import_places *places, uint32_t rank,
                               uint32_t output, uint32_t *ret_chunk);

/* Returns true if the two places share memory in an in-place call. */
bool tutti_import_is_overlay(const struct tutti_import_places *places, uint32_t rank,
                             struct tutti_import_place input, struct tutti_import_place output);

#endif
