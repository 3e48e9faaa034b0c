/* SPDX-License-Identifier: Apache-2.0
 * Numbers the cells of the checker's memory, keeps their stretches, and lists the spans that a half
 * touches.
 */
#include "schedule/check/model.h"

#include "base/result.h"

#include <stdlib.h>

/* Cells of INPUT and OUTPUT, which are the first of a rank's cells. */
static uint32_t user_cells(const struct tutti_chunk_space *cells)
{
    return cells->count - cells->chunks[TUTTI_BUF_SCRATCH] - cells->chunks[TUTTI_BUF_WINDOW];
}

int tutti_check_memory_init(struct tutti_check_memory *memory, const struct tutti_check *check,
                            bool is_overlaid)
{
    *memory = (struct tutti_check_memory){.check = check};
    TUTTI_TRY(tutti_check_alloc(&memory->cells, check->nranks, sizeof(*memory->cells), 0));
    TUTTI_TRY(tutti_check_alloc(&memory->first, check->nranks, sizeof(uint32_t), 0));
    for (uint32_t rank = 0; rank < check->nranks; rank++) {
        struct tutti_chunk_space *cells = &memory->cells[rank];

        tutti_chunk_space_init(cells, check->schedules[rank], rank, is_overlaid);
        memory->first[rank] = memory->count;
        memory->count += check->nruns * user_cells(cells) + cells->chunks[TUTTI_BUF_SCRATCH] +
                         2 * cells->chunks[TUTTI_BUF_WINDOW];
    }
    TUTTI_TRY(tutti_check_alloc(&memory->starts, memory->count / 64 + 1, sizeof(uint64_t), 0));
    for (uint32_t rank = 0; rank < check->nranks; rank++)
        tutti_check_split(memory, memory->first[rank]);
    tutti_check_split(memory, memory->count);
    return TUTTI_OK;
}

void tutti_check_memory_fini(struct tutti_check_memory *memory)
{
    free(memory->cells);
    free(memory->first);
    free(memory->starts);
}

uint32_t tutti_check_stretch(const struct tutti_check_memory *memory, uint32_t cell)
{
    uint32_t word = cell / 64;
    uint64_t bits = memory->starts[word] & (UINT64_MAX >> (63 - cell % 64));

    while (bits == 0)
        bits = memory->starts[--word];
    return word * 64 + 63 - (uint32_t)__builtin_clzll(bits);
}

uint32_t tutti_check_stretch_end(const struct tutti_check_memory *memory, uint32_t cell)
{
    uint32_t word = (cell + 1) / 64;
    uint64_t bits = memory->starts[word] & (UINT64_MAX << (cell + 1) % 64);

    while (bits == 0)
        bits = memory->starts[++word];
    return word * 64 + (uint32_t)__builtin_ctzll(bits);
}

bool tutti_check_split(struct tutti_check_memory *memory, uint32_t cell)
{
    uint64_t bit = 1ull << cell % 64, *word = &memory->starts[cell / 64];
    bool is_new = (*word & bit) == 0;

    *word |= bit;
    return is_new;
}

void tutti_check_join(struct tutti_check_memory *memory, uint32_t first, uint32_t count)
{
    uint32_t end = first + count;

    for (uint32_t cell = first + 1; cell < end; cell = (cell / 64 + 1) * 64) {
        uint64_t from = UINT64_MAX << cell % 64;
        uint64_t to = end / 64 > cell / 64 ? UINT64_MAX : ~(UINT64_MAX << end % 64);

        memory->starts[cell / 64] &= ~(from & to);
    }
}

uint32_t tutti_check_cell(const struct tutti_check_memory *memory, uint32_t run, uint32_t rank,
                          uint32_t buffer, uint32_t chunk)
{
    const struct tutti_chunk_space *cells = &memory->cells[rank];
    uint32_t user = user_cells(cells), first = memory->first[rank];

    if (buffer == TUTTI_BUF_INPUT || buffer == TUTTI_BUF_OUTPUT)
        return first + run * user + tutti_chunk_number(cells, buffer, chunk);
    first += memory->check->nruns * user;
    if (buffer == TUTTI_BUF_SCRATCH)
        return first + chunk;
    return first + cells->chunks[TUTTI_BUF_SCRATCH] +
           (run & 1) * cells->chunks[TUTTI_BUF_WINDOW] + chunk;
}

uint32_t tutti_check_accesses(const struct tutti_check *check, uint32_t half,
                              struct tutti_touch accesses[TUTTI_STEP_ACCESSES])
{
    const struct tutti_step *step = tutti_check_step(check, half / 2);

    if ((half & 1) == 0)
        return tutti_step_accesses(step, accesses);
    if (step->kind == TUTTI_STEP_RECV_REDUCE_SEND)
        return 0;
    /* The sending half reads what the receiving half has stored. */
    accesses[0] = (struct tutti_touch){.rank = TUTTI_NO_RANK, .span = step->dst};
    return 1;
}
