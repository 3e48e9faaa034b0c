/* SPDX-License-Identifier: Apache-2.0
 * Finds the home of a set of CPUs in a description of the host. A virtual machine often hides its
 * sockets and caches from the kernel, and the user may describe them. */
#include "topology/home/home.h"

#include "base/result.h"
#include "topology/formats/load.h"
#include "topology/inventory/cpu_mask.h"
#include "topology/inventory/inventory.h"

#include <stdio.h>
#include <string.h>

/* Returns false if the description does not tell the CPUs of the device. */
static bool read_cpus(const struct tutti_inventory *host, uint32_t device,
                      struct tutti_cpumask *ret_cpus)
{
    return tutti_device_has(host, device, TUTTI_PROPERTY_AFFINITY) &&
           tutti_cpumask_parse(tutti_device_text(host, device, TUTTI_PROPERTY_AFFINITY), ret_cpus);
}

static bool contains(const struct tutti_cpumask *all, const struct tutti_cpumask *some)
{
    for (uint32_t cpu = tutti_cpumask_next(some, 0); cpu < TUTTI_CPUS;
         cpu = tutti_cpumask_next(some, cpu + 1))
        if (tutti_cpumask_next(all, cpu) != cpu)
            return false;
    return true;
}

/* Adds the CPUs of the devices whose `property` is `number` to *all. */
static void add_cpus(const struct tutti_inventory *host, enum tutti_property property,
                     int64_t number, struct tutti_cpumask *all)
{
    uint32_t device = TUTTI_NO_DEVICE;
    struct tutti_cpumask own;

    while ((device = tutti_inventory_next_of(host, device, TUTTI_DEVICE_CPU)) != TUTTI_NO_DEVICE)
        if (tutti_device_number(host, device, property, -1) == number &&
            read_cpus(host, device, &own))
            for (uint32_t cpu = tutti_cpumask_next(&own, 0); cpu < TUTTI_CPUS;
                 cpu = tutti_cpumask_next(&own, cpu + 1))
                tutti_cpumask_add(all, cpu);
}

/* Returns the number of the package or memory of `device` if it holds all of `cpus`, and -1 if it
 * does not. Returns `fallback` if the description has no such numbers. */
static int32_t number_of(const struct tutti_inventory *host, uint32_t device,
                         enum tutti_property property, const struct tutti_cpumask *cpus,
                         int32_t fallback)
{
    int64_t number = tutti_device_number(host, device, property, -1);
    struct tutti_cpumask all = {{0}};

    if (number < 0 || number > INT32_MAX)
        return fallback;
    add_cpus(host, property, number, &all);
    return contains(&all, cpus) ? (int32_t)number : -1;
}

/* Returns the first CPU of the last-level cache that holds all of `cpus`; -1: no cache holds all.
 * Returns `fallback` if the description has no caches. */
static int32_t cache_of(const struct tutti_inventory *host, uint32_t device,
                        const struct tutti_cpumask *cpus, int32_t fallback)
{
    const char *at = tutti_device_text(host, device, TUTTI_PROPERTY_CACHES);
    char text[TUTTI_CPUMASK_BYTES];
    struct tutti_cpumask cache;

    if (!tutti_device_has(host, device, TUTTI_PROPERTY_CACHES))
        return fallback;
    for (; *at != '\0'; at += strcspn(at, ";"), at += *at == ';') {
        snprintf(text, sizeof text, "%.*s", (int)strcspn(at, ";"), at);
        if (tutti_cpumask_parse(text, &cache) && contains(&cache, cpus))
            return (int32_t)tutti_cpumask_next(&cache, 0);
    }
    return -1;
}

static bool is_one_host(const struct tutti_inventory *host)
{
    uint32_t device = tutti_inventory_next_of(host, TUTTI_NO_DEVICE, TUTTI_DEVICE_CPU);
    int64_t hash;

    if (device == TUTTI_NO_DEVICE)
        return false;
    hash = tutti_device_number(host, device, TUTTI_PROPERTY_HOST_HASH, 0);
    while ((device = tutti_inventory_next_of(host, device, TUTTI_DEVICE_CPU)) != TUTTI_NO_DEVICE)
        if (tutti_device_number(host, device, TUTTI_PROPERTY_HOST_HASH, 0) != hash)
            return false;
    return true;
}

void tutti_home_describe(const struct tutti_inventory *host, const cpu_set_t *cpus,
                         struct tutti_home *home)
{
    uint32_t device = TUTTI_NO_DEVICE;
    struct tutti_cpumask wanted = {{0}}, own;

    for (uint32_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, cpus))
            tutti_cpumask_add(&wanted, cpu);
    if (!is_one_host(host))
        return;
    while ((device = tutti_inventory_next_of(host, device, TUTTI_DEVICE_CPU)) != TUTTI_NO_DEVICE) {
        if (!read_cpus(host, device, &own) || !tutti_cpumask_overlaps(&own, &wanted))
            continue;
        *home = (struct tutti_home){
            .package = number_of(host, device, TUTTI_PROPERTY_PACKAGE, &wanted, home->package),
            .memory = number_of(host, device, TUTTI_PROPERTY_NUMA, &wanted, home->memory),
            .cache = cache_of(host, device, &wanted, home->cache)};
        return;
    }
}

int tutti_home_load(const char *what, struct tutti_home *home)
{
    struct tutti_inventory *host;
    cpu_set_t cpus;

    TUTTI_TRY(tutti_formats_load(what, &host));
    if (sched_getaffinity(0, sizeof cpus, &cpus) == 0)
        tutti_home_describe(host, &cpus, home);
    tutti_inventory_destroy(host);
    return TUTTI_OK;
}
