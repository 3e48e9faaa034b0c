/* SPDX-License-Identifier: Apache-2.0
 * Reads the XML in which NCCL describes a machine, and makes an inventory of the machine's devices.
 * RCCL's XML is read too. */
#include "topology/formats/nccl_xml.h"

#include "base/log.h"
#include "base/result.h"
#include "topology/formats/xml.h"

#include <stdio.h>
#include <string.h>

/* The room for the text of all cache masks of one cpu, with its terminating zero. */
#define CACHES_BYTES 16384

/* The state of reading. */
struct reader {
    const char *name; /* of the file, for messages */
    enum tutti_source source;
    struct tutti_inventory *inventory;
    uint32_t device[TUTTI_XML_DEPTH]; /* devices of the open elements, outermost first */
    uint32_t skipped;                 /* number of open elements that are being skipped */
    uint32_t nignored;                /* values that are invalid, but not needed */
    char ignored[256];                /* the first of them: where it is, and what it lacks */
};

/* ---- attributes ------------------------------------------------------------------------------ */

/* Returns true if the value is empty and therefore counts as missing. An empty text is a value,
 * however, and an empty speed is 0. */
static bool counts_as_missing(enum tutti_property property, const char *value)
{
    enum tutti_property_form form = tutti_property_info(property)->form;

    return *value == '\0' && form != TUTTI_FORM_TEXT && form != TUTTI_FORM_GTS;
}

/* Returns true if graphs and searches do not need the property, so that a file is readable without
 * it. People replace such values before they publish a file. */
static bool is_dispensable(enum tutti_property property)
{
    switch (property) {
    case TUTTI_PROPERTY_AFFINITY:
    case TUTTI_PROPERTY_PACKAGE:
    case TUTTI_PROPERTY_CPU_FAMILY:
    case TUTTI_PROPERTY_CPU_MODEL:
    case TUTTI_PROPERTY_PCI_VENDOR:
    case TUTTI_PROPERTY_PCI_DEVICE:
    case TUTTI_PROPERTY_SUBVENDOR:
    case TUTTI_PROPERTY_SUBDEVICE:
    case TUTTI_PROPERTY_GPU_ARCH:
    case TUTTI_PROPERTY_RANK:
    case TUTTI_PROPERTY_LATENCY:
    case TUTTI_PROPERTY_PORT:
    case TUTTI_PROPERTY_MAXCONN:
    case TUTTI_PROPERTY_COLL:
        return true;
    default: return false;
    }
}

/* Handles a value that is not valid for its property. Its error is the last message. */
static int refuse_or_ignore(struct reader *reader, struct tutti_xml *xml, const char *element,
                            enum tutti_property property)
{
    if (!is_dispensable(property))
        return tutti_xml_fail(xml, "<%s>: %s; correct it, or leave it out", element,
                              tutti_message_last());
    if (reader->nignored++ == 0)
        snprintf(reader->ignored, sizeof reader->ignored, "%s:%zu: <%s>: %s", reader->name,
                 tutti_xml_line(xml), element, tutti_message_last());
    return TUTTI_OK;
}

/* Says in one line which values were ignored. */
static int remark_ignored(struct reader *reader)
{
    if (reader->nignored == 0)
        return TUTTI_OK;
    if (reader->nignored == 1)
        return tutti_inventory_remark(reader->inventory, "%s; it is not needed and is ignored",
                                      reader->ignored);
    return tutti_inventory_remark(reader->inventory, "%s; it is not needed and is ignored, with "
                                  "%u more such values", reader->ignored, reader->nignored - 1);
}

/* Sets the properties of a device from the attributes of its element. */
static int read_attributes(struct reader *reader, struct tutti_xml *xml,
                           const struct tutti_xml_element *element, uint32_t device)
{
    enum tutti_device_kind kind = reader->inventory->devices[device].kind;

    for (uint32_t i = 0; i < element->nattributes; i++) {
        const struct tutti_xml_attribute *attribute = &element->attributes[i];
        enum tutti_property property = tutti_property_named(kind, attribute->name);
        int rc;

        if (property == TUTTI_PROPERTY_COUNT || counts_as_missing(property, attribute->value))
            continue;
        rc = tutti_device_set_parsed(reader->inventory, device, property, reader->source,
                                     attribute->value);
        if (rc == TUTTI_ERR_ARGUMENT)
            rc = refuse_or_ignore(reader, xml, element->name, property);
        TUTTI_TRY(rc);
    }
    return TUTTI_OK;
}

