/* SPDX-License-Identifier: Apache-2.0
 * Tests many hosts as one machine: the exchange of descriptions, and rings and trees over all
 * ranks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/result.h"
#include "topology/cluster/cluster.h"
#include "topology/formats/line.h"

/* A crew of ranks: each on a host that a line describes, using one of its gpus or none. */
struct crew {
    struct tutti_cluster_record *record;
    char **text;
    uint32_t count;
    struct tutti_cluster *cluster;
};

static int64_t busid_of_gpu(const struct tutti_inventory *inventory, uint32_t index)
{
    uint32_t gpu = TUTTI_NO_DEVICE;

    do
        gpu = tutti_inventory_next_of(inventory, gpu, TUTTI_DEVICE_GPU);
    while (index-- > 0);
    return tutti_device_number(inventory, inventory->devices[gpu].parent, TUTTI_PROPERTY_BUSID,
                               0);
}

/* `nranks` more ranks on host number `host`, dealt to its first `ngpus` gpus; 0: to none. */
static void join(struct crew *crew, const char *line, uint64_t host, uint32_t nranks,
                 uint32_t ngpus)
{
    struct tutti_inventory *inventory;

    if (tutti_line_read("line", line, &inventory) != 0)
        fail_msg("%s: %s", line, tutti_message_last());
    for (uint32_t i = 0; i < nranks; i++) {
        int64_t gpu = ngpus == 0 ? TUTTI_CLUSTER_NO_GPU : busid_of_gpu(inventory, i % ngpus);
        uint32_t rank = crew->count++;

        crew->record = realloc(crew->record, crew->count * sizeof *crew->record);
        crew->text = realloc(crew->text, crew->count * sizeof *crew->text);
        assert_int_equal(tutti_cluster_describe(inventory, host, gpu, &crew->record[rank],
                                                &crew->text[rank]), 0);
    }
    tutti_inventory_destroy(inventory);
}

/* Does what the exchange does: it sends records to all ranks, and each text from the first rank
 * that has it. */
static int meet(struct crew *crew)
{
    int rc = tutti_cluster_open(crew->record, crew->count, &crew->cluster);

    for (uint32_t i = 0; rc == 0 && i < crew->cluster->ntexts; i++) {
        const struct tutti_cluster_text *text = &crew->cluster->text[i];

        rc = tutti_cluster_put(crew->cluster, i, crew->text[text->owner],
                               strlen(crew->text[text->owner]));
    }
    return rc == 0 ? tutti_cluster_build(crew->cluster) : rc;
}

static void must_meet(struct crew *crew)
{
    if (meet(crew) != 0)
        fail_msg("%s", tutti_message_last());
}

static void part(struct crew *crew)
{
    for (uint32_t i = 0; i < crew->count; i++)
        free(crew->text[i]);
    free(crew->text);
    free(crew->record);
    tutti_cluster_destroy(crew->cluster);
    *crew = (struct crew){0};
}

/* ---- orders ---------------------------------------------------------------------------------- */

static void check_ring(const struct crew *crew, const uint32_t *ring)
{
    uint8_t *seen = calloc(crew->count, 1);
    uint32_t borders = 0;

    for (uint32_t i = 0; i < crew->count; i++) {
        uint32_t next = ring[(i + 1) % crew->count];

        assert_true(ring[i] < crew->count && !seen[ring[i]]);
        seen[ring[i]] = 1;
        borders += crew->cluster->host[ring[i]] != crew->cluster->host[next];
    }
    /* Each domain is entered and left once; hosts of one domain may alternate. */
    if (crew->cluster->ndomains == crew->cluster->nhosts && crew->cluster->nhosts > 1)
        assert_int_equal(borders, crew->cluster->nhosts);
    free(seen);
}

