/* SPDX-License-Identifier: Apache-2.0
 * Tests the matrix of nvidia-smi topo -m: machines that explain it, and errors in others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/result.h"
#include "topology/formats/matrix.h"
#include "topology/graph/paths.h"

/* The relation of two devices in the graph of a matrix. */
struct way {
    uint32_t from, to; /* gpus from 0 on, nets from 100 on */
    const char *class;
    double gb_per_s; /* 0: whatever */
};

static const struct {
    const char *name, *text;
    uint32_t ngpus, nnets, ncpus, nswitches;
    struct way ways[6];
} good[] = {
    {"two GPUs and a bridge",
     "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\n"
     "GPU0\t X \tNV12\t0-31\t0\n"
     "GPU1\tNV12\t X \t32-63\t1\n",
     2, 0, 2, 0, {{0, 1, "NVL", 240}}},
    {"a mesh, for so many links a GPU can have",
     "$ nvidia-smi topo -m\n"
     "      GPU0 GPU1 GPU2 GPU3 CPU Affinity\n"
     "GPU0  X  NV4 NV4 NV4 0-15\nGPU1 NV4 X NV4 NV4 0-15\n"
     "GPU2 NV4 NV4 X NV4 16-31\nGPU3 NV4 NV4 NV4 X 16-31\n",
     4, 0, 2, 0, {{0, 3, "NVL", 80}}},
    {"a switch, for so many it cannot have",
     "     GPU0 GPU1 GPU2\nGPU0 X NV18 NV18\nGPU1 NV18 X NV18\nGPU2 NV18 NV18 X\n",
     3, 0, 3, 0, {{0, 2, "NVL", 370.8}}},
    {"switches of one level, and ports by their legend",
     "\tGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
     "GPU0\t X \tNODE\tPIX\tNODE\t0-7\t0\t\tN/A\n"
     "GPU1\tNODE\t X \tNODE\tPIX\t0-7\t0\t\tN/A\n"
     "NIC0\tPIX\tNODE\t X \tNODE\t\t\t\t\n"
     "NIC1\tNODE\tPIX\tNODE\t X \t\t\t\t\n"
     "\nLegend:\n\n  X    = Self\n\nNIC Legend:\n\n  NIC0: mlx5_7\n  NIC1: eth3\n",
     2, 2, 1, 2, {{0, 100, "PIX", 0}, {0, 101, "PHB", 0}, {1, 101, "PIX", 0},
                  {0, 1, "PHB", 0}}},
    {"switches of two levels",
     " GPU0 GPU1 mlx5_0 mlx5_1 CPU Affinity\n"
     "GPU0 X PXB PIX PXB 0-7\nGPU1 PXB X PXB PIX 0-7\n"
     "mlx5_0 PIX PXB X PXB\nmlx5_1 PXB PIX PXB X\n",
     2, 2, 1, 3, {{0, 100, "PIX", 0}, {0, 101, "PXB", 0}, {0, 1, "PXB", 0}}},
    {"devices that are two switches from each other, each below one of its own",
     " GPU0 GPU1 NIC0\nGPU0 X NV18 PXB\nGPU1 NV18 X PXB\nNIC0 PXB PXB X\n",
     2, 1, 1, 4, {{0, 100, "PXB", 0}, {1, 100, "PXB", 0}, {0, 1, "NVL", 370.8}}},
    {"sockets",
     " GPU0 GPU1 NIC0\nGPU0 X SYS PHB\nGPU1 SYS X SYS\nNIC0 PHB SYS X\n",
     2, 1, 2, 0, {{0, 1, "SYS", 0}, {0, 100, "PHB", 0}, {1, 100, "SYS", 0}}},
    {"one GPU", " GPU0 CPU Affinity\nGPU0 X 0-3\n", 1, 0, 1, 0, {{0, 0, "LOC", 0}}},
};

static uint32_t node_of(const struct tutti_graph *graph, uint32_t number)
{
    return number < 100 ? tutti_graph_gpu(graph, number) : tutti_graph_net(graph, number - 100);
}

