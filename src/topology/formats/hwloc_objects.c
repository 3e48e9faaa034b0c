/* SPDX-License-Identifier: Apache-2.0
 * Reads hwloc's XML, element by element, into the structs of hwloc_objects.h. */
#include "topology/formats/hwloc_objects.h"

#include "base/array.h"
#include "topology/formats/hwloc_matrix.h"
#include "topology/formats/xml.h"
#include "topology/inventory/cpu_mask.h"
#include "topology/inventory/inventory.h"

#include <stdlib.h>
#include <string.h>

/* The state of reading. */
struct reader {
    struct tutti_hwloc hwloc;
    uint32_t form;  /* of the XML: 1, 2 or 3 */
    uint32_t depth; /* of the current element */
    uint32_t object_at[TUTTI_XML_DEPTH + 1]; /* per depth: the object of the open element;
                                              * TUTTI_NO_OBJECT: the element is no object */
    struct tutti_hwloc_matrix_reader matrix;
};

/* ---- the whole ------------------------------------------------------------------------------- */

void tutti_hwloc_fini(struct tutti_hwloc *hwloc)
{
    for (uint32_t i = 0; i < hwloc->nobjects; i++) {
        free(hwloc->objects[i].cpuset);
        free(hwloc->objects[i].name);
    }
    for (uint32_t i = 0; i < hwloc->ninfos; i++) {
        free(hwloc->infos[i].name);
        free(hwloc->infos[i].value);
    }
    for (uint32_t i = 0; i < hwloc->nmatrices; i++)
        tutti_hwloc_matrix_fini(&hwloc->matrices[i]);
    free(hwloc->objects);
    free(hwloc->infos);
    free(hwloc->matrices);
    *hwloc = (struct tutti_hwloc){0};
}

/* Returns the value of an info in the list that begins with `first`; NULL: none. */
static const char *find_info(const struct tutti_hwloc *hwloc, uint32_t first, const char *name)
{
    for (uint32_t i = first; i != TUTTI_NO_OBJECT; i = hwloc->infos[i].next)
        if (strcmp(hwloc->infos[i].name, name) == 0)
            return hwloc->infos[i].value;
    return NULL;
}

const char *tutti_hwloc_info(const struct tutti_hwloc *hwloc, uint32_t object, const char *name)
{
    return find_info(hwloc, hwloc->objects[object].first_info, name);
}

const char *tutti_hwloc_machine_info(const struct tutti_hwloc *hwloc, const char *name)
{
    const char *value = tutti_hwloc_info(hwloc, 0, name);

    return value != NULL ? value : find_info(hwloc, hwloc->first_info, name);
}

uint32_t tutti_hwloc_enclosing(const struct tutti_hwloc *hwloc, uint32_t object,
                               enum tutti_hwloc_kind kind)
{
    while (object != TUTTI_NO_OBJECT && hwloc->objects[object].kind != kind)
        object = hwloc->objects[object].parent;
    return object;
}

/* ---- attributes ------------------------------------------------------------------------------ */

/* Reads an attribute that is a number up to `most`. The function leaves the number unchanged if the
 * element has no such attribute. */
static int read_number(struct tutti_xml *xml, const struct tutti_xml_element *element,
                       const char *name, uint64_t most, uint64_t *number)
{
    const char *value = tutti_xml_value(element, name);
    size_t digits;

    if (value == NULL)
        return TUTTI_OK;
    digits = strspn(value, "0123456789");
    if (digits == 0 || digits > 18 || value[digits] != '\0' || strtoull(value, NULL, 10) > most)
        return tutti_xml_fail(xml, "%s=\"%.40s\" is no number, or too large a number", name,
                              value);
    *number = strtoull(value, NULL, 10);
    return TUTTI_OK;
}

/* Reads the CPUs of an object. "0xf...f" stands for all possible CPUs and gives no information. */
static int read_cpuset(struct tutti_xml *xml, const struct tutti_xml_element *element,
                       struct tutti_hwloc_object *object)
{
    const char *value = tutti_xml_value(element, "cpuset");
    char written[TUTTI_CPUMASK_BYTES];
    struct tutti_cpumask mask;

