/* SPDX-License-Identifier: Apache-2.0
 * Describes the devices of a host as a line would. It reads the first device of each kind, and
 * assumes that the others are the same. The writer of the line reads it back to verify this. */
#include "topology/formats/line_parts.h"

#include "base/result.h"

#include <stdlib.h>
#include <string.h>

#define MASK_WORDS (TUTTI_LINE_CORES / 32)
#define NICS (TUTTI_LINE_NICS * TUTTI_LINE_NIC_ITEMS)

struct card {
    int64_t dev; /* of the card's first port */
    uint32_t nic;
};

struct find {
    const struct tutti_inventory *inventory;
    struct tutti_line_host *parts;
    uint32_t end; /* the first device after the host's */
    uint32_t cpu[TUTTI_LINE_NODES], ncpus;
    uint32_t switches[TUTTI_LINE_SWITCHES];
    uint32_t gpu[TUTTI_LINE_GPUS];
    struct card cards[NICS];
    uint32_t ncards;
};

#define foreign(...) tutti_note(TUTTI_ERR_ARGUMENT, "no line says that " __VA_ARGS__)

static int64_t number(const struct find *find, uint32_t device, enum tutti_property property)
{
    return tutti_device_number(find->inventory, device, property, 0);
}

static uint32_t parent(const struct find *find, uint32_t device)
{
    return find->inventory->devices[device].parent;
}

static bool is_like(const struct find *find, uint32_t device, enum tutti_property property,
                    const char *text)
{
    return strcmp(tutti_device_text(find->inventory, device, property),
                  text == NULL ? "" : text) == 0;
}

/* ---- cpus ------------------------------------------------------------------------------------ */

/* Counts the CPUs of a mask, up to ';', and how many of them are consecutive from the first on.
 * False if there are none, if the count is no multiple of the run, or if the mask is too long. */
static bool measure_mask(const char *mask, uint32_t *ret_count, uint32_t *ret_run)
{
    size_t length = strcspn(mask, ";"), bits = 0;
    uint32_t count = 0, run = 0;
    bool is_over = false;

    for (size_t i = length; i-- > 0; ) {
        static const char digits[] = "0123456789abcdef";
        const char *digit = strchr(digits, mask[i]);

        for (int bit = 0; digit != NULL && bit < 4; bit++, bits++) {
            bool is_set = ((digit - digits) >> bit & 1) != 0;

            is_over = is_over || (!is_set && count > 0);
            count += is_set;
            run += is_set && !is_over;
        }
    }
    *ret_count = count;
    *ret_run = run;
    return count > 0 && count % run == 0 && bits <= TUTTI_LINE_CORES;
}

static int find_cpus(struct find *find)
{
    const struct tutti_line_cpu_model *model = tutti_line_cpu_models;
    struct tutti_line_cpus *cpus = &find->parts->cpus;
    uint32_t cpu = find->cpu[0], count, run, shared;
    const char *mask = tutti_device_text(find->inventory, cpu, TUTTI_PROPERTY_AFFINITY);
    const char *caches = tutti_device_text(find->inventory, cpu, TUTTI_PROPERTY_CACHES);
    int64_t sockets = number(find, find->cpu[find->ncpus - 1], TUTTI_PROPERTY_PACKAGE) + 1;

    while (model->word != NULL &&
           !(is_like(find, cpu, TUTTI_PROPERTY_MODEL_NAME, model->name) &&
             is_like(find, cpu, TUTTI_PROPERTY_CPU_ARCH, model->arch) &&
             is_like(find, cpu, TUTTI_PROPERTY_CPU_VENDOR, model->vendor)))
        model++;
    if (model->word == NULL)
        return foreign("a cpu is a \"%.40s\"",
                       tutti_device_text(find->inventory, cpu, TUTTI_PROPERTY_MODEL_NAME));
    if (sockets < 1 || find->ncpus % sockets != 0 || !measure_mask(mask, &count, &run))
        return foreign("NUMA nodes differ, or have no CPUs");
    if (*caches != '\0' && !measure_mask(caches, &shared, &run))
        return foreign("a cache has no CPUs");
    cpus->model = model;
    cpus->sockets = (uint32_t)sockets;
    cpus->nodes = find->ncpus / cpus->sockets;
    /* A run in a mask is one thread of each core; every further thread of the cores is another
     * run. */
    cpus->threads = *caches != '\0' ? shared / run : count / run;
    cpus->cores = cpus->nodes * (count / cpus->threads);
    for (; *caches != '\0'; caches += strcspn(caches, ";") + (strchr(caches, ';') != NULL))
        cpus->caches += cpus->nodes;
    return TUTTI_OK;
}

