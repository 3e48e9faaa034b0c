/* SPDX-License-Identifier: Apache-2.0
 * All machines that others recorded get paths, rings and trees that are as good as before. If NCCL
 * or RCCL reported its choice on a machine, Tutti's choice carries at least as much.
 *
 * TUTTI_TEST_TOPOLOGIES names the folder of recordings. Plans of machines that are not listed are
 * also checked. */
#include "base/result.h"
#include "support/machines.h"
#include "topology/formats/load.h"
#include "topology/recordings.h"

#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* GB/s of all channels together. */
static const struct expected {
    const char *name;
    double ring, tree;             /* within the host */
    double peers_ring, peers_tree; /* with other hosts; NO_NET: it has no port */
} expected[] = {
#define NO_NET -1
#define NO_GPU -2
#include "recorded_plans.h"
};

static bool is_near(double a, double b)
{
    return (isinf(a) && isinf(b)) || fabs(a - b) <= 1e-3 * fabs(b);
}

/* GB/s, checked; NO_NET or NO_GPU where the search says so. */
static double search_one(const char *name, const struct tutti_paths *paths,
                         enum tutti_pattern pattern, bool has_peers)
{
    struct tutti_search_options options = {.has_peers = has_peers};
    struct tutti_channels *channels;
    double rate;

    if (tutti_search(paths, pattern, &options, &channels) != TUTTI_OK) {
        if (strstr(tutti_message_last(), "no network port") != NULL)
            return NO_NET;
        if (strstr(tutti_message_last(), "has no gpus") != NULL)
            return NO_GPU;
        fail_msg("%s: %s", name, tutti_message_last());
    }
    check_channels(name, paths, channels);
    check_taste(name, paths, pattern, options, channels);
    rate = channels->bytes_per_s / 1e9;
    /* Channels of one width lose little against shares of any. */
    if (rate < 0.85 * channels->bound_bytes_per_s / 1e9)
        fail_msg("%s: %s%s: %g GB/s of at most %g", name, tutti_pattern_name(pattern),
                 has_peers ? ", with peers" : "", rate, channels->bound_bytes_per_s / 1e9);
    tutti_channels_destroy(channels);
    return rate;
}

static const struct expected *find_expected(const char *name)
{
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
        if (strcmp(expected[i].name, name) == 0)
            return &expected[i];
    return NULL;
}

/* Excerpts of matrices are refused. */
static bool is_excerpt(const char *path)
{
    struct tutti_inventory *inventory;

    if (tutti_formats_load(path, &inventory) == TUTTI_OK) {
        tutti_inventory_destroy(inventory);
        return false;
    }
    return strstr(path, "/logs/") != NULL &&
           strstr(tutti_message_last(), "give the whole matrix") != NULL;
}

static void check_machine(const char *path, const char *name)
{
    struct machine machine = open_machine(path);
    struct expected found = {
        .name = name,
        .ring = search_one(name, machine.paths, TUTTI_PATTERN_RING, false),
        .tree = search_one(name, machine.paths, TUTTI_PATTERN_TREE, false),
        .peers_ring = search_one(name, machine.paths, TUTTI_PATTERN_RING, true),
        .peers_tree = search_one(name, machine.paths, TUTTI_PATTERN_TREE, true),
    };
    const struct expected *wanted = find_expected(name);

    print_message("    {\"%s\", %.6g, %.6g, %.6g, %.6g},\n", name, found.ring, found.tree,
                  found.peers_ring, found.peers_tree);
    if (wanted != NULL &&
        (!is_near(found.ring, wanted->ring) || !is_near(found.tree, wanted->tree) ||
         !is_near(found.peers_ring, wanted->peers_ring) ||
         !is_near(found.peers_tree, wanted->peers_tree)))
        fail_msg("%s: recorded were ring %g, tree %g, with peers ring %g, tree %g", name,
                 wanted->ring, wanted->tree, wanted->peers_ring, wanted->peers_tree);
    close_machine(&machine);
}

static int compare_names(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_machine(const struct dirent *entry)
{
    return (strstr(entry->d_name, ".xml") != NULL && strstr(entry->d_name, ".graph.") == NULL) ||
           strstr(entry->d_name, ".topo-m.txt") != NULL;
}

static void machines_that_others_recorded_get_rings_and_trees(void **state)
{
    static const char *const folders[] = {"nccl-xml", "hwloc-xml", "logs"};
    size_t count = 0;

    (void)state;
    for (size_t f = 0; f < sizeof(folders) / sizeof(folders[0]); f++) {
        struct dirent **entry;
        char path[2048];
        int n;

        snprintf(path, sizeof path, "%s/%s", recordings_root(), folders[f]);
        n = scandir(path, &entry, is_machine, compare_names);
        for (int i = 0; i < n; i++) {
            snprintf(path, sizeof path, "%s/%s/%s", recordings_root(), folders[f],
                     entry[i]->d_name);
            if (!is_excerpt(path))
                check_machine(path, entry[i]->d_name);
            free(entry[i]);
            count++;
        }
        if (n >= 0)
            free(entry);
    }
    if (count > 0)
        return;
    recordings_miss();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(machines_that_others_recorded_get_rings_and_trees),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