    if (value == NULL || *value == '\0' || strncmp(value, "0xf...f", 7) == 0)
        return TUTTI_OK;
    if (!tutti_cpumask_parse(value, &mask))
        return tutti_xml_fail(xml, "cpuset=\"%.40s\" is no mask of CPUs, such as "
                              "\"0x000000ff,0xffff0000\"", value);
    tutti_cpumask_write(&mask, written);
    object->cpuset = strdup(written);
    return object->cpuset != NULL ? TUTTI_OK
                                  : tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a mask of CPUs");
}

/* Parses a text such as "0302 [10de:1db8] [10de:131d] a1 00": class, ids, ids of the subsystem. The
 * rest differs between forms and is ignored. */
static bool parse_pci_type(const char *text, struct tutti_hwloc_object *object)
{
    static const char shape[] = "dddd [dddd:dddd] [dddd:dddd]";
    uint32_t *const parts[] = {&object->pci_class, &object->vendor, &object->device,
                               &object->subvendor, &object->subdevice};
    size_t at = 0;

    for (size_t i = 0; shape[i] != '\0'; i++)
        if (text[i] == '\0' || (shape[i] == 'd' ? strchr("0123456789abcdefABCDEF", text[i]) == NULL
                                                : text[i] != shape[i]))
            return false;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        at += strcspn(shape + at, "d");
        *parts[i] = (uint32_t)strtoul(text + at, NULL, 16);
        at += 4;
    }
    object->pci_class <<= 8;
    return true;
}

static int read_pci(struct tutti_xml *xml, const struct tutti_xml_element *element,
                    struct tutti_hwloc_object *object)
{
    const char *busid = tutti_xml_value(element, "pci_busid");
    const char *type = tutti_xml_value(element, "pci_type");
    const char *speed = tutti_xml_value(element, "pci_link_speed");

    if (busid == NULL || !tutti_busid_parse(busid, &object->busid))
        return tutti_xml_fail(xml, "pci_busid=\"%.40s\" is no PCI address, such as 0000:3b:00.0",
                              busid == NULL ? "" : busid);
    if (type == NULL || !parse_pci_type(type, object))
        return tutti_xml_fail(xml, "pci_type=\"%.40s\" is no class with ids, such as "
                              "\"0302 [10de:1db8] [10de:131d] a1\"", type == NULL ? "" : type);
    if (speed == NULL)
        return TUTTI_OK;
    if (!tutti_real_parse(speed, &object->gbytes_per_s) || object->gbytes_per_s < 0 ||
        object->gbytes_per_s > 1e6)
        return tutti_xml_fail(xml, "pci_link_speed=\"%.40s\" is no speed in GB/s", speed);
    return TUTTI_OK;
}

/* Reads the type and the name of a device of the operating system. Forms 1 and 2 number the types;
 * form 3 has a bit for each type, and several may be set. */
static int read_osdev(struct tutti_xml *xml, const struct tutti_xml_element *element,
                      uint32_t form, struct tutti_hwloc_object *object)
{
    static const uint32_t bits_of_type[] = {
        0, TUTTI_HWLOC_COMPUTES, TUTTI_HWLOC_NETWORK, TUTTI_HWLOC_OPENFABRICS, 0,
        TUTTI_HWLOC_COMPUTES,
    };
    static const uint32_t bits_of_bit[] = {
        0, 0, TUTTI_HWLOC_COMPUTES, TUTTI_HWLOC_COMPUTES, TUTTI_HWLOC_NETWORK,
        TUTTI_HWLOC_OPENFABRICS,
    };
    const char *name = tutti_xml_value(element, "name");
    uint64_t type = 0;

    TUTTI_TRY(read_number(xml, element, "osdev_type", UINT32_MAX, &type));
    if (form < 3)
        object->osdev =
            type < sizeof bits_of_type / sizeof bits_of_type[0] ? bits_of_type[type] : 0;
    else
        for (size_t bit = 0; bit < sizeof bits_of_bit / sizeof bits_of_bit[0]; bit++)
            object->osdev |= (type >> bit & 1) != 0 ? bits_of_bit[bit] : 0;
    if (name == NULL)
        return TUTTI_OK;
    object->name = strdup(name);
    return object->name != NULL ? TUTTI_OK : tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a name");
}

/* ---- objects --------------------------------------------------------------------------------- */

/* Reads a cache. Its type is "L3Cache", or in form 1 "Cache" with a depth. Instruction caches,
 * which have cache_type 2, are ignored. */