/* ---- the PCI tree ---------------------------------------------------------------------------- */

/* What a line says of a link: nothing where the link is the default one. */
static struct tutti_line_pci pci_of(const struct find *find, uint32_t pci,
                                    struct tutti_line_pci usual)
{
    double speed = tutti_device_real(find->inventory, pci, TUTTI_PROPERTY_LINK_SPEED, 0);
    struct tutti_line_pci found = {
        .lanes = (uint32_t)number(find, pci, TUTTI_PROPERTY_LINK_WIDTH),
    };

    while (found.generation < TUTTI_LINE_GENERATIONS &&
           tutti_line_generation_speed(found.generation) < speed)
        found.generation++;
    if (found.generation == usual.generation)
        found.generation = 0;
    found.has_lanes = found.lanes != usual.lanes;
    return found;
}

static bool is_switch(const struct find *find, uint32_t device)
{
    return find->inventory->devices[device].kind == TUTTI_DEVICE_PCI &&
           number(find, device, TUTTI_PROPERTY_CLASS) >> 8 == 0x0604;
}

static int find_devices(struct find *find)
{
    struct tutti_line_host *parts = find->parts;

    for (uint32_t i = 0; i < TUTTI_LINE_GPUS; i++)
        find->gpu[i] = TUTTI_NO_DEVICE;
    for (uint32_t device = find->cpu[0]; device != find->end;
         device = tutti_inventory_next(find->inventory, device)) {
        const struct tutti_device *that = &find->inventory->devices[device];
        int64_t dev = that->kind == TUTTI_DEVICE_GPU ? number(find, device, TUTTI_PROPERTY_DEV) : 0;

        if (is_switch(find, device) && that->first_child != TUTTI_NO_DEVICE &&
            is_switch(find, that->first_child)) {
            parts->switches.upper++;
        } else if (is_switch(find, device)) {
            if (parts->switches.count == TUTTI_LINE_SWITCHES)
                return foreign("a host has more than %u switches", TUTTI_LINE_SWITCHES);
            find->switches[parts->switches.count++] = device;
        } else if (that->kind == TUTTI_DEVICE_GPU) {
            if (dev < 0 || dev >= TUTTI_LINE_GPUS || find->gpu[dev] != TUTTI_NO_DEVICE)
                return foreign("a host has a GPU with dev %lld", (long long)dev);
            find->gpu[dev] = device;
            parts->gpus.count++;
        } else if (that->kind == TUTTI_DEVICE_NIC && that->first_child != TUTTI_NO_DEVICE) {
            if (find->ncards == NICS)
                return foreign("a host has more than %u NICs", NICS);
            find->cards[find->ncards++] = (struct card){
                number(find, that->first_child, TUTTI_PROPERTY_DEV), device,
            };
        }
    }
    for (uint32_t i = 0; i < parts->gpus.count; i++)
        if (find->gpu[i] == TUTTI_NO_DEVICE)
            return foreign("a host has no GPU with dev %u, but one above", i);
    return TUTTI_OK;
}

/* ---- places ---------------------------------------------------------------------------------- */

/* Reduces a place to the fewest numbers that still deal the devices to the same places. */
static void shorten(struct tutti_line_place *place)
{
    uint32_t n = place->count;

    for (uint32_t fewer = 1; fewer < n; fewer++) {
        uint16_t first[TUTTI_LINE_NICS] = {0};
        bool is_same = true;

        for (uint32_t i = n; i-- > 0; )
            first[tutti_line_deal(i, n, fewer)] = place->number[i];
        for (uint32_t i = 0; i < n && is_same; i++)
            is_same = first[tutti_line_deal(i, n, fewer)] == place->number[i];
        if (!is_same)
            continue;
        memcpy(place->number, first, sizeof first);
        place->count = fewer;
        return;
    }
}

static bool is_dealt(const struct find *find, const uint32_t *parents, uint32_t n)
{
    uint32_t nswitches = find->parts->switches.count;
    uint32_t places = nswitches > 0 ? nswitches : find->ncpus;
    const uint32_t *place = nswitches > 0 ? find->switches : find->cpu;

    for (uint32_t i = 0; i < n; i++)
        if (parents[i] != place[tutti_line_deal(i, n, places)])
            return false;
    return true;
}

