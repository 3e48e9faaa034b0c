/* SPDX-License-Identifier: Apache-2.0
 * Tests that hints replace guesses, keep what is told, and that wrong hints are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/result.h"
#include "topology/formats/hints.h"
#include "topology/formats/load.h"
#include "topology/graph/graph.h"

#define MATRIX \
    " GPU0 GPU1 mlx5_0 mlx5_bond_0 CPU Affinity\n" \
    "GPU0 X NV18 PIX NODE 0-7\nGPU1 NV18 X NODE NODE 0-7\n" \
    "mlx5_0 PIX NODE X NODE\nmlx5_bond_0 NODE NODE NODE X\n"

/* Applies hints to the text of a file. Returns the notes, which stay until the next call. */
static const char *apply(const char *text, struct tutti_hints hints, int wanted,
                         struct tutti_graph **ret_graph)
{
    static char notes[4096];
    struct tutti_inventory *inventory;
    FILE *out = fmemopen(notes, sizeof notes, "w");

    memset(notes, 0, sizeof notes);
    assert_non_null(out);
    assert_int_equal(tutti_formats_parse("test", text, strlen(text), &inventory), 0);
    assert_int_equal(tutti_hints_apply(&hints, inventory, out), wanted);
    fclose(out);
    if (ret_graph != NULL)
        assert_int_equal(tutti_graph_build(inventory, ret_graph), 0);
    tutti_inventory_destroy(inventory);
    return notes;
}

/* GB/s of the first link of a kind from a node, per parallel link, and its source. */
static double rate_from(const struct tutti_graph *graph, uint32_t node,
                        enum tutti_graph_link_kind kind, enum tutti_source *ret_source)
{
    for (uint32_t i = 0; i < graph->nlinks; i++)
        if (graph->links[i].from == node && graph->links[i].kind == kind) {
            *ret_source = graph->links[i].found_by;
            return graph->links[i].bytes_per_s / 1e9 /
                   (kind == TUTTI_LINK_NVLINK ? graph->links[i].count : 1);
        }
    fail_msg("there is no such link");
    return 0;
}

static void assert_rate(const struct tutti_graph *graph, uint32_t node,
                        enum tutti_graph_link_kind kind, double gb_per_s, enum tutti_source source)
{
    enum tutti_source found_by;
    double found = rate_from(graph, node, kind, &found_by);

    if (found < gb_per_s * 0.999 || found > gb_per_s * 1.001)
        fail_msg("%g GB/s, not %g", found, gb_per_s);
    assert_int_equal(found_by, source);
}

static void guesses_are_replaced(void **state)
{
    struct tutti_graph *graph;

    (void)state;
    apply(MATRIX, (struct tutti_hints){.gpu = NULL}, TUTTI_OK, &graph);
    assert_rate(graph, tutti_graph_gpu(graph, 0), TUTTI_LINK_NVLINK, 20.6, TUTTI_SOURCE_ASSUMED);
    assert_rate(graph, tutti_graph_net(graph, 0), TUTTI_LINK_PORT, 50, TUTTI_SOURCE_ASSUMED);
    tutti_graph_destroy(graph);
    assert_string_equal(apply(MATRIX,
                              (struct tutti_hints){.gpu = "B300", .nic = "800G,mlx5_bond_0=25G"},
                              TUTTI_OK, &graph), "");
    assert_rate(graph, tutti_graph_gpu(graph, 0), TUTTI_LINK_NVLINK, 40.1, TUTTI_SOURCE_PRODUCT);
    assert_rate(graph, tutti_graph_net(graph, 0), TUTTI_LINK_PORT, 100, TUTTI_SOURCE_FILE);
    assert_rate(graph, tutti_graph_net(graph, 1), TUTTI_LINK_PORT, 3.125, TUTTI_SOURCE_FILE);
    tutti_graph_destroy(graph);
}

