/* SPDX-License-Identifier: Apache-2.0
 * Makes numbers of all types, and sums of them. */
#include "values.h"

#include "device/cpu/cpu.h"

#include <stdlib.h>
#include <string.h>

/* LOOK_BYTES are compared at the beginning and at the end. */
enum { MOST_SOURCES = 64, LOOK_BYTES = 64 << 10 };

/* Returns a hash of x. */
static uint32_t scatter(uint32_t x)
{
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    return x ^ (x >> 16);
}

/* Returns a number from -4 to 4. It is exact in all floating types, and so are sums of a few. */
static int number(uint32_t source, size_t index)
{
    return (int)(scatter((uint32_t)index * 64 + source) % 9) - 4;
}

/* Returns VALUES_BYTES of a source's contents. The caller frees them. */
static void *make(enum tutti_type type, uint32_t source)
{
    size_t count = VALUES_BYTES / tutti_type_size(type);
    float *floats = malloc(count * sizeof(*floats));
    void *values = malloc(VALUES_BYTES);

    if (floats == NULL || values == NULL)
        bench_end("no memory for values");
    for (size_t i = 0; i < count; i++)
        floats[i] = (float)number(source, i);
    if (tutti_type_is_narrow_float(type)) {
        tutti_cpu_narrow(type, values, floats, count, 1);
    } else if (type == TUTTI_FLOAT32) {
        memcpy(values, floats, VALUES_BYTES);
    } else if (type == TUTTI_INT32) {
        for (size_t i = 0; i < count; i++)
            ((int32_t *)values)[i] = number(source, i);
    } else {
        bench_end("no values of type %d", (int)type);
    }
    free(floats);
    return values;
}

void bench_values_fill(const struct bench_gpu *gpu, enum tutti_type type, uint32_t source, void *to,
                       size_t size_bytes)
{
    void *values = make(type, source);
    size_t done = size_bytes < VALUES_BYTES ? size_bytes : VALUES_BYTES;

    bench_gpu_copy(gpu, to, values, done);
    free(values);
    /* Copy what is there already, which doubles each time. */
    while (done < size_bytes) {
        size_t now = size_bytes - done < done ? size_bytes - done : done;

        bench_gpu_copy(gpu, (char *)to + done, to, now);
        done += now;
    }
}

/* Returns 1 if `bytes` of the GPU's memory at offset `at` of `sum` hold the sum of the sources. */
static int is_sum(const struct bench_gpu *gpu, enum tutti_type type, const void *const *sources,
                  uint32_t nsrcs, const char *sum, size_t at, size_t bytes)
{
    const void *from[MOST_SOURCES];
    char *found = malloc(bytes), *expected = malloc(bytes);
    void *to[] = {expected};
    struct tutti_reduce_args args = {.type = type, .op = TUTTI_SUM, .nsrcs = nsrcs, .ndsts = 1,
                                     .srcs = from, .dsts = to, .scale = TUTTI_NO_SCALE,
                                     .count = bytes / tutti_type_size(type)};
    int is_same;

    if (found == NULL || expected == NULL)
        bench_end("no memory for a sum");
    for (uint32_t i = 0; i < nsrcs; i++)
        from[i] = (const char *)sources[i] + at % VALUES_BYTES;
    tutti_cpu_reduce(&args);
    bench_gpu_copy(gpu, found, sum + at, bytes);
    is_same = memcmp(found, expected, bytes) == 0;
    free(found);
    free(expected);
    return is_same;
}

int bench_values_are_sum(const struct bench_gpu *gpu, enum tutti_type type, uint32_t nsrcs,
                         const void *sum, size_t size_bytes)
{
    size_t bytes = size_bytes < LOOK_BYTES ? size_bytes : LOOK_BYTES;
    void *sources[MOST_SOURCES] = {NULL};
    int is_right;

    for (uint32_t i = 0; i < nsrcs; i++)
        sources[i] = make(type, i);
    is_right = is_sum(gpu, type, (const void *const *)sources, nsrcs, sum, 0, bytes) &&
               is_sum(gpu, type, (const void *const *)sources, nsrcs, sum, size_bytes - bytes,
                      bytes);
    for (uint32_t i = 0; i < nsrcs; i++)
        free(sources[i]);
    return is_right;
}
