/* SPDX-License-Identifier: Apache-2.0
 * Reads XML with expat, which calls back for each element, and enforces limits that expat lacks.
 * Writes attributes. */
#include "topology/formats/xml.h"

#include "base/array.h"
#include "base/expat.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct tutti_xml {
    XML_Parser parser;
    const char *name;  /* of the document, for messages */
    const char *input; /* the document */
    const struct tutti_xml_handler *handler;
    void *context;      /* of the handler */
    uint32_t depth;     /* open elements */
    uint32_t nelements; /* elements so far */
    bool has_doctype;
    char *text;         /* characters since the last tag; not terminated */
    size_t length;      /* of text */
    uint32_t capacity;  /* bytes for which `text` has memory */
    int rc;             /* the first error; TUTTI_OK: none */
};

/* ---- errors ---------------------------------------------------------------------------------- */

/* Records the message "name:line:column: what". Replaces control characters, because a line break
 * in a value must not split the message into two lines. */
static void record_at(const struct tutti_xml *xml, size_t line, size_t column, char *what)
{
    for (char *at = what; *at != '\0'; at++)
        if ((unsigned char)*at < 0x20 || *at == 0x7f)
            *at = '?';
    tutti_message_record_failure("%s:%zu:%zu: %s", xml->name, line, column, what);
}

void tutti_xml_record(struct tutti_xml *xml, const char *format, ...)
{
    char what[TUTTI_MESSAGE_BYTES];
    va_list args;

    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    record_at(xml, XML_GetCurrentLineNumber64(xml->parser),
              XML_GetCurrentColumnNumber64(xml->parser) + 1, what);
}

size_t tutti_xml_line(struct tutti_xml *xml)
{
    return XML_GetCurrentLineNumber64(xml->parser);
}

/* Fails with the position of a byte of the document; expat does not run yet. */
static int fail_at_byte(const struct tutti_xml *xml, size_t at, const char *what)
{
    char copy[TUTTI_MESSAGE_BYTES];
    size_t line = 1, start = 0;

    for (size_t i = 0; i < at; i++)
        if (xml->input[i] == '\n') {
            line++;
            start = i + 1;
        }
    snprintf(copy, sizeof copy, "%s", what);
    record_at(xml, line, at - start + 1, copy);
    return TUTTI_ERR_ARGUMENT;
}

/* Makes expat stop, and keeps the error for tutti_xml_read(). */
static void stop(struct tutti_xml *xml, int rc)
{
    xml->rc = rc;
    XML_StopParser(xml->parser, XML_FALSE);
}

/* ---- callbacks, some of which expat calls even after it was stopped -------------------------- */

/* Returns true if the current tag has an entity that XML does not define. After a document type
 * such an entity may have an external declaration, so expat silently drops it from values. */
static bool has_unknown_entity(const struct tutti_xml *xml)
{
    static const char *const known[] = {"#", "lt;", "gt;", "amp;", "quot;", "apos;"};
    const char *at = xml->input + XML_GetCurrentByteIndex64(xml->parser);
    const char *end = at + XML_GetCurrentByteCount64(xml->parser);

    while ((at = memchr(at, '&', (size_t)(end - at))) != NULL) {
        bool is_known = false;

        at++;
        for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
            is_known = is_known || ((size_t)(end - at) >= strlen(known[i]) &&
                                    memcmp(at, known[i], strlen(known[i])) == 0);
        if (!is_known)
            return true;
    }
    return false;
}

/* Checks the limits for an element. */
static int check_element(struct tutti_xml *xml, const struct tutti_xml_element *element)
{
    if (++xml->nelements > TUTTI_XML_ELEMENTS)
        return tutti_xml_fail(xml, "more than %u elements; give a file with fewer",
                              TUTTI_XML_ELEMENTS);
    if (element->depth >= TUTTI_XML_DEPTH)
        return tutti_xml_fail(xml, "<%.40s> is inside more than %u others; take it out",
                              element->name, TUTTI_XML_DEPTH - 1);
    if (xml->has_doctype && has_unknown_entity(xml))
        return tutti_xml_fail(xml, "<%.40s> has an entity that XML does not define; write out what "
                              "it stands for", element->name);
    for (uint32_t i = 0; i < element->nattributes; i++)
        if (strlen(element->attributes[i].value) > TUTTI_XML_VALUE_BYTES)
            return tutti_xml_fail(xml, "<%.40s>'s %.40s has more than %u bytes; shorten it",
                                  element->name, element->attributes[i].name,
                                  TUTTI_XML_VALUE_BYTES);
    return TUTTI_OK;
}

static void on_begin(void *context, const char *name, const char **pairs)
{
    struct tutti_xml *xml = context;
    struct tutti_xml_attribute attributes[TUTTI_XML_ATTRIBUTES];
    struct tutti_xml_element element = {
        .name = name, .attributes = attributes, .depth = xml->depth,
    };
    int rc;

    if (xml->rc != TUTTI_OK)
        return;
    for (; pairs[0] != NULL && element.nattributes < TUTTI_XML_ATTRIBUTES; pairs += 2)
        attributes[element.nattributes++] =
            (struct tutti_xml_attribute){.name = pairs[0], .value = pairs[1]};
    xml->length = 0;
    xml->depth++;
    rc = pairs[0] == NULL ? check_element(xml, &element)
                          : tutti_xml_fail(xml, "<%.40s> has more than %u attributes; remove some",
                                           name, TUTTI_XML_ATTRIBUTES);
    if (rc == TUTTI_OK)
        rc = xml->handler->begin(xml->context, xml, &element);
    if (rc != TUTTI_OK)
        stop(xml, rc);
}

