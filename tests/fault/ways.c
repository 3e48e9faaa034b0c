/* SPDX-License-Identifier: Apache-2.0 */
#include "ways.h"

#include <stdio.h>

enum { OWN_WAYS = 2, MOST_WAYS = 16, MOST_TESTS = 4, TIMEOUT_MS = 600000 };

static const char *const by_sockets[] = {"TUTTI_TRANSPORTS", "self,tcp", NULL};
static const struct way own_ways[OWN_WAYS] = {{"threads", NULL, true},
                                              {"threads by tcp", by_sockets, true}};

static struct way way_of(int number)
{
    if (number < OWN_WAYS)
        return own_ways[number];
    return (struct way){crew_ways[number - OWN_WAYS].name, crew_ways[number - OWN_WAYS].environment,
                        false};
}

struct crew_board *ways_play(struct way way, int nranks, tuttiResult_t (*run)(struct crew_seat *),
                             const void *context)
{
    return crew_run(&(struct crew){.nranks = nranks, .environment = way.environment,
                                   .is_threads = way.is_threads, .run = run,
                                   .timeout_ms = TIMEOUT_MS, .context = context});
}

void ways_play_well(struct way way, int nranks, tuttiResult_t (*run)(struct crew_seat *))
{
    struct crew_board *board = ways_play(way, nranks, run, NULL);

    for (int rank = 0; rank < nranks; rank++)
        if (board->reports[rank].result != tuttiSuccess)
            fail_msg("%s, %d ranks: rank %d got %d: %s", way.name, nranks, rank,
                     (int)board->reports[rank].result, board->reports[rank].text);
    crew_clear(board);
}

int ways_run(const char *name, const struct CMUnitTest *tests, size_t count)
{
    static struct way ways[MOST_WAYS];
    static char names[MOST_TESTS * MOST_WAYS][96];
    struct CMUnitTest all[MOST_TESTS * MOST_WAYS];
    int nways = crew_way_count + OWN_WAYS;
    size_t total = 0;

    assert_true(nways <= MOST_WAYS && count <= MOST_TESTS);
    for (int i = 0; i < nways; i++) {
        ways[i] = way_of(i);
        for (size_t k = 0; k < count; k++) {
            snprintf(names[total], sizeof names[total], "%s: %s", ways[i].name, tests[k].name);
            all[total] = tests[k];
            all[total].name = names[total];
            all[total++].initial_state = &ways[i];
        }
    }
    return _cmocka_run_group_tests(name, all, total, NULL, NULL);
}