static void names_beside_a_matrix_are_products(void **state)
{
    struct tutti_graph *graph;

    (void)state;
    apply("GPU 0: NVIDIA B200 (UUID: GPU-1)\nGPU 1: NVIDIA B200 (UUID: GPU-2)\n" MATRIX,
          (struct tutti_hints){.gpu = NULL}, TUTTI_OK, &graph);
    assert_rate(graph, tutti_graph_gpu(graph, 1), TUTTI_LINK_NVLINK, 40.1, TUTTI_SOURCE_PRODUCT);
    tutti_graph_destroy(graph);
    apply("GPU 7: B200 (x)\nGPU : B200 (\nGPU 0:(\nGPU 0: \t\n" MATRIX
          "GPU 0: \x01 (\nGPU 99999: x (",
          (struct tutti_hints){.gpu = NULL}, TUTTI_OK, &graph);
    assert_rate(graph, tutti_graph_gpu(graph, 0), TUTTI_LINK_NVLINK, 20.6, TUTTI_SOURCE_ASSUMED);
    tutti_graph_destroy(graph);
}

static void what_is_told_stays_and_a_note_says_so(void **state)
{
    static const char told[] =
        "<system version=\"1\"><cpu numaid=\"0\" arch=\"x86_64\" vendor=\"AuthenticAMD\">"
        "<pci busid=\"0000:01:00.0\" class=\"0x030200\" link_speed=\"16.0 GT/s PCIe\" "
        "link_width=\"16\"><gpu dev=\"0\" sm=\"90\">"
        "<nvlink target=\"fffffff:ff:ff.0\" count=\"18\" tclass=\"0x068000\"/></gpu></pci>"
        "<pci busid=\"0000:02:00.0\" class=\"0x020700\"><nic>"
        "<net name=\"mlx5_0\" dev=\"0\" speed=\"100000\"/></nic></pci></cpu></system>";
    struct tutti_graph *graph;
    const char *notes;

    (void)state;
    notes = apply(told, (struct tutti_hints){.gpu = "b200", .nic = "400G", .cpu = "sapphire"},
                  TUTTI_OK, &graph);
    assert_non_null(strstr(notes, "--gpu b200 is not used for 1 of 1 gpus"));
    assert_non_null(strstr(notes, "--nic 400G is not used for 1 of 1 ports, of which another rate "
                                  "is told (100 Gbit/s for mlx5_0)"));
    assert_non_null(strstr(notes, "--cpu sapphire is not used for 1 of 1 cpus"));
    assert_rate(graph, tutti_graph_gpu(graph, 0), TUTTI_LINK_NVLINK, 20.6, TUTTI_SOURCE_PRODUCT);
    assert_rate(graph, tutti_graph_net(graph, 0), TUTTI_LINK_PORT, 12.5, TUTTI_SOURCE_FILE);
    tutti_graph_destroy(graph);
    assert_string_equal(
        apply(told, (struct tutti_hints){.gpu = "h100", .nic = "100G", .cpu = "rome"}, TUTTI_OK,
              NULL), "");
    notes = apply(MATRIX, (struct tutti_hints){.gpu = "a100"}, TUTTI_OK, NULL);
    assert_non_null(strstr(notes, "--gpu a100 contradicts the 18 NVLinks of a gpu"));
}

static void wrong_hints_are_refused(void **state)
{
    static const struct {
        struct tutti_hints hints;
        const char *says;
    } wrong[] = {
        {{.gpu = "b2000"}, "--gpu b2000: no such model; give one of h100, "},
        {{.gpu = ""}, "no such model"},
        {{.cpu = "pentium"}, "--cpu pentium: no such model; give one of intel, "},
        {{.nic = "400"}, "--nic 400: give a rate such as 400G"},
        {{.nic = "0G"}, "give a rate"},
        {{.nic = "99999999G"}, "give a rate"},
        {{.nic = "400G,"}, "give a rate"},
        {{.nic = "-1G"}, "give a rate"},
        {{.nic = "mlx5_9=400G"}, "--nic mlx5_9=400G: no port has this name"},
        {{.nic = "mlx5_0=10G,mlx5_bond_0=10G,400G"}, "no port is left for it"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        apply(MATRIX, wrong[i].hints, TUTTI_ERR_ARGUMENT, NULL);
        if (strstr(tutti_message_last(), wrong[i].says) == NULL)
            fail_msg("\"%s\" is not in: %s", wrong[i].says, tutti_message_last());
    }
    apply("1 cpu", (struct tutti_hints){.gpu = "h100"}, TUTTI_ERR_ARGUMENT, NULL);
    assert_non_null(strstr(tutti_message_last(), "the machine has no gpus"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(guesses_are_replaced),
        cmocka_unit_test(names_beside_a_matrix_are_products),
        cmocka_unit_test(what_is_told_stays_and_a_note_says_so),
        cmocka_unit_test(wrong_hints_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
