/* SPDX-License-Identifier: Apache-2.0
 * Applies hints to gpus, cpus and ports. */
#include "topology/formats/hints.h"

#include "base/result.h"
#include "topology/formats/line_parts.h"
#include "topology/inventory/products.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SOURCE TUTTI_SOURCE_FILE
#define MOST_GBITS 10000 /* as in a line */

/* How the devices of a hint took it. */
struct outcome {
    uint32_t count;       /* devices that the hint is about */
    uint32_t kept;        /* devices whose value is told and differs, so it stays */
    uint32_t kept_device; /* one of them */
};

static void keep(struct outcome *outcome, uint32_t device)
{
    if (outcome->kept++ == 0)
        outcome->kept_device = device;
}

/* Appends a word to a list for a message. */
static void list_word(char *list, size_t size, const char *word)
{
    size_t used = strlen(list);

    if (used < size)
        snprintf(list + used, size - used, "%s%s", used > 0 ? ", " : "", word);
}

/* ---- gpus ------------------------------------------------------------------------------------ */

static int find_gpu_model(const char *word, const struct tutti_line_gpu_model **ret_model)
{
    char list[TUTTI_MESSAGE_BYTES / 2] = "";

    for (const struct tutti_line_gpu_model *model = tutti_line_gpu_models; model->word != NULL;
         model++) {
        if (strcasecmp(model->word, word) == 0) {
            *ret_model = model;
            return TUTTI_OK;
        }
        list_word(list, sizeof list, model->word);
    }
    return tutti_fail(TUTTI_ERR_ARGUMENT, "--gpu %.40s: no such model; give one of %s", word, list);
}

/* Returns the NVLinks of a gpu. */
static int64_t count_links(const struct tutti_inventory *inventory, uint32_t gpu)
{
    int64_t count = 0;

    for (uint32_t child = inventory->devices[gpu].first_child; child != TUTTI_NO_DEVICE;
         child = inventory->devices[child].next)
        if (inventory->devices[child].kind == TUTTI_DEVICE_NVLINK)
            count += tutti_device_number(inventory, child, TUTTI_PROPERTY_LINKS, 1);
    return count;
}

static int set_gpu(struct tutti_inventory *inventory, uint32_t gpu,
                   const struct tutti_line_gpu_model *model)
{
    if (model->gcn != NULL)
        TUTTI_TRY(tutti_device_set_text(inventory, gpu, TUTTI_PROPERTY_GCN, SOURCE, model->gcn));
    TUTTI_TRY(tutti_device_set_number(inventory, gpu, TUTTI_PROPERTY_SM, SOURCE, model->sm));
    if (tutti_device_has(inventory, gpu, TUTTI_PROPERTY_MODEL_NAME))
        return TUTTI_OK;
    return tutti_device_set_text(inventory, gpu, TUTTI_PROPERTY_MODEL_NAME, SOURCE, model->name);
}

/* Returns true if the inventory tells the architecture of a gpu. *ret_is_same is true if it is that
 * of the model. */
static bool is_gpu_told(const struct tutti_inventory *inventory, uint32_t gpu,
                        const struct tutti_line_gpu_model *model, bool *ret_is_same)
{
    enum tutti_source sm_source, gcn_source;
    int64_t sm = tutti_product_sm(inventory, gpu, &sm_source);
    const char *gcn = tutti_product_gcn(inventory, gpu, &gcn_source);
    const char *own = model->gcn == NULL ? "" : model->gcn;

    if (gcn_source > TUTTI_SOURCE_ASSUMED) {
        gcn += strncmp(gcn, "gfx", 3) == 0 ? 3 : 0;
        own += strncmp(own, "gfx", 3) == 0 ? 3 : 0;
        *ret_is_same = strcmp(gcn, own) == 0;
        return true;
    }
    *ret_is_same = model->gcn == NULL && sm == model->sm;
    return sm_source > TUTTI_SOURCE_ASSUMED;
}