static void check_tree(const struct crew *crew, const int32_t *tree)
{
    uint32_t nroots = 0;

    for (uint32_t rank = 0; rank < crew->count; rank++) {
        int32_t at = (int32_t)rank;

        nroots += tree[rank] < 0;
        for (uint32_t depth = 0; at >= 0; depth++) {
            assert_true((uint32_t)at < crew->count && depth < crew->count);
            at = tree[at];
        }
    }
    assert_int_equal(nroots, 1);
}

static void check_orders(const struct crew *crew, uint32_t least_channels)
{
    struct tutti_cluster_orders orders;

    assert_int_equal(tutti_cluster_search(crew->cluster, 0, &orders), 0);
    assert_true(orders.places.nrings >= least_channels);
    assert_true(orders.places.ntrees >= least_channels);
    assert_int_equal(orders.places.nranks, crew->count);
    assert_int_equal(orders.places.nnodes, crew->cluster->nhosts);
    for (uint32_t c = 0; c < orders.places.nrings; c++)
        check_ring(crew, orders.places.rings + (size_t)c * crew->count);
    for (uint32_t c = 0; c < orders.places.ntrees; c++)
        check_tree(crew, orders.places.trees + (size_t)c * crew->count);
    tutti_cluster_orders_fini(&orders);
}

#define H100 "8 gpus h100 nvswitch 18, 8 switches gen5, 8 nics 400G gen5 rails, 2 cpus sapphire"
#define PCIE "4 gpus a6000 pcie, 2 cpus rome, 1 nics 100G"
#define CPUS "2 cpus rome, 1 nics 100G"

static void equal_hosts_are_one_kind(void **state)
{
    struct crew crew = {0};

    (void)state;
    for (uint64_t host = 0; host < 5; host++)
        join(&crew, H100, 1000 + host, 8, 8);
    must_meet(&crew);
    assert_int_equal(crew.cluster->nhosts, 5);
    assert_int_equal(crew.cluster->ndomains, 5);
    assert_int_equal(crew.cluster->ntexts, 1);
    assert_int_equal(crew.cluster->nkinds, 1);
    assert_int_equal(crew.cluster->kind[0].ngpus, 8);
    check_orders(&crew, 8);
    part(&crew);
}

static void hosts_of_several_kinds_meet_in_the_channels_that_all_have(void **state)
{
    struct crew crew = {0};

    (void)state;
    join(&crew, H100, 7, 8, 8);
    join(&crew, PCIE, 3, 4, 4);
    join(&crew, CPUS, 9, 3, 0);
    join(&crew, H100, 8, 8, 8);
    join(&crew, H100, 5, 4, 4); /* half of its gpus */
    must_meet(&crew);
    assert_int_equal(crew.cluster->ntexts, 3);
    assert_int_equal(crew.cluster->nkinds, 4);
    assert_int_equal(crew.cluster->kind[2].ngpus, 0); /* no rank there has one */
    check_orders(&crew, 1);
    part(&crew);
}

static void ranks_that_are_dealt_to_hosts_in_turns_are_found_again(void **state)
{
    struct crew crew = {0};

    (void)state;
    for (uint32_t round = 0; round < 4; round++)
        for (uint64_t host = 0; host < 3; host++)
            join(&crew, PCIE, host, 1, 1);
    must_meet(&crew);
    assert_int_equal(crew.cluster->nhosts, 3);
    assert_int_equal(crew.cluster->nkinds, 1);
    assert_int_equal(crew.cluster->kind[0].ngpus, 1);
    check_orders(&crew, 1);
    part(&crew);
}

static void several_ranks_of_a_gpu_and_ranks_without_one_are_taken_along(void **state)
{
    struct crew crew = {0};

    (void)state;
    join(&crew, PCIE, 1, 10, 3);
    join(&crew, PCIE, 1, 2, 0);
    must_meet(&crew);
    assert_int_equal(crew.cluster->nhosts, 1);
    assert_int_equal(crew.cluster->kind[0].ngpus, 3);
    check_orders(&crew, 1);
    part(&crew);
}

