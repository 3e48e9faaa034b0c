/* SPDX-License-Identifier: Apache-2.0
 * Runs the verbs phase of detection against a simulated libibverbs: rates, ports that are down,
 * devices that cannot be used, and the places of the nets. */
#include "base/param.h"
#include "base/result.h"
#include "support/stderr_text.h"
#include "topology/detect/verbs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define NOTHING_HERE "/nonexistent"

static void use(const char *library, const char *devices)
{
    setenv("TUTTI_IBVERBS_LIBRARY", library, 1);
    setenv("TUTTI_SIM_VERBS", devices, 1);
    setenv("TUTTI_DEBUG", "debug", 1);
    tutti_param_reset();
}

static const char *detect(const char *root, struct tutti_inventory *inventory)
{
    int rc;

    stderr_text_begin();
    rc = tutti_detect_verbs(root, inventory);
    if (rc != TUTTI_OK)
        fail_msg("%s\n%s", tutti_message_last(), stderr_text_end());
    return stderr_text_end();
}

static struct tutti_inventory *detected(const char *devices)
{
    struct tutti_inventory *inventory;

    use(SIM_IBVERBS, devices);
    assert_int_equal(tutti_inventory_create(&inventory), TUTTI_OK);
    detect(NOTHING_HERE, inventory);
    return inventory;
}

static uint32_t nth(const struct tutti_inventory *inventory, enum tutti_device_kind kind,
                    uint32_t n)
{
    uint32_t device = TUTTI_NO_DEVICE;

    do
        device = tutti_inventory_next_of(inventory, device, kind);
    while (n-- > 0 && device != TUTTI_NO_DEVICE);
    return device;
}

static uint32_t count_of(const struct tutti_inventory *inventory, enum tutti_device_kind kind)
{
    uint32_t count = 0;

    while (nth(inventory, kind, count) != TUTTI_NO_DEVICE)
        count++;
    return count;
}

/* An inventory as the kernel's files give it: a card at 0000:3b:00.0 with two ports. */
static struct tutti_inventory *with_card(enum tutti_source source)
{
    struct tutti_inventory *inventory;
    uint32_t cpu, pci, nic, net;

    assert_int_equal(tutti_inventory_create(&inventory), TUTTI_OK);
    tutti_inventory_add(inventory, 0, TUTTI_DEVICE_CPU, source, &cpu);
    tutti_inventory_add(inventory, cpu, TUTTI_DEVICE_PCI, source, &pci);
    tutti_device_set_number(inventory, pci, TUTTI_PROPERTY_BUSID, source, 0x3b000);
    tutti_inventory_add(inventory, pci, TUTTI_DEVICE_NIC, source, &nic);
    for (int port = 1; port <= 2; port++) {
        tutti_inventory_add(inventory, nic, TUTTI_DEVICE_NET, source, &net);
        tutti_device_set_text(inventory, net, TUTTI_PROPERTY_NET_NAME, source, "mlx5_0");
        tutti_device_set_number(inventory, net, TUTTI_PROPERTY_PORT, source, port);
        tutti_device_set_number(inventory, net, TUTTI_PROPERTY_DEV, source, 3 + port);
        tutti_device_set_number(inventory, net, TUTTI_PROPERTY_SPEED, source, 1);
    }
    return inventory;
}

