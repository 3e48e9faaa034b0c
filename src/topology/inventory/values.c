/* SPDX-License-Identifier: Apache-2.0
 * Sets, gets and converts the properties of devices. The functions that set a property keep a value
 * of a better source. */
#include "topology/inventory/inventory.h"

#include "base/locale.h"
#include "base/result.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INFO(name, text, kinds, form, about) {text, kinds, TUTTI_FORM_##form, about},
static const struct tutti_property_info infos[TUTTI_PROPERTY_COUNT] = {TUTTI_PROPERTIES(INFO)};
#undef INFO

static const char *const source_names[TUTTI_SOURCE_COUNT] = {
    "nobody", "assumed", "product", "sysfs", "hwloc", "verbs", "nvml", "file", "measured",
};

const struct tutti_property_info *tutti_property_info(enum tutti_property property)
{
    return &infos[property];
}

enum tutti_property tutti_property_named(enum tutti_device_kind kind, const char *name)
{
    for (int property = 0; property < TUTTI_PROPERTY_COUNT; property++)
        if ((infos[property].kinds & (1u << kind)) != 0 && strcmp(infos[property].name, name) == 0)
            return (enum tutti_property)property;
    return TUTTI_PROPERTY_COUNT;
}

const char *tutti_source_name(enum tutti_source source)
{
    return source_names[source];
}

bool tutti_property_is_text(enum tutti_property property)
{
    return infos[property].form == TUTTI_FORM_TEXT || infos[property].form == TUTTI_FORM_MASK;
}

/* ---- written forms --------------------------------------------------------------------------- */

/* The number of a bus id is domain << 20 | bus << 12 | device << 4 | function. */
bool tutti_busid_parse(const char *text, int64_t *ret_busid)
{
    uint64_t part[4] = {0};
    static const char separators[4] = {':', ':', '.', '\0'};
    static const uint64_t most[4] = {UINT32_MAX, 0xff, 0xff, 0xf};

    for (int i = 0; i < 4; i++) {
        size_t digits = strspn(text, "0123456789abcdefABCDEF");

        if (digits == 0 || digits > 8 || text[digits] != separators[i])
            return false;
        part[i] = strtoull(text, NULL, 16);
        if (part[i] > most[i])
            return false;
        text += digits + 1;
    }
    *ret_busid = (int64_t)(part[0] << 20 | part[1] << 12 | part[2] << 4 | part[3]);
    return true;
}

int tutti_busid_write(int64_t busid, char *ret_text, size_t size_bytes)
{
    uint64_t bits = (uint64_t)busid;

    return snprintf(ret_text, size_bytes, "%04" PRIx64 ":%02x:%02x.%x", bits >> 20,
                    (unsigned)(bits >> 12 & 0xff), (unsigned)(bits >> 4 & 0xff),
                    (unsigned)(bits & 0xf));
}

bool tutti_number_parse(const char *text, int64_t *ret_number)
{
    bool is_hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    const char *digits = is_hex ? text + 2 : text + (*text == '-');
    size_t length = strspn(digits, is_hex ? "0123456789abcdefABCDEF" : "0123456789");

    if (length == 0 || digits[length] != '\0' || (is_hex && length > 16))
        return false;
    errno = 0;
    *ret_number = is_hex ? (int64_t)strtoull(text, NULL, 16) : strtoll(text, NULL, 10);
    return errno == 0;
}

static bool parse_real(const char *text, double *ret_real)
{
    char *end;

    if (strspn(text, "0123456789.+-eE") != strlen(text) || *text == '\0')
        return false;
    *ret_real = strtod(text, &end);
    return *end == '\0' && isfinite(*ret_real);
}

bool tutti_real_parse(const char *text, double *ret_real)
{
    struct tutti_c_locale locale = tutti_c_locale_enter();
    bool is_real = parse_real(text, ret_real);

    tutti_c_locale_leave(locale);
    return is_real;
}

