/* SPDX-License-Identifier: Apache-2.0
 * Makes the GPUs of a driver from a topology file. */
#include "simcuda/machine.h"

#include "base/result.h"
#include "topology/formats/nccl_xml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- loading --------------------------------------------------------------------------------- */

static char *read_file(const char *path, size_t *ret_length)
{
    FILE *file = fopen(path, "re");
    size_t capacity = 1 << 22;
    char *text = malloc(capacity);

    if (file == NULL || text == NULL)
        sim_die("TUTTI_SIM_TOPOLOGY: cannot read %s", path);
    *ret_length = fread(text, 1, capacity, file);
    if (*ret_length == capacity || ferror(file))
        sim_die("TUTTI_SIM_TOPOLOGY: %s is no topology file", path);
    fclose(file);
    return text;
}

static void add_links(const struct tutti_inventory *inventory, struct sim_gpu *gpu)
{
    for (uint32_t i = inventory->devices[gpu->gpu].first_child; i != TUTTI_NO_DEVICE;
         i = inventory->devices[i].next) {
        if (inventory->devices[i].kind == TUTTI_DEVICE_C2C)
            gpu->c2c = i;
        if (inventory->devices[i].kind != TUTTI_DEVICE_NVLINK)
            continue;
        for (int64_t n = tutti_device_number(inventory, i, TUTTI_PROPERTY_LINKS, 1); n > 0; n--) {
            if (gpu->nlinks == SIM_LINKS)
                sim_die("a GPU with more than %d NVLinks", SIM_LINKS);
            gpu->links[gpu->nlinks++] = (struct sim_link){
                .target = tutti_device_number(inventory, i, TUTTI_PROPERTY_TARGET, 0),
                .class = tutti_device_number(inventory, i, TUTTI_PROPERTY_TCLASS, 0),
            };
        }
    }
}

static int64_t dev_of(const struct sim_machine *machine, const struct sim_gpu *gpu)
{
    return tutti_device_number(machine->inventory, gpu->gpu, TUTTI_PROPERTY_DEV, 0);
}

/* Into the order of the numbers that the file gives, then of the file. */
static void sort_gpus(struct sim_machine *machine)
{
    for (uint32_t i = 1; i < machine->ngpus; i++)
        for (uint32_t j = i; j > 0 && dev_of(machine, &machine->gpus[j - 1]) >
                                          dev_of(machine, &machine->gpus[j]); j--) {
            struct sim_gpu swapped = machine->gpus[j];

            machine->gpus[j] = machine->gpus[j - 1];
            machine->gpus[j - 1] = swapped;
        }
    for (uint32_t i = 0; i < machine->ngpus; i++)
        machine->gpus[i].index = i;
}

void sim_machine_load(struct sim_machine *ret_machine)
{
    struct sim_machine *machine = ret_machine;
    const char *path = getenv("TUTTI_SIM_TOPOLOGY");
    uint32_t gpu = TUTTI_NO_DEVICE;
    size_t length;
    char *text;

    if (path == NULL)
        sim_die("set TUTTI_SIM_TOPOLOGY to a topology file in NCCL's form");
    *machine = (struct sim_machine){0};
    text = read_file(path, &length);
    if (tutti_xml_read_nccl(path, text, length, TUTTI_SOURCE_FILE, &machine->inventory) != TUTTI_OK)
        sim_die("TUTTI_SIM_TOPOLOGY: %s", tutti_message_last());
    free(text);
    while ((gpu = tutti_inventory_next_of(machine->inventory, gpu, TUTTI_DEVICE_GPU)) !=
           TUTTI_NO_DEVICE) {
        struct sim_gpu *added = &machine->gpus[machine->ngpus];

        if (machine->ngpus == SIM_GPUS)
            sim_die("%s has more than %d GPUs", path, SIM_GPUS);
        *added = (struct sim_gpu){
            .gpu = gpu, .pci = machine->inventory->devices[gpu].parent, .c2c = TUTTI_NO_DEVICE,
        };
        add_links(machine->inventory, added);
        machine->ngpus++;
    }
    sort_gpus(machine);
}

void sim_machine_free(struct sim_machine *machine)
{
    tutti_inventory_destroy(machine->inventory);
    *machine = (struct sim_machine){0};
}

/* ---- faults ---------------------------------------------------------------------------------- */

int sim_fault(const char *driver, const char *function, int gpu)
{
    size_t length = strlen(function);
    const char *at;
    char name[64];

    snprintf(name, sizeof name, "TUTTI_SIM_%s_FAULT", driver);
    at = getenv(name);
    while (at != NULL && *at != '\0') {
        const char *next = strchr(at, ',');

        if (strncmp(at, function, length) == 0 && at[length] == ':') {
            char *end;
            long code = strtol(at + length + 1, &end, 10);

            if (*end != '@' || strtol(end + 1, NULL, 10) == gpu)
                return (int)code;
        }
        at = next != NULL ? next + 1 : NULL;
    }
    return 0;
}
