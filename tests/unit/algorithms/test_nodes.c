/* SPDX-License-Identifier: Apache-2.0
 * Tests nodes and groups of any size and order, the division of parts among their ranks, and
 * invalid places. */
#include "algorithms/nodes.h"

#include "base/result.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void every_part_has_one_member_and_every_member_a_part(void **state)
{
    (void)state;
    for (uint32_t total = 1; total <= 40; total++)
        for (uint32_t count = 1; count <= total; count++) {
            uint32_t part = 0;

            for (uint32_t member = 0; member < count; member++) {
                struct tutti_nodes_parts own = tutti_nodes_share_of(total, count, member);

                assert_int_equal(own.first, part);
                assert_true(own.end - own.first >= total / count);
                assert_true(own.end - own.first <= (total + count - 1) / count);
                for (; part < own.end; part++)
                    assert_int_equal(tutti_nodes_share_member(total, count, part), member);
                for (uint32_t number = 0; number < 5; number++) {
                    assert_true(tutti_nodes_pick(own, number) >= own.first);
                    assert_true(tutti_nodes_pick(own, number) < own.end);
                }
            }
            assert_int_equal(part, total);
        }
}

/* The parts of several small nodes are spread over all ranks of a large one. */
static void homes_are_spread(void **state)
{
    uint32_t found[4] = {0};

    (void)state;
    for (uint32_t node = 1; node < 2 * 32; node += 2)
        found[tutti_nodes_pick((struct tutti_nodes_parts){0, 4}, node)]++;
    for (int part = 0; part < 4; part++)
        assert_in_range(found[part], 6, 10);
}

static void check_homes(const struct tutti_homes *homes, uint32_t nitems)
{
    uint32_t most = 0, least = UINT32_MAX;

    assert_int_equal(homes->first[homes->count], nitems);
    for (uint32_t item = 0; item < nitems; item++)
        assert_int_equal(homes->items[homes->first[homes->home[item]] + homes->index[item]], item);
    for (uint32_t home = 0; home < homes->count; home++) {
        uint32_t size = tutti_homes_size(homes, home);

        most = size > most ? size : most;
        least = size < least ? size : least;
        for (uint32_t i = homes->first[home] + 1; i < homes->first[home + 1]; i++)
            assert_true(homes->items[i - 1] < homes->items[i]);
    }
    assert_int_equal(homes->most, most);
    assert_int_equal(homes->least, least);
}

static void nodes_are_found_wherever_their_ranks_are(void **state)
{
    static const uint32_t node[] = {0, 1, 0, 2, 1, 0, 3}, group[] = {0, 1, 0, 0, 1, 0, 1};
    struct tutti_placement places = {.nranks = 7, .node = node, .nnodes = 4, .group = group,
                                     .ngroups = 2};
    struct tutti_shape shape = {.nranks = 7, .rank = 4, .places = &places};
    struct tutti_nodes nodes;

    (void)state;
    assert_int_equal(tutti_nodes_init(&shape, &nodes), TUTTI_OK);
    check_homes(&nodes.ranks, 7);
    check_homes(&nodes.nodes, 4);
    assert_int_equal(nodes.node, 1);
    assert_int_equal(nodes.group, 1);
    assert_int_equal(nodes.nparts, 3);
    assert_int_equal(nodes.nseats, 2);
    assert_int_equal(tutti_nodes_most_parts(&nodes), 3);
    assert_int_equal(tutti_nodes_most_seats(&nodes), 1);
    assert_int_equal(tutti_nodes_rank_serving(&nodes, 0, 1), 2);
    assert_int_equal(tutti_nodes_rank_serving(&nodes, 1, 0), 1);
    assert_int_equal(tutti_nodes_rank_serving(&nodes, 3, 2), 6);
    assert_int_equal(tutti_nodes_node_serving(&nodes, 0, 1), 2);
    assert_int_equal(tutti_nodes_node_serving(&nodes, 1, 1), 3);
    tutti_nodes_fini(&nodes);
    tutti_nodes_fini(&nodes);
}

/* Groups without nodes, one group, nothing at all. */
static void what_is_not_known_is_taken_apart(void **state)
{
    static const uint32_t node[] = {0, 0, 1, 1}, group[] = {0, 0, 0, 0};
    struct tutti_placement one_group = {.nranks = 4, .node = node, .nnodes = 2, .group = group,
                                        .ngroups = 1};
    struct tutti_shape known = {.nranks = 4, .rank = 2, .places = &one_group};
    struct tutti_shape unknown = {.nranks = 4, .rank = 2};
    struct tutti_nodes nodes;

    (void)state;
    assert_int_equal(tutti_nodes_init(&known, &nodes), TUTTI_OK);
    assert_int_equal(nodes.ranks.count, 2);
    assert_int_equal(nodes.nodes.count, 2);
    assert_int_equal(nodes.nseats, 1);
    tutti_nodes_fini(&nodes);

    assert_int_equal(tutti_nodes_init(&unknown, &nodes), TUTTI_OK);
    assert_int_equal(nodes.ranks.count, 4);
    assert_int_equal(nodes.nodes.count, 4);
    assert_int_equal(nodes.nparts, 1);
    tutti_nodes_fini(&nodes);
}

static void places_that_cannot_be_are_refused(void **state)
{
    static const uint32_t beyond[] = {0, 2}, empty[] = {0, 0}, node[] = {0, 1}, group[] = {0, 5};
    const struct {
        struct tutti_placement places;
        const char *message;
    } cases[] = {
        {{.nranks = 2, .node = beyond, .nnodes = 2}, "in node 2; there are only 2"},
        {{.nranks = 2, .node = empty, .nnodes = 2}, "no rank is in node 1 of 2"},
        {{.nranks = 2, .node = node, .nnodes = 2, .group = group, .ngroups = 2},
         "in group 5; there are only 2"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tutti_shape shape = {.nranks = 2, .places = &cases[i].places};
        struct tutti_nodes nodes = {.me = 7};

        assert_int_equal(tutti_nodes_init(&shape, &nodes), TUTTI_ERR_ARGUMENT);
        assert_non_null(strstr(tutti_message_last(), cases[i].message));
        assert_int_equal(nodes.me, 7);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_part_has_one_member_and_every_member_a_part),
        cmocka_unit_test(homes_are_spread),
        cmocka_unit_test(nodes_are_found_wherever_their_ranks_are),
        cmocka_unit_test(what_is_not_known_is_taken_apart),
        cmocka_unit_test(places_that_cannot_be_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
