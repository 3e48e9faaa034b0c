/* SPDX-License-Identifier: Apache-2.0
 * Tests which rates and links of a description are doubted, and which of two descriptions of a link
 * is used. */
#include "base/result.h"
#include "topology/formats/load.h"
#include "topology/graph/doubts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct tutti_graph *graph_of(const char *text)
{
    struct tutti_inventory *inventory = NULL;
    struct tutti_graph *graph = NULL;

    if (tutti_formats_parse("t", text, strlen(text), &inventory) != TUTTI_OK ||
        tutti_graph_build(inventory, &graph) != TUTTI_OK)
        fail_msg("%s\n%s", text, tutti_message_last());
    tutti_inventory_destroy(inventory);
    return graph;
}

/* Returns the doubts about the machine of a text; the caller frees them. */
static char *doubts_about(const char *text)
{
    struct tutti_graph *graph = graph_of(text);
    char *doubts = NULL;
    size_t size;
    FILE *out = open_memstream(&doubts, &size);

    assert_non_null(out);
    tutti_graph_write_doubts(graph, out);
    assert_int_equal(fclose(out), 0);
    tutti_graph_destroy(graph);
    return doubts;
}

#define SYSTEM(inside) "<system version=\"1\"><cpu numaid=\"0\">" inside "</cpu></system>"
#define GPU(bus, dev, links)                                                                       \
    "<pci busid=\"0000:0" bus ":00.0\" class=\"0x030200\"><gpu dev=\"" dev "\" sm=\"80\">" links   \
    "</gpu></pci>"
#define LINK(bus, count)                                                                           \
    "<nvlink target=\"0000:0" bus ":00.0\" count=\"" count "\" tclass=\"0x030200\"/>"
#define MEASURED(bus, rate)                                                                        \
    "<nvlink target=\"0000:0" bus ":00.0\" count=\"4\" measured=\"" rate "\"/>"
#define SWITCH(count) "<nvlink target=\"fffffff:ff:ff.0\" count=\"" count "\" tclass=\"0x068000\"/>"
#define NET(values)                                                                                \
    "<pci busid=\"0000:09:00.0\" class=\"0x020700\"><nic><net name=\"a\" dev=\"0\" " values        \
    "/></nic></pci>"

