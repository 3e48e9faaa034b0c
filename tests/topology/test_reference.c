/* SPDX-License-Identifier: Apache-2.0
 * Compares Tutti's rings and trees with those that NCCL and RCCL reported on a machine: they carry
 * at least as much over the same links. Within a host their schedules are proved, and the
 * simulator, which shares nothing with the search, gets the same rate.
 *
 * Machines whose topology was recorded are read from TUTTI_TEST_TOPOLOGIES. Others are described
 * here, as far as the log describes them. The test prints the table of docs/topology.md. */
#include "base/result.h"
#include "simulator/play_channels.h"
#include "topology/recordings.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Channels and GB/s of each, as the log or the graph file has them; 0: it does not say. */
static const struct claim {
    const char *name, *machine; /* a file of the recordings, or a line */
    const char *who;
    struct {
        uint32_t count;
        double gb_per_s;
    } rings, trees;
    bool has_peers, may_cross;
    bool is_domain;         /* the hosts of the file are searched together */
    double nvlink_gb_per_s; /* of one link, as that version reckoned; 0: as today */
} claims[] = {
    {"4 A100, mesh (Perlmutter)", "perlmutter-4xA100.xml",
     "NCCL 2.29.7", .rings = {12, 20}, .trees = {12, 20}},
    {"8 B200, NVSwitch", "hgx-8xB200-container.xml",
     "NCCL 2.27.3", .rings = {16, 45}, .trees = {16, 40}},
    {"8 GB300, two hosts of one domain", "gb300-nvl72-2trays.xml",
     "NCCL", .rings = {16, 45}, .is_domain = true},
    {"4 RTX A6000, PCIe", "lab-4xA6000-pcie.xml",
     "NCCL 2.23.4", .rings = {1, 10}, .trees = {1, 10}},
    {"4 A100 PCIe, two bridges", "azure-ncv4-4xA100pcie.xml",
     "vendor's graph", .rings = {2, 12}, .trees = {4, 12}},
    {"2 A100 PCIe, bridge", "azure-nc48v4-2xA100pcie.xml",
     "vendor's graph", .rings = {2, 12}, .trees = {4, 12}},
    {"4 W6800X, xGMI ring", "4 gpus gcn gfx1030 gen3 ring, 1 cpu skylake",
     "RCCL", .rings = {2, 24}, .trees = {2, 24}},
    {"2 Radeons, one behind x4", "2 gpus gcn gfx1100 gen4 x4 pcie, 1 cpu rome",
     "RCCL", .rings = {1, 6}, .trees = {1, 6}},
    {"1 A100 and 2 unequal NICs, 2 hosts",
     "1 gpus a100 pcie, 2 cpus rome, 1 nics 200G near gpu 0, 1 nics 25G on cpu 1",
     "NCCL 2.16.5", .rings = {1, 24}, .trees = {1, 24}, .has_peers = true},
    {"4 GPUs PCIe and 4 NICs 10G, 2 hosts",
     "4 gpus v100 pcie, 2 cpus broadwell, 4 nics 10G ethernet",
     "NCCL", .rings = {4, 1.2}, .has_peers = true},
    {"2 of 8 H20 and 2 NICs 400G, 2 hosts, crossing",
     "2 gpus sm 90 gen5 nvswitch 18, 2 switches gen5, 2 nics 400G gen5, 1 cpu skylake",
     "NCCL", .rings = {4, 24}, .has_peers = true, .may_cross = true},
    {"4 V100, mesh", "4 gpus v100 mesh 2, 2 cpus skylake",
     "NCCL, 2022", .rings = {6, 22}, .nvlink_gb_per_s = 22},
    {"8 H800 and 8 NICs, 2 hosts",
     "8 gpus h800 nvswitch 8, 8 switches gen5, 8 nics 400G gen5, 2 cpus sapphire",
     "NCCL, 2023", .rings = {6, 24}, .has_peers = true},
    {"8 H800 and 2 NICs, 2 hosts",
     "8 gpus h800 nvswitch 8, 8 switches gen5, 2 nics 400G gen5 near gpu 0 7, 2 cpus sapphire",
     "NCCL, 2024", .rings = {4, 24}, .has_peers = true},
    {"8 RTX 4090 without peer access", "8 gpus rtx4090 pcie, 2 cpus broadwell",
     "NCCL", .rings = {1, 5}, .trees = {1, 5}},
};

/* false: it is a file, and there is no folder of recordings. */
static bool find_machine(const struct claim *claim, char *ret_what, size_t size_bytes)
{
    if (strchr(claim->machine, ' ') != NULL) {
        snprintf(ret_what, size_bytes, "%s", claim->machine);
        return true;
    }
    snprintf(ret_what, size_bytes, "%s/nccl-xml/%s", recordings_root(), claim->machine);
    return access(ret_what, R_OK) == 0;
}

