/* SPDX-License-Identifier: Apache-2.0
 * Runs the checks in order, and defines the functions that several checks share.
 */
#include "schedule/check/model.h"

#include "base/array.h"
#include "base/result.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int tutti_check_fail(struct tutti_check *check, uint32_t rank, uint32_t step, const char *format,
                     ...)
{
    struct tutti_check_report *report = check->report;
    va_list args;

    report->rank = rank;
    report->step = step == TUTTI_CHECK_NONE ? UINT32_MAX : step - check->first_step[rank];
    va_start(args, format);
    vsnprintf(report->what, sizeof(report->what), format, args);
    va_end(args);
    return TUTTI_ERR_ARGUMENT;
}

int tutti_check_alloc(void *ret_array, size_t count, size_t size, int fill)
{
    /* The pages of a large array from calloc are not touched until they are used. */
    void *array = fill == 0 ? calloc(count + 1, size) : malloc((count + 1) * size);

    if (array == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to check a schedule: %zu items of %zu bytes",
                          count, size);
    if (fill != 0)
        memset(array, fill, (count + 1) * size);
    memcpy(ret_array, &array, sizeof(array));
    return TUTTI_OK;
}

int tutti_check_push(uint32_t **array, uint32_t *count, uint32_t *capacity, uint32_t value)
{
    TUTTI_TRY(TUTTI_ARRAY_ROOM(*array, *count, *capacity, "items to check a schedule"));
    (*array)[(*count)++] = value;
    return TUTTI_OK;
}

static int number_steps(struct tutti_check *check)
{
    uint32_t step = 0;

    TUTTI_TRY(tutti_check_alloc(&check->first_step, check->nranks + 1, sizeof(uint32_t), 0));
    for (uint32_t rank = 0; rank < check->nranks; rank++) {
        check->first_step[rank] = step;
        step += check->schedules[rank]->nsteps;
    }
    check->first_step[check->nranks] = step;
    check->nsteps = step;

    TUTTI_TRY(tutti_check_alloc(&check->step_rank, step, sizeof(uint32_t), 0));
    for (uint32_t rank = 0; rank < check->nranks; rank++)
        for (uint32_t i = check->first_step[rank]; i < check->first_step[rank + 1]; i++)
            check->step_rank[i] = rank;
    return TUTTI_OK;
}

static void release(struct tutti_check *check)
{
    free(check->first_step);
    free(check->step_rank);
    free(check->lane_before);
    free(check->lane_after);
    free(check->mate);
    free(check->lane_sends);
    free(check->local_index);
    free(check->local_count);
    free(check->local_last);
    free(check->signal_first);
    free(check->signal_steps);
    free(check->log);
    free(check->clock_row);
    free(check->clock_rows);
    free(check->clock_common);
    free(check->seen);
    free(check->stack);
    free(check->preds);
}

/* True if an in-place call overlays the buffers of any rank. */
static bool has_in_place(const struct tutti_check *check)
{
    const struct tutti_schedule *schedule = check->schedules[0];
    bool has = false;
    int64_t shift;

    for (uint32_t rank = 0; rank < check->nranks; rank++)
        has = has ||
              tutti_collective_in_place_shift((enum tutti_collective)schedule->collective, rank,
                                              schedule->root, schedule->chunks_per_block, &shift);
    return has;
}

/* Run the checks that need only one play: form, matching and deadlock. */
static int play(struct tutti_check *check)
{
    TUTTI_TRY(number_steps(check));
    TUTTI_TRY(tutti_check_shape(check));
    TUTTI_TRY(tutti_check_lanes(check));
    return tutti_check_credits(check);
}

static int prove(struct tutti_check *check)
{
    TUTTI_TRY(play(check));
    TUTTI_TRY(tutti_check_clocks(check));
    for (int is_overlaid = 0; is_overlaid <= has_in_place(check); is_overlaid++) {
        TUTTI_TRY(tutti_check_races(check, is_overlaid));
        TUTTI_TRY(tutti_check_flow(check, is_overlaid));
    }
    if (!tutti_collective_has_data(check->schedules[0]->collective))
        TUTTI_TRY(tutti_check_barrier(check));
    return tutti_check_facts(check);
}

int tutti_check_prove(const struct tutti_schedule *const *schedules, uint32_t nranks,
                      const struct tutti_check_options *options,
                      struct tutti_check_report *ret_report)
{
    struct tutti_check check = {
        .schedules = schedules, .nranks = nranks, .options = *options, .report = ret_report};
    int rc;

    *ret_report = (struct tutti_check_report){.step = UINT32_MAX};
    rc = prove(&check);
    release(&check);
    return rc;
}

int tutti_check_schedule(const struct tutti_schedule *const *schedules, uint32_t nranks,
                         struct tutti_check_report *ret_report)
{
    const struct tutti_check_options options = {.is_vector = false};

    return tutti_check_prove(schedules, nranks, &options, ret_report);
}

int tutti_check_credits_needed(const struct tutti_schedule *const *schedules, uint32_t nranks,
                               uint32_t *ret_least, struct tutti_check_report *ret_report)
{
    struct tutti_check check = {.schedules = schedules,
                                .nranks = nranks,
                                .options = {.credits = UINT32_MAX},
                                .report = ret_report};
    int rc;

    *ret_report = (struct tutti_check_report){.step = UINT32_MAX};
    rc = play(&check);
    if (rc == TUTTI_OK)
        *ret_least = ret_report->credits;
    release(&check);
    return rc;
}
