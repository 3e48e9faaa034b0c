/* SPDX-License-Identifier: Apache-2.0
 * Reads the matrix that nvidia-smi prints; matrix_build.c makes devices from this matrix. */
#include "topology/formats/matrix.h"

#include "base/result.h"
#include "topology/formats/matrix_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- lines and words ------------------------------------------------------------------------- */

/* A text that is read line by line. */
struct lines {
    const char *at; /* current line */
    size_t length;  /* of the line, without its end */
    size_t number;  /* of the line, from 1; 0: no line was read yet */
};

/* Goes to the next line. Returns false at the end of the text. */
static bool next_line(struct lines *lines)
{
    if (lines->number > 0) {
        if (lines->at[lines->length] == '\0')
            return false;
        lines->at += lines->length + 1;
    }
    lines->length = strcspn(lines->at, "\n");
    lines->number++;
    return true;
}

/* Finds the next word of a line at or after *at, and moves *at behind the word. Returns the length
 * of the word, which is 0 at the end of the line. */
static size_t next_word(const struct lines *lines, size_t *at, const char **ret_word)
{
    size_t begin = *at, end;

    while (begin < lines->length && strchr(" \t\r", lines->at[begin]) != NULL)
        begin++;
    for (end = begin; end < lines->length && strchr(" \t\r", lines->at[end]) == NULL; end++)
        continue;
    *ret_word = lines->at + begin;
    *at = end;
    return end - begin;
}

static bool is_word(const char *word, size_t length, const char *text)
{
    return length == strlen(text) && memcmp(word, text, length) == 0;
}

static bool is_printable(const char *word, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (word[i] < '!' || word[i] > '~')
            return false;
    return true;
}

/* Returns true if the text is printable; blanks are allowed. */
static bool is_name(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (text[i] < ' ' || text[i] > '~')
            return false;
    return true;
}

/* Returns true if the current line is the header of a matrix: the first words are GPU0 and another
 * device. A row also begins with GPU0, but an X follows. Some other tables of nvidia-smi begin with
 * GPU0 and OK. */
static bool is_header(const struct lines *lines)
{
    size_t at = 0;
    const char *word;
    size_t length = next_word(lines, &at, &word);

    if (!is_word(word, length, "GPU0"))
        return false;
    length = next_word(lines, &at, &word);
    return length > 1 && !is_word(word, length, "OK");
}

static bool find_header(struct lines *lines)
{
    while (next_line(lines))
        if (is_header(lines))
            return true;
    return false;
}

bool tutti_matrix_is(const char *text)
{
    struct lines lines = {.at = text};

    return find_header(&lines);
}

/* ---- the matrix ------------------------------------------------------------------------------ */

static int fail_at_line(const char *name, const struct lines *lines, const char *what)
{
    return tutti_fail(TUTTI_ERR_ARGUMENT, "%s:%zu: %s", name, lines->number, what);
}

/* Reads the names of the devices. */
static int read_header(const char *name, const struct lines *lines, struct tutti_matrix *matrix)
{
    size_t at = 0, length;
    const char *word;

    while ((length = next_word(lines, &at, &word)) > 0 && !is_word(word, length, "CPU")) {
        struct tutti_matrix_device *device = &matrix->devices[matrix->count];

        if (matrix->count++ == TUTTI_MATRIX_DEVICES)
            return fail_at_line(name, lines, "more devices than can be read");
        if (!is_printable(word, length))
            return fail_at_line(name, lines, "a device's name has bytes that are not printable");
        device->is_gpu = length > 3 && memcmp(word, "GPU", 3) == 0;
        snprintf(device->name, sizeof device->name, "%.*s", (int)length, word);
    }
    return TUTTI_OK;
}

/* Parses a cell such as "NV12" or "PIX"; false: the word is no cell. */
static bool parse_cell(const char *word, size_t length, struct tutti_matrix_cell *ret_cell)
{
    static const struct {
        const char *text;
        enum tutti_matrix_distance distance;
    } names[] = {
        {"X", TUTTI_MATRIX_SELF}, {"PIX", TUTTI_MATRIX_PIX},   {"PXB", TUTTI_MATRIX_PXB},
        {"PHB", TUTTI_MATRIX_NODE}, {"NODE", TUTTI_MATRIX_NODE}, {"SYS", TUTTI_MATRIX_SYS},
        {"SOC", TUTTI_MATRIX_SYS}, /* name in older versions */
    };
    char digits[4] = "";

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (is_word(word, length, names[i].text)) {
            *ret_cell = (struct tutti_matrix_cell){.distance = names[i].distance};
            return true;
        }
    if (length < 3 || length > 5 || memcmp(word, "NV", 2) != 0 ||
        strspn(word + 2, "0123456789") < length - 2)
        return false;
    memcpy(digits, word + 2, length - 2);
    *ret_cell = (struct tutti_matrix_cell){.distance = TUTTI_MATRIX_NVLINK,
                                           .nlinks = (uint32_t)atoi(digits)};
    return ret_cell->nlinks > 0;
}