static void machines_are_made_that_explain_the_matrix(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct tutti_inventory *inventory = NULL;
        struct tutti_graph *graph = NULL;
        struct tutti_paths *paths = NULL;

        assert_true(tutti_matrix_is(good[i].text));
        if (tutti_matrix_read("matrix", good[i].text, TUTTI_SOURCE_FILE, &inventory) != 0 ||
            tutti_graph_build(inventory, &graph) != 0 || tutti_paths_find(graph, &paths) != 0)
            fail_msg("%s: %s", good[i].name, tutti_message_last());
        assert_int_equal(graph->count[TUTTI_NODE_GPU], good[i].ngpus);
        assert_int_equal(graph->count[TUTTI_NODE_NET], good[i].nnets);
        if (graph->count[TUTTI_NODE_CPU] != good[i].ncpus ||
            graph->count[TUTTI_NODE_PCI] != good[i].nswitches)
            fail_msg("%s: %u cpus and %u switches", good[i].name, graph->count[TUTTI_NODE_CPU],
                     graph->count[TUTTI_NODE_PCI]);
        for (const struct way *way = good[i].ways; way->class != NULL; way++) {
            const struct tutti_path *path =
                tutti_paths_between(paths, node_of(graph, way->from), node_of(graph, way->to));

            if (strcmp(tutti_path_class_name(path->class), way->class) != 0 ||
                (way->gb_per_s > 0 && (path->bytes_per_s < way->gb_per_s * 0.999e9 ||
                                       path->bytes_per_s > way->gb_per_s * 1.001e9)))
                fail_msg("%s: %u to %u is %s of %g GB/s", good[i].name, way->from, way->to,
                         tutti_path_class_name(path->class), path->bytes_per_s / 1e9);
        }
        tutti_paths_destroy(paths);
        tutti_graph_destroy(graph);
        tutti_inventory_destroy(inventory);
    }
}

static void ports_have_the_names_of_the_legend_and_cpus_their_lists(void **state)
{
    struct tutti_inventory *inventory;
    uint32_t net;

    (void)state;
    assert_int_equal(tutti_matrix_read("matrix", good[3].text, TUTTI_SOURCE_FILE, &inventory), 0);
    net = tutti_inventory_next_of(inventory, TUTTI_NO_DEVICE, TUTTI_DEVICE_NET);
    assert_string_equal(tutti_device_text(inventory, net, TUTTI_PROPERTY_NET_NAME), "mlx5_7");
    assert_string_equal(tutti_device_text(inventory, net, TUTTI_PROPERTY_LAYER), "infiniband");
    net = tutti_inventory_next_of(inventory, net, TUTTI_DEVICE_NET);
    assert_string_equal(tutti_device_text(inventory, net, TUTTI_PROPERTY_NET_NAME), "eth3");
    assert_string_equal(tutti_device_text(inventory, 1, TUTTI_PROPERTY_AFFINITY), "000000ff");
    tutti_inventory_destroy(inventory);
}

static const struct {
    const char *text, *message;
} bad[] = {
    {" GPU0 GPU1\nGPU0 X NV1\n", "matrix:3: the row of GPU1 is missing; give the whole matrix"},
    {" GPU0 GPU1\nGPU0 X NVX\nGPU1 NV1 X\n", "matrix:2: \"NVX\" of GPU0 and GPU1 is none of X"},
    {" GPU0 GPU1\nGPU0 X\nGPU1 NV1 X\n", "matrix:2: \"\" of GPU0 and GPU1 is none of X"},
    {" GPU0 GPU1\nGPU0 NV1 X\nGPU1 NV1 X\n", "matrix:2: an X must stand where"},
    {" GPU0 GPU1\nGPU0 X X\nGPU1 NV1 X\n", "matrix:2: an X must stand where"},
    {" GPU0 GPU1\nGPU0 X NV0\nGPU1 NV1 X\n", "\"NV0\" of GPU0 and GPU1"},
    {"8 gpus h100, 2 cpus\n", "no line begins with GPU0"},
    {" GPU0 GPU1\n GPU0 X OK\n", "\"OK\" of GPU0 and GPU1"},
};

static void what_is_no_matrix_is_refused_with_its_line(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct tutti_inventory *inventory = NULL;

        assert_int_equal(tutti_matrix_read("matrix", bad[i].text, TUTTI_SOURCE_FILE, &inventory),
                         TUTTI_ERR_ARGUMENT);
        assert_null(inventory);
        if (strstr(tutti_message_last(), bad[i].message) == NULL)
            fail_msg("\"%s\" does not say \"%s\"", tutti_message_last(), bad[i].message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(machines_are_made_that_explain_the_matrix),
        cmocka_unit_test(ports_have_the_names_of_the_legend_and_cpus_their_lists),
        cmocka_unit_test(what_is_no_matrix_is_refused_with_its_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
