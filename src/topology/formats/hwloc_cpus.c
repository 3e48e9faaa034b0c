/* SPDX-License-Identifier: Apache-2.0
 * Adds the cpus of hwloc's XML to an inventory. A cpu stands for a NUMA node with its CPUs, package
 * and caches. */
#include "base/result.h"
#include "topology/formats/hwloc_build.h"
#include "topology/inventory/cpu_mask.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The owner of each CPU: the object whose cpu (the device of the inventory) gets the CPU. */
struct owners {
    uint32_t of_cpu[TUTTI_CPUS]; /* the object; TUTTI_NO_OBJECT: none */
    enum tutti_hwloc_kind kind;  /* kind of the objects that become cpus */
};

/* An object that may become a cpu, and the number of CPUs that it claims. */
struct candidate {
    uint32_t object, ncpus;
};

/* Reads the CPUs of an object. Returns false if they are not given. */
static bool cpus_of(const struct tutti_hwloc *hwloc, uint32_t object,
                    struct tutti_cpumask *ret_mask)
{
    const char *text = hwloc->objects[object].cpuset;

    return text != NULL && tutti_cpumask_parse(text, ret_mask);
}

/* Visits each CPU of a mask, in ascending order. */
#define FOR_EACH_CPU(cpu, mask)                                          \
    for (uint32_t cpu = tutti_cpumask_next(mask, 0); cpu < TUTTI_CPUS; \
         cpu = tutti_cpumask_next(mask, cpu + 1))

/* ---- owners of CPUs -------------------------------------------------------------------------- */

/* Returns true if there is an object of this kind. */
static bool has_kind(const struct tutti_hwloc *hwloc, enum tutti_hwloc_kind kind)
{
    for (uint32_t i = 0; i < hwloc->nobjects; i++)
        if (hwloc->objects[i].kind == kind)
            return true;
    return false;
}

/* Sorts candidates by their number of CPUs, fewest first, and equal ones by their place in the
 * text. */
static int compare_candidates(const void *a, const void *b)
{
    const struct candidate *left = a, *right = b;

    if (left->ncpus != right->ncpus)
        return left->ncpus < right->ncpus ? -1 : 1;
    return left->object < right->object ? -1 : left->object > right->object;
}

/* Nodes of other memory (of GPUs, CXL devices, high-bandwidth memory) list the CPUs next to them as
 * their own, so several nodes may claim a CPU. The node that claims the fewest CPUs owns it. */