static int apply_gpu(const char *word, struct tutti_inventory *inventory, FILE *notes)
{
    const struct tutti_line_gpu_model *model = NULL;
    struct outcome outcome = {.count = 0};
    uint32_t gpu = TUTTI_NO_DEVICE;
    int64_t links = 0;

    TUTTI_TRY(find_gpu_model(word, &model));
    while ((gpu = tutti_inventory_next_of(inventory, gpu, TUTTI_DEVICE_GPU)) != TUTTI_NO_DEVICE) {
        bool is_same = false;

        outcome.count++;
        if (is_gpu_told(inventory, gpu, model, &is_same)) {
            if (!is_same)
                keep(&outcome, gpu);
            continue;
        }
        TUTTI_TRY(set_gpu(inventory, gpu, model));
        if (count_links(inventory, gpu) > links)
            links = count_links(inventory, gpu);
    }
    if (outcome.count == 0)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "--gpu %s: the machine has no gpus; leave it out",
                          word);
    if (outcome.kept > 0)
        fprintf(notes, "--gpu %s is not used for %u of %u gpus, of which another architecture is "
                "told\n", word, outcome.kept, outcome.count);
    if (model->switch_links > 0 && links > model->switch_links)
        fprintf(notes, "--gpu %s contradicts the %lld NVLinks of a gpu, since it has %u\n", word,
                (long long)links, model->switch_links);
    return TUTTI_OK;
}

/* ---- cpus ------------------------------------------------------------------------------------ */

static int find_cpu_model(const char *word, const struct tutti_line_cpu_model **ret_model)
{
    char list[TUTTI_MESSAGE_BYTES / 2] = "";

    for (const struct tutti_line_cpu_model *model = tutti_line_cpu_models; model->word != NULL;
         model++) {
        if (strcasecmp(model->word, word) == 0) {
            *ret_model = model;
            return TUTTI_OK;
        }
        list_word(list, sizeof list, model->word);
    }
    return tutti_fail(TUTTI_ERR_ARGUMENT, "--cpu %.40s: no such model; give one of %s", word, list);
}

static int set_cpu(struct tutti_inventory *inventory, uint32_t cpu,
                   const struct tutti_line_cpu_model *model)
{
    TUTTI_TRY(tutti_device_set_text(inventory, cpu, TUTTI_PROPERTY_CPU_ARCH, SOURCE, model->arch));
    if (model->vendor == NULL)
        return TUTTI_OK;
    TUTTI_TRY(tutti_device_set_text(inventory, cpu, TUTTI_PROPERTY_CPU_VENDOR, SOURCE,
                                    model->vendor));
    TUTTI_TRY(tutti_device_set_number(inventory, cpu, TUTTI_PROPERTY_CPU_FAMILY, SOURCE,
                                      model->family));
    return tutti_device_set_number(inventory, cpu, TUTTI_PROPERTY_CPU_MODEL, SOURCE, model->model);
}

/* Returns true if the inventory tells the vendor of a CPU, and for Intel's the model too, since
 * their rates differ. *ret_is_same is true if the told values are those of the model. */
static bool is_cpu_told(const struct tutti_inventory *inventory, uint32_t cpu,
                        const struct tutti_line_cpu_model *model, bool *ret_is_same)
{
    const char *arch = tutti_device_text(inventory, cpu, TUTTI_PROPERTY_CPU_ARCH);
    const char *vendor = tutti_device_text(inventory, cpu, TUTTI_PROPERTY_CPU_VENDOR);
    bool is_same_vendor = strcmp(vendor, model->vendor == NULL ? "" : model->vendor) == 0;

    *ret_is_same = *vendor != '\0' ? is_same_vendor : strcmp(arch, model->arch) == 0;
    if (strcmp(vendor, "GenuineIntel") != 0)
        return *vendor != '\0' || (*arch != '\0' && strcmp(arch, "x86_64") != 0);
    *ret_is_same = *ret_is_same && tutti_device_number(inventory, cpu, TUTTI_PROPERTY_CPU_MODEL,
                                                       model->model) == model->model;
    return !is_same_vendor || tutti_device_has(inventory, cpu, TUTTI_PROPERTY_CPU_MODEL);
}

static int apply_cpu(const char *word, struct tutti_inventory *inventory, FILE *notes)
{
    const struct tutti_line_cpu_model *model = NULL;
    struct outcome outcome = {.count = 0};
    uint32_t cpu = TUTTI_NO_DEVICE;

    TUTTI_TRY(find_cpu_model(word, &model));
    while ((cpu = tutti_inventory_next_of(inventory, cpu, TUTTI_DEVICE_CPU)) != TUTTI_NO_DEVICE) {
        bool is_same = false;

        outcome.count++;
        if (!is_cpu_told(inventory, cpu, model, &is_same))
            TUTTI_TRY(set_cpu(inventory, cpu, model));
        else if (!is_same)
            keep(&outcome, cpu);
    }
    if (outcome.kept > 0)
        fprintf(notes, "--cpu %s is not used for %u of %u cpus, of which another model is told\n",
                word, outcome.kept, outcome.count);
    return TUTTI_OK;
}

