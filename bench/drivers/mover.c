/* SPDX-License-Identifier: Apache-2.0
 * Implements mover.h. It is built for the machine on which it runs. It moves one cache line after
 * the other, with all sources in registers, and stores every destination once. */
#include "mover.h"

#include <stdint.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define LINE_FLOATS 16

typedef float line_of_floats __attribute__((vector_size(64), aligned(4), may_alias));
typedef uint32_t line_of_bits __attribute__((vector_size(64), aligned(4), may_alias));

static inline void store(float *dest, line_of_floats value, bool is_streaming)
{
#if defined(__AVX512F__)
    if (is_streaming) {
        _mm512_stream_ps(dest, (__m512)value);
        return;
    }
#elif defined(__AVX__)
    if (is_streaming) {
        __m256 halves[2];

        memcpy(halves, &value, sizeof(value));
        _mm256_stream_ps(dest, halves[0]);
        _mm256_stream_ps(dest + 8, halves[1]);
        return;
    }
#endif
    (void)is_streaming;
    *(line_of_floats *)(void *)dest = value;
}

/* Always inlined, so that the usual numbers of sources and destinations are constants in a loop of
 * their own. */
static inline __attribute__((always_inline)) void lines(const float *const *sources, int nsources,
                                                        float *const *dests, int ndests,
                                                        size_t count, bool is_streaming)
{
    for (size_t i = 0; i < count; i += LINE_FLOATS) {
        line_of_floats sum = *(const line_of_floats *)(const void *)(sources[0] + i);

        for (int k = 1; k < nsources; k++)
            sum += *(const line_of_floats *)(const void *)(sources[k] + i);
        for (int k = 0; k < ndests; k++)
            store(dests[k] + i, sum, is_streaming);
    }
}

static void move_lines(const float *const *sources, int nsources, float *const *dests, int ndests,
                       size_t count, bool is_streaming)
{
    if (nsources == 1 && ndests == 1)
        lines(sources, 1, dests, 1, count, is_streaming);
    else if (nsources == 1 && ndests == 2)
        lines(sources, 1, dests, 2, count, is_streaming);
    else if (nsources == 2 && ndests == 1)
        lines(sources, 2, dests, 1, count, is_streaming);
    else if (nsources == 2 && ndests == 2)
        lines(sources, 2, dests, 2, count, is_streaming);
    else
        lines(sources, nsources, dests, ndests, count, is_streaming);
}

static bool are_aligned(float *const *dests, int ndests)
{
    for (int k = 0; k < ndests; k++)
        if ((uintptr_t)dests[k] % sizeof(line_of_floats) != 0)
            return false;
    return true;
}

static bool move_strings(const float *source, float *dest, size_t count)
{
#if defined(__x86_64__)
    size_t size = count * sizeof(float);

    __asm__ volatile("rep movsb" : "+D"(dest), "+S"(source), "+c"(size) : : "memory");
    return true;
#else
    (void)source, (void)dest, (void)count;
    return false;
#endif
}

bool mover_move(enum mover_style style, const float *const *sources, int nsources,
                float *const *dests, int ndests, size_t count)
{
    size_t whole = count / LINE_FLOATS * LINE_FLOATS;

    if (style == MOVER_STRINGS) {
        if (nsources != 1)
            return false;
        for (int k = 0; k < ndests; k++)
            if (!move_strings(sources[0], dests[k], count))
                return false;
        return true;
    }
    move_lines(sources, nsources, dests, ndests, whole,
               style == MOVER_STREAMING && are_aligned(dests, ndests));
    for (size_t i = whole; i < count; i++) {
        float sum = sources[0][i];

        for (int k = 1; k < nsources; k++)
            sum += sources[k][i];
        for (int k = 0; k < ndests; k++)
            dests[k][i] = sum;
    }
    return true;
}

void mover_store(float *dest, size_t count, bool zeros)
{
    line_of_floats values;

    for (int i = 0; i < LINE_FLOATS; i++)
        values[i] = zeros ? 0 : (float)(i + 1);
    for (size_t i = 0; i < count; i += LINE_FLOATS)
        store(dest + i, values, true);
}

uint32_t mover_load(const float *source, size_t count)
{
    line_of_bits bits = {0};
    uint32_t all = 0;

    for (size_t i = 0; i < count; i += LINE_FLOATS)
        bits |= *(const line_of_bits *)(const void *)(source + i);
    for (int i = 0; i < LINE_FLOATS; i++)
        all |= bits[i];
    return all;
}