/* Accepts "16.0 GT/s PCIe" and "8 GT/s". Text that is no speed, such as "" or "Unknown", gives
 * 0. */
static bool parse_speed(const char *text, double *ret_real)
{
    char *end;
    double value;

    *ret_real = 0;
    if (strchr("0123456789", *text) == NULL || *text == '\0')
        return strstr(text, "GT/s") == NULL; /* refuses "-5 GT/s" */
    value = strtod(text, &end);
    end += strspn(end, " ");
    if ((*end != '\0' && strncmp(end, "GT/s", 4) != 0) || !(value >= 0 && value < 1e6))
        return false;
    *ret_real = value;
    return true;
}

/* Returns true for words of up to 8 hexadecimal digits, separated by commas. */
static bool is_mask(const char *text)
{
    size_t digits;

    do {
        digits = strspn(text, "0123456789abcdefABCDEF");
        text += digits + 1;
    } while (digits > 0 && digits <= 8 && text[-1] == ',');
    return digits > 0 && digits <= 8 && text[-1] == '\0';
}

/* Returns a copy of a mask with 8 digits in every word, without leading words that are zero. The
 * caller frees the copy. NULL: no memory. */
static char *copy_mask(const char *text)
{
    size_t nwords = 1, used = 0;
    char *mask;

    for (const char *at = text; *at != '\0'; at++)
        nwords += *at == ',';
    mask = malloc(9 * nwords);
    while (mask != NULL) {
        char *end;
        unsigned long word = strtoul(text, &end, 16);

        if (used > 0 || word != 0 || *end == '\0')
            used += (size_t)sprintf(mask + used, used > 0 ? ",%08lx" : "%08lx", word);
        if (*end == '\0')
            break;
        text = end + 1;
    }
    return mask;
}

/* ---- setting --------------------------------------------------------------------------------- */

/* Returns the place for a new value; NULL: a better source has set the property. */
static struct tutti_value *open_value(struct tutti_inventory *inventory, uint32_t device,
                                      enum tutti_property property, enum tutti_source source)
{
    struct tutti_value *value = &inventory->devices[device].value[property];

    tutti_assert((infos[property].kinds & (1u << inventory->devices[device].kind)) != 0);
    return source < value->found_by ? NULL : value;
}

int tutti_device_set_number(struct tutti_inventory *inventory, uint32_t device,
                            enum tutti_property property, enum tutti_source source,
                            int64_t number)
{
    struct tutti_value *value = open_value(inventory, device, property, source);

    if (value != NULL)
        *value = (struct tutti_value){.found_by = source, .number = number};
    return TUTTI_OK;
}

int tutti_device_set_real(struct tutti_inventory *inventory, uint32_t device,
                          enum tutti_property property, enum tutti_source source, double real)
{
    struct tutti_value *value = open_value(inventory, device, property, source);

    if (value != NULL)
        *value = (struct tutti_value){.found_by = source, .real = real};
    return TUTTI_OK;
}

/* Takes ownership of the text. */
static void put_text(struct tutti_value *value, enum tutti_source source, char *text)
{
    if (value->found_by != TUTTI_SOURCE_NONE)
        free(value->text);
    *value = (struct tutti_value){.found_by = source, .text = text};
}

int tutti_device_set_text(struct tutti_inventory *inventory, uint32_t device,
                          enum tutti_property property, enum tutti_source source,
                          const char *text)
{
    struct tutti_value *value = open_value(inventory, device, property, source);
    char *copy;

    if (infos[property].form == TUTTI_FORM_MASK) {
        text += strncmp(text, "0x", 2) == 0 ? 2 : 0;
        if (!is_mask(text))
            return tutti_note(TUTTI_ERR_ARGUMENT, "%s=\"%.40s\" is no mask of CPUs, such as "
                              "\"000000ff,ffff0000\"", infos[property].name, text);
    }
    if (value == NULL)
        return TUTTI_OK;
    copy = infos[property].form == TUTTI_FORM_MASK ? copy_mask(text) : strdup(text);
    if (copy == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the %s of a %s", infos[property].name,
                          tutti_device_kind_name(inventory->devices[device].kind));
    put_text(value, source, copy);
    return TUTTI_OK;
}