/* True if a line can say where the devices are attached. A switch without a GPU has no name. */
static bool has_words(const struct find *find, const uint32_t *parents, uint32_t n)
{
    bool is_named = true;

    for (uint32_t i = 0; i < n && is_named; i++) {
        uint32_t gpu = 0, ngpus = find->parts->gpus.count;

        if (find->inventory->devices[parents[i]].kind == TUTTI_DEVICE_CPU)
            continue;
        while (gpu < ngpus && parents[i] != parent(find, parent(find, find->gpu[gpu])))
            gpu++;
        is_named = gpu < ngpus;
    }
    return is_named || is_dealt(find, parents, n);
}

/* parents: the devices that the devices of an item are attached to. */
static void find_place(const struct find *find, const uint32_t *parents, uint32_t n,
                       struct tutti_line_place *ret_place)
{
    const struct tutti_line_host *parts = find->parts;
    struct tutti_line_place place = {.how = TUTTI_LINE_ON_CPU, .count = n};

    if (is_dealt(find, parents, n))
        return;
    if (find->inventory->devices[parents[0]].kind != TUTTI_DEVICE_CPU)
        place.how = TUTTI_LINE_NEAR_GPU;
    for (uint32_t i = 0; i < n; i++) {
        bool is_near = place.how == TUTTI_LINE_NEAR_GPU;
        uint32_t limit = is_near ? parts->gpus.count : find->ncpus, k = 0;

        while (k + 1 < limit && parents[i] != (is_near ? parent(find, parent(find, find->gpu[k]))
                                                       : find->cpu[k]))
            k++;
        place.number[i] = (uint16_t)k;
    }
    shorten(&place);
    *ret_place = place;
}

/* ---- gpus ------------------------------------------------------------------------------------ */

static int find_gpu_model(const struct find *find, struct tutti_line_gpus *gpus)
{
    const struct tutti_line_gpu_model *model = tutti_line_gpu_models;
    const char *gcn = tutti_device_text(find->inventory, find->gpu[0], TUTTI_PROPERTY_GCN);

    while (model->word != NULL &&
           !is_like(find, find->gpu[0], TUTTI_PROPERTY_MODEL_NAME, model->name))
        model++;
    if (model->word != NULL) {
        gpus->model = model;
        return TUTTI_OK;
    }
    gpus->model = *gcn != '\0' ? &tutti_line_other_amd : &tutti_line_other_nvidia;
    if (*gcn == '\0')
        gpus->sm = (uint32_t)number(find, find->gpu[0], TUTTI_PROPERTY_SM);
    if (strlen(gcn) >= sizeof gpus->gcn || strpbrk(gcn, " ,;#\n") != NULL)
        return foreign("a GPU's gcn is \"%.40s\"", gcn);
    strcpy(gpus->gcn, gcn);
    return TUTTI_OK;
}

static void find_shape(struct tutti_line_gpus *gpus, uint8_t *scratch)
{
    size_t bytes = (size_t)gpus->count * gpus->count, first = 0;

    while (first < bytes && gpus->between[first] == 0)
        first++;
    gpus->hives = 1;
    gpus->links = first < bytes ? gpus->between[first] : gpus->switch_links;
    gpus->shape = gpus->switch_links != 0 ? TUTTI_LINE_NVSWITCH : TUTTI_LINE_PCIE;
    if (first == bytes)
        return;
    for (uint32_t hives = 1; hives < gpus->count; hives++)
        for (int shape = TUTTI_LINE_MESH; shape <= TUTTI_LINE_CUBE; shape++)
            if (tutti_line_shape((enum tutti_line_shape)shape, gpus->count, hives,
                                 (uint8_t)gpus->links, scratch) &&
                memcmp(scratch, gpus->between, bytes) == 0) {
                gpus->hives = hives;
                gpus->shape = (enum tutti_line_shape)shape;
                return;
            }
    gpus->shape = TUTTI_LINE_LIST;
}

static void find_links(const struct find *find, struct tutti_line_gpus *gpus, uint32_t a)
{
    uint32_t link = find->inventory->devices[find->gpu[a]].first_child;

    for (; link != TUTTI_NO_DEVICE; link = find->inventory->devices[link].next) {
        int64_t target, class, links = number(find, link, TUTTI_PROPERTY_LINKS);

        if (find->inventory->devices[link].kind == TUTTI_DEVICE_C2C) {
            gpus->c2c_mb = number(find, link, TUTTI_PROPERTY_BW);
            continue;
        }
        target = number(find, link, TUTTI_PROPERTY_TARGET);
        class = number(find, link, TUTTI_PROPERTY_TCLASS);
        if (class == 0x068000)
            gpus->switch_links = (uint32_t)links;
        if (class == 0x068001)
            gpus->cpu_links = (uint32_t)links;
        for (uint32_t b = 0; b < gpus->count; b++)
            if (number(find, parent(find, find->gpu[b]), TUTTI_PROPERTY_BUSID) == target)
                gpus->between[a * gpus->count + b] = (uint8_t)links;
    }
}