static void speed_times_width_is_the_rate(void **state)
{
    static const struct {
        const char *port;
        int64_t rate_mbits_per_s;
    } cases[] = {
        {"infiniband 1 1", 2500},        {"infiniband 2 1", 10000},  /* SDR */
        {"infiniband 2 2", 20000},       {"infiniband 2 4", 40000},  /* DDR, QDR */
        {"infiniband 2 8", 40000},       {"infiniband 2 16", 56000}, /* FDR-10, FDR */
        {"infiniband 2 32", 100000},     {"infiniband 2 64", 200000}, /* EDR, HDR */
        {"ethernet 1 32", 25000},        {"ethernet 16 64", 100000},
        {"infiniband 2 128", 400000},    {"infiniband 4 128", 800000}, /* NDR */
        {"infiniband 2 256", 800000},    {"infiniband 8 32", 300000},  /* XDR */
        {"infiniband 3 32", 0},          {"infiniband 2 3", 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tutti_inventory *inventory;
        char devices[128];
        uint32_t net;

        snprintf(devices, sizeof devices, "device mlx5_0 port active %s", cases[i].port);
        inventory = detected(devices);
        net = nth(inventory, TUTTI_DEVICE_NET, 0);
        assert_int_not_equal(net, TUTTI_NO_DEVICE);
        if (tutti_device_number(inventory, net, TUTTI_PROPERTY_SPEED, 0) !=
            cases[i].rate_mbits_per_s)
            fail_msg("%s: %ld", cases[i].port,
                     (long)tutti_device_number(inventory, net, TUTTI_PROPERTY_SPEED, 0));
        assert_string_equal(tutti_device_text(inventory, net, TUTTI_PROPERTY_LAYER),
                            cases[i].port[0] == 'e' ? "ethernet" : "infiniband");
        tutti_inventory_destroy(inventory);
    }
}

static void an_old_driver_tells_xdr_as_ndr(void **state)
{
    struct tutti_inventory *inventory = detected("device mlx5_0 old port active infiniband 2 256");

    (void)state;
    assert_int_equal(tutti_device_number(inventory, nth(inventory, TUTTI_DEVICE_NET, 0),
                                         TUTTI_PROPERTY_SPEED, 0), 400000);
    tutti_inventory_destroy(inventory);
}

static void what_the_driver_says_wins_over_the_kernels_files(void **state)
{
    static const enum tutti_source sources[] = {TUTTI_SOURCE_SYSFS, TUTTI_SOURCE_FILE};
    static const int64_t expected[] = {100000, 1};

    (void)state;
    use(SIM_IBVERBS, "device mlx5_0 guid 0x1111 card 0x0c42a10300abcdef qps 131072 "
                     "port active infiniband 2 32 port active ethernet 2 64");
    for (int i = 0; i < 2; i++) {
        struct tutti_inventory *inventory = with_card(sources[i]);
        uint32_t first, second;

        detect(NOTHING_HERE, inventory);
        assert_int_equal(count_of(inventory, TUTTI_DEVICE_NET), 2);
        first = nth(inventory, TUTTI_DEVICE_NET, 0);
        second = nth(inventory, TUTTI_DEVICE_NET, 1);
        assert_int_equal(tutti_device_number(inventory, first, TUTTI_PROPERTY_SPEED, 0),
                         expected[i]);
        assert_int_equal(tutti_device_number(inventory, first, TUTTI_PROPERTY_GUID, 0),
                         0x0c42a10300abcdef);
        assert_int_equal(tutti_device_number(inventory, first, TUTTI_PROPERTY_MAXCONN, 0), 131072);
        assert_string_equal(tutti_device_text(inventory, second, TUTTI_PROPERTY_LAYER), "ethernet");
        assert_int_equal(tutti_device_number(inventory, second, TUTTI_PROPERTY_DEV, 0), 5);
        tutti_inventory_destroy(inventory);
    }
}

static void a_device_without_a_cards_guid_has_its_own(void **state)
{
    struct tutti_inventory *inventory = detected("device rxe0 guid 0x11 port active ethernet 1 1");
    uint32_t net = nth(inventory, TUTTI_DEVICE_NET, 0);

    (void)state;
    assert_int_equal(tutti_device_number(inventory, net, TUTTI_PROPERTY_GUID, 0), 0x11);
    assert_false(tutti_device_has(inventory, net, TUTTI_PROPERTY_MAXCONN));
    /* Of no PCI bus that the kernel tells of: below the cpu. */
    assert_int_equal(inventory->devices[inventory->devices[inventory->devices[net].parent].parent]
                         .kind, TUTTI_DEVICE_CPU);
    tutti_inventory_destroy(inventory);
}

static void what_cannot_be_used_is_taken_out_in_a_line_that_names_it(void **state)
{
    static const struct {
        const char *devices;
        uint32_t nnets, nnics;
        const char *line;
    } cases[] = {
        {"device mlx5_0 port down infiniband 2 32 port active infiniband 2 32", 1, 1,
         "DEBUG port 1 of mlx5_0 is left out: it is down"},
        {"device mlx5_0 port active infiniband 2 32 port init infiniband 2 32", 1, 1,
         "DEBUG port 2 of mlx5_0 is left out: it is initialized, but not active"},
        {"device mlx5_0 port armed infiniband 2 32 port down infiniband 2 32", 0, 0,
         "DEBUG port 1 of mlx5_0 is left out: it is armed"},
        {"device mlx5_0 port active infiniband 2 32 port broken infiniband 2 32", 1, 1,
         "WARN port 2 of RDMA device mlx5_0 is left out: ibv_query_port: Input/output error"},
        {"device mlx5_0 silent", 0, 0,
         "WARN RDMA device mlx5_0 is left out: ibv_query_device: Input/output error"},
        {"device mlx5_0 denied", 0, 0,
         "INFO RDMA device mlx5_0 is left out: it cannot be opened: Permission denied"},
        {"device mlx5_9 denied", 2, 1, "INFO RDMA device mlx5_9 is left out"},
        {"none", 2, 1, "DEBUG no RDMA devices: Function not implemented"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tutti_inventory *inventory = with_card(TUTTI_SOURCE_SYSFS);
        const char *said;

        use(SIM_IBVERBS, cases[i].devices);
        said = detect(NOTHING_HERE, inventory);
        if (count_lines_with(said, cases[i].line) != 1)
            fail_msg("%s\nsaid: %s\nnot:  %s", cases[i].devices, said, cases[i].line);
        assert_int_equal(count_of(inventory, TUTTI_DEVICE_NET), cases[i].nnets);
        assert_int_equal(count_of(inventory, TUTTI_DEVICE_NIC), cases[i].nnics);
        assert_int_equal(count_of(inventory, TUTTI_DEVICE_PCI), 1);
        tutti_inventory_destroy(inventory);
    }
}

static void new_devices_go_where_the_kernel_says(void **state)
{
    static const char *const folders[] = {
        "", "/sys", "/sys/class", "/sys/class/infiniband", "/sys/class/infiniband/mlx5_1",
        "/sys/class/infiniband/mlx5_2",
    };
    struct tutti_inventory *inventory = with_card(TUTTI_SOURCE_SYSFS);
    char root[] = "/tmp/tutti-verbs-XXXXXX", path[256];
    uint32_t pci, nic, net;

    (void)state;
    assert_non_null(mkdtemp(root));
    for (size_t i = 1; i < sizeof folders / sizeof folders[0]; i++) {
        snprintf(path, sizeof path, "%s%s", root, folders[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    snprintf(path, sizeof path, "%s/sys/class/infiniband/mlx5_1/device", root);
    assert_int_equal(symlink("../../../0000:3b:00.0", path), 0);
    snprintf(path, sizeof path, "%s/sys/class/infiniband/mlx5_2/device", root);
    assert_int_equal(symlink("../../../0000:af:00.1", path), 0);
    use(SIM_IBVERBS, "device mlx5_1 port active infiniband 2 64 "
                     "device mlx5_2 port active infiniband 2 64 port active infiniband 2 64 "
                     "device bnxt_re0 port active ethernet 2 32 port active ethernet 2 32");
    for (int run = 0; run < 2; run++)
        detect(root, inventory);
    for (int i = 1; i <= 2; i++) {
        snprintf(path, sizeof path, "%s/sys/class/infiniband/mlx5_%d/device", root, i);
        unlink(path);
    }
    for (size_t i = sizeof folders / sizeof folders[0]; i-- > 0;) {
        snprintf(path, sizeof path, "%s%s", root, folders[i]);
        rmdir(path);
    }
    /* Another device of the known card's address is of its nic. */
    nic = nth(inventory, TUTTI_DEVICE_NIC, 0);
    assert_int_equal(count_of(inventory, TUTTI_DEVICE_NET), 7);
    assert_int_equal(count_of(inventory, TUTTI_DEVICE_NIC), 3);
    net = inventory->devices[nic].last_child;
    assert_string_equal(tutti_device_text(inventory, net, TUTTI_PROPERTY_NET_NAME), "mlx5_1");
    assert_int_equal(tutti_device_number(inventory, net, TUTTI_PROPERTY_DEV, 0), 6);
    pci = tutti_inventory_find_pci(inventory, 0xaf001);
    assert_int_not_equal(pci, TUTTI_NO_DEVICE);
    net = inventory->devices[inventory->devices[pci].first_child].last_child;
    assert_string_equal(tutti_device_text(inventory, net, TUTTI_PROPERTY_NET_NAME), "mlx5_2");
    assert_int_equal(tutti_device_number(inventory, net, TUTTI_PROPERTY_PORT, 0), 2);
    /* Both ports of a device without an address are of one nic. */
    net = nth(inventory, TUTTI_DEVICE_NET, 5);
    assert_string_equal(tutti_device_text(inventory, net, TUTTI_PROPERTY_NET_NAME), "bnxt_re0");
    assert_int_equal(inventory->devices[net].parent,
                     inventory->devices[nth(inventory, TUTTI_DEVICE_NET, 6)].parent);
    tutti_inventory_destroy(inventory);
}

static void a_net_without_a_name_gets_one(void **state)
{
    struct tutti_inventory *inventory = with_card(TUTTI_SOURCE_SYSFS);
    char root[] = "/tmp/tutti-verbs-XXXXXX", path[256];
    uint32_t nic = nth(inventory, TUTTI_DEVICE_NIC, 0), net;

    (void)state;
    assert_int_equal(tutti_inventory_add(inventory, nic, TUTTI_DEVICE_NET, TUTTI_SOURCE_HWLOC,
                                         &net), TUTTI_OK);
    assert_non_null(mkdtemp(root));
    snprintf(path, sizeof path, "mkdir -p %s/sys/class/infiniband/mlx5_1 && ln -s "
             "../0000:3b:00.0 %s/sys/class/infiniband/mlx5_1/device", root, root);
    assert_int_equal(system(path), 0);
    use(SIM_IBVERBS, "device mlx5_1 port active infiniband 2 64");
    detect(root, inventory);
    snprintf(path, sizeof path, "rm -r %s", root);
    assert_int_equal(system(path), 0);
    assert_string_equal(tutti_device_text(inventory, net, TUTTI_PROPERTY_NET_NAME), "mlx5_1");
    assert_int_equal(count_of(inventory, TUTTI_DEVICE_NET), 3);
    tutti_inventory_destroy(inventory);
}

static void without_the_library_nothing_changes_and_one_line_says_so(void **state)
{
    static const char *const libraries[] = {"/nonexistent/libibverbs.so.1", "libm.so.6"};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct tutti_inventory *inventory = with_card(TUTTI_SOURCE_SYSFS);
        const char *said;

        use(libraries[i], "none");
        said = detect(NULL, inventory);
        if (count_lines_with(said, "WARN no libibverbs, so RDMA devices are not asked for") != 1 ||
            count_lines_with(said, "tutti[") != 1)
            fail_msg("said: %s", said);
        assert_int_equal(count_of(inventory, TUTTI_DEVICE_NET), 2);
        tutti_inventory_destroy(inventory);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(speed_times_width_is_the_rate),
        cmocka_unit_test(an_old_driver_tells_xdr_as_ndr),
        cmocka_unit_test(what_the_driver_says_wins_over_the_kernels_files),
        cmocka_unit_test(a_device_without_a_cards_guid_has_its_own),
        cmocka_unit_test(what_cannot_be_used_is_taken_out_in_a_line_that_names_it),
        cmocka_unit_test(new_devices_go_where_the_kernel_says),
        cmocka_unit_test(a_net_without_a_name_gets_one),
        cmocka_unit_test(without_the_library_nothing_changes_and_one_line_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