/* Returns a positive number that is equal for equal texts (FNV-1a). Ids are only compared, so files
 * from which people removed the true ids still describe their machine. */
static int64_t hash_text(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return (int64_t)(hash >> 1) | 1;
}

static int set_written(struct tutti_inventory *inventory, uint32_t device,
                       enum tutti_property property, enum tutti_source source,
                       const char *written)
{
    static const char *const examples[] = {
        [TUTTI_FORM_NUMBER] = "number, such as 8", [TUTTI_FORM_HEX] = "number, such as 0x10de",
        [TUTTI_FORM_ID] = "id, such as 0x10de",
        [TUTTI_FORM_REAL] = "number, such as 1.5", [TUTTI_FORM_GTS] = "speed, such as \"16 GT/s\"",
        [TUTTI_FORM_BUSID] = "PCI address, such as 0000:3b:00.0",
    };
    enum tutti_property_form form = infos[property].form;
    int64_t number = 0;
    double real = 0;
    bool is_good;

    if (tutti_property_is_text(property))
        return tutti_device_set_text(inventory, device, property, source, written);
    is_good = form == TUTTI_FORM_REAL    ? parse_real(written, &real)
              : form == TUTTI_FORM_GTS   ? parse_speed(written, &real)
              : form == TUTTI_FORM_BUSID ? tutti_busid_parse(written, &number)
                                         : tutti_number_parse(written, &number);
    if (!is_good && form == TUTTI_FORM_ID && written[0] != '\0') {
        number = hash_text(written);
        is_good = true;
    }
    if (!is_good)
        return tutti_note(TUTTI_ERR_ARGUMENT, "%s=\"%.40s\" is no %s", infos[property].name,
                          written, examples[form]);
    if (form == TUTTI_FORM_REAL || form == TUTTI_FORM_GTS)
        return tutti_device_set_real(inventory, device, property, source, real);
    return tutti_device_set_number(inventory, device, property, source, number);
}

int tutti_device_set_parsed(struct tutti_inventory *inventory, uint32_t device,
                            enum tutti_property property, enum tutti_source source,
                            const char *written)
{
    struct tutti_c_locale locale = tutti_c_locale_enter();
    int rc = set_written(inventory, device, property, source, written);

    tutti_c_locale_leave(locale);
    return rc;
}

void tutti_device_clear(struct tutti_inventory *inventory, uint32_t device,
                        enum tutti_property property)
{
    struct tutti_value *value = &inventory->devices[device].value[property];

    if (value->found_by != TUTTI_SOURCE_NONE && tutti_property_is_text(property))
        free(value->text);
    *value = (struct tutti_value){0};
}

int tutti_device_copy_value(struct tutti_inventory *into, uint32_t device,
                            enum tutti_property property, const struct tutti_inventory *from,
                            uint32_t other)
{
    struct tutti_value value = from->devices[other].value[property];

    if (value.found_by != TUTTI_SOURCE_NONE && tutti_property_is_text(property)) {
        value.text = strdup(value.text);
        if (value.text == NULL)
            return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the %s of a %s",
                              infos[property].name,
                              tutti_device_kind_name(into->devices[device].kind));
    }
    tutti_device_clear(into, device, property);
    into->devices[device].value[property] = value;
    return TUTTI_OK;
}

/* ---- getting --------------------------------------------------------------------------------- */

int64_t tutti_device_number(const struct tutti_inventory *inventory, uint32_t device,
                            enum tutti_property property, int64_t fallback)
{
    const struct tutti_value *value = &inventory->devices[device].value[property];

