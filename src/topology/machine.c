/* SPDX-License-Identifier: Apache-2.0
 * A machine's life: from a name, a line of text or a file, to its end. */
#include "topology/machine.h"

#include "base/result.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rings and trees of a million ranks fit; what is larger is not a description. */
#define FILE_BYTES ((size_t)256 << 20)

static int read_all(FILE *file, const char *name, char **ret_text)
{
    char *text = NULL;
    size_t size = 0, capacity = 0;
    int rc;

    do {
        char *grown = realloc(text, capacity = capacity == 0 ? 4096 : 2 * capacity);

        if (grown == NULL || capacity > 2 * FILE_BYTES) {
            rc = tutti_fail(TUTTI_ERR_ARGUMENT, "%s does not fit; a machine's file has at most "
                            "%zu MiB", name, FILE_BYTES >> 20);
            text = grown != NULL ? grown : text;
            goto drop_text;
        }
        text = grown;
        size += fread(text + size, 1, capacity - size - 1, file);
    } while (size == capacity - 1);
    if (ferror(file)) {
        rc = tutti_fail(TUTTI_ERR_ARGUMENT, "read %s: %s; is it a file?", name, strerror(errno));
        goto drop_text;
    }
    text[size] = '\0';
    if (strlen(text) != size) {
        rc = tutti_fail(TUTTI_ERR_ARGUMENT, "%s has a zero byte; a machine's file is text", name);
        goto drop_text;
    }
    *ret_text = text;
    return TUTTI_OK;

drop_text:
    free(text);
    return rc;
}

static int load_file(const char *name, uint32_t nranks, struct tutti_machine **ret_machine)
{
    FILE *file = fopen(name, "re");
    char *text;
    int rc;

    if (file == NULL)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "open machine %s: %s; give a file, a description "
                          "such as \"ranks 8; level top overhead 5us bandwidth 50GB/s\", or a "
                          "known name such as \"%s\"", name, strerror(errno),
                          tutti_machine_named(0)->name);
    rc = read_all(file, name, &text);
    fclose(file);
    TUTTI_TRY(rc);
    rc = tutti_machine_parse(name, text, nranks, ret_machine);
    free(text);
    return rc;
}

int tutti_machine_load(const char *text, uint32_t nranks, struct tutti_machine **ret_machine)
{
    const struct tutti_named_machine *named;

    for (size_t i = 0; (named = tutti_machine_named(i)) != NULL; i++)
        if (strcmp(named->name, text) == 0)
            return tutti_machine_parse(named->name, named->text, nranks, ret_machine);
    if (strpbrk(text, " ;") != NULL)
        return tutti_machine_parse("machine", text, nranks, ret_machine);
    return load_file(text, nranks, ret_machine);
}

/* The machine's users see its arrays as immutable; only here they end. */
static void drop(const void *array)
{
    free((void *)(uintptr_t)array);
}

void tutti_machine_destroy(struct tutti_machine *machine)
{
    if (machine == NULL)
        return;
    drop(machine->places.node);
    drop(machine->places.group);
    drop(machine->places.rings);
    drop(machine->places.trees);
    free(machine);
}

uint32_t tutti_machine_level(const struct tutti_machine *machine, uint32_t a, uint32_t b)
{
    const struct tutti_places *places = &machine->places;

    if (places->node == NULL ? a == b : places->node[a] == places->node[b])
        return 0;
    return places->group != NULL && places->group[a] == places->group[b] ? 1 : 2;
}
