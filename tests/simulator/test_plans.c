/* SPDX-License-Identifier: Apache-2.0
 * Runs the rings and trees of the search as schedules, and compares the simulated rate with the
 * claim. Rings whose hops share links lose some if one hop ends before the others. Trees lose
 * more, because inner gpus serve their children one after another. */
#include "simulator/play_channels.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static const struct {
    const char *machine;
    double ring, tree; /* the least part of the claim */
} played[] = {
    {"dgx-1v", 0.99, 0.97},
    {"dgx-2", 0.99, 0.98},
    {"dgx-h100", 0.99, 0.98},
    {"4xa100-mesh", 0.99, 0.97},
    {"4xa100-pcie", 0.99, 0.97},
    {"4xa6000-pcie", 0.99, 0.70},
    {"8xrtx4090-pcie", 0.99, 0.90},
    {"mi250x-node", 0.80, 0.97},
    {"8xmi300x", 0.99, 0.70},
    {"8xmi100-2hives", 0.99, 0.95},
    {"8xmi50-2rings", 0.99, 0.95},
    {"ac922", 0.99, 0.97},
    {"5 gpus a100 links 0-1 1-2 2-3 3-4 0-4 0-2 1-3, 2 cpus rome", 0.90, 0.90},
};

static double play(const char *name, const struct machine *machine, enum tutti_pattern pattern,
                   double *ret_claim)
{
    struct tutti_search_options search = {.nchannels = 16};
    struct tutti_channels *channels;
    double rate;

    assert_int_equal(tutti_search(machine->paths, pattern, &search, &channels), 0);
    rate = play_allreduce(name, machine, channels) / 1e9;
    *ret_claim = tutti_channels_allreduce(channels, channels->bytes_per_s) / 1e9;
    tutti_channels_destroy(channels);
    return rate;
}

static void what_was_claimed_is_proved_and_played(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(played) / sizeof(played[0]); i++) {
        const char *name = played[i].machine;
        struct machine machine = open_machine(name);
        double claim, rate = play(name, &machine, TUTTI_PATTERN_RING, &claim);

        print_message("%-16.16s rings %6.1f of %6.1f GB/s", name, rate, claim);
        if (rate < played[i].ring * claim || rate > claim * 1.03)
            fail_msg("%s: rings carry %g GB/s, %g was claimed", name, rate, claim);
        rate = play(name, &machine, TUTTI_PATTERN_TREE, &claim);
        print_message(", trees %6.1f of %6.1f\n", rate, claim);
        if (rate < played[i].tree * claim || rate > claim * 1.03)
            fail_msg("%s: trees carry %g GB/s, %g was claimed", name, rate, claim);
        close_machine(&machine);
    }
}

/* Rings through all hosts of a cluster, which go from host to host by the ports of their channels.
 * If data also crosses NVLinks on its way to a port, hops that share links end at different times,
 * and the rings reach three quarters of the claim. */
static void rings_of_clusters_use_the_ports_of_their_channels(void **state)
{
    static const struct {
        const char *line;
        double least; /* part of the claim */
    } clusters[] = {
        {"2 hosts: 8 gpus h100 nvswitch, 8 nics 400G, 2 cpus", 0.97},
        {"4 hosts: 8 gpus h100 nvswitch, 8 nics 400G, 2 cpus", 0.97},
        {"3 hosts: 8 gpus h100 nvswitch 18, 8 nics 400G rails, 2 cpus, 8 switches", 0.72},
        {"4 hosts: 8 gpus a100 nvswitch 12, 8 nics 200G, 2 cpus rome nodes 4, 4 switches", 0.74},
        {"3 hosts: 4 gpus a100 mesh 4, 1 nic 100G ports 2, 2 cpus milan cores 2", 0.97},
        {"2 hosts: dgx-2", 0.75}, /* several rings join the same two gpus by different ports */
    };

    (void)state;
    for (size_t i = 0; i < sizeof(clusters) / sizeof(clusters[0]); i++) {
        const struct tutti_search_options search = {.has_peers = true, .nchannels = 16};
        struct machine machine = open_machine(clusters[i].line);
        struct tutti_channels *channels;
        double claim, rate, nranks = machine.graph->count[TUTTI_NODE_GPU];

        assert_int_equal(
            tutti_search(machine.paths, TUTTI_PATTERN_RING, &search, &channels), 0);
        claim = channels->bytes_per_s * nranks / (2 * (nranks - 1)) / 1e9;
        rate = play_allreduce(clusters[i].line, &machine, channels) / 1e9;
        print_message("%-70.70s rings %6.1f of %6.1f GB/s\n", clusters[i].line, rate, claim);
        if (rate < clusters[i].least * claim || rate > claim * 1.03)
            fail_msg("%s: rings carry %g GB/s, %g was claimed", clusters[i].line, rate, claim);
        tutti_channels_destroy(channels);
        close_machine(&machine);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_claimed_is_proved_and_played),
        cmocka_unit_test(rings_of_clusters_use_the_ports_of_their_channels),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
