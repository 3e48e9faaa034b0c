/* SPDX-License-Identifier: Apache-2.0
 * Stores and checks numbers in the memory of ranks. */
#include "gpu/numbers.h"

#include <stdlib.h>
#include <string.h>

/* ---- places ---------------------------------------------------------------------------------- */

const struct place all_places[] = {
    {LAUNCH_THREADS, 3, 1, -1},
    {LAUNCH_THREADS, 3, 3, -1},
    {LAUNCH_PROCESSES, 3, 2, -1},
    {LAUNCH_MIXED, 4, 3, -1},
    {LAUNCH_THREADS, 3, 2, 1},
    {LAUNCH_PROCESSES, 3, 3, 0},
};
const int all_place_count = sizeof all_places / sizeof *all_places;

void at_place(const struct place *place, bool forms_world, member_fn fn)
{
    gpus_use(place->ndevices, place->on_cpu, GPU_MEMORY_EITHER);
    (forms_world ? world_run : crowd_run)(place->launch, place->nranks, fn,
                                          (void *)(uintptr_t)place);
}

void at_all_places(member_fn fn)
{
    for (int i = 0; i < all_place_count; i++)
        if (launch_is_watched(all_places[i].launch))
            at_place(&all_places[i], true, fn);
}

/* ---- numbers --------------------------------------------------------------------------------- */

static int32_t *list(size_t count, int32_t first, int32_t step)
{
    int32_t *numbers = malloc(count * sizeof *numbers);

    if (numbers == NULL)
        abort();
    for (size_t i = 0; i < count; i++)
        numbers[i] = first + step * (int32_t)i;
    return numbers;
}

/* The driver's synchronous copy; for ranks without a GPU plain memory. */
static void copy(struct member *member, void *to, const void *from, size_t bytes)
{
    if (!gpus_has(member))
        memcpy(to, from, bytes);
    else
        EXPECT(member, gpus_copy(to, from, bytes) == TUTTI_CU_SUCCESS);
}

int32_t *numbers_make(struct member *member, size_t count, int32_t first, int32_t step)
{
    int32_t *numbers = list(count, first, step);
    int32_t *device;

    if (!gpus_has(member))
        return numbers;
    device = (int32_t *)(void *)gpus_put(member, numbers, count * sizeof *numbers);
    free(numbers);
    return device;
}

void numbers_write(struct member *member, int32_t *at, size_t count, int32_t first, int32_t step)
{
    int32_t *numbers = list(count, first, step);

    copy(member, at, numbers, count * sizeof *numbers);
    free(numbers);
}

void numbers_expect(struct member *member, const int32_t *at, size_t count, int32_t first,
                    int32_t step, const char *what)
{
    int32_t *numbers = list(count, 0, 0);

    copy(member, numbers, at, count * sizeof *numbers);
    for (size_t i = 0; i < count; i++)
        if (numbers[i] != first + step * (int32_t)i) {
            member_complain(member, "%s: number %zu of %zu is %d, not %d", what, i, count,
                            numbers[i], first + step * (int32_t)i);
            break;
        }
    free(numbers);
}

void numbers_drop(struct member *member, int32_t *at, size_t count)
{
    int32_t *numbers = list(count, 0, 0);

    if (gpus_has(member))
        gpus_take_back(member, numbers, (uint8_t *)at, count * sizeof *numbers);
    else
        free(at);
    free(numbers);
}

/* ---- streams --------------------------------------------------------------------------------- */

tuttiStream_t numbers_stream(struct member *member)
{
    return gpus_has(member) ? gpus_stream(member) : NULL;
}

void numbers_settle(struct member *member, tuttiStream_t stream)
{
    if (gpus_has(member))
        gpus_synchronize(member, stream);
}

void numbers_drop_stream(struct member *member, tuttiStream_t stream)
{
    if (gpus_has(member))
        gpus_drop_stream(member, stream);
}

int32_t triangle(int n)
{
    return n * (n + 1) / 2;
}