static int read_cache(struct tutti_xml *xml, const struct tutti_xml_element *element,
                      const char *type, struct tutti_hwloc_object *object)
{
    const char *holds = tutti_xml_value(element, "cache_type");
    uint64_t level = 0;

    if (holds != NULL && strcmp(holds, "2") == 0)
        return TUTTI_OK;
    if (type[0] == 'L')
        level = (uint64_t)(type[1] - '0');
    else
        TUTTI_TRY(read_number(xml, element, "depth", 9, &level));
    object->kind = TUTTI_HWLOC_CACHE;
    object->level = (uint32_t)level;
    return read_cpuset(xml, element, object);
}

/* Reads the kind of an object, and the attributes that this kind has. */
static int read_kind(struct tutti_xml *xml, const struct tutti_xml_element *element,
                     uint32_t form, struct tutti_hwloc_object *object)
{
    static const struct {
        const char *type;
        enum tutti_hwloc_kind kind;
    } kinds[] = {
        {"Machine", TUTTI_HWLOC_MACHINE}, {"System", TUTTI_HWLOC_MACHINE},
        {"Package", TUTTI_HWLOC_PACKAGE}, {"Socket", TUTTI_HWLOC_PACKAGE},
        {"NUMANode", TUTTI_HWLOC_NUMA},   {"Bridge", TUTTI_HWLOC_BRIDGE},
        {"PCIDev", TUTTI_HWLOC_PCI},      {"OSDev", TUTTI_HWLOC_OSDEV},
    };
    const char *type = tutti_xml_value(element, "type");
    const char *bridge = tutti_xml_value(element, "bridge_type");

    if (type == NULL)
        return tutti_xml_fail(xml, "an object without a type; give it one, such as "
                                   "type=\"Package\"");
    if (strcmp(type, "Cache") == 0 ||
        (type[0] == 'L' && type[1] >= '1' && type[1] <= '9' && strcmp(type + 2, "Cache") == 0))
        return read_cache(xml, element, type, object);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(type, kinds[i].type) == 0)
            object->kind = kinds[i].kind;
    switch (object->kind) {
    case TUTTI_HWLOC_BRIDGE:
        object->is_host_bridge = bridge != NULL && strncmp(bridge, "0-", 2) == 0;
        return object->is_host_bridge ? TUTTI_OK : read_pci(xml, element, object);
    case TUTTI_HWLOC_PCI:
        return read_pci(xml, element, object);
    case TUTTI_HWLOC_OSDEV:
        return read_osdev(xml, element, form, object);
    case TUTTI_HWLOC_OTHER:
        return TUTTI_OK;
    default:
        return read_cpuset(xml, element, object);
    }
}

/* Adds an object below the object of the element around it. */
static int begin_object(struct reader *reader, struct tutti_xml *xml,
                        const struct tutti_xml_element *element)
{
    struct tutti_hwloc *hwloc = &reader->hwloc;
    uint32_t parent = reader->object_at[element->depth - 1];
    const char *os_index = tutti_xml_value(element, "os_index");
    uint64_t number = UINT64_MAX;
    struct tutti_hwloc_object *object;

    if (parent == TUTTI_NO_OBJECT && (hwloc->nobjects > 0 || element->depth != 1))
        return tutti_xml_fail(xml, "an object that is in no other; there may be only "
                                   "one outermost object");
    TUTTI_TRY(TUTTI_ARRAY_ROOM(hwloc->objects, hwloc->nobjects, hwloc->capacity, "objects"));
    object = &hwloc->objects[hwloc->nobjects];
    *object = (struct tutti_hwloc_object){.parent = parent, .first_info = TUTTI_NO_OBJECT};
    reader->object_at[element->depth] = hwloc->nobjects++;
    TUTTI_TRY(read_number(xml, element, "gp_index", UINT64_MAX, &object->gp_index));
    if (os_index != NULL && strcmp(os_index, "-1") != 0)
        TUTTI_TRY(read_number(xml, element, "os_index", UINT32_MAX, &number));
    object->os_index = number == UINT64_MAX ? -1 : (int64_t)number;
    TUTTI_TRY(read_kind(xml, element, reader->form, object));
    if (parent == TUTTI_NO_OBJECT && object->kind != TUTTI_HWLOC_MACHINE)
        return tutti_xml_fail(xml, "the outermost object is a \"%.40s\", not a Machine",
                              tutti_xml_value(element, "type"));
    return TUTTI_OK;
}