/* Appends one more mask to the caches of the cpu. */
static int read_cache(struct reader *reader, struct tutti_xml *xml,
                      const struct tutti_xml_element *element, uint32_t cpu)
{
    char caches[CACHES_BYTES];
    const char *mask = tutti_xml_value(element, "cpus");
    bool is_first = !tutti_device_has(reader->inventory, cpu, TUTTI_PROPERTY_CACHES);
    size_t length;

    if (mask == NULL)
        return tutti_xml_fail(xml, "<cache> without cpus; give it, such as cpus=\"000000ff\"");
    length = (size_t)snprintf(caches, sizeof caches, "%s%s%s",
                              tutti_device_text(reader->inventory, cpu, TUTTI_PROPERTY_CACHES),
                              is_first ? "" : ";", mask);
    if (length >= sizeof caches)
        return tutti_xml_fail(xml, "the caches of this cpu have masks of more than %d bytes; leave "
                              "some out", CACHES_BYTES - 1);
    return tutti_device_set_text(reader->inventory, cpu, TUTTI_PROPERTY_CACHES, reader->source,
                                 caches);
}

/* ---- elements -------------------------------------------------------------------------------- */

static int begin_system(struct reader *reader, struct tutti_xml *xml,
                        const struct tutti_xml_element *element)
{
    int64_t version;

    if (strcmp(element->name, "system") != 0)
        return tutti_xml_fail(xml, "<%.40s>, but a topology begins with <system>; give a file "
                              "of NCCL or RCCL", element->name);
    TUTTI_TRY(read_attributes(reader, xml, element, 0));
    version = tutti_device_number(reader->inventory, 0, TUTTI_PROPERTY_VERSION, 1);
    if (version != 1 && version != 2)
        return tutti_xml_fail(xml, "<system>: version=\"%lld\"; NCCL's is 1, RCCL's is 2",
                              (long long)version);
    reader->device[0] = 0;
    return TUTTI_OK;
}

/* Returns the kind of device of an element; TUTTI_DEVICE_COUNT: none. */
static enum tutti_device_kind kind_of(const char *name)
{
    return strcmp(name, "apu") == 0 ? TUTTI_DEVICE_GPU : tutti_device_kind_named(name);
}

/* Skips an element and everything within it. Other programs add elements of their own, so an
 * unknown element is only logged for debugging. A known element in a wrong place causes a warning,
 * because its device is missing from the inventory. */
static int skip_element(struct reader *reader, struct tutti_xml *xml,
                        const struct tutti_xml_element *element, uint32_t parent)
{
    bool is_known = kind_of(element->name) != TUTTI_DEVICE_COUNT;

    reader->skipped = 1;
    tutti_log(is_known ? TUTTI_LOG_WARN : TUTTI_LOG_DEBUG,
              "%s:%zu: <%.40s> does not go below <%s>; skipped with all its content", reader->name,
              tutti_xml_line(xml), element->name,
              tutti_device_kind_name(reader->inventory->devices[parent].kind));
    return TUTTI_OK;
}

static int on_begin(void *context, struct tutti_xml *xml, const struct tutti_xml_element *element)
{
    struct reader *reader = context;
    enum tutti_device_kind kind = kind_of(element->name), parent_kind;
    uint32_t parent;
    int rc;

    if (reader->skipped > 0) {
        reader->skipped++;
        return TUTTI_OK;
    }
    if (element->depth == 0)
        return begin_system(reader, xml, element);
    parent = reader->device[element->depth - 1];
    parent_kind = reader->inventory->devices[parent].kind;
    if (parent_kind == TUTTI_DEVICE_CPU && strcmp(element->name, "cache") == 0) {
        TUTTI_TRY(read_cache(reader, xml, element, parent));
        reader->skipped = 1;
        return TUTTI_OK;
    }
    if (kind == TUTTI_DEVICE_COUNT || !tutti_device_fits(parent_kind, kind))
        return skip_element(reader, xml, element, parent);
    rc = tutti_inventory_add(reader->inventory, parent, kind, reader->source,
                             &reader->device[element->depth]);
    if (rc == TUTTI_ERR_ARGUMENT)
        return tutti_xml_fail(xml, "<%s>: %s", element->name, tutti_message_last());
    TUTTI_TRY(rc);
    return read_attributes(reader, xml, element, reader->device[element->depth]);
}

static int on_end(void *context, struct tutti_xml *xml, const char *name, const char *text)
{
    struct reader *reader = context;

    (void)xml, (void)name, (void)text;
    if (reader->skipped > 0)
        reader->skipped--;
    return TUTTI_OK;
}

int tutti_xml_read_nccl(const char *name, const char *text, size_t length,
                        enum tutti_source source, struct tutti_inventory **ret_inventory)
{
    static const struct tutti_xml_handler handler = {.begin = on_begin, .end = on_end};
    struct reader reader = {.name = name, .source = source};
    int rc;

    TUTTI_TRY(tutti_inventory_create(&reader.inventory));
    reader.inventory->devices[0].found_by = source;
    rc = tutti_xml_read(name, text, length, &handler, &reader);
    if (rc == TUTTI_OK)
        rc = remark_ignored(&reader);
    if (rc != TUTTI_OK) {
        tutti_inventory_destroy(reader.inventory);
        return rc;
    }
    *ret_inventory = reader.inventory;
    return TUTTI_OK;
}
