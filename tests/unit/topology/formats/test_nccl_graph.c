/* SPDX-License-Identifier: Apache-2.0
 * Reads and writes NCCL's XML of a search's result, and refuses wrong files. */
#include "base/result.h"
#include "topology/formats/nccl_graph.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void what_is_read_is_written(void **state)
{
    static const struct {
        const char *text, *written;
    } cases[] = {
        {"<graphs version=\"1\"/>", "<graphs version=\"1\"/>\n"},
        {"<graphs><odd><graph/></odd></graphs>", "<graphs version=\"1\"/>\n"},
        {"<graphs version=\"1\"><graph id=\"0\" pattern=\"4\" crossnic=\"1\" nchannels=\"2\" "
         "speedintra=\"2.40\" speedinter=\"0.12\" latencyinter=\"1\" typeintra=\"NVL\" "
         "typeinter=\"PIX\" samechannels=\"0\"><channel><net dev=\"0\"/><gpu dev=\"0x3\"/>"
         "<gpu dev=\"12\" rank=\"7\"><odd/></gpu><net dev=\"1\"/></channel><odd/><channel/></graph>"
         "</graphs>",
         "<graphs version=\"1\">\n"
         "  <graph id=\"0\" pattern=\"4\" crossnic=\"1\" nchannels=\"2\" speedintra=\"2.4\" "
         "speedinter=\"0.12\" latencyinter=\"1\" typeintra=\"NVL\" typeinter=\"PIX\" "
         "samechannels=\"0\">\n"
         "    <channel>\n      <net dev=\"0\"/>\n      <gpu dev=\"3\"/>\n"
         "      <gpu dev=\"12\" rank=\"7\"/>\n      <net dev=\"1\"/>\n    </channel>\n"
         "    <channel/>\n  </graph>\n</graphs>\n"},
        /* No channel at all: what is not there is not pointed into. */
        {"<graphs><graph id=\"0\" pattern=\"4\"/></graphs>",
         "<graphs version=\"1\">\n"
         "  <graph id=\"0\" pattern=\"4\" crossnic=\"0\" nchannels=\"0\" speedintra=\"0\" "
         "speedinter=\"0\" latencyinter=\"0\" samechannels=\"0\"/>\n</graphs>\n"},
        /* An older file says less. */
        {"<graphs version=\"1\"><graph id=\"1\" pattern=\"1\" speedintra=\"20\"/><graph id=\"2\" "
         "pattern=\"3\"><channel><gpu dev=\"0\"/></channel></graph></graphs>",
         "<graphs version=\"1\">\n"
         "  <graph id=\"1\" pattern=\"1\" crossnic=\"0\" nchannels=\"0\" speedintra=\"20\" "
         "speedinter=\"20\" latencyinter=\"0\" samechannels=\"0\"/>\n"
         "  <graph id=\"2\" pattern=\"3\" crossnic=\"0\" nchannels=\"1\" speedintra=\"0\" "
         "speedinter=\"0\" latencyinter=\"0\" samechannels=\"0\">\n"
         "    <channel>\n      <gpu dev=\"0\"/>\n    </channel>\n  </graph>\n</graphs>\n"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tutti_nccl_graphs *graphs, *again;
        char *written;

        assert_int_equal(tutti_nccl_graphs_read("g", cases[i].text, strlen(cases[i].text),
                                                &graphs), TUTTI_OK);
        assert_int_equal(tutti_nccl_graphs_write(graphs, &written), TUTTI_OK);
        assert_string_equal(written, cases[i].written);
        assert_int_equal(tutti_nccl_graphs_read("w", written, strlen(written), &again), TUTTI_OK);
        assert_true(tutti_nccl_graphs_equal(graphs, again));
        free(written);
        tutti_nccl_graphs_destroy(graphs);
        tutti_nccl_graphs_destroy(again);
    }
    tutti_nccl_graphs_destroy(NULL);
}

#define GRAPH(attributes, inside) \
    "<graphs version=\"1\">\n<graph " attributes ">" inside "</graph></graphs>"

static void mistakes_are_found_where_they_are(void **state)
{
    static const struct {
        const char *text, *said;
    } cases[] = {
        {"", "g:1:1: no element found"},
        {"<system version=\"1\"/>", "g:1:1: <system>, where a file of graphs has <graphs>"},
        {"<graphs version=\"2\"/>", "g:1:1: <graphs>: version=\"2\"; 1 is known"},
        {GRAPH("pattern='4'", ""), "g:2:1: <graph> without id; give it, such as id=\"0\""},
        {GRAPH("id='0'", ""), "g:2:1: <graph> without pattern"},
        {GRAPH("id='' pattern='4'", ""), "g:2:1: <graph>: id=\"\" is no number"},
        {GRAPH("id='0' pattern='ring'", ""), "g:2:1: <graph>: pattern=\"ring\" is no number"},
        {GRAPH("id='0' pattern='4' speedintra='-1'", ""),
         "g:2:1: <graph>: speedintra=\"-1\" is no number from 0 on"},
        {GRAPH("id='0' pattern='4' speedinter='fast'", ""),
         "g:2:1: <graph>: speedinter=\"fast\" is no number from 0 on"},
        {GRAPH("id='0' pattern='4' typeintra='NVLINK18'", ""),
         "g:2:1: <graph>: typeintra=\"NVLINK18\" is no type of path"},
        {GRAPH("id='0' pattern='4' typeinter='n-v'", ""),
         "g:2:1: <graph>: typeinter=\"n-v\" is no type of path"},
        {GRAPH("id='0' pattern='4' nchannels='2'", "<channel/>\n"),
         "g:3:1: the graph says nchannels=\"2\", but has 1; correct it"},
        {GRAPH("id='0' pattern='4' nchannels='0'", "<channel/>"), "g:2:51: the graph says"},
        {GRAPH("id='0' pattern='4'", "<channel>\n <gpu/></channel>"), "g:3:2: <gpu> without dev"},
        {GRAPH("id='0' pattern='4'", "<channel>\n <net dev='a'/></channel>"),
         "g:3:2: <net>: dev=\"a\" is no number"},
        {GRAPH("id='0' pattern='4'", "<channel>\n <gpu dev='0' rank='0x'/></channel>"),
         "g:3:2: <gpu>: rank=\"0x\" is no number"},
        {GRAPH("id='0' pattern='4'", "<channel>\n"), "g:3:3: mismatched tag"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tutti_nccl_graphs *graphs = (struct tutti_nccl_graphs *)&state;

        if (tutti_nccl_graphs_read("g", cases[i].text, strlen(cases[i].text), &graphs) !=
            TUTTI_ERR_ARGUMENT)
            fail_msg("accepted: %s", cases[i].text);
        if (strncmp(tutti_last_message(), cases[i].said, strlen(cases[i].said)) != 0)
            fail_msg("%s\nsaid: %s\nnot:  %s", cases[i].text, tutti_last_message(),
                     cases[i].said);
        assert_ptr_equal(graphs, &state);
    }
}

static void more_than_a_search_finds_is_refused(void **state)
{
    static const struct {
        const char *before, *part, *after;
        size_t fits;
        const char *said;
    } cases[] = {
        {"<graphs>", "<graph id='0' pattern='4'/>", "</graphs>", TUTTI_NCCL_GRAPHS,
         "g:1:1737: more than 64 graphs; no search finds so many"},
        {"<graphs><graph id='0' pattern='4'>", "<channel/>", "</graph></graphs>",
         TUTTI_NCCL_GRAPH_CHANNELS, "g:1:10275: more than 1024 channels"},
        {"<graphs><graph id='0' pattern='4'><channel>", "<gpu dev='0'/>",
         "</channel></graph></graphs>", TUTTI_NCCL_GRAPH_STOPS,
         "g:1:1835052: more than 131072 gpus and nets"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (size_t more = 0; more < 2; more++) {
            size_t each = strlen(cases[i].part), used = strlen(cases[i].before);
            char *text = malloc(used + each * (cases[i].fits + more) + strlen(cases[i].after) + 1);
            struct tutti_nccl_graphs *graphs = NULL;
            int rc;

            assert_non_null(text);
            strcpy(text, cases[i].before);
            for (size_t j = 0; j < cases[i].fits + more; j++, used += each)
                memcpy(text + used, cases[i].part, each);
            strcpy(text + used, cases[i].after);
            rc = tutti_nccl_graphs_read("g", text, strlen(text), &graphs);
            free(text);
            tutti_nccl_graphs_destroy(graphs);
            assert_int_equal(rc, more == 0 ? TUTTI_OK : TUTTI_ERR_ARGUMENT);
            if (more == 1)
                assert_memory_equal(tutti_last_message(), cases[i].said, strlen(cases[i].said));
        }
}

/* Graphs of one channel with one stop, of which one thing differs. */
static void a_difference_anywhere_makes_graphs_unequal(void **state)
{
    struct tutti_nccl_graphs *graphs[10];

    (void)state;
    for (int i = 0; i < 10; i++) {
        struct tutti_nccl_graph graph = {
            .id = i == 1, .pattern = i == 2, .speedintra = i == 3 ? 1.5 : 1, .samechannels = i == 4,
            .typeinter = {i == 5 ? 'A' : 'B'},
        };
        struct tutti_nccl_stop stop = {.dev = i == 6, .is_net = i == 7, .rank = i == 8};

        assert_int_equal(tutti_nccl_graphs_create(&graphs[i]), TUTTI_OK);
        assert_int_equal(tutti_nccl_graphs_add(graphs[i], &graph), TUTTI_OK);
        assert_int_equal(tutti_nccl_graphs_add_channel(graphs[i]), TUTTI_OK);
        assert_int_equal(tutti_nccl_graphs_add_stop(graphs[i], stop), TUTTI_OK);
        if (i == 9)
            assert_int_equal(tutti_nccl_graphs_add_channel(graphs[i]), TUTTI_OK);
    }
    for (int i = 0; i < 10; i++)
        for (int j = 0; j < 10; j++)
            assert_int_equal(tutti_nccl_graphs_equal(graphs[i], graphs[j]), i == j);
    for (int i = 0; i < 10; i++)
        tutti_nccl_graphs_destroy(graphs[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_read_is_written),
        cmocka_unit_test(mistakes_are_found_where_they_are),
        cmocka_unit_test(more_than_a_search_finds_is_refused),
        cmocka_unit_test(a_difference_anywhere_makes_graphs_unequal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
