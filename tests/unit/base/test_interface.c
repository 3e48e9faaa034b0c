/* SPDX-License-Identifier: Apache-2.0
 * Reads the rates of network interfaces from files. */
#include "base/interface.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char root[64];

static void make(const char *path)
{
    char whole[256];

    snprintf(whole, sizeof whole, "%s%s", root, path);
    assert_int_equal(mkdir(whole, 0700), 0);
}

static void make_root(void)
{
    snprintf(root, sizeof root, "/tmp/tutti-interface-XXXXXX");
    assert_non_null(mkdtemp(root));
    make("/sys");
    make("/sys/class");
    make("/sys/class/net");
}

static void make_interface(const char *name, const char *device, const char *speed)
{
    char path[128], whole[256];
    FILE *file;

    snprintf(path, sizeof path, "/sys/class/net/%s", name);
    make(path);
    if (device != NULL) {
        snprintf(path, sizeof path, "/sys/class/net/%s/%s", name, device);
        make(path);
    }
    if (speed == NULL)
        return;
    snprintf(whole, sizeof whole, "%s/sys/class/net/%s/speed", root, name);
    file = fopen(whole, "w");
    assert_non_null(file);
    fputs(speed, file);
    fclose(file);
}

static void rates_are_what_devices_say(void **state)
{
    static const struct {
        const char *name, *device, *speed;
        uint32_t mbits;
    } cases[] = {
        {"eth0", "device", "10000\n", 10000},     {"eth1", "device", "400000\n", 400000},
        {"bond0", "bonding", "50000\n", 50000},   {"veth1", NULL, "10000\n", 0},
        {"lo", NULL, NULL, 0},                    {"eth2", "device", "-1\n", 0},
        {"eth3", "device", NULL, 0},              {"eth4", "device", "", 0},
        {"eth5", "device", "fast\n", 0},          {"eth6", "device", "99999999999999999999\n", 0},
        {"eth7", "device", "4294967295\n", 0},    {"eth8", "device", "0\n", 0},
    };
    char command[128];

    (void)state;
    make_root();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        make_interface(cases[i].name, cases[i].device, cases[i].speed);
        if (tutti_interface_mbits(root, cases[i].name) != cases[i].mbits)
            fail_msg("%s: %u Mbit/s", cases[i].name, tutti_interface_mbits(root, cases[i].name));
    }
    assert_int_equal(tutti_interface_mbits(root, "absent"), 0);
    assert_int_equal(tutti_interface_mbits(root, "../net/eth0"), 0);
    snprintf(command, sizeof command, "rm -r '%s'", root);
    assert_int_equal(system(command), 0);
}

static void a_port_is_an_interface_or_has_one(void **state)
{
    static const struct {
        const char *port, *interface;
    } cases[] = {
        {"eth0", "eth0"},      {"mlx5_0", "eth0"}, {"mlx5_1", "ib0"},      {"mlx5_2", NULL},
        {"mlx5_3", NULL},      {"eth9", NULL},     {"", NULL},             {"../net/eth0", NULL},
        {"an_interface_with_a_long_name", NULL},
    };
    char command[256], name[TUTTI_INTERFACE_NAME_BYTES];

    (void)state;
    make_root();
    make_interface("eth0", "address", NULL);
    make("/sys/class/infiniband");
    snprintf(command, sizeof command, "cd '%s/sys/class/infiniband' && mkdir -p "
             "mlx5_0/device/net/eth0 mlx5_1/device/net/ib1 mlx5_1/device/net/ib0 "
             "mlx5_2/device/net mlx5_3", root);
    assert_int_equal(system(command), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool is_found = tutti_interface_of_port(root, cases[i].port, name);

        if (is_found != (cases[i].interface != NULL) ||
            (is_found && strcmp(name, cases[i].interface) != 0))
            fail_msg("\"%s\": %s", cases[i].port, is_found ? name : "none");
    }
    snprintf(command, sizeof command, "rm -r '%s'", root);
    assert_int_equal(system(command), 0);
}

static void loopback_has_no_rate(void **state)
{
    (void)state;
    assert_int_equal(tutti_interface_mbits("", "lo"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_are_what_devices_say),
        cmocka_unit_test(a_port_is_an_interface_or_has_one),
        cmocka_unit_test(loopback_has_no_rate),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
