/* SPDX-License-Identifier: Apache-2.0
 * Finds where a thread runs, from /sys/devices/system. For any CPU the kernel lists the CPUs that
 * share its package, memory and cache. If such a list holds all CPUs that a thread may run on, the
 * thread belongs to this package, memory or cache. So a few files are enough for any number of
 * CPUs. */
#include "topology/home/home.h"

#include "base/file.h"
#include "base/result.h"
#include "topology/inventory/cpu_mask.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* LIST_BYTES is long enough for a list of thousands of CPUs without ranges. The kernel lists each
 * of a CPU's caches in a folder of its own, and no CPU has more than MOST_CACHES. */
enum { LIST_BYTES = 16384, MOST_CACHES = 8 };

/* ---- lists of CPUs --------------------------------------------------------------------------- */

/* Parses a list such as "0-3,8". Returns false if the list is empty or invalid, or if a CPU number
 * does not fit in a cpu_set_t. */
static bool parse_list(const char *text, cpu_set_t *ret_cpus)
{
    struct tutti_cpumask mask;
    uint32_t cpu = 0;

    if (!tutti_cpumask_parse_list(text, &mask))
        return false;
    CPU_ZERO(ret_cpus);
    while ((cpu = tutti_cpumask_next(&mask, cpu)) < CPU_SETSIZE)
        CPU_SET(cpu++, ret_cpus);
    return cpu == TUTTI_CPUS && CPU_COUNT(ret_cpus) > 0;
}

/* Returns the first CPU of a set; -1: the set is empty. */
static int first_cpu(const cpu_set_t *cpus)
{
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, cpus))
            return cpu;
    return -1;
}

/* Returns the first CPU of the list in the file if the list holds all of `cpus`; else -1. */
static int32_t shared_by_all(const char *path, const cpu_set_t *cpus)
{
    char *line = malloc(LIST_BYTES);
    cpu_set_t list, both;
    int32_t found = -1;

    if (line != NULL && tutti_file_line(path, line, LIST_BYTES) && parse_list(line, &list)) {
        CPU_AND(&both, &list, cpus);
        if (CPU_EQUAL(&both, cpus))
            found = first_cpu(&list);
    }
    free(line);
    return found;
}

/* ---- package, memory, cache ------------------------------------------------------------------ */

/* Returns the first CPU of the package that holds all of `cpus`, which identifies the package; -1:
 * not known. The second name is that of older kernels. */
static int32_t package_of(const char *root, int cpu, const cpu_set_t *cpus)
{
    static const char *const names[] = {"package_cpus_list", "core_siblings_list"};
    char path[PATH_MAX];
    int32_t found = -1;

    for (size_t i = 0; i < sizeof names / sizeof *names && found < 0; i++) {
        snprintf(path, sizeof path, "%s/sys/devices/system/cpu/cpu%d/topology/%s", root, cpu,
                 names[i]);
        found = shared_by_all(path, cpus);
    }
    return found;
}

/* Returns the number of the NUMA node that holds all of `cpus`; -1: not known. The number comes
 * from a link in the folder of the CPU. */
static int32_t memory_of(const char *root, int cpu, const cpu_set_t *cpus)
{
    char path[PATH_MAX];
    const struct dirent *entry;
    int node = -1;
    DIR *folder;

    snprintf(path, sizeof path, "%s/sys/devices/system/cpu/cpu%d", root, cpu);
    folder = opendir(path);
    if (folder == NULL)
        return -1;
    while (node < 0 && (entry = readdir(folder)) != NULL)
        if (sscanf(entry->d_name, "node%d", &node) != 1)
            node = -1;
    closedir(folder);
    if (node < 0)
        return -1;
    snprintf(path, sizeof path, "%s/sys/devices/system/node/node%d/cpulist", root, node);
    return shared_by_all(path, cpus) < 0 ? -1 : node;
}

/* Returns the first CPU of the last-level cache that all of `cpus` share; -1: not known. The kernel
 * numbers caches from the core outwards, so the highest index is the last level. */
static int32_t cache_of(const char *root, int cpu, const cpu_set_t *cpus)
{
    char path[PATH_MAX];

    for (int index = MOST_CACHES - 1; index >= 0; index--) {
        snprintf(path, sizeof path, "%s/sys/devices/system/cpu/cpu%d/cache/index%d/shared_cpu_list",
                 root, cpu, index);
        if (access(path, F_OK) == 0)
            return shared_by_all(path, cpus);
    }
    return -1;
}

void tutti_home_of_cpus(const char *root, const cpu_set_t *cpus, struct tutti_home *ret_home)
{
    struct tutti_home home = TUTTI_HOME_UNKNOWN;
    int cpu = first_cpu(cpus);

    if (cpu >= 0) {
        home.package = package_of(root, cpu, cpus);
        home.memory = memory_of(root, cpu, cpus);
        home.cache = cache_of(root, cpu, cpus);
    }
    *ret_home = home;
}

void tutti_home_of_thread(struct tutti_home *ret_home)
{
    cpu_set_t cpus;

    if (sched_getaffinity(0, sizeof cpus, &cpus) == 0)
        tutti_home_of_cpus("", &cpus, ret_home);
    else /* the host has more CPUs than a cpu_set_t holds */
        *ret_home = TUTTI_HOME_UNKNOWN;
}

/* ---- homes that the user sets ---------------------------------------------------------------- */

static int refuse_cells(const char *text)
{
    return tutti_fail(TUTTI_ERR_USAGE, "TUTTI_CELLS=%s is none of auto, off, and numbers of cells "
                      "such as 0,0,1,1, at most %d", text, INT32_MAX);
}

int tutti_home_read(const char *text, uint32_t rank, struct tutti_home *ret_home)
{
    uint32_t count = 1, index;
    int32_t own = -1;
    const char *at = text;

    if (strcmp(text, "auto") == 0) {
        tutti_home_of_thread(ret_home);
        return TUTTI_OK;
    }
    if (strcmp(text, "off") == 0) {
        *ret_home = TUTTI_HOME_UNKNOWN;
        return TUTTI_OK;
    }
    for (const char *comma = strchr(text, ','); comma != NULL; comma = strchr(comma + 1, ','))
        count++;
    index = rank % count;
    for (uint32_t i = 0; i < count; i++) {
        unsigned long number;
        char *end;

        if (*at < '0' || *at > '9')
            return refuse_cells(text);
        errno = 0;
        number = strtoul(at, &end, 10);
        if (errno != 0 || number > INT32_MAX || (*end != ',' && *end != '\0'))
            return refuse_cells(text);
        if (i == index)
            own = (int32_t)number;
        at = end + 1;
    }
    *ret_home = (struct tutti_home){own, own, own};
    return TUTTI_OK;
}