static void on_end(void *context, const char *name)
{
    struct tutti_xml *xml = context;
    int rc = TUTTI_OK;

    if (xml->rc != TUTTI_OK)
        return;
    if (xml->handler->end != NULL) {
        if (xml->length > 0)
            xml->text[xml->length] = '\0';
        rc = xml->handler->end(xml->context, xml, name, xml->length > 0 ? xml->text : "");
    }
    xml->depth--;
    xml->length = 0;
    if (rc != TUTTI_OK)
        stop(xml, rc);
}

static void on_text(void *context, const char *text, int length)
{
    struct tutti_xml *xml = context;
    int rc;

    if (xml->rc != TUTTI_OK || xml->handler->end == NULL)
        return;
    rc = TUTTI_ARRAY_RESERVE(xml->text, xml->length + (size_t)length + 1, xml->capacity,
                             "bytes of text in XML");
    if (rc != TUTTI_OK) {
        stop(xml, rc);
        return;
    }
    memcpy(xml->text + xml->length, text, (size_t)length);
    xml->length += (size_t)length;
}

static void on_doctype(void *context, const char *name, const char *system, const char *public,
                       int has_subset)
{
    struct tutti_xml *xml = context;

    (void)name, (void)system, (void)public;
    xml->has_doctype = true;
    if (has_subset && xml->rc == TUTTI_OK)
        stop(xml, tutti_xml_fail(xml, "a document type with declarations of its own; remove them, "
                                 "from \"[\" to \"]\""));
}

static void on_skipped_entity(void *context, const char *name, int is_parameter)
{
    struct tutti_xml *xml = context;

    (void)is_parameter;
    if (xml->rc == TUTTI_OK)
        stop(xml, tutti_xml_fail(xml, "\"&%.40s;\" is not defined; write the characters instead",
                                 name));
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Refuses input that would make expat use much memory before its first callback. */
static int check_input(const struct tutti_xml *xml, size_t length)
{
    size_t start = 0;

    if (length > TUTTI_XML_BYTES)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%s:1:1: %zu bytes, but at most %u are read; give "
                          "a smaller file", xml->name, length, TUTTI_XML_BYTES);
    for (size_t i = 0; i < length; i++) {
        if (xml->input[i] == '\0')
            return fail_at_byte(xml, i, "a zero byte; give XML in UTF-8");
        if (xml->input[i] == '<')
            start = i;
        if (i - start >= TUTTI_XML_SPAN_BYTES)
            return fail_at_byte(xml, start, "more than 1 MiB up to the next \"<\"; shorten it");
    }
    return TUTTI_OK;
}

static int parse(struct tutti_xml *xml, size_t length)
{
    enum XML_Error error;

    TUTTI_TRY(check_input(xml, length));
    XML_SetUserData(xml->parser, xml);
    XML_SetElementHandler(xml->parser, on_begin, on_end);
    XML_SetCharacterDataHandler(xml->parser, on_text);
    XML_SetStartDoctypeDeclHandler(xml->parser, on_doctype);
    XML_SetSkippedEntityHandler(xml->parser, on_skipped_entity);
    if (XML_Parse(xml->parser, xml->input, (int)length, XML_TRUE) == XML_STATUS_OK ||
        xml->rc != TUTTI_OK)
        return xml->rc;
    error = XML_GetErrorCode(xml->parser);
    if (error == XML_ERROR_NO_MEMORY)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to read %s", xml->name);
    return tutti_xml_fail(xml, "%s; mend the XML here", XML_ErrorString(error));
}

int tutti_xml_read(const char *name, const char *text, size_t length,
                   const struct tutti_xml_handler *handler, void *context)
{
    struct tutti_xml xml = {
        .parser = XML_ParserCreate(NULL), .name = name, .input = text,
        .handler = handler, .context = context,
    };
    int rc;

    if (xml.parser == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to read %s", name);
    rc = parse(&xml, length);
    XML_ParserFree(xml.parser);
    free(xml.text);
    return rc;
}

const char *tutti_xml_value(const struct tutti_xml_element *element, const char *name)
{
    for (uint32_t i = 0; i < element->nattributes; i++)
        if (strcmp(element->attributes[i].name, name) == 0)
            return element->attributes[i].value;
    return NULL;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Returns the number of UTF-8 bytes of the character at `text`; 0: XML does not allow it. */
static size_t character_bytes(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    size_t count = at[0] < 0x80 ? 1 : at[0] < 0xc2 ? 0 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3
                   : at[0] < 0xf5 ? 4 : 0;

    for (size_t i = 1; i < count; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    if (count == 1 && at[0] < 0x20 && at[0] != '\t' && at[0] != '\n' && at[0] != '\r')
        return 0;
    /* XML allows no overlong forms, no surrogates, no code points above U+10FFFF, and not the
     * noncharacters U+FFFE and U+FFFF. */
    if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] >= 0xa0) ||
        (at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] >= 0x90) ||
        (at[0] == 0xef && at[1] == 0xbf && at[2] >= 0xbe))
        return 0;
    return count;
}

void tutti_xml_put(FILE *out, const char *name, const char *value)
{
    fprintf(out, " %s=\"", name);
    while (*value != '\0') {
        size_t count = character_bytes(value);

        if (count == 0)
            fputc('?', out);
        else if (strchr("&<>\"\t\n\r", *value) != NULL)
            fprintf(out, "&#%d;", *value);
        else
            fwrite(value, 1, count, out);
        value += count > 0 ? count : 1;
    }
    fputc('"', out);
}