static void hosts_behind_one_nvswitch_are_one_domain(void **state)
{
    static const char line[] = "4 gpus gb200 nvswitch 18 fabric, 2 cpus grace, 4 nics 400G";
    struct crew crew = {0};
    struct tutti_cluster_orders orders;

    (void)state;
    for (uint64_t host = 0; host < 18; host++)
        join(&crew, line, host, 4, 4);
    must_meet(&crew);
    assert_int_equal(crew.cluster->nhosts, 18);
    assert_int_equal(crew.cluster->ndomains, 1);
    assert_int_equal(crew.cluster->kind[0].ngpus, 72);
    assert_int_equal(crew.cluster->ntexts, 1);
    assert_int_equal(tutti_cluster_search(crew.cluster, 0, &orders), 0);
    assert_true(orders.ring_bytes_per_s > 720e9);
    tutti_cluster_orders_fini(&orders);
    check_orders(&crew, 1);
    part(&crew);
}

/* The rings leave each host by all of its ports, and the machine has the links of all hosts. */
static void hosts_of_a_small_cluster_are_one_machine(void **state)
{
    static const char *const line = "4 gpus h100 nvswitch, 4 nics 400G, 2 cpus";
    struct crew crew = {.count = 0};
    struct tutti_cluster_orders orders;
    struct tutti_machine *machine;

    (void)state;
    join(&crew, line, 7, 4, 4);
    join(&crew, line, 8, 4, 4);
    must_meet(&crew);
    assert_int_equal(crew.cluster->ndomains, 2);
    if (tutti_cluster_search(crew.cluster, 0, &orders) != 0 ||
        tutti_cluster_machine(crew.cluster, &orders, &machine) != 0)
        fail_msg("%s", tutti_message_last());
    assert_int_equal(orders.places.nnodes, 2);
    assert_true(orders.ring_bytes_per_s > 150e9); /* of four ports with 50 GB/s each */
    assert_true(machine->level[0].bytes_per_s > 5 * machine->level[1].bytes_per_s);
    tutti_machine_destroy(machine);
    tutti_cluster_orders_fini(&orders);
    part(&crew);
}

static void what_ranks_of_one_host_see_is_put_together(void **state)
{
    struct crew crew = {0};

    (void)state;
    join(&crew, "4 gpus a100 mesh 4, 1 cpu rome", 1, 2, 2);
    join(&crew, "4 gpus a100 mesh 4, 1 cpu rome, 1 nics 100G", 1, 4, 4);
    must_meet(&crew);
    assert_int_equal(crew.cluster->ntexts, 2);
    assert_int_equal(crew.cluster->nkinds, 1);
    assert_int_equal(crew.cluster->kind[0].graph->count[TUTTI_NODE_GPU], 4);
    assert_int_equal(crew.cluster->kind[0].graph->count[TUTTI_NODE_NET], 1);
    check_orders(&crew, 1);
    part(&crew);
}

/* 16,384 ranks: a rank takes in its record from each, and the two texts; searches are two. */
static void a_large_cluster_costs_a_record_per_rank_and_a_text_per_kind(void **state)
{
    struct crew crew = {0}, one = {0}, other = {0};
    size_t bytes = 0;

    (void)state;
    join(&one, H100, 0, 8, 8);
    join(&other, PCIE, 0, 4, 4);
    crew.count = 16384;
    crew.record = calloc(crew.count, sizeof *crew.record);
    crew.text = calloc(crew.count, sizeof *crew.text);
    for (uint32_t rank = 0, host = 0; rank < crew.count; host++) {
        const struct crew *from = host % 3 == 0 ? &other : &one;

        for (uint32_t i = 0; i < from->count && rank < crew.count; i++, rank++) {
            crew.record[rank] = from->record[i];
            crew.record[rank].host = 77 + host;
            crew.text[rank] = strdup(from->text[i]);
        }
    }
    must_meet(&crew);
    assert_int_equal(crew.cluster->ntexts, 2);
    assert_true(crew.cluster->nkinds <= 3); /* the last host may not be full */
    for (uint32_t i = 0; i < crew.cluster->ntexts; i++)
        bytes += crew.cluster->text[i].size_bytes;
    assert_true(sizeof(struct tutti_cluster_record) == 48 && bytes < 32768);
    check_orders(&crew, 1);
    part(&crew);
    part(&one);
    part(&other);
}