static int find_gpus(struct find *find)
{
    struct tutti_line_gpus *gpus = &find->parts->gpus;
    uint32_t parents[TUTTI_LINE_GPUS];
    uint8_t *scratch;
    bool has_gdr;

    if (gpus->count == 0)
        return TUTTI_OK;
    TUTTI_TRY(find_gpu_model(find, gpus));
    gpus->pci = pci_of(find, parent(find, find->gpu[0]), tutti_line_gpu_pci(gpus));
    gpus->fabric = number(find, find->gpu[0], TUTTI_PROPERTY_FABRIC);
    has_gdr = number(find, find->gpu[0], TUTTI_PROPERTY_GDR) != 0;
    if (has_gdr != tutti_line_gpu_gdr(gpus))
        gpus->gdr = has_gdr ? TUTTI_LINE_YES : TUTTI_LINE_NO;
    gpus->between = calloc(gpus->count, gpus->count);
    scratch = calloc(gpus->count, gpus->count);
    if (gpus->between == NULL || scratch == NULL) {
        free(scratch);
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the links of %u GPUs", gpus->count);
    }
    for (uint32_t i = 0; i < gpus->count; i++) {
        find_links(find, gpus, i);
        parents[i] = parent(find, parent(find, find->gpu[i]));
    }
    find_shape(gpus, scratch);
    free(scratch);
    find_place(find, parents, gpus->count, &gpus->place);
    return TUTTI_OK;
}

/* ---- nics ------------------------------------------------------------------------------------ */

static int by_dev(const void *left, const void *right)
{
    const struct card *a = left, *b = right;

    return a->dev < b->dev ? -1 : a->dev > b->dev;
}

static uint32_t port_count(const struct find *find, uint32_t nic)
{
    uint32_t net = find->inventory->devices[nic].first_child, count = 0;

    for (; net != TUTTI_NO_DEVICE; net = find->inventory->devices[net].next)
        count++;
    return count;
}

static int find_nic_kind(const struct find *find, uint32_t nic, struct tutti_line_nics *nics)
{
    const struct tutti_line_nic_kind *kind = tutti_line_nic_kinds;
    uint32_t net = find->inventory->devices[nic].first_child, pci = parent(find, nic);

    if (find->inventory->devices[pci].kind != TUTTI_DEVICE_PCI)
        return foreign("a NIC is not on a PCI bus");
    while (kind->word != NULL &&
           (number(find, pci, TUTTI_PROPERTY_CLASS) != kind->class ||
            number(find, pci, TUTTI_PROPERTY_PCI_VENDOR) != kind->vendor ||
            !is_like(find, net, TUTTI_PROPERTY_LAYER, kind->layer)))
        kind++;
    if (kind->word == NULL)
        return foreign("a NIC has this class, vendor and layer");
    nics->kind = kind;
    return TUTTI_OK;
}

/* True if two cards belong to one item. */
static bool is_alike(const struct find *find, uint32_t a, uint32_t b)
{
    static const enum tutti_property of_pci[] = {
        TUTTI_PROPERTY_CLASS, TUTTI_PROPERTY_PCI_VENDOR, TUTTI_PROPERTY_PCI_DEVICE,
        TUTTI_PROPERTY_LINK_WIDTH,
    };
    const struct tutti_device *devices = find->inventory->devices;
    uint32_t left = devices[a].parent, right = devices[b].parent;
    uint32_t net_a = devices[a].first_child, net_b = devices[b].first_child;
    double speed_a = tutti_device_real(find->inventory, left, TUTTI_PROPERTY_LINK_SPEED, 0);
    double speed_b = tutti_device_real(find->inventory, right, TUTTI_PROPERTY_LINK_SPEED, 0);

    for (size_t i = 0; i < sizeof of_pci / sizeof of_pci[0]; i++)
        if (number(find, left, of_pci[i]) != number(find, right, of_pci[i]))
            return false;
    return !(speed_a < speed_b || speed_a > speed_b) &&
           devices[devices[left].parent].kind == devices[devices[right].parent].kind &&
           port_count(find, a) == port_count(find, b) &&
           number(find, net_a, TUTTI_PROPERTY_SPEED) == number(find, net_b, TUTTI_PROPERTY_SPEED) &&
           number(find, net_a, TUTTI_PROPERTY_GDR) == number(find, net_b, TUTTI_PROPERTY_GDR) &&
           tutti_device_has(find->inventory, net_a, TUTTI_PROPERTY_RAIL) ==
               tutti_device_has(find->inventory, net_b, TUTTI_PROPERTY_RAIL);
}

