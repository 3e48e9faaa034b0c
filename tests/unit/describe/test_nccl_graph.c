/* SPDX-License-Identifier: Apache-2.0
 * Tests rings and trees as NCCL's XML. All that is added is written, up to the limits. */
#include "base/result.h"
#include "describe/nccl_graph.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void expect_text(const struct tutti_nccl_graphs *graphs, const char *expected)
{
    char *text;

    assert_int_equal(tutti_nccl_graphs_write(graphs, &text), TUTTI_OK);
    assert_string_equal(text, expected);
    free(text);
}

static void what_is_added_is_written(void **state)
{
    static const struct tutti_nccl_graph ring = {
        .pattern = TUTTI_NCCL_RING,
        .crossnic = 1,
        .speedintra = 2.4,
        .speedinter = 0.12,
        .latencyinter = 1,
        .typeintra = "NVL",
        .typeinter = "PIX",
        .nchannels = 9, /* ignored: the channels that are added count */
    };
    static const struct tutti_nccl_graph tree = {
        .id = 1, .pattern = TUTTI_NCCL_TREE, .speedintra = 20, .samechannels = 1};
    static const struct tutti_nccl_stop stops[] = {
        {.is_net = true, .dev = 0, .rank = TUTTI_NCCL_NO_RANK},
        {.dev = 3, .rank = TUTTI_NCCL_NO_RANK},
        {.dev = 12, .rank = 7},
        {.is_net = true, .dev = 1, .rank = TUTTI_NCCL_NO_RANK},
    };
    struct tutti_nccl_graphs *graphs;

    (void)state;
    assert_int_equal(tutti_nccl_graphs_create(&graphs), TUTTI_OK);
    expect_text(graphs, "<graphs version=\"1\"/>\n");

    assert_int_equal(tutti_nccl_graphs_add(graphs, &ring), TUTTI_OK);
    assert_int_equal(tutti_nccl_graphs_add_channel(graphs), TUTTI_OK);
    for (size_t i = 0; i < sizeof stops / sizeof stops[0]; i++)
        assert_int_equal(tutti_nccl_graphs_add_stop(graphs, stops[i]), TUTTI_OK);
    assert_int_equal(tutti_nccl_graphs_add_channel(graphs), TUTTI_OK);
    assert_int_equal(tutti_nccl_graphs_add(graphs, &tree), TUTTI_OK);
    expect_text(graphs,
                "<graphs version=\"1\">\n"
                "  <graph id=\"0\" pattern=\"4\" crossnic=\"1\" nchannels=\"2\" speedintra=\"2.4\" "
                "speedinter=\"0.12\" latencyinter=\"1\" typeintra=\"NVL\" typeinter=\"PIX\" "
                "samechannels=\"0\">\n"
                "    <channel>\n      <net dev=\"0\"/>\n      <gpu dev=\"3\"/>\n"
                "      <gpu dev=\"12\" rank=\"7\"/>\n      <net dev=\"1\"/>\n    </channel>\n"
                "    <channel/>\n  </graph>\n"
                "  <graph id=\"1\" pattern=\"3\" crossnic=\"0\" nchannels=\"0\" speedintra=\"20\" "
                "speedinter=\"0\" latencyinter=\"0\" samechannels=\"1\"/>\n"
                "</graphs>\n");
    tutti_nccl_graphs_destroy(graphs);
    tutti_nccl_graphs_destroy(NULL);
}

/* ---- limits ---------------------------------------------------------------------------------- */

static int add_graph(struct tutti_nccl_graphs *graphs)
{
    return tutti_nccl_graphs_add(graphs, &(struct tutti_nccl_graph){.pattern = TUTTI_NCCL_RING});
}

static int add_stop(struct tutti_nccl_graphs *graphs)
{
    return tutti_nccl_graphs_add_stop(graphs, (struct tutti_nccl_stop){.dev = 0});
}

static void more_than_a_search_finds_is_refused(void **state)
{
    static const struct {
        int (*add)(struct tutti_nccl_graphs *graphs);
        size_t fits;
        const char *said;
    } cases[] = {
        {add_stop, TUTTI_NCCL_GRAPH_STOPS,
         "more than 131072 gpus and nets; no search finds so many"},
        {tutti_nccl_graphs_add_channel, TUTTI_NCCL_GRAPH_CHANNELS - 1, "more than 1024 channels"},
        {add_graph, TUTTI_NCCL_GRAPHS - 1, "more than 64 graphs"},
    };
    struct tutti_nccl_graphs *graphs;

    (void)state;
    assert_int_equal(tutti_nccl_graphs_create(&graphs), TUTTI_OK);
    assert_int_equal(add_graph(graphs), TUTTI_OK);
    assert_int_equal(tutti_nccl_graphs_add_channel(graphs), TUTTI_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (size_t n = 0; n < cases[i].fits; n++)
            assert_int_equal(cases[i].add(graphs), TUTTI_OK);
        assert_int_equal(cases[i].add(graphs), TUTTI_ERR_ARGUMENT);
        assert_memory_equal(tutti_message_last(), cases[i].said, strlen(cases[i].said));
    }
    tutti_nccl_graphs_destroy(graphs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_added_is_written),
        cmocka_unit_test(more_than_a_search_finds_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