/* Adds an info to the object of the element around it, or to the whole topology. */
static int add_info(struct reader *reader, struct tutti_xml *xml,
                    const struct tutti_xml_element *element)
{
    struct tutti_hwloc *hwloc = &reader->hwloc;
    uint32_t of = reader->object_at[element->depth - 1];
    uint32_t *first = of == TUTTI_NO_OBJECT ? &hwloc->first_info : &hwloc->objects[of].first_info;
    const char *name = tutti_xml_value(element, "name"), *value = tutti_xml_value(element, "value");
    struct tutti_hwloc_info *info;

    if (name == NULL || value == NULL)
        return tutti_xml_fail(xml, "an info without a name or a value");
    TUTTI_TRY(TUTTI_ARRAY_ROOM(hwloc->infos, hwloc->ninfos, hwloc->info_capacity, "infos"));
    info = &hwloc->infos[hwloc->ninfos];
    *info = (struct tutti_hwloc_info){
        .name = strdup(name), .value = strdup(value), .next = *first,
    };
    *first = hwloc->ninfos++;
    if (info->name == NULL || info->value == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for an info");
    return TUTTI_OK;
}

/* ---- elements -------------------------------------------------------------------------------- */

static int begin_topology(struct reader *reader, struct tutti_xml *xml,
                          const struct tutti_xml_element *element)
{
    const char *version = tutti_xml_value(element, "version");

    if (strcmp(element->name, "topology") != 0)
        return tutti_xml_fail(xml, "<%.40s>; hwloc's XML begins with <topology>", element->name);
    if (version != NULL && (version[0] < '1' || version[0] > '3' || version[1] != '.'))
        return tutti_xml_fail(xml, "version \"%.40s\" of hwloc's XML; 1, 2 and 3 are known",
                              version);
    reader->form = version == NULL ? 1 : (uint32_t)(version[0] - '0');
    return TUTTI_OK;
}

static int begin_element(void *context, struct tutti_xml *xml,
                         const struct tutti_xml_element *element)
{
    struct reader *reader = context;
    uint32_t depth = element->depth;

    reader->depth = depth;
    reader->object_at[depth] = TUTTI_NO_OBJECT;
    if (depth == 0)
        return begin_topology(reader, xml, element);
    if (strcmp(element->name, "object") == 0)
        return begin_object(reader, xml, element);
    /* Other elements, such as kinds of cores, have infos that do not belong to an object. */
    if (strcmp(element->name, "info") == 0 &&
        (depth == 1 || reader->object_at[depth - 1] != TUTTI_NO_OBJECT))
        return add_info(reader, xml, element);
    if (depth == 1 && strncmp(element->name, "distances2", 10) == 0)
        return tutti_hwloc_matrix_begin(&reader->matrix, xml, element);
    return TUTTI_OK;
}

static int end_element(void *context, struct tutti_xml *xml, const char *name, const char *text)
{
    struct reader *reader = context;
    uint32_t depth = reader->depth, object = reader->object_at[depth];

    /* The next tag is a sibling of this element, or ends the element around it. */
    reader->depth = depth == 0 ? 0 : depth - 1;
    if (object != TUTTI_NO_OBJECT)
        reader->hwloc.objects[object].end = reader->hwloc.nobjects;
    if (depth == 2)
        return tutti_hwloc_matrix_text(&reader->matrix, xml, name, text);
    if (depth == 1 && strncmp(name, "distances2", 10) == 0)
        return tutti_hwloc_matrix_end(&reader->matrix, xml, &reader->hwloc);
    if (depth == 0 && reader->hwloc.nobjects == 0)
        return tutti_xml_fail(xml, "the topology holds no Machine");
    return TUTTI_OK;
}

int tutti_hwloc_read(const char *name, const char *text, size_t length,
                     struct tutti_hwloc *ret_hwloc)
{
    static const struct tutti_xml_handler handler = {.begin = begin_element, .end = end_element};
    struct reader reader = {.hwloc.first_info = TUTTI_NO_OBJECT};
    int rc = tutti_xml_read(name, text, length, &handler, &reader);

    tutti_hwloc_matrix_reader_fini(&reader.matrix);
    if (rc != TUTTI_OK) {
        tutti_hwloc_fini(&reader.hwloc);
        return rc;
    }
    *ret_hwloc = reader.hwloc;
    return TUTTI_OK;
}
