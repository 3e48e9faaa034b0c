/* SPDX-License-Identifier: Apache-2.0
 * Finds the limits of a process within its machine: its CPU set, and whether it runs in a container
 * or in a virtual machine. */
#include "topology/detect/detect.h"
#include "topology/detect/sysfs.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- CPU sets -------------------------------------------------------------------------------- */

/* Finds the CPUs on which the kernel lets this thread run. Returns false if they are not known. */
static bool read_affinity(struct tutti_cpumask *ret_mask)
{
    cpu_set_t *set = CPU_ALLOC(TUTTI_CPUS);
    size_t size = CPU_ALLOC_SIZE(TUTTI_CPUS);
    bool is_known = set != NULL && sched_getaffinity(0, size, set) == 0;

    *ret_mask = (struct tutti_cpumask){{0}};
    for (uint32_t cpu = 0; is_known && cpu < TUTTI_CPUS; cpu++)
        if (CPU_ISSET_S(cpu, size, set))
            tutti_cpumask_add(ret_mask, cpu);
    CPU_FREE(set);
    return is_known;
}

/* Finds a control group's path in /proc/self/cgroup: in the single hierarchy of version 2, or in
 * the hierarchy for CPU sets of version 1. */
static bool find_group(const char *root, const char *hierarchy, char ret_path[TUTTI_SYSFS_BYTES])
{
    char text[TUTTI_SYSFS_BYTES], *line, *rest = NULL;

    if (!tutti_sysfs_read(root, text, "proc/self/cgroup"))
        return false;
    for (line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        char *controllers = strchr(line, ':'), *path;

        if (controllers == NULL || (path = strchr(controllers + 1, ':')) == NULL)
            continue;
        *path++ = '\0';
        if (strcmp(controllers + 1, hierarchy) != 0)
            continue;
        snprintf(ret_path, TUTTI_SYSFS_BYTES, "%s", path);
        return true;
    }
    return false;
}

/* Reads a file of the group, or of the group's nearest ancestor that has this file. The search is
 * needed because a container may see its own group as the root, not under `path`. The call shortens
 * `path`. */
static bool read_group(const char *root, const char *mount, char *path, const char *file,
                       struct tutti_cpumask *ret_mask)
{
    char text[TUTTI_SYSFS_BYTES];

    for (;;) {
        char *slash = strrchr(path, '/');

        if (tutti_sysfs_read(root, text, "%s%s/%s", mount, strcmp(path, "/") == 0 ? "" : path,
                             file) &&
            tutti_cpumask_parse_list(text, ret_mask))
            return true;
        if (*path == '\0' || slash == NULL)
            return false;
        *slash = '\0';
    }
}

/* Finds the CPUs of the process's control group, wherever the system mounts control groups. Returns
 * false if they are not known. */
static bool read_groups(const char *root, struct tutti_cpumask *ret_mask)
{
    static const struct {
        const char *hierarchy, *mount, *file;
    } places[] = {
        {"", "sys/fs/cgroup", "cpuset.cpus.effective"},
        {"", "sys/fs/cgroup/unified", "cpuset.cpus.effective"},
        {"cpuset", "sys/fs/cgroup/cpuset", "cpuset.effective_cpus"},
        {"cpuset", "sys/fs/cgroup/cpuset", "cpuset.cpus"},
        {"cpuset", "dev/cpuset", "cpus"},
    };
    char path[TUTTI_SYSFS_BYTES];

    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        if (find_group(root, places[i].hierarchy, path) &&
            read_group(root, places[i].mount, path, places[i].file, ret_mask))
            return true;
    return false;
}

/* The affinity of the thread is known only on this machine. For another root, all CPUs that are
 * online take its place. */
static void find_cpus(const char *root, struct tutti_confines *confines)
{
    struct tutti_cpumask group;
    char text[TUTTI_SYSFS_BYTES];
    bool is_known = *root == '\0' ? read_affinity(&confines->cpus)
                                  : tutti_sysfs_read(root, text, "sys/devices/system/cpu/online") &&
                                        tutti_cpumask_parse_list(text, &confines->cpus);

    if (read_groups(root, &group)) {
        for (size_t i = 0; is_known && i < TUTTI_CPU_WORDS; i++)
            group.words[i] &= confines->cpus.words[i];
        confines->cpus = group;
        is_known = true;
    }
    confines->ncpus = is_known ? tutti_cpumask_count(&confines->cpus) : 0;
}

/* Lines of /proc/cpuinfo that hold all values of the first processor. */
enum { CPUINFO_LINES = 64 };

/* ---- containers and virtual machines --------------------------------------------------------- */

static bool has_any(const char *text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strstr(text, words[i]) != NULL)
            return true;
    return false;
}

static bool is_in_container(const char *root)
{
    static const char *const signs[] = {".dockerenv", "run/.containerenv",
                                        "run/systemd/container"};
    static const char *const names[] = {"/docker", "/kubepods", "/lxc", "/libpod", "containerd",
                                        "crio-", "/podman"};
    char text[TUTTI_SYSFS_BYTES];

    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++)
        if (tutti_sysfs_exists(root, "%s", signs[i]))
            return true;
    return tutti_sysfs_read(root, text, "proc/self/cgroup") &&
           has_any(text, names, sizeof names / sizeof names[0]);
}

/* Returns true if /proc/cpuinfo lists the flag that hypervisors set. Only the first lines are read:
 * they hold the first processor's flags, and the whole file is long. */
static bool has_hypervisor_flag(const char *root)
{
    char path[TUTTI_SYSFS_BYTES], *line = NULL;
    bool has_flag = false;
    size_t size = 0;
    FILE *file;

    snprintf(path, sizeof path, "%s/proc/cpuinfo", root);
    file = fopen(path, "re");
    if (file == NULL)
        return false;
    for (int i = 0; i < CPUINFO_LINES && !has_flag && getline(&line, &size, file) > 0; i++)
        has_flag = strncmp(line, "flags", 5) == 0 && strstr(line, " hypervisor") != NULL;
    free(line);
    fclose(file);
    return has_flag;
}

/* On other processors than x86, only the firmware's names show whether the machine is virtual.
 * Amazon's bare-metal machines have the same vendor name as its VMs, but "metal" in the product
 * name. */
static bool is_in_vm(const char *root)
{
    static const char *const vendors[] = {"QEMU", "VMware", "innotek", "Xen", "Parallels",
                                          "Alibaba Cloud", "Google", "Amazon EC2"};
    static const char *const products[] = {"Virtual Machine", "KVM"};
    char vendor[TUTTI_SYSFS_BYTES], product[TUTTI_SYSFS_BYTES];
    bool has_product = tutti_sysfs_read(root, product, "sys/class/dmi/id/product_name");

    if (has_hypervisor_flag(root) || tutti_sysfs_exists(root, "sys/hypervisor/type"))
        return true;
    if (has_product && has_any(product, products, sizeof products / sizeof products[0]))
        return true;
    return tutti_sysfs_read(root, vendor, "sys/class/dmi/id/sys_vendor") &&
           has_any(vendor, vendors, sizeof vendors / sizeof vendors[0]) &&
           !(has_product && strstr(product, "metal") != NULL);
}

void tutti_detect_confines(const char *root, struct tutti_confines *ret_confines)
{
    if (root == NULL)
        root = "";
    *ret_confines = (struct tutti_confines){
        .is_container = is_in_container(root), .is_vm = is_in_vm(root),
    };
    find_cpus(root, ret_confines);
}