static int find_owners(struct tutti_hwloc_build *build, struct owners *owners)
{
    const struct tutti_hwloc *hwloc = build->hwloc;
    struct candidate *candidates = malloc(hwloc->nobjects * sizeof *candidates);
    uint32_t count = 0;

    if (candidates == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %u NUMA nodes", hwloc->nobjects);
    for (uint32_t cpu = 0; cpu < TUTTI_CPUS; cpu++)
        owners->of_cpu[cpu] = TUTTI_NO_OBJECT;
    for (uint32_t i = 0; i < hwloc->nobjects; i++) {
        struct tutti_cpumask mask;

        if (hwloc->objects[i].kind == owners->kind)
            candidates[count++] = (struct candidate){
                .object = i, .ncpus = cpus_of(hwloc, i, &mask) ? tutti_cpumask_count(&mask) : 0};
    }
    qsort(candidates, count, sizeof *candidates, compare_candidates);
    for (uint32_t i = 0; i < count; i++) {
        struct tutti_cpumask mask;

        if (candidates[i].ncpus == 0 || !cpus_of(hwloc, candidates[i].object, &mask))
            continue;
        FOR_EACH_CPU(cpu, &mask)
            if (owners->of_cpu[cpu] == TUTTI_NO_OBJECT)
                owners->of_cpu[cpu] = candidates[i].object;
    }
    free(candidates);
    return TUTTI_OK;
}

/* Returns the object itself if the object owns a CPU or claims none. Else it returns the owner of
 * the first CPU that the object claims. */
static uint32_t owner_of(const struct tutti_hwloc *hwloc, const struct owners *owners,
                         uint32_t object)
{
    struct tutti_cpumask mask;
    uint32_t first;

    if (!cpus_of(hwloc, object, &mask))
        return object;
    FOR_EACH_CPU(cpu, &mask)
        if (owners->of_cpu[cpu] == object)
            return object;
    first = tutti_cpumask_next(&mask, 0);
    return first == TUTTI_CPUS ? object : owners->of_cpu[first];
}

/* ---- properties of cpus ---------------------------------------------------------------------- */

/* Returns the package of an object that becomes a cpu; TUTTI_NO_OBJECT: none. */
static uint32_t package_of(const struct tutti_hwloc *hwloc, uint32_t object)
{
    uint32_t package = tutti_hwloc_enclosing(hwloc, object, TUTTI_HWLOC_PACKAGE);

    /* In form 1 of the XML the package may be within the node, in form 2 next to the node. */
    for (; package == TUTTI_NO_OBJECT && object != TUTTI_NO_OBJECT;
         object = hwloc->objects[object].parent)
        for (uint32_t i = object; i < hwloc->objects[object].end; i++)
            if (hwloc->objects[i].kind == TUTTI_HWLOC_PACKAGE)
                return i;
    return package;
}

/* Returns an info of the package, or else of the machine; NULL: none. */
static const char *info_of_cpu(const struct tutti_hwloc *hwloc, uint32_t package, const char *name)
{
    const char *value = package == TUTTI_NO_OBJECT ? NULL : tutti_hwloc_info(hwloc, package, name);

    return value != NULL ? value : tutti_hwloc_machine_info(hwloc, name);
}

/* Returns the architecture in NCCL's terms; NULL: not known. Shortened exports may lack the info
 * "Architecture", so the vendor or the model may have to show it. */
static const char *architecture(const struct tutti_hwloc *hwloc, uint32_t package)
{
    const char *text = tutti_hwloc_machine_info(hwloc, "Architecture");
    const char *model = info_of_cpu(hwloc, package, "CPUModel");

    if (text != NULL)
        return strcmp(text, "aarch64") == 0     ? "arm64"
               : strncmp(text, "ppc64", 5) == 0 ? "ppc64"
               : strcmp(text, "amd64") == 0     ? "x86_64"
                                                : text;
    if (info_of_cpu(hwloc, package, "CPUVendor") != NULL)
        return "x86_64";
    if (info_of_cpu(hwloc, package, "CPUImplementer") != NULL)
        return "arm64";
    return model != NULL && strncmp(model, "POWER", 5) == 0 ? "ppc64" : NULL;
}

/* Sets a text without its trailing blanks, if there is one. */
static int set_trimmed_text(struct tutti_hwloc_build *build, uint32_t device,
                            enum tutti_property property, const char *text)
{
    char trimmed[256];
    size_t length;

    if (text == NULL || *text == '\0')
        return TUTTI_OK;
    length = (size_t)snprintf(trimmed, sizeof trimmed, "%s", text);
    if (length >= sizeof trimmed)
        length = sizeof trimmed - 1;
    while (length > 0 && trimmed[length - 1] == ' ')
        trimmed[--length] = '\0';
    return tutti_device_set_text(build->inventory, device, property, build->source, trimmed);
}

/* Sets a number from a text; a text that is not a number of at most 9 digits is ignored. */
static int set_number(struct tutti_hwloc_build *build, uint32_t device,
                      enum tutti_property property, const char *text)
{
    if (text == NULL || *text == '\0' || strlen(text) > 9 ||
        text[strspn(text, "0123456789")] != '\0')
        return TUTTI_OK;
    return tutti_device_set_number(build->inventory, device, property, build->source, atoi(text));
}

/* Adds the cpu of an object. `nth` is its number if the object has none. */
static int add_cpu(struct tutti_hwloc_build *build, uint32_t object, uint32_t nth)
{
    const struct tutti_hwloc *hwloc = build->hwloc;
    const struct tutti_hwloc_object *node = &hwloc->objects[object];
    uint32_t package = package_of(hwloc, object), cpu;
    bool is_numbered = node->kind == TUTTI_HWLOC_NUMA && node->os_index >= 0;
    int64_t package_index = package == TUTTI_NO_OBJECT ? -1 : hwloc->objects[package].os_index;
    struct tutti_cpumask mask;

    TUTTI_TRY(tutti_inventory_add(build->inventory, 0, TUTTI_DEVICE_CPU, build->source, &cpu));
    build->device_of[object] = cpu;
    TUTTI_TRY(tutti_device_set_number(build->inventory, cpu, TUTTI_PROPERTY_NUMA,
                                      is_numbered ? build->source : TUTTI_SOURCE_ASSUMED,
                                      is_numbered ? node->os_index : (int64_t)nth));
    if (package_index >= 0)
        TUTTI_TRY(tutti_device_set_number(build->inventory, cpu, TUTTI_PROPERTY_PACKAGE,
                                          build->source, package_index));
    if (cpus_of(hwloc, object, &mask) && tutti_cpumask_count(&mask) > 0)
        TUTTI_TRY(tutti_device_set_text(build->inventory, cpu, TUTTI_PROPERTY_AFFINITY,
                                        build->source, node->cpuset));
    TUTTI_TRY(set_trimmed_text(build, cpu, TUTTI_PROPERTY_MODEL_NAME,
                               info_of_cpu(hwloc, package, "CPUModel")));
    TUTTI_TRY(set_trimmed_text(build, cpu, TUTTI_PROPERTY_CPU_ARCH, architecture(hwloc, package)));
    TUTTI_TRY(set_trimmed_text(build, cpu, TUTTI_PROPERTY_CPU_VENDOR,
                               info_of_cpu(hwloc, package, "CPUVendor")));
    TUTTI_TRY(set_number(build, cpu, TUTTI_PROPERTY_CPU_FAMILY,
                         info_of_cpu(hwloc, package, "CPUFamilyNumber")));
    return set_number(build, cpu, TUTTI_PROPERTY_CPU_MODEL,
                      info_of_cpu(hwloc, package, "CPUModelNumber"));
}

/* ---- caches ---------------------------------------------------------------------------------- */

/* Some CPUs of an owner share this last-level cache. */
struct cache_use {
    uint32_t owner, cache; /* objects */
};

static int compare_uses(const void *a, const void *b)
{
    const struct cache_use *left = a, *right = b;

    if (left->owner != right->owner)
        return left->owner < right->owner ? -1 : 1;
    return left->cache < right->cache ? -1 : left->cache > right->cache;
}

/* Lists which owner's CPUs use which last-level cache, ordered by owner. Each CPU has one such
 * cache, so there are at most TUTTI_CPUS entries. */
static uint32_t find_cache_uses(const struct tutti_hwloc *hwloc, const struct owners *owners,
                                struct cache_use uses[TUTTI_CPUS])
{
    struct tutti_cpumask taken = {{0}}, mask;
    uint32_t level = 0, count = 0;

    for (uint32_t i = 0; i < hwloc->nobjects; i++)
        if (hwloc->objects[i].level > level)
            level = hwloc->objects[i].level;
    for (uint32_t i = 0; i < hwloc->nobjects; i++) {
        uint32_t first = count;

        if (hwloc->objects[i].kind != TUTTI_HWLOC_CACHE || hwloc->objects[i].level != level ||
            !cpus_of(hwloc, i, &mask) || tutti_cpumask_overlaps(&mask, &taken))
            continue;
        FOR_EACH_CPU(cpu, &mask) {
            uint32_t owner = owners->of_cpu[cpu];
            bool is_first_use = owner != TUTTI_NO_OBJECT;

            for (uint32_t j = first; is_first_use && j < count; j++)
                is_first_use = uses[j].owner != owner;
            if (is_first_use)
                uses[count++] = (struct cache_use){.owner = owner, .cache = i};
        }
        for (uint32_t word = 0; word < TUTTI_CPU_WORDS; word++)
            taken.words[word] |= mask.words[word];
    }
    qsort(uses, count, sizeof *uses, compare_uses);
    return count;
}

/* Sets the caches of the cpu of one owner, which `count` entries list. */
static int set_caches(struct tutti_hwloc_build *build, const struct cache_use *uses,
                      uint32_t count)
{
    const struct tutti_hwloc_object *objects = build->hwloc->objects;
    size_t length = 0, used = 0;
    char *text;
    int rc;

    for (uint32_t i = 0; i < count; i++)
        length += strlen(objects[uses[i].cache].cpuset) + 1;
    text = malloc(length);
    if (text == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %u caches", count);
    for (uint32_t i = 0; i < count; i++)
        used += (size_t)sprintf(text + used, i == 0 ? "%s" : ";%s",
                                objects[uses[i].cache].cpuset);
    rc = tutti_device_set_text(build->inventory, build->device_of[uses[0].owner],
                               TUTTI_PROPERTY_CACHES, build->source, text);
    free(text);
    return rc;
}

/* Sets the caches of all cpus. */
static int add_caches(struct tutti_hwloc_build *build, const struct owners *owners)
{
    struct cache_use *uses = malloc(TUTTI_CPUS * sizeof *uses);
    uint32_t count;
    int rc = TUTTI_OK;

    if (uses == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for caches of %u CPUs", TUTTI_CPUS);
    count = find_cache_uses(build->hwloc, owners, uses);
    for (uint32_t i = 0, next; rc == TUTTI_OK && i < count; i = next) {
        for (next = i + 1; next < count && uses[next].owner == uses[i].owner; )
            next++;
        rc = set_caches(build, uses + i, next - i);
    }
    free(uses);
    return rc;
}

/* ---- together -------------------------------------------------------------------------------- */

/* Adds a cpu for each object that owns CPUs. Each other object of the kind stands for the cpu of
 * its owner. */
static int add_owners(struct tutti_hwloc_build *build, struct owners *owners)
{
    const struct tutti_hwloc *hwloc = build->hwloc;
    uint32_t count = 0;

    TUTTI_TRY(find_owners(build, owners));
    for (uint32_t i = 0; i < hwloc->nobjects; i++)
        if (hwloc->objects[i].kind == owners->kind && owner_of(hwloc, owners, i) == i)
            TUTTI_TRY(add_cpu(build, i, count++));
    for (uint32_t i = 0; i < hwloc->nobjects; i++)
        if (hwloc->objects[i].kind == owners->kind)
            build->device_of[i] = build->device_of[owner_of(hwloc, owners, i)];
    return add_caches(build, owners);
}

int tutti_hwloc_add_cpus(struct tutti_hwloc_build *build)
{
    struct owners *owners = malloc(sizeof *owners);
    int rc;

    if (owners == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for owners of CPUs");
    owners->kind = has_kind(build->hwloc, TUTTI_HWLOC_NUMA)      ? TUTTI_HWLOC_NUMA
                   : has_kind(build->hwloc, TUTTI_HWLOC_PACKAGE) ? TUTTI_HWLOC_PACKAGE
                                                                 : TUTTI_HWLOC_MACHINE;
    rc = add_owners(build, owners);
    free(owners);
    return rc;
}

/* Returns the first cpu within an object that has CPUs, or the first cpu at all if none has CPUs.
 * *ret_is_only is false if there are several such cpus. TUTTI_NO_DEVICE: no cpu is within it. */
static uint32_t first_cpu_within(const struct tutti_hwloc_build *build, uint32_t object,
                                 bool *ret_is_only)
{
    const struct tutti_inventory *inventory = build->inventory;
    uint32_t found = TUTTI_NO_DEVICE;
    bool found_cpus = false;

    *ret_is_only = true;
    for (uint32_t i = object; i < build->hwloc->objects[object].end; i++) {
        uint32_t device = build->device_of[i];
        bool has_cpus;

        if (device == TUTTI_NO_DEVICE || device == found ||
            build->hwloc->objects[i].kind >= TUTTI_HWLOC_BRIDGE)
            continue;
        has_cpus = tutti_device_has(inventory, device, TUTTI_PROPERTY_AFFINITY);
        if (found != TUTTI_NO_DEVICE && has_cpus == found_cpus) {
            *ret_is_only = false;
        } else if (found == TUTTI_NO_DEVICE || has_cpus) {
            *ret_is_only = true;
            found = device;
            found_cpus = has_cpus;
        }
    }
    return found;
}

uint32_t tutti_hwloc_home(struct tutti_hwloc_build *build, uint32_t object, bool *ret_is_sure)
{
    const struct tutti_hwloc_object *objects = build->hwloc->objects;
    uint32_t at = object;

    /* The machine always has a cpu within it, so the loop ends. Objects below a node are close to
     * that node only. */
    for (; build->home_of[at] == TUTTI_NO_DEVICE; at = objects[at].parent) {
        build->is_sure[at] = true;
        build->home_of[at] = build->device_of[at] != TUTTI_NO_DEVICE
                                 ? build->device_of[at]
                                 : first_cpu_within(build, at, &build->is_sure[at]);
        if (build->home_of[at] != TUTTI_NO_DEVICE)
            break;
    }
    for (uint32_t below = object; below != at; below = objects[below].parent) {
        build->home_of[below] = build->home_of[at];
        build->is_sure[below] = build->is_sure[at];
    }
    *ret_is_sure = build->is_sure[object];
    return build->home_of[object];
}

void tutti_hwloc_remove_bare_cpus(struct tutti_hwloc_build *build)
{
    struct tutti_inventory *inventory = build->inventory;
    const struct tutti_device *system = &inventory->devices[0];
    uint32_t next;

    for (uint32_t cpu = system->first_child; cpu != TUTTI_NO_DEVICE; cpu = next) {
        next = inventory->devices[cpu].next;
        if (!tutti_device_has(inventory, cpu, TUTTI_PROPERTY_AFFINITY) &&
            inventory->devices[cpu].first_child == TUTTI_NO_DEVICE &&
            system->first_child != system->last_child)
            tutti_inventory_remove(inventory, cpu);
    }
}
