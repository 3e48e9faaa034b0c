/* SPDX-License-Identifier: Apache-2.0
 * Tests named machines. Each agrees with its maker's data, and survives every form that can hold
 * it. */
#include "base/result.h"
#include "support/inventories.h"
#include "topology/formats/known.h"
#include "topology/formats/line.h"
#include "topology/formats/nccl_xml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct counts {
    uint32_t hosts, gpus, link_ends, c2c, switches, nics, nets, cpus;
};

static struct tutti_inventory *read_known(const struct tutti_known_machine *machine)
{
    struct tutti_inventory *inventory = NULL;

    if (tutti_line_read(machine->name, machine->line, &inventory) != TUTTI_OK)
        fail_msg("%s", tutti_message_last());
    return inventory;
}

static struct counts count(const struct tutti_inventory *inventory)
{
    struct counts counts = {0};

    for (uint32_t device = 0; device != TUTTI_NO_DEVICE;
         device = tutti_inventory_next(inventory, device)) {
        enum tutti_device_kind kind = inventory->devices[device].kind;
        int64_t class = tutti_device_number(inventory, device, TUTTI_PROPERTY_CLASS, 0);

        counts.hosts += kind == TUTTI_DEVICE_CPU &&
                        tutti_device_number(inventory, device, TUTTI_PROPERTY_NUMA, -1) == 0;
        counts.cpus += kind == TUTTI_DEVICE_CPU;
        counts.gpus += kind == TUTTI_DEVICE_GPU;
        counts.nics += kind == TUTTI_DEVICE_NIC;
        counts.nets += kind == TUTTI_DEVICE_NET;
        counts.c2c += kind == TUTTI_DEVICE_C2C;
        counts.switches += kind == TUTTI_DEVICE_PCI && class == 0x060400;
        if (kind == TUTTI_DEVICE_NVLINK)
            counts.link_ends +=
                (uint32_t)tutti_device_number(inventory, device, TUTTI_PROPERTY_LINKS, 0);
    }
    return counts;
}

static void each_has_what_its_makers_say(void **state)
{
    static const struct {
        const char *name;
        struct counts counts;
    } cases[] = {
        {"dgx-1v", {1, 8, 48, 0, 4, 4, 4, 2}},
        {"dgx-2", {1, 16, 96, 0, 12, 8, 8, 2}},
        {"dgx-a100", {1, 8, 96, 0, 4, 8, 8, 8}},
        {"dgx-h100", {1, 8, 144, 0, 8, 8, 8, 2}},
        {"hgx-b200", {1, 8, 144, 0, 8, 0, 0, 2}},
        {"dgx-b200-rails", {4, 32, 576, 0, 32, 32, 32, 8}},
        {"gb200-nvl72", {18, 72, 1296, 72, 0, 72, 72, 36}},
        {"gh200", {1, 1, 0, 1, 0, 1, 1, 1}},
        {"4xa100-pcie", {1, 4, 48, 0, 0, 1, 1, 2}},
        {"2xh100-nvl", {1, 2, 24, 0, 0, 1, 1, 2}},
        {"4xa6000-pcie", {1, 4, 0, 0, 0, 1, 1, 2}},
        {"8xrtx4090-pcie", {1, 8, 0, 0, 0, 1, 1, 2}},
        {"p4d", {1, 8, 96, 0, 4, 4, 4, 2}},
        {"unequal-vms", {2, 5, 0, 0, 0, 2, 2, 2}},
        {"ac922", {1, 4, 24, 0, 0, 1, 2, 2}},
        {"mi250x-node", {1, 8, 52, 0, 0, 4, 4, 4}},
        {"8xmi300x", {1, 8, 56, 0, 8, 8, 8, 2}},
        {"8xmi100-2hives", {1, 8, 24, 0, 4, 1, 1, 2}},
        {"16xmi100-4hives", {1, 16, 48, 0, 12, 4, 4, 2}},
        {"8xmi50-2rings", {1, 8, 16, 0, 4, 2, 2, 2}},
        {"cpu-1socket", {1, 0, 0, 0, 0, 1, 1, 1}},
        {"cpu-2sockets", {1, 0, 0, 0, 0, 1, 1, 2}},
        {"cpu-nps4", {1, 0, 0, 0, 0, 1, 1, 8}},
        {"4xa100-mesh", {1, 4, 48, 0, 0, 4, 4, 4}},
        {"dual-port", {2, 8, 96, 0, 0, 2, 4, 4}},
    };
    size_t n = sizeof cases / sizeof cases[0];

    (void)state;
    for (size_t i = 0; i < n; i++) {
        const struct tutti_known_machine *machine = tutti_known_machine(i);
        struct tutti_inventory *inventory;
        struct counts found;

        assert_non_null(machine);
        assert_string_equal(machine->name, cases[i].name);
        inventory = read_known(machine);
        found = count(inventory);
        if (memcmp(&found, &cases[i].counts, sizeof found) != 0)
            fail_msg("%s: %u hosts, %u gpus, %u link ends, %u c2c, %u switches, %u nics, %u nets, "
                     "%u cpus", machine->name, found.hosts, found.gpus, found.link_ends, found.c2c,
                     found.switches, found.nics, found.nets, found.cpus);
        tutti_inventory_destroy(inventory);
    }
    assert_null(tutti_known_machine(n));
}

