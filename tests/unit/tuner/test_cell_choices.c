/* SPDX-License-Identifier: Apache-2.0
 * Algorithms for cells are chosen if there are cells and they save time. In all other cases
 * nothing changes. */
#include "tuner/tuner.h"

#include "base/result.h"
#include "tuner/assumed.h"
#include "tuner/memo.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { NRANKS = 32 };

struct host {
    struct tutti_placement places;
    struct tutti_machine machine;
    struct tutti_memo memo;
    struct tutti_tuner_view view;
    uint32_t node[NRANKS], cell[NRANKS];
};

static void open_host(struct host *host, uint32_t ncells, uint32_t cores)
{
    *host = (struct host){.places = {.nranks = NRANKS, .nnodes = 1}};
    for (uint32_t rank = 0; rank < NRANKS; rank++)
        host->cell[rank] = rank * ncells / NRANKS;
    host->places.node = host->node;
    if (ncells > 1) {
        host->places.cell = host->cell;
        host->places.ncells = ncells;
    }
    tutti_placement_align(&host->places);
    tutti_tuner_assume_machine(true, cores, 0, &host->machine);
    host->view = (struct tutti_tuner_view){
        .nranks = NRANKS, .is_one_domain = true, .all_read = true, .half_bytes = 256 << 10,
        .places = &host->places, .machine = &host->machine, .memo = &host->memo,
    };
}

static const struct tutti_algorithm *choose(const struct host *host,
                                            enum tutti_collective collective, size_t bytes,
                                            enum tutti_authority *ret_by)
{
    struct tutti_tuner_query query = {.collective = collective, .block_bytes = bytes};
    struct tutti_choice choice;

    assert_int_equal(tutti_tuner_choose(&host->view, &query, &choice, ret_by), TUTTI_OK);
    return choice.algorithm;
}

static void large_calls_go_by_sockets(void **state)
{
    static const struct {
        enum tutti_collective collective;
        size_t bytes;
        const char *name;
        double memory; /* of the host, if it is known; else what is assumed holds a broadcast's root
                          to what one rank loads */
    } cases[] = {
        {TUTTI_ALLREDUCE, 8, "one_shot", 0},   {TUTTI_ALLREDUCE, 64 << 20, "cells", 0},
        {TUTTI_ALLGATHER, 8, "direct", 0},     {TUTTI_ALLGATHER, 4 << 20, "cells", 0},
        {TUTTI_BROADCAST, 8, "direct", 1e12},  {TUTTI_BROADCAST, 64 << 20, "cells", 1e12},
        {TUTTI_ALLREDUCE, 8, "one_shot", 1e12}, {TUTTI_ALLREDUCE, 64 << 20, "cells", 1e12},
        {TUTTI_BROADCAST, 64 << 20, "direct", 0}, {TUTTI_BARRIER, 0, "direct", 0},
    };
    enum tutti_authority by;
    struct host host;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool goes_by_cells = strcmp(cases[i].name, "cells") == 0;
        const struct tutti_algorithm *found;

        open_host(&host, 2, NRANKS);
        host.machine.memory_bytes_per_s = cases[i].memory;
        found = choose(&host, cases[i].collective, cases[i].bytes, &by);
        if (strcmp(found->name, cases[i].name) != 0)
            fail_msg("%s of %zu bytes by %s", tutti_collective_name(cases[i].collective),
                     cases[i].bytes, found->name);
        assert_int_equal(by, goes_by_cells ? TUTTI_BY_PRICE : TUTTI_BY_HOST);
    }
}

/* No cells, a core for two ranks, a bridge that carries all, nothing known of machines. */
static void elsewhere_nothing_goes_by_cells(void **state)
{
    enum tutti_authority by;

    (void)state;
    for (int way = 0; way < 4; way++) {
        struct host host;

        open_host(&host, way == 0 ? 1 : 2, way == 1 ? NRANKS / 2 : NRANKS);
        if (way == 2)
            host.machine.bridge_bytes_per_s = host.machine.bridge_latency_s = 0;
        if (way == 3)
            host.view.machine = NULL;
        for (int collective = 0; collective < TUTTI_COLLECTIVE_COUNT; collective++)
            for (size_t bytes = 1; bytes <= 64 << 20; bytes *= 8) {
                const struct tutti_algorithm *found =
                    choose(&host, (enum tutti_collective)collective, bytes, &by);

                if (found->uses & TUTTI_USES_CELLS)
                    fail_msg("way %d: %s of %zu bytes by %s", way,
                             tutti_collective_name((enum tutti_collective)collective), bytes,
                             found->name);
            }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_calls_go_by_sockets),
        cmocka_unit_test(elsewhere_nothing_goes_by_cells),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
