/* SPDX-License-Identifier: Apache-2.0
 * All readers of machine files get any bytes. Each refuses them, or the machine that it read is
 * the same after writing and reading it again. This file serves libFuzzer (scripts/fuzz) and
 * fuzz_topology_replay. */
#include "fuzz/fuzz.h"

#include "support/inventories.h"
#include "topology/formats/hwloc_xml.h"
#include "topology/formats/line.h"
#include "topology/formats/matrix.h"
#include "topology/formats/nccl_xml.h"
#include "topology/search/search.h"

static void require(bool is_so, const char *what, const char *written)
{
    if (is_so)
        return;
    fprintf(stderr, "%s: %s\n%s\n", what, tutti_message_last(), written != NULL ? written : "");
    abort();
}

/* Large machines take longer than bytes should. */
enum { ENDS = 24, GPUS = 8 };

/* Whatever a reader lets through has a graph, paths, and rings or a reason why not. */
static void try_graph(const struct tutti_inventory *inventory)
{
    struct tutti_search_options options = {.has_peers = inventory->count % 2 == 0};
    struct tutti_channels *channels;
    struct tutti_graph *graph;
    struct tutti_paths *paths;

    if (tutti_graph_build(inventory, &graph) != TUTTI_OK)
        return; /* too large */
    if (graph->count[TUTTI_NODE_GPU] + graph->count[TUTTI_NODE_NET] +
            graph->count[TUTTI_NODE_CPU] <= ENDS) {
        require(tutti_paths_find(graph, &paths) == TUTTI_OK, "no paths", NULL);
        for (int pattern = 0; pattern < TUTTI_PATTERN_COUNT; pattern++)
            if (graph->count[TUTTI_NODE_GPU] <= GPUS &&
                tutti_search(paths, pattern, &options, &channels) == TUTTI_OK) {
                require(channels->bytes_per_s <= channels->bound_bytes_per_s * 1.0001,
                        "more than the bound", NULL);
                tutti_channels_destroy(channels);
            }
        tutti_paths_destroy(paths);
    }
    tutti_graph_destroy(graph);
}

/* All readers of machines share this: an inventory that can be written, copied, merged and
 * completed. */
static void try_inventory(struct tutti_inventory *inventory)
{
    struct tutti_inventory *again, *copy;
    char *written;

    for (int is_complete = 0; is_complete < 2; is_complete++) {
        if (is_complete && tutti_inventory_complete(inventory) != TUTTI_OK)
            break; /* more devices than there may be */
        require(tutti_xml_write_nccl(inventory, &written) == TUTTI_OK, "not written", NULL);
        require(tutti_xml_read_nccl("written", written, strlen(written), TUTTI_SOURCE_FILE,
                                    &again) == TUTTI_OK, "not read again", written);
        require(inventories_equal(inventory, again), "not the same", written);
        require(tutti_inventory_copy(inventory, &copy) == TUTTI_OK, "not copied", NULL);
        require(inventories_equal(copy, again), "not the same when copied", written);
        require(tutti_inventory_merge(copy, again) == TUTTI_OK, "not merged", written);
        free(written);
        tutti_inventory_destroy(again);
        tutti_inventory_destroy(copy);
    }
    try_graph(inventory);
    tutti_inventory_destroy(inventory);
}

static void try_nccl_xml(const char *text, size_t length)
{
    struct tutti_inventory *inventory;

    if (tutti_xml_read_nccl("fuzz", text, length, TUTTI_SOURCE_FILE, &inventory) == TUTTI_OK)
        try_inventory(inventory);
}

static void try_hwloc_xml(const char *text, size_t length)
{
    struct tutti_inventory *inventory;

    if (tutti_hwloc_xml_read("fuzz", text, length, TUTTI_SOURCE_FILE, &inventory) == TUTTI_OK)
        try_inventory(inventory);
}

static void try_matrix(const char *text, size_t length)
{
    struct tutti_inventory *inventory;
    char *copy = strndup(text, length);

    require(copy != NULL, "no memory", NULL);
    if (tutti_matrix_is(copy) &&
        tutti_matrix_read("fuzz", copy, TUTTI_SOURCE_FILE, &inventory) == TUTTI_OK)
        try_inventory(inventory);
    free(copy);
}

static void try_line(const char *text, size_t length)
{
    struct tutti_inventory *inventory;
    char *copy = strndup(text, length);

    require(copy != NULL, "no memory", NULL);
    if (tutti_line_read("fuzz", copy, &inventory) == TUTTI_OK)
        try_inventory(inventory);
    free(copy);
}

/* A reader of another form is a line here. The text does not end in zero. */
static void (*const readers[])(const char *text, size_t length) = {
    try_matrix,
    try_nccl_xml,
    try_hwloc_xml,
    try_line,
};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < sizeof readers / sizeof readers[0]; i++)
        readers[i]((const char *)bytes, size);
    return 0;
}
