/* SPDX-License-Identifier: Apache-2.0
 * XML from strangers: elements are handed over one by one, within limits, and every mistake is
 * named with line and column. And XML of ours: attributes with what needs it escaped.
 *
 * Text is UTF-8, or what expat knows beside it. A document type is passed over, as hwloc's files
 * have one; with declarations of its own it is refused, for entities blow up a few bytes to
 * gigabytes.
 */
#ifndef TUTTI_TOPOLOGY_FORMATS_XML_H
#define TUTTI_TOPOLOGY_FORMATS_XML_H

#include "base/result.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define TUTTI_XML_BYTES (16u << 20)
#define TUTTI_XML_ELEMENTS (1u << 18)
#define TUTTI_XML_DEPTH 64u
#define TUTTI_XML_ATTRIBUTES 64u
#define TUTTI_XML_VALUE_BYTES (16u << 10)
/* From one "<" to the next, so of the text of one element as well. */
#define TUTTI_XML_SPAN_BYTES (1u << 20)

/* ---- reading --------------------------------------------------------------------------------- */

/* The reader at work: where it stands is where errors are. */
struct tutti_xml;

struct tutti_xml_attribute {
    const char *name, *value;
};

/* Lives as long as the call that it is given to. */
struct tutti_xml_element {
    const char *name;
    const struct tutti_xml_attribute *attributes;
    uint32_t nattributes;
    uint32_t depth; /* elements around it: 0 for the outermost */
};

/* A result other than TUTTI_OK ends the reading, and is its result. */
struct tutti_xml_handler {
    /* <name attribute="value">; <name/> is begun and ended. Required. */
    int (*begin)(void *context, struct tutti_xml *xml, const struct tutti_xml_element *element);
    /* </name>, with the characters since the last tag, blanks and all: of an element without others
     * inside that is its text. Ends in zero, and is valid during the call. Optional. */
    int (*end)(void *context, struct tutti_xml *xml, const char *name, const char *text);
};

/* Read a whole document. `name` is what errors begin with, such as the file's. The text need not
 * end in zero. TUTTI_ERR_ARGUMENT: not well formed, or beyond a limit; "name:line:column: what". */
int tutti_xml_read(const char *name, const char *text, size_t length,
                   const struct tutti_xml_handler *handler, void *context);

/* The value of an attribute; NULL: the element has none of that name. */
const char *tutti_xml_value(const struct tutti_xml_element *element, const char *name);

/* For handlers: fail with TUTTI_ERR_ARGUMENT at the tag at hand. A macro for the reason that
 * tutti_fail is one. The arguments may use tutti_last_message(). */
#define tutti_xml_fail(xml, ...) \
    tutti_recorded((tutti_xml_record(xml, __VA_ARGS__), TUTTI_ERR_ARGUMENT))
void tutti_xml_record(struct tutti_xml *xml, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));
/* The line of the tag at hand, from 1 on, for messages about two places. */
size_t tutti_xml_line(struct tutti_xml *xml);

/* ---- writing --------------------------------------------------------------------------------- */

/* name="value", with a blank before it, so that reading gives the same value. Bytes that XML cannot
 * hold, such as control characters or what is no UTF-8, become "?". */
void tutti_xml_put(FILE *out, const char *name, const char *value);

#endif
