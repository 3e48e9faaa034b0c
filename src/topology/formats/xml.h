/* SPDX-License-Identifier: Apache-2.0
 * Reads XML from untrusted sources: elements are handed over one by one, sizes are limited, and
 * every error is reported with line and column. Also writes attributes with the necessary escapes.
 *
 * Text is UTF-8, or another encoding that expat supports. A document type is ignored, because
 * hwloc's files have one. A document type with declarations of its own is refused, because entities
 * can expand a few bytes to gigabytes.
 */
#ifndef TUTTI_TOPOLOGY_FORMATS_XML_H
#define TUTTI_TOPOLOGY_FORMATS_XML_H

#include "base/result.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Limits; a document beyond one of these is refused. */
#define TUTTI_XML_BYTES (16u << 20)       /* of a document */
#define TUTTI_XML_ELEMENTS (1u << 18)     /* in a document */
#define TUTTI_XML_DEPTH 64u               /* of elements within each other */
#define TUTTI_XML_ATTRIBUTES 64u          /* of an element */
#define TUTTI_XML_VALUE_BYTES (16u << 10) /* of an attribute's value */
#define TUTTI_XML_SPAN_BYTES (1u << 20)   /* from one "<" to the next, so also of a text */

/* ---- reading --------------------------------------------------------------------------------- */

/* The state of a reader, including the position for errors. */
struct tutti_xml;

struct tutti_xml_attribute {
    const char *name, *value;
};

/* An element is valid only during the call that receives it. */
struct tutti_xml_element {
    const char *name;
    const struct tutti_xml_attribute *attributes;
    uint32_t nattributes;
    uint32_t depth; /* number of elements around it; 0 for the outermost */
};

/* Callbacks of a reader. A result other than TUTTI_OK stops the reading and becomes its result. */
struct tutti_xml_handler {
    /* Called at <name attribute="value">; <name/> causes a call of begin and of end. Required. */
    int (*begin)(void *context, struct tutti_xml *xml, const struct tutti_xml_element *element);
    /* Called at </name>. `text` is all characters since the previous tag, including blanks; for an
     * element without child elements this is its text. `text` ends in zero, and is valid only
     * during the call. Optional. */
    int (*end)(void *context, struct tutti_xml *xml, const char *name, const char *text);
};

/* Reads a whole document. `name`, such as the file's name, begins error messages. The text need not
 * end in zero. TUTTI_ERR_ARGUMENT: the text is not well-formed, or exceeds a limit; the message
 * begins with "name:line:column:". TUTTI_ERR_SYSTEM: no memory. */
int tutti_xml_read(const char *name, const char *text, size_t length,
                   const struct tutti_xml_handler *handler, void *context);

/* Returns the value of an attribute; NULL: the element has no attribute of this name. */
const char *tutti_xml_value(const struct tutti_xml_element *element, const char *name);

/* Handlers use this macro to record an error at the current tag; its value is TUTTI_ERR_ARGUMENT.
 * It is a macro for the same reason as tutti_fail. The arguments may use tutti_message_last(). */
#define tutti_xml_fail(xml, ...) \
    tutti_message_recorded((tutti_xml_record(xml, __VA_ARGS__), TUTTI_ERR_ARGUMENT))
void tutti_xml_record(struct tutti_xml *xml, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));
/* Returns the line of the current tag, counted from 1, for messages about two places. */
size_t tutti_xml_line(struct tutti_xml *xml);

/* ---- writing --------------------------------------------------------------------------------- */

/* Writes name="value" with a blank before it; reading gives the same value. Bytes that XML cannot
 * hold, such as control characters or invalid UTF-8, become "?". */
void tutti_xml_put(FILE *out, const char *name, const char *value);

#endif