/* A GPU has as many links as its maker gave it, or fewer. */
static void no_gpu_has_more_links_than_it_is_made_with(void **state)
{
    static const struct {
        const char *gpu;
        int64_t most;
    } made[] = {
        {"V100", 6}, {"A100", 12}, {"H100", 18}, {"B200", 18}, {"GB200", 18}, {"MI250X", 8},
        {"MI300X", 7}, {"MI100", 3}, {"MI50", 2}, {"RTX A6000", 0}, {"RTX 4090", 0}, {"T4", 0},
        {"GH200", 18},
    };
    const struct tutti_known_machine *machine;

    (void)state;
    for (size_t i = 0; (machine = tutti_known_machine(i)) != NULL; i++) {
        struct tutti_inventory *inventory = read_known(machine);
        uint32_t gpu = TUTTI_NO_DEVICE;

        while ((gpu = tutti_inventory_next_of(inventory, gpu, TUTTI_DEVICE_GPU)) !=
               TUTTI_NO_DEVICE) {
            const char *name = tutti_device_text(inventory, gpu, TUTTI_PROPERTY_MODEL_NAME);
            uint32_t link = inventory->devices[gpu].first_child;
            int64_t links = 0, most = -1;

            for (; link != TUTTI_NO_DEVICE; link = inventory->devices[link].next)
                if (inventory->devices[link].kind == TUTTI_DEVICE_NVLINK)
                    links += tutti_device_number(inventory, link, TUTTI_PROPERTY_LINKS, 0);
            for (size_t j = 0; j < sizeof made / sizeof made[0]; j++)
                if (strcmp(made[j].gpu, name) == 0)
                    most = made[j].most;
            if (links > most)
                fail_msg("%s: a %s has %lld links, not %lld at most", machine->name, name,
                         (long long)links, (long long)most);
        }
        tutti_inventory_destroy(inventory);
    }
}

/* Nothing of it is left to be filled in, either. */
static void each_is_written_as_xml_and_reads_the_same(void **state)
{
    const struct tutti_known_machine *machine;

    (void)state;
    for (size_t i = 0; (machine = tutti_known_machine(i)) != NULL; i++) {
        struct tutti_inventory *inventory = read_known(machine), *back;
        char *text;

        if (tutti_xml_write_nccl(inventory, &text) != TUTTI_OK)
            fail_msg("%s: %s", machine->name, tutti_message_last());
        if (tutti_xml_read_nccl("written", text, strlen(text), TUTTI_SOURCE_FILE, &back) !=
            TUTTI_OK)
            fail_msg("%s: %s\n%s", machine->name, tutti_message_last(), text);
        if (!inventories_equal(inventory, back))
            fail_msg("%s reads otherwise:\n%s", machine->name, text);
        assert_int_equal(tutti_inventory_complete(back), TUTTI_OK);
        if (!inventories_equal(inventory, back))
            fail_msg("%s was not complete:\n%s", machine->name, text);
        free(text);
        tutti_inventory_destroy(inventory);
        tutti_inventory_destroy(back);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_has_what_its_makers_say),
        cmocka_unit_test(no_gpu_has_more_links_than_it_is_made_with),
        cmocka_unit_test(each_is_written_as_xml_and_reads_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
