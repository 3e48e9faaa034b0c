/* SPDX-License-Identifier: Apache-2.0
 * Tests detection on the machine that runs the test, and from a file. */
#include "base/result.h"
#include "fake_root.h"
#include "support/inventories.h"
#include "topology/detect/detect.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct tutti_inventory *detect(const struct tutti_detect_options *options)
{
    struct tutti_inventory *inventory = NULL;

    if (tutti_detect(options, &inventory) != TUTTI_OK)
        fail_msg("%s", tutti_message_last());
    return inventory;
}

/* All CPUs of all cpus. */
static struct tutti_cpumask all_cpus(const struct tutti_inventory *inventory)
{
    struct tutti_cpumask all = {{0}}, mask;

    for (uint32_t cpu = inventory->devices[0].first_child; cpu != TUTTI_NO_DEVICE;
         cpu = inventory->devices[cpu].next) {
        if (!tutti_device_has(inventory, cpu, TUTTI_PROPERTY_AFFINITY))
            continue;
        assert_true(tutti_cpumask_parse(
            tutti_device_text(inventory, cpu, TUTTI_PROPERTY_AFFINITY), &mask));
        assert_false(tutti_cpumask_overlaps(&all, &mask));
        for (size_t i = 0; i < TUTTI_CPU_WORDS; i++)
            all.words[i] |= mask.words[i];
    }
    return all;
}

static void this_machine_has_the_cpus_that_this_process_may_use(void **state)
{
    (void)state;
    if (access("/sys/devices/system/cpu", R_OK) != 0) {
        print_message("SKIPPED: /sys is not mounted, so the kernel shows no CPUs\n");
        skip();
    }
    for (int is_cpus_only = 0; is_cpus_only < 2; is_cpus_only++) {
        const struct tutti_detect_options options = {.is_cpus_only = is_cpus_only};
        struct tutti_inventory *inventory = detect(&options);
        struct tutti_cpumask all = all_cpus(inventory);
        struct tutti_confines confines;

        tutti_detect_confines(NULL, &confines);
        assert_true(confines.ncpus > 0);
        for (size_t i = 0; i < TUTTI_CPU_WORDS; i++)
            assert_int_equal(confines.cpus.words[i] & ~all.words[i], 0);
        tutti_inventory_destroy(inventory);
    }
}

/* As in a chroot without /sys. */
static void a_machine_that_shows_no_cpus_is_one_cpu_of_which_nothing_is_known(void **state)
{
    (void)state;
    for (int is_cpus_only = 0; is_cpus_only < 2; is_cpus_only++) {
        struct tutti_detect_options options = {.is_cpus_only = is_cpus_only};
        struct tutti_inventory *inventory;
        struct fake_root root;
        uint32_t cpu;

        fake_root_create(&root);
        options.root = root.path;
        inventory = detect(&options);
        cpu = inventory->devices[0].first_child;
        assert_int_not_equal(cpu, TUTTI_NO_DEVICE);
        assert_int_equal(inventory->devices[cpu].next, TUTTI_NO_DEVICE);
        assert_false(tutti_device_has(inventory, cpu, TUTTI_PROPERTY_AFFINITY));
        tutti_inventory_destroy(inventory);
        fake_root_destroy(&root);
    }
}

static void this_machine_is_the_same_when_asked_again(void **state)
{
    const struct tutti_detect_options options = {.root = ""};
    struct tutti_inventory *first = detect(&options), *second = detect(&options);

    (void)state;
    assert_true(inventories_equal(first, second));
    tutti_inventory_destroy(first);
    tutti_inventory_destroy(second);
}

static void another_root_leaves_the_environment_as_it_was(void **state)
{
    struct tutti_detect_options options;
    struct fake_root root;

    (void)state;
    fake_root_create(&root);
    fake_root_put_cpus(&root);
    options = (struct tutti_detect_options){.root = root.path};
    setenv("HWLOC_THISSYSTEM", "1", 1);
    tutti_inventory_destroy(detect(&options));
    assert_string_equal(getenv("HWLOC_THISSYSTEM"), "1");
    assert_null(getenv("HWLOC_FSROOT"));
    assert_null(getenv("HWLOC_COMPONENTS"));
    unsetenv("HWLOC_THISSYSTEM");
    fake_root_destroy(&root);
}

static void a_file_stands_for_the_machine(void **state)
{
    struct tutti_detect_options options;
    struct tutti_inventory *inventory;
    struct fake_root root;
    char path[128];

    (void)state;
    fake_root_create(&root);
    fake_root_put(&root, "a.xml", "<topology version='2.0'><object type='Machine' cpuset='0xff00'>"
                                  "</object></topology>");
    snprintf(path, sizeof path, "%s/a.xml", root.path);
    options = (struct tutti_detect_options){.given = path};
    inventory = detect(&options);
    assert_int_equal(inventory->count, 2);
    assert_string_equal(tutti_device_text(inventory, 1, TUTTI_PROPERTY_AFFINITY), "0000ff00");
    tutti_inventory_destroy(inventory);
    fake_root_destroy(&root);
    inventory = NULL;
    assert_int_equal(tutti_detect(&options, &inventory), TUTTI_ERR_ARGUMENT);
    assert_null(inventory);
    assert_non_null(strstr(tutti_message_last(), path));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(this_machine_has_the_cpus_that_this_process_may_use),
        cmocka_unit_test(a_machine_that_shows_no_cpus_is_one_cpu_of_which_nothing_is_known),
        cmocka_unit_test(this_machine_is_the_same_when_asked_again),
        cmocka_unit_test(another_root_leaves_the_environment_as_it_was),
        cmocka_unit_test(a_file_stands_for_the_machine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