/* Returns the device with this name; the number of devices: none. */
static uint32_t find_device(const struct tutti_matrix *matrix, const char *word, size_t length)
{
    uint32_t device = 0;

    while (device < matrix->count && !is_word(word, length, matrix->devices[device].name))
        device++;
    return device;
}

/* Reads the cells and the CPUs of a row; `at` is the position after its name. */
static int read_row(const char *name, const struct lines *lines, size_t at, uint32_t row,
                    struct tutti_matrix *matrix)
{
    struct tutti_matrix_device *device = &matrix->devices[row];
    const char *word;
    size_t length;

    for (uint32_t column = 0; column < matrix->count; column++) {
        length = next_word(lines, &at, &word);
        if (!parse_cell(word, length, &matrix->cells[row][column]))
            return tutti_fail(TUTTI_ERR_ARGUMENT, "%s:%zu: \"%.*s\" of %s and %s is none of X, "
                              "NV1, ..., PIX, PXB, PHB, NODE, SYS", name, lines->number,
                              (int)(length < 40 ? length : 40), word, device->name,
                              matrix->devices[column].name);
        if ((row == column) != (matrix->cells[row][column].distance == TUTTI_MATRIX_SELF))
            return fail_at_line(name, lines,
                                "an X must stand where a row and a column have the same "
                                "name, and only there");
    }
    length = next_word(lines, &at, &word);
    if (length > 0 && length < sizeof device->affinity && *word >= '0' && *word <= '9')
        snprintf(device->affinity, sizeof device->affinity, "%.*s", (int)length, word);
    device->has_row = true;
    return TUTTI_OK;
}

/* Reads the rows, up to the first line that is not a row. */
static int read_rows(const char *name, struct lines *lines, struct tutti_matrix *matrix)
{
    while (next_line(lines)) {
        size_t at = 0, length;
        const char *word;
        uint32_t row;

        length = next_word(lines, &at, &word);
        row = find_device(matrix, word, length);
        if (row == matrix->count)
            break;
        TUTTI_TRY(read_row(name, lines, at, row, matrix));
    }
    for (uint32_t i = 0; i < matrix->count; i++)
        if (!matrix->devices[i].has_row)
            return tutti_fail(TUTTI_ERR_ARGUMENT, "%s:%zu: the row of %s is missing; give the "
                              "whole matrix", name, lines->number, matrix->devices[i].name);
    return TUTTI_OK;
}

/* Replaces names by those of lines such as "  NIC0: mlx5_0", up to the end of the text. */
static void read_legend(struct lines *lines, struct tutti_matrix *matrix)
{
    while (next_line(lines)) {
        size_t at = 0, length;
        const char *word, *name;
        uint32_t device;

        length = next_word(lines, &at, &word);
        if (length < 2 || word[length - 1] != ':')
            continue;
        device = find_device(matrix, word, length - 1);
        length = next_word(lines, &at, &name);
        if (device < matrix->count && length > 0 && is_printable(name, length))
            snprintf(matrix->devices[device].name, sizeof matrix->devices[device].name, "%.*s",
                     (int)length, name);
    }
}

/* Reads the names of products from lines such as "GPU 0: NVIDIA B200 (UUID: ...)", anywhere in the
 * text. */
static void read_models(const char *text, struct tutti_matrix *matrix)
{
    struct lines lines = {.at = text};

    while (next_line(&lines)) {
        const char *end = memchr(lines.at, '(', lines.length), *word;
        size_t at = 0, length = next_word(&lines, &at, &word);
        char name[16];
        uint32_t device;

        if (!is_word(word, length, "GPU") || end == NULL)
            continue;
        length = next_word(&lines, &at, &word);
        if (length < 2 || length > 5 || word[length - 1] != ':' ||
            strspn(word, "0123456789") != length - 1)
            continue;
        snprintf(name, sizeof name, "GPU%.*s", (int)length - 1, word);
        device = find_device(matrix, name, strlen(name));
        for (word += length; word < end && *word == ' '; word++)
            continue;
        while (end > word && end[-1] == ' ')
            end--;
        if (device < matrix->count && end > word && is_name(word, (size_t)(end - word)))
            snprintf(matrix->devices[device].model, sizeof matrix->devices[device].model, "%.*s",
                     (int)(end - word), word);
    }
}

int tutti_matrix_read(const char *name, const char *text, enum tutti_source source,
                      struct tutti_inventory **ret_inventory)
{
    struct lines lines = {.at = text};
    struct tutti_matrix *matrix = calloc(1, sizeof *matrix);
    int rc;

    if (matrix == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a matrix");
    if (!find_header(&lines)) {
        rc = fail_at_line(name, &lines, "no line begins with GPU0; give the output of "
                          "nvidia-smi topo -m");
        goto drop_matrix;
    }
    TUTTI_TRY_OR(drop_matrix, rc, read_header(name, &lines, matrix));
    TUTTI_TRY_OR(drop_matrix, rc, read_rows(name, &lines, matrix));
    read_legend(&lines, matrix);
    read_models(text, matrix);
    rc = tutti_matrix_build(matrix, source, ret_inventory);

drop_matrix:
    free(matrix);
    return rc;
}
