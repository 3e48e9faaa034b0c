/* SPDX-License-Identifier: Apache-2.0
 * Adds measured rates to the devices of this machine, and writes the devices as a file. */
#include "topo/store.h"

#include "base/result.h"
#include "topo/survey.h"
#include "topology/detect/detect.h"
#include "topology/formats/nccl_xml.h"

#include <stdio.h>
#include <stdlib.h>

/* Returns the rate for the largest footprints. bytes_per_s is that for the smallest. */
static double rate_of_largest(double bytes_per_s, const struct tutti_footprint_rate *beyond)
{
    for (int i = 0; i < TUTTI_MACHINE_FOOTPRINTS && beyond[i].bytes_per_s > 0; i++)
        bytes_per_s = beyond[i].bytes_per_s;
    return bytes_per_s;
}

/* Returns the NUMA node that contains the CPU, or the only NUMA node. Returns TUTTI_NO_DEVICE if
 * there is no such node. */
static uint32_t find_cpu(const struct tutti_inventory *inventory, int cpu)
{
    uint32_t first = tutti_inventory_next_of(inventory, TUTTI_NO_DEVICE, TUTTI_DEVICE_CPU);
    struct tutti_cpumask own = {0}, mask;

    if (tutti_inventory_next_of(inventory, first, TUTTI_DEVICE_CPU) == TUTTI_NO_DEVICE)
        return first;
    if (cpu < 0)
        return TUTTI_NO_DEVICE;
    tutti_cpumask_add(&own, (uint32_t)cpu);
    while (first != TUTTI_NO_DEVICE &&
           (!tutti_cpumask_parse(tutti_device_text(inventory, first, TUTTI_PROPERTY_AFFINITY),
                                 &mask) ||
            !tutti_cpumask_overlaps(&own, &mask)))
        first = tutti_inventory_next_of(inventory, first, TUTTI_DEVICE_CPU);
    return first;
}

/* Sets a measured property. A value of 0 means that there is no measurement. */
static int set_rate(struct tutti_inventory *inventory, uint32_t device,
                    enum tutti_property property, double value)
{
    return value > 0 ? tutti_device_set_real(inventory, device, property, TUTTI_SOURCE_MEASURED,
                                             value)
                     : TUTTI_OK;
}

/* Stores the rates of memory and of messages within the host. */
static int set_memory_rates(struct tutti_inventory *inventory, const struct store_facts *facts)
{
    const struct tutti_machine *machine = facts->machine;
    uint32_t cpu = find_cpu(inventory, facts->cpu);

    if (cpu == TUTTI_NO_DEVICE)
        return TUTTI_OK;
    TUTTI_TRY(set_rate(inventory, cpu, TUTTI_PROPERTY_MEMORY_RATE,
                       rate_of_largest(machine->memory_bytes_per_s, machine->memory_beyond)));
    return set_rate(inventory, cpu, TUTTI_PROPERTY_MESSAGE_RATE,
                    facts->has_memory
                        ? rate_of_largest(machine->level[0].bytes_per_s, machine->level[0].beyond)
                        : 0);
}

/* Stores the rate and the latency of the network, if there is only one port. With several ports,
 * the port that the sockets used is not known. */
static int set_network_rates(struct tutti_inventory *inventory, const struct store_facts *facts)
{
    const struct tutti_rate *rate = &facts->machine->level[2];
    uint32_t net = tutti_inventory_next_of(inventory, TUTTI_NO_DEVICE, TUTTI_DEVICE_NET);

    if (!facts->has_network || net == TUTTI_NO_DEVICE ||
        tutti_inventory_next_of(inventory, net, TUTTI_DEVICE_NET) != TUTTI_NO_DEVICE)
        return TUTTI_OK;
    TUTTI_TRY(set_rate(inventory, net, TUTTI_PROPERTY_MEASURED,
                       rate_of_largest(rate->bytes_per_s, rate->beyond)));
    return set_rate(inventory, net, TUTTI_PROPERTY_LATENCY,
                    (rate->latency_s + rate->overhead_s) * 1e6);
}

int store_measured(const char *file, const struct store_facts *facts)
{
    struct tutti_inventory *inventory;
    char *text = NULL;
    int status = EXIT_FAILURE;

    if (tutti_detect(&(struct tutti_detect_options){0}, &inventory) != TUTTI_OK) {
        fprintf(stderr, "tutti-topo: %s\n", tutti_message_last());
        return EXIT_FAILURE;
    }
    if (set_memory_rates(inventory, facts) == TUTTI_OK &&
        set_network_rates(inventory, facts) == TUTTI_OK &&
        tutti_xml_write_nccl(inventory, &text) == TUTTI_OK)
        status = survey_write(file, text);
    else
        fprintf(stderr, "tutti-topo: %s\n", tutti_message_last());
    free(text);
    tutti_inventory_destroy(inventory);
    return status;
}