static void what_cannot_be_or_is_degraded_is_told(void **state)
{
    static const struct {
        const char *text, *doubts;
    } cases[] = {
        {SYSTEM(GPU("1", "0", LINK("2", "12")) GPU("2", "1", LINK("1", "12"))
                    NET("speed=\"400000\"")),
         ""},
        {SYSTEM(NET("speed=\"200000000\"")),
         "net 0 (a) is said to carry 25 TB/s, more than the 400 GB/s of any port; correct speed "
         "(Mbit/s), or give <net> measured=\"BYTES_PER_S\"\n"},
        {SYSTEM(NET("speed=\"200000000\" measured=\"25e9\"")), ""},
        {SYSTEM("<pci busid=\"0000:01:00.0\" link_speed=\"32000 GT/s\" link_width=\"16\"/>"),
         "pci 0000:01:00.0 is said to run at 32000 GT/s, more than the 128 of any PCI link; "
         "correct "
         "link_speed, or give <pci> measured=\"BYTES_PER_S\"\n"},
        {SYSTEM(GPU("1", "0", SWITCH("1000"))),
         "gpu 0 -> nvswitch (nvlink) is said to carry 20 TB/s, more than the 4 TB/s of any gpu; "
         "correct count (links), or give <nvlink> measured=\"BYTES_PER_S\"\n"},
        {SYSTEM(GPU("1", "0", "<c2c bw=\"450000000\" count=\"1\"/>")),
         "gpu 0 -> cpu 0 (c2c) is said to carry 450 TB/s, more than the 4 TB/s of any coherent "
         "link; correct bw (MB/s), or give <c2c> measured=\"BYTES_PER_S\"\n"},
        {SYSTEM(GPU("1", "0", LINK("2", "12")) GPU("2", "1", LINK("1", "1"))),
         "gpu 0 lists 12 links to gpu 1 (240 GB/s), which lists 1 back (20 GB/s); the lower is "
         "used, "
         "and a link may be degraded\n"},
        {SYSTEM(GPU("1", "0", "") GPU("2", "1", LINK("1", "4"))),
         "gpu 0 lists 0 links to gpu 1 (0 GB/s), which lists 4 back (80 GB/s); the one list is "
         "used, "
         "and a link may be degraded\n"},
        /* Two measurements may differ a little. One alone is not held against what is usual. */
        {SYSTEM(GPU("1", "0", MEASURED("2", "7e10")) GPU("2", "1", MEASURED("1", "2e10"))),
         "gpu 0 lists 4 links to gpu 1 (70 GB/s), which lists 4 back (20 GB/s); the lower is used, "
         "and a link may be degraded\n"},
        {SYSTEM(GPU("1", "0", MEASURED("2", "7e10")) GPU("2", "1", MEASURED("1", "6.9e10"))), ""},
        {SYSTEM(GPU("1", "0", LINK("2", "4")) GPU("2", "1", MEASURED("1", "2e10"))), ""},
        /* Elements of one link each say the same as one of all. */
        {SYSTEM(GPU("1", "0", LINK("2", "2") LINK("2", "2")) GPU("2", "1", LINK("1", "4"))), ""},
        {SYSTEM(GPU("1", "0", SWITCH("12")) GPU("2", "1", SWITCH("11"))
                    GPU("3", "2", SWITCH("12"))),
         "gpu 1 has 11 links to its NVSwitch, and 2 other gpus have 12; links may be down\n"},
        {SYSTEM(GPU("1", "0", SWITCH("12")) GPU("2", "1", SWITCH("11"))), ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *doubts = doubts_about(cases[i].text);

        assert_string_equal(doubts, cases[i].doubts);
        free(doubts);
    }
}

static void many_doubts_of_one_sort_are_counted(void **state)
{
    char text[8192] = "<system version=\"1\"><cpu numaid=\"0\">", *doubts;
    size_t nlines = 0;

    (void)state;
    for (int i = 0; i < 20; i++)
        sprintf(text + strlen(text),
                "<pci busid=\"0000:%02x:00.0\" class=\"0x020000\"><nic><net "
                "name=\"e%d\" dev=\"%d\" speed=\"100000000\"/></nic></pci>",
                i + 1, i, i);
    strcat(text, "</cpu></system>");
    doubts = doubts_about(text);
    for (const char *at = doubts; *at != '\0'; at++)
        nlines += *at == '\n';
    assert_int_equal(nlines, TUTTI_GRAPH_DOUBTS_SHOWN + 1);
    assert_non_null(strstr(doubts, "\n12 more rates exceed what any such device carries\n"));
    free(doubts);
}

/* The order of the gpus in the file does not matter. */
static void the_weaker_description_of_a_link_is_used(void **state)
{
    static const char *const texts[] = {
        SYSTEM(GPU("1", "0", LINK("2", "12")) GPU("2", "1", LINK("1", "1"))),
        SYSTEM(GPU("1", "0", LINK("2", "1")) GPU("2", "1", LINK("1", "12"))),
    };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct tutti_graph *graph = graph_of(texts[i]);
        uint32_t nfound = 0;

        for (uint32_t link = 0; link < graph->nlinks; link++)
            if (graph->links[link].kind == TUTTI_LINK_NVLINK) {
                nfound++;
                assert_int_equal(graph->links[link].count, 1);
                assert_true(graph->links[link].bytes_per_s <= 20e9);
            }
        assert_int_equal(nfound, 2); /* both directions */
        tutti_graph_destroy(graph);
    }
}

static void a_measurement_of_either_side_is_used(void **state)
{
    static const char *const texts[] = {
        SYSTEM(GPU("1", "0", LINK("2", "4")) GPU("2", "1", MEASURED("1", "9e10"))),
        SYSTEM(GPU("1", "0", MEASURED("2", "9e10")) GPU("2", "1", LINK("1", "4"))),
    };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct tutti_graph *graph = graph_of(texts[i]);

        for (uint32_t link = 0; link < graph->nlinks; link++)
            if (graph->links[link].kind == TUTTI_LINK_NVLINK) {
                assert_int_equal(graph->links[link].found_by, TUTTI_SOURCE_MEASURED);
                assert_true(graph->links[link].bytes_per_s >= 9e10);
            }
        tutti_graph_destroy(graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_or_is_degraded_is_told),
        cmocka_unit_test(many_doubts_of_one_sort_are_counted),
        cmocka_unit_test(the_weaker_description_of_a_link_is_used),
        cmocka_unit_test(a_measurement_of_either_side_is_used),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
