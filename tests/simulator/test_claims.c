/* SPDX-License-Identifier: Apache-2.0
 * Holds what the search claims for rings and trees against what the simulator plays, on every known
 * machine: alone, and as 2, 4 and 16 hosts. Rings must be within 5 % and trees within 10 %. Trees
 * of 16 hosts take minutes, and are played only with TUTTI_TEST_WHOLE. */
#include "simulator/stage.h"

#include "base/result.h"
#include "support/machines.h"
#include "topology/formats/known.h"
#include "topology/graph/parts.h"
#include "topology/search/costs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The difference that is allowed. */
#define RING_LOSS 0.05
#define TREE_LOSS 0.10
/* Segments of each tree that are usually enough to fill it, and enough in any case. */
#define FEW_SEGMENTS 16
#define MANY_SEGMENTS 32
/* Bytes of a chunk: so many that latencies do not count. */
#define CHUNK_BYTES ((size_t)16 << 20)

/* Returns the seconds of an all-reduce on a stage whose options are set. */
static double seconds_of(struct stage *stage, const char *algorithm, size_t bytes)
{
    struct tutti_sim_report report;
    double seconds;

    stage->period = stage_find_period(stage, TUTTI_ALLREDUCE, algorithm, bytes);
    stage_play(stage, TUTTI_ALLREDUCE, algorithm, bytes, &report);
    seconds = report.seconds;
    tutti_sim_report_fini(&report);
    return seconds;
}

/* Returns the bytes of the buffer per second of an all-reduce by all trees of a stage. The time to
 * fill the trees is the same for any number of segments, and so drops out of the difference. */
static double play_trees(struct stage *stage, uint32_t few_segments)
{
    double seconds[2];
    size_t bytes[2];

    stage->options.value[TUTTI_CHANNELS] = stage->machine->places.ntrees;
    for (int i = 0; i < 2; i++) {
        uint32_t segments = i == 0 ? few_segments : 3 * few_segments;

        stage->options.value[TUTTI_SEGMENTS] = segments;
        bytes[i] = CHUNK_BYTES * stage->machine->places.ntrees * segments;
        seconds[i] = seconds_of(stage, "tree", bytes[i]);
    }
    return (double)(bytes[1] - bytes[0]) / (seconds[1] - seconds[0]);
}

/* Returns the bytes of the buffer per second of a large all-reduce by the channels of a plan. */
static double play(const struct machine *machine, const struct tutti_channels *plan,
                   uint32_t few_segments, uint32_t *ret_nranks)
{
    bool is_ring = plan->pattern == TUTTI_PATTERN_RING;
    struct stage stage = {.machine = NULL};
    size_t bytes;
    double rate;

    if (tutti_search_machine(machine->paths, is_ring ? plan : NULL, is_ring ? NULL : plan,
                             TUTTI_RATES_NOMINAL, &stage.machine) != TUTTI_OK)
        fail_msg("%s", tutti_message_last());
    *ret_nranks = stage.machine->places.nranks;
    bytes = CHUNK_BYTES * 2 * stage.machine->places.nrings * *ret_nranks;
    rate = is_ring ? (double)bytes / seconds_of(&stage, "multi_ring", bytes)
                   : play_trees(&stage, few_segments);
    stage_close(&stage);
    return rate;
}

/* Searches a cluster, and compares the claim with the play. Returns false if the machine does not
 * have several gpus, or lacks what a cluster needs. */
static bool compare(const char *line, enum tutti_pattern pattern)
{
    struct machine machine = open_machine(line);
    struct tutti_search_options options = {.host = TUTTI_ALL_HOSTS};
    double loss = pattern == TUTTI_PATTERN_RING ? RING_LOSS : TREE_LOSS, claim, rate;
    struct tutti_graph_parts parts;
    struct tutti_channels *plan;
    uint32_t nranks;
    bool is_there;

    assert_int_equal(tutti_graph_parts_find(machine.graph, &parts), TUTTI_OK);
    is_there = parts.nranks > 1 &&
               tutti_graph_first_part(&parts)->ngpus * parts.nall == parts.nranks;
    if (is_there && parts.nall > 1) {
        options = (struct tutti_search_options){.nhosts = parts.part[0].nhosts, .has_peers = true,
                                                .nparts = parts.nall};
        is_there = machine.graph->count[TUTTI_NODE_NET] > 0;
    }
    if (is_there) {
        if (tutti_search(machine.paths, pattern, &options, &plan) != TUTTI_OK)
            fail_msg("%s: %s", line, tutti_message_last());
        rate = play(&machine, plan, FEW_SEGMENTS, &nranks);
        claim = pattern == TUTTI_PATTERN_RING ? plan->bytes_per_s * nranks / (2.0 * (nranks - 1))
                                              : plan->bytes_per_s;
        if (pattern == TUTTI_PATTERN_TREE && rate < (1 - loss) * claim)
            rate = play(&machine, plan, MANY_SEGMENTS, &nranks);
        print_message("%-28s %-5s %7.1f of %7.1f GB/s (%.3f)\n", line, tutti_pattern_name(pattern),
                      rate / 1e9, claim / 1e9, rate / claim);
        if (rate < (1 - loss) * claim || rate > (1 + loss) * claim)
            fail_msg("%s: %s carry %g GB/s, %g was claimed", line, tutti_pattern_name(pattern),
                     rate / 1e9, claim / 1e9);
        tutti_channels_destroy(plan);
    }
    tutti_graph_parts_fini(&parts);
    close_machine(&machine);
    return is_there;
}

static void claims_are_played(void **state)
{
    static const uint32_t counts[] = {1, 2, 4, 16};
    const struct tutti_known_machine *known;
    uint32_t compared = 0;

    (void)state;
    for (size_t i = 0; (known = tutti_known_machine(i)) != NULL; i++)
        for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
            char line[80];

            if (c > 0 && strchr(known->line, ':') != NULL)
                break; /* it has several hosts already */
            if (c == 0)
                snprintf(line, sizeof line, "%s", known->name);
            else
                snprintf(line, sizeof line, "%u hosts: %s", counts[c], known->name);
            compared += compare(line, TUTTI_PATTERN_RING);
            if (counts[c] < 16 || getenv("TUTTI_TEST_WHOLE") != NULL)
                compared += compare(line, TUTTI_PATTERN_TREE);
        }
    assert_true(compared > 90);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(claims_are_played),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
