/* SPDX-License-Identifier: Apache-2.0
 * Copies calls together with their arrays, measures their buffers, hashes their counts for the
 * signature, and fills in the calls that the library makes itself. */
#include "executor/call.h"

#include "base/result.h"

#include <stdlib.h>
#include <string.h>

int tutti_call_copy(const struct tutti_call *call, int nranks, struct tutti_call *ret_copy)
{
    struct tutti_call copy = *call;
    const size_t **arrays[TUTTI_CALL_ARRAYS] = {&copy.input_counts, &copy.input_displs,
                                                &copy.output_counts, &copy.output_displs};
    size_t total = 0, *next;

    copy.own_arrays = NULL;
    for (int i = 0; i < TUTTI_CALL_ARRAYS; i++)
        total += *arrays[i] != NULL ? (size_t)nranks : 0;
    if (total > 0) {
        copy.own_arrays = malloc(total * sizeof *copy.own_arrays);
        if (copy.own_arrays == NULL)
            return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the counts of a call of %d ranks",
                              nranks);
    }
    next = copy.own_arrays;
    for (int i = 0; i < TUTTI_CALL_ARRAYS; i++)
        if (*arrays[i] != NULL) {
            *arrays[i] = memcpy(next, *arrays[i], (size_t)nranks * sizeof *next);
            next += nranks;
        }
    *ret_copy = copy;
    return TUTTI_OK;
}

void tutti_call_fini(struct tutti_call *call)
{
    free(call->own_arrays);
    call->own_arrays = NULL;
}

bool tutti_call_same_counts(const struct tutti_call *a, const struct tutti_call *b, int nranks)
{
    if (a->count != b->count)
        return false;
    for (int i = 0; i < TUTTI_CALL_ARRAYS; i++) {
        const size_t *left = tutti_call_array(a, i), *right = tutti_call_array(b, i);

        if ((left == NULL) != (right == NULL))
            return false;
        if (left != NULL && memcmp(left, right, (size_t)nranks * sizeof *left) != 0)
            return false;
    }
    return true;
}

/* Returns the elements from the start of a buffer to the end of its last block. Empty blocks do not
 * count, wherever their displacements are. */
static size_t extent(size_t blocks, size_t count, const size_t *counts, const size_t *displs)
{
    size_t extent = 0, total = 0;

    if (counts == NULL)
        return blocks * count;
    for (size_t block = 0; block < blocks; block++) {
        size_t block_end = (displs ? displs[block] : total) + counts[block];

        total += counts[block];
        extent = counts[block] > 0 && block_end > extent ? block_end : extent;
    }
    return extent;
}

void tutti_call_buffer_bytes(const struct tutti_call *call, int nranks, int rank,
                             size_t *ret_input_bytes, size_t *ret_output_bytes)
{
    uint32_t n = (uint32_t)nranks, me = (uint32_t)rank, root = (uint32_t)call->root;
    size_t size = tutti_type_size(call->type);
    bool is_collective = !tutti_call_is_message(call);

    *ret_input_bytes = *ret_output_bytes = 0;
    if (is_collective ? tutti_collective_has_input(call->collective, me, root)
                      : call->kind == TUTTI_CALL_SEND)
        *ret_input_bytes =
            size * extent(is_collective ? tutti_input_blocks(call->collective, n) : 1, call->count,
                          call->input_counts, call->input_displs);
    if (is_collective ? tutti_collective_has_output(call->collective, me, root)
                      : call->kind == TUTTI_CALL_RECV)
        *ret_output_bytes =
            size * extent(is_collective ? tutti_output_blocks(call->collective, n) : 1, call->count,
                          call->output_counts, call->output_displs);
}

uint64_t tutti_counts_hash(const size_t *counts, int nranks)
{
    uint64_t hash = (uint64_t)nranks;

    /* Each step maps the hash so far one to one, so arrays that differ in one entry never
     * collide. */
    for (int rank = 0; rank < nranks; rank++) {
        hash = (hash ^ counts[rank]) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 32;
    }
    return hash;
}

void tutti_call_of_bytes(enum tutti_collective collective, enum tutti_caller caller,
                         const void *input, void *output, size_t count,
                         struct tutti_call *ret_call)
{
    *ret_call = (struct tutti_call){
        .kind = TUTTI_CALL_COLLECTIVE, .collective = collective, .type = TUTTI_UINT8,
        .input = input, .output = output, .count = count,
        .signature = {.magic = TUTTI_SIGNATURE_MAGIC,
                      .call = tutti_collective_call(collective, false), .type = TUTTI_UINT8,
                      .op = TUTTI_OP_NONE, .caller = (uint8_t)caller, .root = UINT16_MAX,
                      .count = count}};
    if (tutti_collective_has_root(collective))
        ret_call->signature.root = 0;
}

void tutti_call_of_elements(struct tutti_call *call, enum tutti_type type, enum tutti_op op)
{
    call->type = type;
    call->signature.type = (uint8_t)type;
    if (!tutti_collective_reduces(call->collective))
        return;
    call->op = op;
    call->signature.op = (uint8_t)op;
}