/* ---- what peers may get wrong ---------------------------------------------------------------- */

static void what_is_not_as_announced_is_refused(void **state)
{
    struct crew crew = {0};

    (void)state;
    join(&crew, PCIE, 1, 2, 2);
    crew.text[0][10] ^= 1;
    assert_int_equal(meet(&crew), TUTTI_ERR_REMOTE);
    assert_non_null(strstr(tutti_message_last(), "differs from its digest"));
    part(&crew);

    join(&crew, PCIE, 1, 2, 2);
    crew.record[1].size_bytes = 0xffffffff;
    assert_int_equal(meet(&crew), TUTTI_ERR_REMOTE);
    assert_non_null(strstr(tutti_message_last(), "rank 1 announces"));
    part(&crew);

    join(&crew, PCIE, 1, 2, 2);
    crew.record[0].gpu = crew.record[1].gpu = 12345;
    assert_int_equal(meet(&crew), TUTTI_ERR_REMOTE);
    assert_non_null(strstr(tutti_message_last(), "which the description of its host"));
    part(&crew);
}

static void equal_hosts_have_equal_texts_whatever_their_names(void **state)
{
    struct tutti_cluster_record record[2];
    char *text[2];

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct tutti_inventory *inventory;
        uint32_t net = TUTTI_NO_DEVICE, gpu = TUTTI_NO_DEVICE;

        assert_int_equal(tutti_line_read("line", "2 gpus a100 pcie, 2 nics 100G ports 2, 1 cpu",
                                         &inventory), 0);
        while ((net = tutti_inventory_next_of(inventory, net, TUTTI_DEVICE_NET)) !=
               TUTTI_NO_DEVICE)
            /* The GUIDs of many makers begin with 0x98 or more and are negative as an int64_t. */
            tutti_device_set_number(inventory, net, TUTTI_PROPERTY_GUID, TUTTI_SOURCE_FILE,
                                    (int64_t)inventory->devices[net].parent * 10 +
                                        (i == 0 ? 0 : INT64_MIN));
        while ((gpu = tutti_inventory_next_of(inventory, gpu, TUTTI_DEVICE_GPU)) !=
               TUTTI_NO_DEVICE)
            tutti_device_set_text(inventory, gpu, TUTTI_PROPERTY_UUID, TUTTI_SOURCE_FILE,
                                  i == 0 ? "one" : "other");
        assert_int_equal(tutti_cluster_describe(inventory, 5 + (uint64_t)i, TUTTI_CLUSTER_NO_GPU,
                                                &record[i], &text[i]), 0);
        tutti_inventory_destroy(inventory);
    }
    assert_string_equal(text[0], text[1]);
    assert_memory_equal(record[0].digest, record[1].digest, TUTTI_CLUSTER_DIGEST);
    free(text[0]);
    free(text[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_hosts_are_one_kind),
        cmocka_unit_test(hosts_of_several_kinds_meet_in_the_channels_that_all_have),
        cmocka_unit_test(ranks_that_are_dealt_to_hosts_in_turns_are_found_again),
        cmocka_unit_test(several_ranks_of_a_gpu_and_ranks_without_one_are_taken_along),
        cmocka_unit_test(hosts_behind_one_nvswitch_are_one_domain),
        cmocka_unit_test(hosts_of_a_small_cluster_are_one_machine),
        cmocka_unit_test(what_ranks_of_one_host_see_is_put_together),
        cmocka_unit_test(a_large_cluster_costs_a_record_per_rank_and_a_text_per_kind),
        cmocka_unit_test(what_is_not_as_announced_is_refused),
        cmocka_unit_test(equal_hosts_have_equal_texts_whatever_their_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