static void find_parents(const struct find *find, uint32_t first, uint32_t n,
                         uint32_t *ret_parents)
{
    for (uint32_t i = 0; i < n; i++)
        ret_parents[i] = parent(find, parent(find, find->cards[first + i].nic));
}

/* The number of cards from `first` on that are alike and whose place one item can express. */
static uint32_t count_item(const struct find *find, uint32_t first)
{
    uint32_t parents[TUTTI_LINE_NICS], count = 1;

    while (first + count < find->ncards && count < TUTTI_LINE_NICS &&
           is_alike(find, find->cards[first].nic, find->cards[first + count].nic))
        count++;
    find_parents(find, first, count, parents);
    while (count > 1 && !has_words(find, parents, count))
        count--;
    return count;
}

/* Describes the item that starts at cards[first]. The caller has set its count. */
static int find_item(const struct find *find, uint32_t first, struct tutti_line_nics *nics)
{
    uint32_t nic = find->cards[first].nic, net = find->inventory->devices[nic].first_child;
    uint32_t parents[TUTTI_LINE_NICS];
    bool has_rails, has_gdr;

    TUTTI_TRY(find_nic_kind(find, nic, nics));
    nics->ports = port_count(find, nic);
    nics->mbits = number(find, net, TUTTI_PROPERTY_SPEED);
    nics->pci = pci_of(find, parent(find, nic), tutti_line_nic_pci(nics));
    has_rails = tutti_device_has(find->inventory, net, TUTTI_PROPERTY_RAIL);
    if (has_rails != tutti_line_nic_rails(find->parts, nics))
        nics->rails = has_rails ? TUTTI_LINE_YES : TUTTI_LINE_NO;
    has_gdr = number(find, net, TUTTI_PROPERTY_GDR) != 0;
    if (has_gdr != tutti_line_nic_gdr(nics))
        nics->gdr = has_gdr ? TUTTI_LINE_YES : TUTTI_LINE_NO;
    find_parents(find, first, nics->count, parents);
    find_place(find, parents, nics->count, &nics->place);
    return TUTTI_OK;
}

static int find_nics(struct find *find)
{
    struct tutti_line_host *parts = find->parts;
    uint32_t first = 0;

    qsort(find->cards, find->ncards, sizeof find->cards[0], by_dev);
    while (first < find->ncards) {
        struct tutti_line_nics *nics = &parts->nics[parts->nnics];

        if (parts->nnics++ == TUTTI_LINE_NIC_ITEMS)
            return foreign("a host has more than %u kinds of NICs", TUTTI_LINE_NIC_ITEMS);
        nics->count = count_item(find, first);
        TUTTI_TRY(find_item(find, first, nics));
        first += nics->count;
    }
    return TUTTI_OK;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int find_all(struct find *find)
{
    struct tutti_line_host *parts = find->parts;

    TUTTI_TRY(find_cpus(find));
    TUTTI_TRY(find_devices(find));
    TUTTI_TRY(find_gpus(find));
    if (parts->switches.count > 0)
        parts->switches.pci = pci_of(find, find->switches[0], tutti_line_switch_pci(parts));
    return find_nics(find);
}

int tutti_line_recognise(const struct tutti_inventory *inventory, uint32_t first_cpu,
                         uint32_t ncpus, struct tutti_line_host *ret_parts)
{
    struct tutti_line_host parts = {0};
    struct find *find;
    uint32_t cpu = first_cpu;
    int rc;

    if (ncpus > TUTTI_LINE_NODES)
        return foreign("a host has more than %u NUMA nodes", TUTTI_LINE_NODES);
    find = calloc(1, sizeof *find);
    if (find == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to look at a host");
    find->inventory = inventory;
    find->parts = &parts;
    for (; find->ncpus < ncpus; cpu = inventory->devices[cpu].next)
        find->cpu[find->ncpus++] = cpu;
    find->end = cpu;
    rc = find_all(find);
    free(find);
    if (rc != TUTTI_OK) {
        tutti_line_host_fini(&parts);
        return rc;
    }
    *ret_parts = parts;
    return TUTTI_OK;
}