/* Computed as the compared version computes it. */
static void set_link_rates(struct machine *machine, double gb_per_s)
{
    for (uint32_t i = 0; i < machine->graph->nlinks; i++) {
        struct tutti_graph_link *link = &machine->graph->links[i];

        if (link->kind == TUTTI_LINK_NVLINK)
            link->bytes_per_s = gb_per_s * 1e9 * link->count;
    }
    tutti_paths_destroy(machine->paths);
    assert_int_equal(tutti_paths_find(machine->graph, &machine->paths), 0);
}

/* The rate of an all-reduce by a pattern, in GB/s of the buffer, as claimed and as played. 0 means
 * that it was not played, because other hosts take part. */
struct rates {
    double all, allreduce, played;
};

static struct rates search_one(const struct claim *claim, const struct machine *machine,
                               enum tutti_pattern pattern)
{
    struct tutti_search_options options = {
        .host = claim->is_domain ? TUTTI_ALL_HOSTS : 0, .has_peers = claim->has_peers,
        .may_cross = claim->may_cross};
    struct tutti_channels *channels;
    struct rates rates = {0};

    if (tutti_search(machine->paths, pattern, &options, &channels) != 0)
        fail_msg("%s: %s", claim->name, tutti_message_last());
    check_channels(claim->name, machine->paths, channels);
    rates.all = channels->bytes_per_s / 1e9;
    rates.allreduce = tutti_channels_allreduce(channels, channels->bytes_per_s) / 1e9;
    if (!claim->has_peers && pattern != TUTTI_PATTERN_BROADCAST)
        rates.played = play_allreduce(claim->name, machine, channels) / 1e9;
    tutti_channels_destroy(channels);
    return rates;
}

static void print_row(const struct claim *claim, const struct rates *ring,
                      const struct rates *one_way, const struct rates *tree)
{
    print_message("| %s | %s | %u x %g | %.4g | ", claim->name, claim->who, claim->rings.count,
                  claim->rings.gb_per_s, ring->all);
    if (claim->trees.count > 0)
        print_message("%u x %g | %.4g | ", claim->trees.count, claim->trees.gb_per_s,
                      one_way->all);
    else
        print_message("- | %.4g | ", one_way->all);
    if (claim->has_peers)
        print_message("%.4g, - | %.4g, - |\n", ring->allreduce, tree->allreduce);
    else
        print_message("%.4g, %.4g | %.4g, %.4g |\n", ring->allreduce, ring->played,
                      tree->allreduce, tree->played);
}

static void hold_against(const struct claim *claim, const struct machine *machine)
{
    struct rates ring = search_one(claim, machine, TUTTI_PATTERN_RING);
    struct rates one_way = search_one(claim, machine, TUTTI_PATTERN_BROADCAST);
    struct rates tree = search_one(claim, machine, TUTTI_PATTERN_TREE);
    double n = machine->graph->count[TUTTI_NODE_GPU];
    double their_ring = claim->rings.count * claim->rings.gb_per_s * (1 - 1e-6);
    double their_tree = claim->trees.count * claim->trees.gb_per_s * (1 - 1e-6);

    print_row(claim, &ring, &one_way, &tree);
    if (ring.all < their_ring)
        fail_msg("%s: rings of %g GB/s, theirs %g", claim->name, ring.all, their_ring);
    if (one_way.all < their_tree || tree.allreduce < their_tree / 2)
        fail_msg("%s: trees of %g GB/s one way and %g both, theirs %g", claim->name, one_way.all,
                 tree.allreduce, their_tree);
    if (!claim->has_peers &&
        (ring.played < 0.99 * their_ring * n / (2 * n - 2) || tree.played < their_tree / 2))
        fail_msg("%s: played, an all-reduce gets %g GB/s by rings and %g by trees", claim->name,
                 ring.played, tree.played);
}

/* NCCL counts trees in one direction. With a tree of 20 an all-reduce, which uses both directions,
 * gets 10. So Tutti's trees for one direction are compared with that figure, and those for both
 * directions with half of it. */
static void our_channels_carry_at_least_what_theirs_do(void **state)
{
    size_t nmissing = 0;

    (void)state;
    print_message("| machine | chosen by | rings | ours | trees, one way | ours | our all-reduce "
                  "by rings: claimed, played | by trees |\n|---|---|--:|--:|--:|--:|--:|--:|\n");
    for (size_t i = 0; i < sizeof(claims) / sizeof(claims[0]); i++) {
        struct machine machine;
        char what[2048];

        if (!find_machine(&claims[i], what, sizeof what)) {
            nmissing++;
            continue;
        }
        machine = open_machine(what);
        if (claims[i].nvlink_gb_per_s > 0)
            set_link_rates(&machine, claims[i].nvlink_gb_per_s);
        hold_against(&claims[i], &machine);
        close_machine(&machine);
    }
    if (nmissing > 0)
        print_message("%zu machines left out: no recordings below %s; TUTTI_TEST_TOPOLOGIES names "
                      "another folder\n", nmissing, recordings_root());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(our_channels_carry_at_least_what_theirs_do),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
