/* SPDX-License-Identifier: Apache-2.0
 * Writing a line: what each host seems to be, equal ones together; then it is read back, and is the
 * line only if that gives the same inventory. */
#include "topology/formats/line.h"

#include "base/result.h"
#include "topology/formats/line_parts.h"

#include <stdlib.h>
#include <string.h>

static int host_text(const struct tutti_inventory *inventory, uint32_t first_cpu, uint32_t ncpus,
                     char **ret_text)
{
    struct tutti_line_host parts;
    size_t length;
    char *text = NULL;
    FILE *out;
    bool is_whole;

    TUTTI_TRY(tutti_line_recognise(inventory, first_cpu, ncpus, &parts));
    out = open_memstream(&text, &length);
    if (out != NULL)
        tutti_line_print(out, &parts);
    tutti_line_host_fini(&parts);
    is_whole = out != NULL && ferror(out) == 0;
    if (out == NULL || fclose(out) != 0 || !is_whole) {
        free(text);
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the line of a host");
    }
    *ret_text = text;
    return TUTTI_OK;
}

/* The NUMA nodes of one host are consecutive. */
static uint32_t count_cpus(const struct tutti_inventory *inventory, uint32_t first_cpu)
{
    int64_t host = tutti_device_number(inventory, first_cpu, TUTTI_PROPERTY_HOST_HASH, 0);
    uint32_t count = 0;

    for (uint32_t cpu = first_cpu;
         cpu != TUTTI_NO_DEVICE &&
         tutti_device_number(inventory, cpu, TUTTI_PROPERTY_HOST_HASH, 0) == host;
         cpu = inventory->devices[cpu].next)
        count++;
    return count;
}

/* A single host needs no number before it. */
static void print_hosts(FILE *out, uint32_t hosts, bool is_first, bool is_last, const char *text)
{
    fputs(is_first ? "" : "; ", out);
    if (hosts > 1 || !is_first || !is_last)
        fprintf(out, "%u host%s: ", hosts, hosts == 1 ? "" : "s");
    fputs(text, out);
}

static int print(const struct tutti_inventory *inventory, FILE *out)
{
    uint32_t cpu = inventory->devices[0].first_child, hosts = 0;
    char *before = NULL, *text;
    bool is_first = true;
    int rc = TUTTI_OK;

    if (cpu == TUTTI_NO_DEVICE)
        return tutti_note(TUTTI_ERR_ARGUMENT, "no line says that there is nothing");
    while (cpu != TUTTI_NO_DEVICE) {
        uint32_t ncpus = count_cpus(inventory, cpu);

        TUTTI_TRY_OR(drop_before, rc, host_text(inventory, cpu, ncpus, &text));
        if (before != NULL && strcmp(before, text) != 0) {
            print_hosts(out, hosts, is_first, false, before);
            is_first = false;
            hosts = 0;
        }
        free(before);
        before = text;
        hosts++;
        while (ncpus-- > 0)
            cpu = inventory->devices[cpu].next;
    }
    print_hosts(out, hosts, is_first, true, before);

drop_before:
    free(before);
    return rc;
}

static int read_back(const struct tutti_inventory *inventory, const char *text)
{
    struct tutti_inventory *back = NULL;
    bool is_same = tutti_line_read("line", text, &back) == TUTTI_OK &&
                   tutti_inventory_equal(inventory, back);

    tutti_inventory_destroy(back);
    return is_same ? TUTTI_OK
                   : tutti_note(TUTTI_ERR_ARGUMENT, "no line says all that this inventory does; "
                                "the nearest is \"%.200s\"; write NCCL's XML instead", text);
}

int tutti_line_write(const struct tutti_inventory *inventory, char **ret_text)
{
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    int rc;

    if (out == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a line");
    rc = print(inventory, out);
    if (fclose(out) != 0 && rc == TUTTI_OK)
        rc = tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a line");
    if (rc == TUTTI_OK)
        rc = read_back(inventory, text);
    if (rc != TUTTI_OK) {
        free(text);
        return rc;
    }
    *ret_text = text;
    return TUTTI_OK;
}
