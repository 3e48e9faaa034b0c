/* SPDX-License-Identifier: Apache-2.0
 * Makes schedules of rings and trees. */
#include "simulator/play_channels.h"

#include "base/result.h"
#include "schedule/support.h"
#include "simulator/stage.h"
#include "topology/search/costs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

/* So much that what it takes to start does not count. */
static const size_t bytes = (size_t)16 << 30;

static void prove(const char *what, const char *algorithm, const struct tutti_shape *shape)
{
    struct team team = team_of_shape(tutti_algorithm_find(TUTTI_ALLREDUCE, algorithm), shape, true);
    struct tutti_check_report report;

    if (team_check(&team, false, false, &report) != TUTTI_OK)
        fail_msg("%s: %s: rank %u, step %u: %s", what, algorithm, report.rank, report.step,
                 report.what);
    team_destroy(&team);
}

/* The machine as text, with those channels as its rings or trees. */
static char *describe(const char *what, const struct machine *machine,
                      const struct tutti_channels *channels)
{
    bool is_ring = channels->pattern == TUTTI_PATTERN_RING;
    struct tutti_machine *costs = NULL;
    char *text = NULL;

    if (tutti_search_machine(machine->paths, is_ring ? channels : NULL, is_ring ? NULL : channels,
                             TUTTI_RATES_NOMINAL, &costs) != TUTTI_OK ||
        tutti_machine_write(costs, &text) != TUTTI_OK)
        fail_msg("%s: %s", what, tutti_message_last());
    tutti_machine_destroy(costs);
    return text;
}

double play_allreduce(const char *what, const struct machine *machine,
                      const struct tutti_channels *channels)
{
    bool is_ring = channels->pattern == TUTTI_PATTERN_RING;
    const char *algorithm = is_ring ? "multi_ring" : "tree";
    char *text = describe(what, machine, channels);
    struct tutti_sim_report report;
    struct tutti_shape shape;
    struct stage stage;
    double rate;

    stage_open(&stage, text, 0);
    if (!is_ring) {
        stage.options.value[TUTTI_SEGMENTS] = 256;
        stage.options.value[TUTTI_CHANNELS] = stage.machine->places.ntrees;
    }
    shape = (struct tutti_shape){.nranks = stage.machine->places.nranks,
                                 .options = stage.options, .places = &stage.machine->places};
    prove(what, algorithm, &shape);
    stage_play(&stage, TUTTI_ALLREDUCE, algorithm, bytes, &report);
    rate = (double)bytes / report.seconds;
    tutti_sim_report_fini(&report);
    stage_close(&stage);
    free(text);
    return rate;
}
