/* SPDX-License-Identifier: Apache-2.0
 * Reads the matrices of hwloc's XML that tell which objects are linked, and how fast. */
#include "topology/formats/hwloc_matrix.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

void tutti_hwloc_matrix_fini(struct tutti_hwloc_matrix *matrix)
{
    free(matrix->name);
    free(matrix->objects);
    free(matrix->values);
    *matrix = (struct tutti_hwloc_matrix){0};
}

void tutti_hwloc_matrix_reader_fini(struct tutti_hwloc_matrix_reader *reader)
{
    tutti_hwloc_matrix_fini(&reader->matrix);
    *reader = (struct tutti_hwloc_matrix_reader){0};
}

/* Returns true if the links of the inventory come from matrices with this name. These matrices
 * always identify their objects by gp_index. */
static bool is_used(const char *name)
{
    return name != NULL &&
           (strcmp(name, "NVLinkBandwidth") == 0 || strcmp(name, "XGMIBandwidth") == 0 ||
            strcmp(name, "XGMIHops") == 0);
}

int tutti_hwloc_matrix_begin(struct tutti_hwloc_matrix_reader *reader, struct tutti_xml *xml,
                             const struct tutti_xml_element *element)
{
    const char *name = tutti_xml_value(element, "name");
    const char *count = tutti_xml_value(element, "nbobjs");
    size_t n = 0;

    tutti_hwloc_matrix_reader_fini(reader);
    if (!is_used(name))
        return TUTTI_OK;
    if (count != NULL && strlen(count) <= 4 && count[strspn(count, "0123456789")] == '\0')
        n = strtoul(count, NULL, 10);
    if (n == 0 || n > TUTTI_HWLOC_MATRIX_OBJECTS)
        return tutti_xml_fail(xml, "nbobjs=\"%.40s\" is no number of objects from 1 to %u",
                              count == NULL ? "" : count, TUTTI_HWLOC_MATRIX_OBJECTS);
    reader->matrix = (struct tutti_hwloc_matrix){
        .name = strdup(name), .nobjects = (uint32_t)n,
        .objects = calloc(n, sizeof(uint64_t)), .values = calloc(n * n, sizeof(uint64_t)),
    };
    if (reader->matrix.name == NULL || reader->matrix.objects == NULL ||
        reader->matrix.values == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a matrix of %zu objects", n);
    return TUTTI_OK;
}

/* Appends numbers that are separated by blanks to `numbers`, which has room for `most`. An index
 * may be preceded by its type, such as "OSDev:". */
static int read_numbers(struct tutti_xml *xml, const char *text, uint64_t *numbers, size_t *count,
                        size_t most)
{
    static const char blanks[] = " \t\r\n";

    for (text += strspn(text, blanks); *text != '\0'; text += strspn(text, blanks)) {
        size_t length = strcspn(text, blanks), kind = strcspn(text, ":");
        const char *digits = kind < length ? text + kind + 1 : text;
        size_t ndigits = strspn(digits, "0123456789");

        if (ndigits == 0 || ndigits > 18 || digits + ndigits != text + length)
            return tutti_xml_fail(xml, "\"%.*s\" in a matrix is no number",
                                  (int)(length < 40 ? length : 40), text);
        if (*count == most)
            return tutti_xml_fail(xml, "more than %zu numbers for a matrix", most);
        numbers[(*count)++] = strtoull(digits, NULL, 10);
        text += length;
    }
    return TUTTI_OK;
}

int tutti_hwloc_matrix_text(struct tutti_hwloc_matrix_reader *reader, struct tutti_xml *xml,
                            const char *name, const char *text)
{
    struct tutti_hwloc_matrix *matrix = &reader->matrix;
    size_t n = matrix->nobjects;

    if (matrix->name == NULL)
        return TUTTI_OK;
    if (strcmp(name, "indexes") == 0)
        return read_numbers(xml, text, matrix->objects, &reader->nindexes, n);
    if (strcmp(name, "u64values") == 0)
        return read_numbers(xml, text, matrix->values, &reader->nvalues, n * n);
    return TUTTI_OK;
}

int tutti_hwloc_matrix_end(struct tutti_hwloc_matrix_reader *reader, struct tutti_xml *xml,
                           struct tutti_hwloc *hwloc)
{
    size_t n = reader->matrix.nobjects;

    if (reader->matrix.name == NULL)
        return TUTTI_OK;
    if (reader->nindexes != n || reader->nvalues != n * n)
        return tutti_xml_fail(xml, "%zu indexes and %zu values in a matrix of %zu objects",
                              reader->nindexes, reader->nvalues, n);
    if (hwloc->nmatrices == TUTTI_HWLOC_MATRICES)
        return tutti_xml_fail(xml, "more than %u matrices of links", TUTTI_HWLOC_MATRICES);
    TUTTI_TRY(TUTTI_ARRAY_ROOM(hwloc->matrices, hwloc->nmatrices, hwloc->matrix_capacity,
                               "matrices of links"));
    hwloc->matrices[hwloc->nmatrices++] = reader->matrix;
    *reader = (struct tutti_hwloc_matrix_reader){0};
    return TUTTI_OK;
}
