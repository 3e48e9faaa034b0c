/* SPDX-License-Identifier: Apache-2.0
 * Implements check.h. Inputs are small whole numbers, whose sums are exact in any order and, in
 * the narrow types, up to 16 ranks. */
#include "check.h"

#include <stdint.h>
#include <string.h>

#define RUN 1024 /* elements that are made or compared at a time */

static float input_of(enum bench_type type, int rank, size_t index)
{
    return (float)(((unsigned)index * 3 + (unsigned)rank * 17 + 1) &
                   (type == BENCH_FLOAT32 ? 127 : 15));
}

static void add_inputs(enum bench_type type, int rank, size_t start, size_t count, float *sums)
{
    for (size_t i = 0; i < count; i++)
        sums[i] += input_of(type, rank, start + i);
}

/* Computes the expected output of `rank` from element `start` on. Returns the number of elements,
 * which is at most RUN and `count`. The result may end earlier, at the end of one rank's block. */
static size_t expected(const struct bench_library *library, const struct bench_operation *operation,
                       int rank, size_t start, size_t count, float *ret_values)
{
    enum bench_collective collective = operation->collective;
    bool is_divided = collective == BENCH_ALLGATHER || collective == BENCH_ALLTOALL;
    size_t part = is_divided ? operation->part : operation->count, shift = 0, at = start % part;
    int first = 0, last = library->nranks - 1;

    if (collective == BENCH_GATHERV) {
        while (start >= operation->blocks.first[first] + operation->blocks.count[first])
            first++;
        last = first;
        at = start - operation->blocks.first[first];
        part = operation->blocks.count[first];
    } else if (collective == BENCH_SCATTERV) {
        last = 0;
        shift = operation->blocks.first[rank];
    } else if (is_divided)
        first = last = (int)(start / part);
    else if (collective == BENCH_SENDRECV)
        first = last = (rank + library->nranks - 1) % library->nranks;
    else if (collective == BENCH_BROADCAST)
        last = 0;
    else if (bench_is_scan(collective))
        last = collective == BENCH_SCAN ? rank : rank - 1;
    if (collective == BENCH_ALLTOALL || collective == BENCH_REDUCE_SCATTER)
        shift = (size_t)rank * operation->part;
    count = count < RUN ? count : RUN;
    count = count < part - at ? count : part - at;
    memset(ret_values, 0, count * sizeof(*ret_values));
    for (int from = first; from <= last; from++)
        add_inputs(operation->type, from, shift + at, count, ret_values);
    return count;
}

/* Returns the 16 bits of a whole number that the narrow type represents exactly. */
static uint16_t narrow(enum bench_type type, float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    if (type == BENCH_BFLOAT16)
        return (uint16_t)(bits >> 16);
    /* float16 has 13 bits less of the fraction than float32, and a bias of the exponent that is
     * lower by 112. */
    if (value == 0)
        return 0;
    return (uint16_t)((bits >> 31 << 15) | (((bits & 0x7fffffff) >> 13) - (112 << 10)));
}

static void store(const struct bench_operation *operation, float *buffer, size_t start,
                  const float *values, size_t count)
{
    if (operation->type == BENCH_FLOAT32) {
        memcpy(buffer + start, values, count * sizeof(*values));
        return;
    }
    for (size_t i = 0; i < count; i++) {
        uint16_t half = narrow(operation->type, values[i]);

        memcpy((char *)buffer + (start + i) * sizeof(half), &half, sizeof(half));
    }
}

/* Returns the index of the first element that differs, or `count`. */
static size_t compare(const struct bench_operation *operation, const float *buffer, size_t start,
                      const float *values, size_t count)
{
    size_t i = 0;

    if (operation->type == BENCH_FLOAT32) {
        if (memcmp(buffer + start, values, count * sizeof(*values)) == 0)
            return count;
        while (i < count && buffer[start + i] == values[i])
            i++;
        return i;
    }
    for (; i < count; i++) {
        uint16_t half;

        memcpy(&half, (const char *)buffer + (start + i) * sizeof(half), sizeof(half));
        if (half != narrow(operation->type, values[i]))
            return i;
    }
    return count;
}

static void fill(const struct bench_library *library, const struct bench_operation *operation,
                 int rank, float *send, float *recv)
{
    enum bench_collective collective = operation->collective;
    bool from_recv = (collective == BENCH_BROADCAST && rank == 0) ||
                     (library->in_place &&
                      (collective == BENCH_ALLREDUCE || collective == BENCH_REDUCE_SCATTER ||
                       collective == BENCH_REDUCE));

    for (size_t start = 0; start < operation->count; start += RUN) {
        size_t left = operation->count - start, count = left < RUN ? left : RUN;
        float inputs[RUN] = {0}, others[RUN];

        add_inputs(operation->type, rank, start, count, inputs);
        for (size_t i = 0; i < count; i++)
            others[i] = -1.0f;
        store(operation, send, start, inputs, count);
        store(operation, recv, start, from_recv ? inputs : others, count);
    }
}

static size_t first_wrong(const struct bench_library *library,
                          const struct bench_operation *operation, int rank, const float *recv)
{
    enum bench_collective collective = operation->collective;
    bool is_at_root = collective == BENCH_REDUCE || collective == BENCH_GATHERV;
    bool has_result = collective != BENCH_BARRIER && (!is_at_root || rank == 0) &&
                      (collective != BENCH_EXCLUSIVE_SCAN || rank > 0);
    size_t nresults = !has_result ? 0 :
                      collective == BENCH_REDUCE_SCATTER ? operation->part :
                      collective == BENCH_SCATTERV ? operation->blocks.count[rank] :
                                                     operation->count;

    for (size_t start = 0, count; start < nresults; start += count) {
        float values[RUN];
        size_t equal;

        count = expected(library, operation, rank, start, nresults - start, values);
        equal = compare(operation, recv, start, values, count);
        if (equal < count)
            return start + equal;
    }
    return SIZE_MAX;
}

/* Returns the address at which `rank`, which this process serves, has the data that the process's
 * own rank has at `own`. */
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
