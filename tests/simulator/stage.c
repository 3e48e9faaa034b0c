/* SPDX-License-Identifier: Apache-2.0
 * A stage for the simulator's tests. */
#include "simulator/stage.h"

#include "base/result.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static int schedule_of(void *context, uint32_t rank, const struct tutti_schedule **ret_schedule)
{
    struct stage *stage = context;
    struct tutti_shape shape = {.nranks = stage->machine->places.nranks, .rank = rank,
                                .root = stage->root, .options = stage->options,
                                .places = &stage->machine->places};
    struct tutti_schedule *schedule = NULL;
    struct tutti_build build = {0};

    if (stage->algorithm) {
        TUTTI_TRY(tutti_algorithm_schedule(stage->algorithm, &shape, &schedule));
    } else {
        TUTTI_TRY(tutti_build_init(&build, stage->collective, &shape));
        TUTTI_TRY(stage->emit(&shape, &build));
        TUTTI_TRY(tutti_build_finish(&build, &schedule));
        TUTTI_TRY(tutti_schedule_fuse(schedule, schedule->is_one_tree));
    }
    *ret_schedule = schedule;
    return TUTTI_OK;
}

static void drop(void *context, const struct tutti_schedule *schedule)
{
    (void)context;
    tutti_schedule_destroy((struct tutti_schedule *)(uintptr_t)schedule);
}

void stage_open(struct stage *stage, const char *machine, uint32_t nranks)
{
    *stage = (struct stage){.machine = NULL};
    if (tutti_machine_load(machine, nranks, &stage->machine) != TUTTI_OK)
        fail_msg("%s", tutti_message_last());
}

void stage_close(struct stage *stage)
{
    tutti_machine_destroy(stage->machine);
}

static struct tutti_sim_source source_of(struct stage *stage, size_t block_bytes)
{
    return (struct tutti_sim_source){.nranks = stage->machine->places.nranks,
                                     .schedule = schedule_of, .drop = drop, .context = stage,
                                     .block_count = block_bytes, .element_bytes = 1,
                                     .period = stage->period};
}

int stage_try(struct stage *stage, size_t block_bytes, struct tutti_sim_report *ret_report)
{
    struct tutti_sim_source source = source_of(stage, block_bytes);

    return tutti_simulate(&source, stage->machine, ret_report);
}

static void set_algorithm(struct stage *stage, enum tutti_collective collective,
                          const char *algorithm)
{
    stage->algorithm = algorithm ? tutti_algorithm_find(collective, algorithm) : NULL;
    stage->collective = collective;
    if (algorithm)
        assert_non_null(stage->algorithm);
}

uint32_t stage_find_period(struct stage *stage, enum tutti_collective collective,
                           const char *algorithm, size_t block_bytes)
{
    struct tutti_sim_source source = source_of(stage, block_bytes);
    uint32_t period = 0;

    set_algorithm(stage, collective, algorithm);
    if (tutti_sim_find_period(&source, stage->machine, &period) != TUTTI_OK)
        fail_msg("%s", tutti_message_last());
    return period;
}

void stage_play(struct stage *stage, enum tutti_collective collective, const char *algorithm,
                size_t block_bytes, struct tutti_sim_report *ret_report)
{
    set_algorithm(stage, collective, algorithm);
    if (stage_try(stage, block_bytes, ret_report) != TUTTI_OK)
        fail_msg("%s", tutti_message_last());
}

double stage_seconds(const char *machine, uint32_t nranks, enum tutti_collective collective,
                     const char *algorithm, size_t block_bytes)
{
    struct tutti_sim_report report;
    struct stage stage;
    double seconds;

    stage_open(&stage, machine, nranks);
    stage_play(&stage, collective, algorithm, block_bytes, &report);
    seconds = report.seconds;
    tutti_sim_report_fini(&report);
    stage_close(&stage);
    return seconds;
}

void assert_close(double found, double expected)
{
    if (!(fabs(found - expected) <= 1e-6 * fabs(expected)))
        fail_msg("%.9g us, expected %.9g us", found * 1e6, expected * 1e6);
}
