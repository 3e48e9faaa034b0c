/* SPDX-License-Identifier: Apache-2.0
 * Detects the limits of a process: control groups of both versions, containers, virtual machines.
 */
#include "fake_root.h"
#include "topology/detect/detect.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void cpus_are_those_of_the_nearest_group_that_says(void **state)
{
    static const struct {
        const char *group, *file, *cpus, *mask;
    } cases[] = {
        {"0::/a/b\n", "sys/fs/cgroup/a/b/cpuset.cpus.effective", "1-2\n", "00000006"},
        {"0::/a/b\n", "sys/fs/cgroup/a/cpuset.cpus.effective", "3\n", "00000008"},
        {"0::/\n", "sys/fs/cgroup/cpuset.cpus.effective", "0\n", "00000001"},
        {"0::/gone\n", "sys/fs/cgroup/cpuset.cpus.effective", "0-7\n", "0000000f"},
        {"9:cpu:/x\n4:cpuset:/job\n0::/\n", "sys/fs/cgroup/cpuset/job/cpuset.effective_cpus",
         "2-3\n", "0000000c"},
        {"4:cpuset:/job\n", "sys/fs/cgroup/cpuset/job/cpuset.cpus", "2\n", "00000004"},
        {"4:cpuset:/job\n", "sys/fs/cgroup/cpuset/job/cpuset.cpus", "all\n", "0000000f"},
        {"broken", "x", "y", "0000000f"},
        {"", "x", "y", "0000000f"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[TUTTI_CPUMASK_BYTES];
        struct tutti_confines confines;
        struct fake_root root;

        fake_root_create(&root);
        fake_root_put_cpus(&root);
        fake_root_put(&root, "proc/self/cgroup", cases[i].group);
        fake_root_put(&root, cases[i].file, cases[i].cpus);
        tutti_detect_confines(root.path, &confines);
        fake_root_destroy(&root);
        tutti_cpumask_write(&confines.cpus, text);
        assert_string_equal(text, cases[i].mask);
        assert_int_equal(confines.ncpus, tutti_cpumask_count(&confines.cpus));
        assert_false(confines.is_container);
        assert_false(confines.is_vm);
    }
}

static void containers_and_virtual_machines_show(void **state)
{
    static const struct {
        const char *file, *text;
        bool is_container, is_vm;
    } cases[] = {
        {".dockerenv", "", true, false},
        {"run/.containerenv", "", true, false},
        {"proc/self/cgroup", "0::/kubepods/burstable/pod1\n", true, false},
        {"proc/self/cgroup", "0::/user.slice\n", false, false},
        {"proc/cpuinfo", "processor : 0\nflags : fpu vme hypervisor lahf_lm\n", false, true},
        {"proc/cpuinfo", "processor : 0\nflags : fpu vme\n", false, false},
        {"sys/class/dmi/id/sys_vendor", "QEMU\n", false, true},
        {"sys/class/dmi/id/sys_vendor", "Dell Inc.\n", false, false},
        {"sys/class/dmi/id/product_name", "Virtual Machine\n", false, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tutti_confines confines;
        struct fake_root root;

        fake_root_create(&root);
        fake_root_put(&root, cases[i].file, cases[i].text);
        tutti_detect_confines(root.path, &confines);
        fake_root_destroy(&root);
        assert_int_equal(confines.is_container, cases[i].is_container);
        assert_int_equal(confines.is_vm, cases[i].is_vm);
        assert_int_equal(confines.ncpus, 0);
    }
}

static void amazons_metal_is_no_virtual_machine(void **state)
{
    static const char *const products[] = {"c6g.large\n", "c6g.metal\n"};

    (void)state;
    for (int is_metal = 0; is_metal < 2; is_metal++) {
        struct tutti_confines confines;
        struct fake_root root;

        fake_root_create(&root);
        fake_root_put(&root, "sys/class/dmi/id/sys_vendor", "Amazon EC2\n");
        fake_root_put(&root, "sys/class/dmi/id/product_name", products[is_metal]);
        tutti_detect_confines(root.path, &confines);
        fake_root_destroy(&root);
        assert_int_equal(confines.is_vm, !is_metal);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cpus_are_those_of_the_nearest_group_that_says),
        cmocka_unit_test(containers_and_virtual_machines_show),
        cmocka_unit_test(amazons_metal_is_no_virtual_machine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
