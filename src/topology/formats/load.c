/* SPDX-License-Identifier: Apache-2.0
 * Loads a machine from a name, a line or a file; the format of a file is recognized by its
 * content. */
#include "topology/formats/load.h"

#include "base/file.h"
#include "base/result.h"
#include "topology/formats/hwloc_xml.h"
#include "topology/formats/known.h"
#include "topology/formats/line.h"
#include "topology/formats/matrix.h"
#include "topology/formats/nccl_xml.h"
#include "topology/formats/xml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* XML formats, by their outermost element. */
static const struct form {
    const char *element;
    int (*read)(const char *name, const char *text, size_t length, enum tutti_source source,
                struct tutti_inventory **ret_inventory);
} xml_forms[] = {
    {"system", tutti_xml_read_nccl},
    {"topology", tutti_hwloc_xml_read},
};

#define XML_FORMS (sizeof xml_forms / sizeof xml_forms[0])
#define BLANKS " \t\r\n"
/* Error messages show at most this many characters of an element's name. */
#define SHOWN 40

/* Returns the position after the first `end`, or else the end of the text. */
static const char *after_first(const char *text, const char *end)
{
    const char *found = strstr(text, end);

    return found != NULL ? found + strlen(end) : text + strlen(text);
}

/* Returns the first element's name, followed by the rest of the text. The result is "" if no
 * element follows the declarations and comments, and NULL if the text is not XML. */
static const char *first_element(const char *text)
{
    bool is_xml = false;

    if (strncmp(text, "\xef\xbb\xbf", 3) == 0)
        text += 3;
    for (;;) {
        text += strspn(text, BLANKS);
        is_xml = is_xml || *text == '<';
        if (strncmp(text, "<!--", 4) == 0)
            text = after_first(text, "-->");
        else if (strncmp(text, "<?", 2) == 0)
            text = after_first(text, "?>");
        else if (strncmp(text, "<!", 2) == 0)
            text = after_first(text, ">");
        else
            return *text == '<' ? text + 1 : is_xml ? "" : NULL;
    }
}

/* Reads XML, and completes the inventory. `element` is the result of first_element(). */
static int parse_xml(const char *name, const char *text, size_t length, const char *element,
                     struct tutti_inventory **ret_inventory)
{
    size_t used = strcspn(element, BLANKS "/>"), form = 0;
    struct tutti_inventory *inventory;
    int rc;

    /* If there is not even an element (used is 0), the first reader reports the XML error with its
     * position. */
    while (used > 0 && form < XML_FORMS &&
           (strlen(xml_forms[form].element) != used ||
            memcmp(xml_forms[form].element, element, used) != 0))
        form++;
    if (form == XML_FORMS)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%s begins with <%.*s>; a machine is XML that begins "
                          "with <system>, as NCCL writes it for NCCL_TOPO_DUMP_FILE, or with "
                          "<topology>, as lstopo does", name,
                          (int)(used < SHOWN ? used : SHOWN), element);
    TUTTI_TRY(xml_forms[form].read(name, text, length, TUTTI_SOURCE_FILE, &inventory));
    rc = tutti_inventory_complete(inventory);
    if (rc != TUTTI_OK) {
        tutti_inventory_destroy(inventory);
        return rc;
    }
    *ret_inventory = inventory;
    return TUTTI_OK;
}

int tutti_formats_parse(const char *name, const char *text, size_t length,
                        struct tutti_inventory **ret_inventory)
{
    const char *element = first_element(text);

    if (element != NULL)
        return parse_xml(name, text, length, element, ret_inventory);
    return tutti_matrix_is(text) ? tutti_matrix_read(name, text, TUTTI_SOURCE_FILE, ret_inventory)
                                 : tutti_line_read(name, text, ret_inventory);
}

