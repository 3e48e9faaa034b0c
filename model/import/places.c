/* SPDX-License-Identifier: Apache-2.0
 * Keeps track of the places of a program's cells, and chooses places for written data. */
#include "import/places.h"

#include "base/result.h"

#include <stdlib.h>
#include <string.h>

/* Records where the caller puts the inputs. */
static void place_inputs(struct tutti_import_places *places)
{
    const struct tutti_import_program *program = places->program;

    for (uint32_t rank = 0; rank < program->nranks; rank++) {
        if (!tutti_collective_has_input(program->collective, rank, program->root))
            continue;
        for (uint32_t i = 0; i < tutti_import_inputs(program); i++) {
            uint32_t cell = tutti_import_cell(program, rank, TUTTI_IMPORT_INPUT, i);

            places->contents[cell] = (struct tutti_import_content){.place = {TUTTI_BUF_INPUT, i},
                                                                   .class = i % program->chunks,
                                                                   .lowest = rank,
                                                                   .home = TUTTI_IMPORT_NOWHERE};
        }
    }
}

int tutti_import_places_init(struct tutti_import_places *places,
                             const struct tutti_import_program *program)
{
    size_t ncells = program->first_cell[program->nranks];

    *places = (struct tutti_import_places){.program = program};
    places->contents = calloc(ncells + 1, sizeof(*places->contents));
    places->used = calloc((size_t)program->nranks * program->chunks + 1, sizeof(uint32_t));
    if (places->contents == NULL || places->used == NULL) {
        tutti_import_places_fini(places);
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to place %zu chunks", ncells);
    }
    for (size_t cell = 0; cell < ncells; cell++)
        places->contents[cell].home = TUTTI_IMPORT_NOWHERE;
    place_inputs(places);
    return TUTTI_OK;
}

void tutti_import_places_fini(struct tutti_import_places *places)
{
    free(places->contents);
    free(places->used);
    *places = (struct tutti_import_places){.program = NULL};
}

int tutti_import_scratch(struct tutti_import_places *places, uint32_t rank, uint32_t class,
                         struct tutti_import_place *ret_place)
{
    uint32_t nclasses = places->program->chunks;
    uint32_t *used = &places->used[(size_t)rank * nclasses + class];

    if (*used >= TUTTI_TEXT_CHUNKS_MAX / nclasses)
        return tutti_fail(TUTTI_ERR_ARGUMENT,
                          "%s: gpu %u needs more than %u chunks of scratch "
                          "memory; use fewer chunks",
                          places->program->file, rank, TUTTI_TEXT_CHUNKS_MAX);
    *ret_place = (struct tutti_import_place){TUTTI_BUF_SCRATCH, (*used)++ * nclasses + class};
    return TUTTI_OK;
}

uint32_t tutti_import_scratch_count(const struct tutti_import_places *places, uint32_t rank)
{
    uint32_t nclasses = places->program->chunks, count = 0;

    for (uint32_t class = 0; class < nclasses; class ++) {
        uint32_t used = places->used[(size_t)rank * nclasses + class];

        if (used > 0 && (used - 1) * nclasses + class + 1 > count)
            count = (used - 1) * nclasses + class + 1;
    }
    return count;
}

/* Returns the chunk of OUTPUT that a cell is part of, or NOWHERE. */
static uint32_t output_of(const struct tutti_import_program *program, uint32_t rank, uint32_t cell)
{
    uint32_t inputs = tutti_import_inputs(program), outputs = tutti_import_outputs(program);
    uint32_t local = cell - program->first_cell[rank]; /* in the order of tutti_import_cell */
    uint32_t block = 0; /* the chunk of INPUT with which OUTPUT begins, if they share cells */

    if (!tutti_collective_has_output(program->collective, rank, program->root) ||
        local >= inputs + outputs)
        return TUTTI_IMPORT_NOWHERE;
    if (local >= inputs)
        return local - inputs;
    if (!program->is_in_place || inputs < outputs)
        return TUTTI_IMPORT_NOWHERE;
    if (inputs > outputs)
        block = rank * program->chunks;
    return local >= block && local - block < outputs ? local - block : TUTTI_IMPORT_NOWHERE;
}

int tutti_import_home(struct tutti_import_places *places, uint32_t rank, uint32_t cell,
                      uint32_t class, struct tutti_import_place *ret_place)
{
    struct tutti_import_content *content = &places->contents[cell];
    uint32_t output = output_of(places->program, rank, cell);

    if (output != TUTTI_IMPORT_NOWHERE) {
        *ret_place = (struct tutti_import_place){TUTTI_BUF_OUTPUT, output};
        return TUTTI_OK;
    }
    if (content->home == TUTTI_IMPORT_NOWHERE || content->home % places->program->chunks != class) {
        TUTTI_TRY(tutti_import_scratch(places, rank, class, ret_place));
        content->home = ret_place->chunk;
    }
    *ret_place = (struct tutti_import_place){TUTTI_BUF_SCRATCH, content->home};
    return TUTTI_OK;
}

uint32_t tutti_import_overlaid(const struct tutti_import_places *places, uint32_t rank,
                               uint32_t output, uint32_t *ret_chunk)
{
    const struct tutti_import_program *program = places->program;
    int64_t shift, chunk;

    if (!tutti_collective_in_place_shift(program->collective, rank, program->root, program->chunks,
                                         &shift))
        return TUTTI_IMPORT_NOWHERE;
    chunk = (int64_t)output - shift;
    if (chunk < 0 || chunk >= tutti_import_inputs(program))
        return TUTTI_IMPORT_NOWHERE;
    *ret_chunk = (uint32_t)chunk;
    return tutti_import_cell(program, rank, TUTTI_IMPORT_INPUT, (uint32_t)chunk);
}

bool tutti_import_is_overlay(const struct tutti_import_places *places, uint32_t rank,
                             struct tutti_import_place input, struct tutti_import_place output)
{
    uint32_t chunk;

    return input.buffer == TUTTI_BUF_INPUT && output.buffer == TUTTI_BUF_OUTPUT &&
           tutti_import_overlaid(places, rank, output.chunk, &chunk) != TUTTI_IMPORT_NOWHERE &&
           chunk == input.chunk;
}
