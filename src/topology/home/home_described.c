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

/* Returns the number of the NUMA node of `device` if it holds all of `cpus`, and -1 if it does not.
 * Returns `fallback` if the description has no such numbers. */
static int32_t memory_of(const struct tutti_inventory *host, uint32_t device,
                         const struct tutti_cpumask *cpus, int32_t fallback)
{
    int64_t number = tutti_device_number(host, device, TUTTI_PROPERTY_NUMA, -1);
    struct tutti_cpumask all = {{0}};

    if (number < 0 || number > INT32_MAX)
        return fallback;
    add_cpus(host, TUTTI_PROPERTY_NUMA, number, &all);
    return contains(&all, cpus) ? (int32_t)number : -1;
}

/* Does the same for the package. Its first CPU identifies it, as in home.c. */
static int32_t package_of(const struct tutti_inventory *host, uint32_t device,
                          const struct tutti_cpumask *cpus, int32_t fallback)
{
    int64_t number = tutti_device_number(host, device, TUTTI_PROPERTY_PACKAGE, -1);
    struct tutti_cpumask all = {{0}};

    if (number < 0)
        return fallback;
    add_cpus(host, TUTTI_PROPERTY_PACKAGE, number, &all);
    return contains(&all, cpus) ? (int32_t)tutti_cpumask_next(&all, 0) : -1;
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

/* Returns the first device that has some of the CPUs; TUTTI_NO_DEVICE: none, or the description is
 * not that of one host. *ret_wanted is the same set of CPUs, and *ret_own is that of the device. */
static uint32_t find_cpus(const struct tutti_inventory *host, const cpu_set_t *cpus,
                          struct tutti_cpumask *ret_wanted, struct tutti_cpumask *ret_own)
{
    uint32_t device = TUTTI_NO_DEVICE;

    *ret_wanted = (struct tutti_cpumask){{0}};
    for (uint32_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, cpus))
            tutti_cpumask_add(ret_wanted, cpu);
    if (!is_one_host(host))
        return TUTTI_NO_DEVICE;
    while ((device = tutti_inventory_next_of(host, device, TUTTI_DEVICE_CPU)) != TUTTI_NO_DEVICE)
        if (read_cpus(host, device, ret_own) && tutti_cpumask_overlaps(ret_own, ret_wanted))
            return device;
    return TUTTI_NO_DEVICE;
}

void tutti_home_describe(const struct tutti_inventory *host, const cpu_set_t *cpus,
                         struct tutti_home *home)
{
    struct tutti_cpumask wanted, own;
    uint32_t device = find_cpus(host, cpus, &wanted, &own);

    if (device == TUTTI_NO_DEVICE)
        return;
    *home = (struct tutti_home){
        .package = package_of(host, device, &wanted, home->package),
        .memory = memory_of(host, device, &wanted, home->memory),
        .cache = cache_of(host, device, &wanted, home->cache)};
}

/* ---- ports ----------------------------------------------------------------------------------- */

static bool is_below(const struct tutti_inventory *host, uint32_t device, uint32_t above)
{
    while (device != TUTTI_NO_DEVICE && device != above)
        device = host->devices[device].parent;
    return device == above;
}

/* Returns the `skip`th of the fastest ports below a device, and their number in *ret_count. */
static const char *fastest_port(const struct tutti_inventory *host, uint32_t below, uint32_t skip,
                                uint32_t *ret_count)
{
    uint32_t net = TUTTI_NO_DEVICE, count = 0;
    const char *name = NULL;
    int64_t most = 0;

    while ((net = tutti_inventory_next_of(host, net, TUTTI_DEVICE_NET)) != TUTTI_NO_DEVICE) {
        int64_t speed = tutti_device_number(host, net, TUTTI_PROPERTY_SPEED, 0);

        if (!is_below(host, net, below) || !tutti_device_has(host, net, TUTTI_PROPERTY_NET_NAME) ||
            speed < most)
            continue;
        count = speed > most ? 0 : count;
        most = speed;
        if (count++ == skip || count == 1)
            name = tutti_device_text(host, net, TUTTI_PROPERTY_NET_NAME);
    }
    *ret_count = count;
    return name;
}

/* Returns the turn of a rank at `count` ports. Ranks with CPUs of their own take turns in the order
 * of these CPUs. Ranks that run on all CPUs of the device take turns by their numbers, whether
 * neighbors are on one device or ranks are dealt out to devices. */
static uint32_t turn_of(const struct tutti_cpumask *own, const struct tutti_cpumask *wanted,
                        uint32_t rank, uint32_t count)
{
    uint32_t first = tutti_cpumask_next(wanted, 0), before = 0;

    if (tutti_cpumask_count(wanted) == tutti_cpumask_count(own))
        return (rank + rank / count) % count;
    for (uint32_t cpu = tutti_cpumask_next(own, 0); cpu < first;
         cpu = tutti_cpumask_next(own, cpu + 1))
        before++;
    return before / tutti_cpumask_count(wanted) % count;
}

const char *tutti_home_port(const struct tutti_inventory *host, const cpu_set_t *cpus,
                            uint32_t rank)
{
    struct tutti_cpumask wanted, own;
    uint32_t device = find_cpus(host, cpus, &wanted, &own), count = 0;

    if (device == TUTTI_NO_DEVICE || !contains(&own, &wanted))
        return NULL;
    (void)fastest_port(host, device, 0, &count);
    if (count == 0)
        return NULL;
    return fastest_port(host, device, turn_of(&own, &wanted, rank, count), &count);
}

int tutti_home_load(const char *what, uint32_t rank, struct tutti_home *home,
                    char ret_port[TUTTI_HOME_PORT_BYTES])
{
    struct tutti_inventory *host;
    const char *port = NULL;
    cpu_set_t cpus;

    TUTTI_TRY(tutti_formats_load(what, &host));
    if (sched_getaffinity(0, sizeof cpus, &cpus) == 0) {
        tutti_home_describe(host, &cpus, home);
        port = tutti_home_port(host, &cpus, rank);
    }
    snprintf(ret_port, TUTTI_HOME_PORT_BYTES, "%s",
             port != NULL && strlen(port) < TUTTI_HOME_PORT_BYTES ? port : "");
    tutti_inventory_destroy(host);
    return TUTTI_OK;
}