static int load_file(const char *name, struct tutti_inventory **ret_inventory)
{
    char cure[TUTTI_MESSAGE_BYTES];
    size_t length;
    char *text;
    int rc;

    snprintf(cure, sizeof cure, "give a file of at most %u MiB with NCCL's or hwloc's XML or "
             "lines, a line such as \"8 gpus h100 nvswitch, 8 nics 400G, 2 cpus\", or a known name "
             "such as \"%s\"",
             TUTTI_XML_BYTES >> 20, tutti_known_machine(0)->name);
    TUTTI_TRY(tutti_file_read(name, TUTTI_XML_BYTES, cure, &text, &length));
    rc = tutti_formats_parse(strcmp(name, "-") == 0 ? "standard input" : name, text, length,
                             ret_inventory);
    free(text);
    return rc;
}

/* Returns the known machine whose name is the text, without blanks around it; NULL: there is
 * none. */
static const struct tutti_known_machine *find_known(const char *text, size_t length)
{
    const struct tutti_known_machine *known;
    size_t blanks = strspn(text, BLANKS);

    blanks = blanks < length ? blanks : length;
    text += blanks;
    length -= blanks;
    while (length > 0 && strchr(BLANKS, text[length - 1]) != NULL)
        length--;
    for (size_t i = 0; (known = tutti_known_machine(i)) != NULL; i++)
        if (strlen(known->name) == length && memcmp(known->name, text, length) == 0)
            break;
    return known;
}

/* Refuses hosts that are a known machine of several hosts, as in "4 hosts: gb200-nvl72". */
static int refuse_cluster(const struct tutti_known_machine *known)
{
    const char *colon = strchr(known->line, ':');

    if (strstr(known->line, " fabric ") != NULL)
        return tutti_fail(TUTTI_ERR_ARGUMENT,
                          "line: %s is a rack of %.*s; write \"2 racks: %s\" for two of them, or "
                          "\"2 hosts:%s\" for two hosts of one",
                          known->name, (int)(colon - known->line), known->line, known->name,
                          colon + 1);
    return tutti_fail(TUTTI_ERR_ARGUMENT, "line: %s has several hosts itself; give hosts such as "
                      "those of \"%s\"", known->name, known->line);
}

/* Writes a line of hosts or racks. `head` is the length of the text before its colon. A known
 * machine after the colon is replaced by its own line, if that describes one host, or the hosts of
 * a rack. TUTTI_ERR_ARGUMENT: it is another machine of several hosts. */
static int write_line(FILE *out, const char *line, size_t length, size_t head)
{
    const struct tutti_known_machine *known = NULL;
    size_t blanks = strspn(line, BLANKS "0123456789");
    bool is_racks = strncmp(line + blanks, "rack", strlen("rack")) == 0;

    if (head < length)
        known = find_known(line + head + 1, length - head - 1);
    if (known != NULL && strchr(known->line, ':') == NULL)
        fprintf(out, "%.*s: %s", (int)head, line, known->line);
    else if (known != NULL && is_racks && strstr(known->line, " fabric ") != NULL)
        fprintf(out, "%.*s of %s", (int)head, line, known->line);
    else if (known != NULL)
        return refuse_cluster(known);
    else
        fprintf(out, "%.*s", (int)length, line);
    return TUTTI_OK;
}

/* Reads a line in which the items of hosts may be a known machine, as in "4 hosts: dgx-h100". */
static int load_line(const char *line, struct tutti_inventory **ret_inventory)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    int rc = TUTTI_OK;

    if (out == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a line");
    while (*line != '\0' && rc == TUTTI_OK) {
        size_t length = strcspn(line, ";\n"), head = strcspn(line, ":;\n");

        rc = write_line(out, line, length, head);
        line += length;
        if (*line != '\0')
            putc(*line++, out);
    }
    if (fclose(out) != 0)
        rc = tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a line");
    if (rc == TUTTI_OK)
        rc = tutti_line_read("line", text, ret_inventory);
    free(text);
    return rc;
}

int tutti_formats_load(const char *what, struct tutti_inventory **ret_inventory)
{
    const struct tutti_known_machine *known = find_known(what, strlen(what));

    if (known != NULL)
        return tutti_line_read(known->name, known->line, ret_inventory);
    if (strpbrk(what, BLANKS ";:") != NULL && access(what, F_OK) != 0)
        return load_line(what, ret_inventory);
    return load_file(what, ret_inventory);
}
