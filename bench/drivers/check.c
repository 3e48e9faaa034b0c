/* SPDX-License-Identifier: Apache-2.0
 * See check.h. Inputs are small whole numbers, whose sums are exact in any order and, in the narrow
 * types, up to 16 ranks. */
#include "check.h"

#include <stdint.h>
#include <string.h>

static float input_of(enum bench_type type, int rank, size_t index)
{
    return (float)((index * 3 + (size_t)rank * 17 + 1) & (type == BENCH_FLOAT32 ? 127 : 15));
}

static float expected(const struct bench_library *library, const struct bench_operation *operation,
                      int rank, size_t index)
{
    size_t part = operation->part, shift = (size_t)rank * part;
    enum bench_type type = operation->type;
    float sum = 0;

    switch (operation->collective) {
    case BENCH_ALLGATHER: return input_of(type, (int)(index / part), index % part);
    case BENCH_ALLTOALL: return input_of(type, (int)(index / part), shift + index % part);
    case BENCH_BROADCAST: return input_of(type, 0, index);
    case BENCH_SENDRECV:
        return input_of(type, (rank + library->nranks - 1) % library->nranks, index);
    case BENCH_REDUCE_SCATTER: index += shift; break;
    default: break;
    }
    for (int from = 0; from < library->nranks; from++)
        sum += input_of(type, from, index);
    return sum;
}

/* A whole number that the narrow type holds exactly, as its 16 bits. */
static uint16_t narrow(enum bench_type type, float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    if (type == BENCH_BFLOAT16)
        return (uint16_t)(bits >> 16);
    /* Another bias of the exponent, and fewer bits of the fraction; the sign is in its place. */
    return value == 0 ? 0 : (uint16_t)((bits >> 31 << 15) | (((bits & 0x7fffffff) >> 13) - (112 << 10)));
}

static void store(const struct bench_operation *operation, float *buffer, size_t index, float value)
{
    uint16_t half;

    if (operation->type == BENCH_FLOAT32) {
        buffer[index] = value;
        return;
    }
    half = narrow(operation->type, value);
    memcpy((char *)buffer + index * sizeof(half), &half, sizeof(half));
}

static bool holds(const struct bench_operation *operation, const float *buffer, size_t index,
                  float value)
{
    uint16_t half;

    if (operation->type == BENCH_FLOAT32)
        return buffer[index] == value;
    memcpy(&half, (const char *)buffer + index * sizeof(half), sizeof(half));
    return half == narrow(operation->type, value);
}

static void fill(const struct bench_library *library, const struct bench_operation *operation,
                 int rank, float *send, float *recv)
{
    enum bench_collective collective = operation->collective;
    bool from_recv = (collective == BENCH_BROADCAST && rank == 0) ||
                     (library->in_place &&
                      (collective == BENCH_ALLREDUCE || collective == BENCH_REDUCE_SCATTER ||
                       collective == BENCH_REDUCE));

    for (size_t i = 0; i < operation->count; i++) {
        float value = input_of(operation->type, rank, i);

        store(operation, send, i, value);
        store(operation, recv, i, from_recv ? value : -1.0f);
    }
}

static size_t first_wrong(const struct bench_library *library,
                          const struct bench_operation *operation, int rank, const float *recv)
{
    enum bench_collective collective = operation->collective;
    bool has_result = collective != BENCH_BARRIER && (collective != BENCH_REDUCE || rank == 0);
    size_t nresults = !has_result ? 0 :
                      collective == BENCH_REDUCE_SCATTER ? operation->part : operation->count;

    for (size_t i = 0; i < nresults; i++)
        if (!holds(operation, recv, i, expected(library, operation, rank, i)))
            return i;
    return SIZE_MAX;
}

/* Where `rank`, which this process serves, has what the process's own rank has at `own`. */
static float *place(const struct bench_library *library, float *own, int rank)
{
    return rank == library->rank ? own : library->at_rank(own, rank);
}

size_t check_operation(const struct bench_library *library, struct bench_operation *operation,
                       float *send, float *recv)
{
    struct bench_operation barrier = {.collective = BENCH_BARRIER};
    int step = library->nprocesses != 0 ? library->nprocesses : library->nranks;
    size_t wrong = SIZE_MAX;

    for (int rank = library->rank; rank < library->nranks; rank += step)
        fill(library, operation, rank, place(library, send, rank), place(library, recv, rank));
    operation->send = send;
    operation->recv = recv;
    if (library->waits_for_nobody)
        library->run(&barrier);
    library->run(operation);
    if (library->waits_for_nobody)
        library->run(&barrier);
    for (int rank = library->rank; rank < library->nranks && wrong == SIZE_MAX; rank += step)
        wrong = first_wrong(library, operation, rank, place(library, recv, rank));
    return wrong;
}