/* ---- ports ----------------------------------------------------------------------------------- */

/* Reads a rate such as "400G" or "2500M". Returns false if the text is none. */
static bool read_mbits(const char *text, int64_t *ret_mbits)
{
    size_t digits = strspn(text, "0123456789");
    int64_t value = digits > 0 && digits <= 8 ? strtoll(text, NULL, 10) : 0;

    if (value == 0 || (text[digits] != 'G' && text[digits] != 'M') || text[digits + 1] != '\0')
        return false;
    *ret_mbits = value * (text[digits] == 'G' ? 1000 : 1);
    return *ret_mbits <= MOST_GBITS * 1000LL;
}

/* Sets the rate of one port. */
static void set_net(struct tutti_inventory *inventory, uint32_t net, int64_t mbits,
                    struct outcome *outcome)
{
    enum tutti_source source;
    int64_t told = tutti_product_mbits(inventory, net, &source);

    outcome->count++;
    if (source <= TUTTI_SOURCE_PRODUCT) {
        tutti_device_clear(inventory, net, TUTTI_PROPERTY_SPEED); /* a file may tell a rate of 0 */
        tutti_device_set_number(inventory, net, TUTTI_PROPERTY_SPEED, SOURCE, mbits);
    } else if (told != mbits) {
        keep(outcome, net);
    }
}

/* Returns true if an item of the list is about a port with this name. */
static bool names_port(const char *list, const char *name)
{
    size_t length = strlen(name);

    for (const char *at = list; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, name, length) == 0 && at[length] == '=')
            return true;
    }
    return false;
}

/* Applies one item: "NAME=400G" to the ports of this name, or "400G" to all ports that no item of
 * the list names. */
static int apply_item(const char *list, const char *item, struct tutti_inventory *inventory,
                      FILE *notes)
{
    const char *equals = strchr(item, '=');
    size_t length = equals == NULL ? 0 : (size_t)(equals - item);
    struct outcome outcome = {.count = 0};
    uint32_t net = TUTTI_NO_DEVICE;
    int64_t mbits;

    if (!read_mbits(equals == NULL ? item : equals + 1, &mbits))
        return tutti_fail(TUTTI_ERR_ARGUMENT, "--nic %.60s: give a rate such as 400G or 2500M, or "
                          "that of one port, such as mlx5_0=100G", item);
    while ((net = tutti_inventory_next_of(inventory, net, TUTTI_DEVICE_NET)) != TUTTI_NO_DEVICE) {
        const char *name = tutti_device_text(inventory, net, TUTTI_PROPERTY_NET_NAME);

        if (equals != NULL ? strlen(name) == length && memcmp(name, item, length) == 0
                           : !names_port(list, name))
            set_net(inventory, net, mbits, &outcome);
    }
    if (outcome.count == 0)
        return tutti_fail(TUTTI_ERR_ARGUMENT, equals != NULL
                          ? "--nic %.60s: no port has this name; tutti-topo shows the names"
                          : "--nic %.60s: no port is left for it; leave it out", item);
    if (outcome.kept > 0)
        fprintf(notes, "--nic %s is not used for %u of %u ports, of which another rate is told "
                "(%g Gbit/s for %.40s)\n", item, outcome.kept, outcome.count,
                (double)tutti_device_number(inventory, outcome.kept_device, TUTTI_PROPERTY_SPEED,
                                            0) / 1000,
                tutti_device_text(inventory, outcome.kept_device, TUTTI_PROPERTY_NET_NAME));
    return TUTTI_OK;
}

static int apply_nic(const char *list, struct tutti_inventory *inventory, FILE *notes)
{
    char *copy = strdup(list), *rest = copy, *item;
    int rc = TUTTI_OK;

    if (copy == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for --nic");
    while (rc == TUTTI_OK && (item = strsep(&rest, ",")) != NULL)
        rc = apply_item(list, item, inventory, notes);
    free(copy);
    return rc;
}

int tutti_hints_apply(const struct tutti_hints *hints, struct tutti_inventory *inventory,
                      FILE *notes)
{
    if (hints->gpu != NULL)
        TUTTI_TRY(apply_gpu(hints->gpu, inventory, notes));
    if (hints->cpu != NULL)
        TUTTI_TRY(apply_cpu(hints->cpu, inventory, notes));
    return hints->nic != NULL ? apply_nic(hints->nic, inventory, notes) : TUTTI_OK;
}
