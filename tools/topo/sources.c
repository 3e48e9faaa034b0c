/* SPDX-License-Identifier: Apache-2.0
 * Lists the properties of a device by their sources. */
#include "topo/sources.h"

#include "common/memory.h"

#include <stdio.h>
#include <stdlib.h>

/* Writes the names of the properties of a device that come from this source. */
static void list_properties(FILE *out, const struct tutti_inventory *inventory, uint32_t device,
                            enum tutti_source source, bool *is_first)
{
    for (int p = 0; p < TUTTI_PROPERTY_COUNT; p++)
        if (inventory->devices[device].value[p].found_by == source) {
            fprintf(out, "%s%s", *is_first ? "" : " ",
                    tutti_property_info((enum tutti_property)p)->name);
            *is_first = false;
        }
}

char *sources_text(const struct subject *subject, uint32_t node)
{
    const struct tutti_inventory *inventory = subject->graph->inventory;
    uint32_t device = subject->graph->nodes[node].device;
    uint32_t above = inventory->devices[device].parent;
    bool has_pci = above != TUTTI_NO_DEVICE && subject->node_of[above] == TUTTI_NO_NODE &&
                   inventory->devices[above].kind == TUTTI_DEVICE_PCI;
    char *text = NULL;
    size_t size;
    FILE *out = must_have(open_memstream(&text, &size));

    for (int source = TUTTI_SOURCE_COUNT; source-- > TUTTI_SOURCE_NONE + 1;) {
        char *list = NULL;
        bool is_first = true;
        FILE *names = must_have(open_memstream(&list, &size));

        list_properties(names, inventory, device, (enum tutti_source)source, &is_first);
        if (has_pci)
            list_properties(names, inventory, above, (enum tutti_source)source, &is_first);
        if (fclose(names) != 0)
            must_have(NULL);
        if (!is_first)
            fprintf(out, "%s%s: %s", ftell(out) > 0 ? "; " : "",
                    tutti_source_name((enum tutti_source)source), list);
        free(list);
    }
    if (fclose(out) != 0)
        must_have(NULL);
    return text;
}