    return value->found_by == TUTTI_SOURCE_NONE ? fallback : value->number;
}

double tutti_device_real(const struct tutti_inventory *inventory, uint32_t device,
                         enum tutti_property property, double fallback)
{
    const struct tutti_value *value = &inventory->devices[device].value[property];

    return value->found_by == TUTTI_SOURCE_NONE ? fallback : value->real;
}

const char *tutti_device_text(const struct tutti_inventory *inventory, uint32_t device,
                              enum tutti_property property)
{
    const struct tutti_value *value = &inventory->devices[device].value[property];

    return value->found_by == TUTTI_SOURCE_NONE ? "" : value->text;
}

/* Returns true if the text reads as exactly this value. */
static bool reads_as(const char *text, double real)
{
    double value = strtod(text, NULL);

    return !(value < real || value > real);
}

/* Writes the fewest digits that read back as the same value. Beginning with 15 is enough: %g drops
 * trailing zeros. */
static int write_real(double real, char *ret_text, size_t size_bytes)
{
    char text[40];

    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, real);
        if (reads_as(text, real))
            break;
    }
    return snprintf(ret_text, size_bytes, "%s", text);
}

int tutti_real_write(double real, char *ret_text, size_t size_bytes)
{
    struct tutti_c_locale locale = tutti_c_locale_enter();
    int length = write_real(real, ret_text, size_bytes);

    tutti_c_locale_leave(locale);
    return length;
}

/* Classes have six digits, ids of vendors and devices have four. */
static int write_hex(enum tutti_property property, int64_t number, char *ret_text,
                     size_t size_bytes)
{
    int digits = property == TUTTI_PROPERTY_CLASS || property == TUTTI_PROPERTY_TCLASS ? 6 : 4;

    return snprintf(ret_text, size_bytes, "0x%0*" PRIx64, digits, (uint64_t)number);
}

/* Uses the format of the kernel, which NCCL expects: one decimal, if one decimal is exact. */
static int write_speed(double real, char *ret_text, size_t size_bytes)
{
    char text[40];

    if (real <= 0)
        return snprintf(ret_text, size_bytes, "%s", "");
    snprintf(text, sizeof text, "%.1f", real);
    if (!reads_as(text, real))
        write_real(real, text, sizeof text);
    return snprintf(ret_text, size_bytes, "%s GT/s PCIe", text);
}

static int write_value(const struct tutti_inventory *inventory, uint32_t device,
                       enum tutti_property property, char *ret_text, size_t size_bytes)
{
    const struct tutti_value *value = &inventory->devices[device].value[property];

    switch (infos[property].form) {
    case TUTTI_FORM_NUMBER:
        return snprintf(ret_text, size_bytes, "%" PRId64, value->number);
    case TUTTI_FORM_HEX:
        return write_hex(property, value->number, ret_text, size_bytes);
    case TUTTI_FORM_ID:
        return snprintf(ret_text, size_bytes, "0x%" PRIx64, (uint64_t)value->number);
    case TUTTI_FORM_REAL:
        return write_real(value->real, ret_text, size_bytes);
    case TUTTI_FORM_BUSID:
        return tutti_busid_write(value->number, ret_text, size_bytes);
    case TUTTI_FORM_GTS:
        return write_speed(value->real, ret_text, size_bytes);
    case TUTTI_FORM_MASK:
    case TUTTI_FORM_TEXT:
        return snprintf(ret_text, size_bytes, "%s", value->text);
    }
    return 0;
}

int tutti_device_write(const struct tutti_inventory *inventory, uint32_t device,
                       enum tutti_property property, char *ret_text, size_t size_bytes)
{
    struct tutti_c_locale locale = tutti_c_locale_enter();
    int length = write_value(inventory, device, property, ret_text, size_bytes);

    tutti_c_locale_leave(locale);
    return length;
}
