/* SPDX-License-Identifier: Apache-2.0
 * Tables of measured choices (table.h). This file makes the names of machines, and replaces the
 * section of one machine in a table. */
#include "tuner/table.h"

#include "base/file.h"
#include "base/result.h"
#include "tuner/rules.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* ---- names --------------------------------------------------------------------------------- */

/* Room for ",cores=" and a number. */
enum { CORES_BYTES = 24 };

void tutti_host_describe(char ret_host[TUTTI_HOST_BYTES])
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    char raw[160], model[64], *out = ret_host;
    struct utsname names;

    /* `model` is the processor's name as the kernel gives it, or "" if the kernel gives none. */
    tutti_file_field("/proc/cpuinfo", "model name", model, sizeof model);
    snprintf(raw, sizeof raw, "%.24s %s", uname(&names) == 0 ? names.machine : "host", model);
    /* Each run of characters other than letters, digits, '.' and '-' becomes one '_'. There is none
     * at the end. */
    for (const char *in = raw; *in != '\0' && out < ret_host + TUTTI_HOST_BYTES - CORES_BYTES; in++)
        if (isalnum((unsigned char)*in) || *in == '.' || *in == '-')
            *out++ = *in;
        else if (out > ret_host && out[-1] != '_')
            *out++ = '_';
    while (out > ret_host && out[-1] == '_')
        out--;
    snprintf(out, CORES_BYTES, ",cores=%u", cores > 0 ? (unsigned)cores : 1u);
}

void tutti_fingerprint(const char *host, const struct tutti_tuner_view *view,
                       const char *transports, char ret_text[TUTTI_FINGERPRINT_BYTES])
{
    char cells[24] = "";

    if (view->places && view->places->cell)
        snprintf(cells, sizeof cells, ",cells=%u", view->places->ncells);
    snprintf(ret_text, TUTTI_FINGERPRINT_BYTES, "%s,ranks=%u,nodes=%u%s,%s", host, view->nranks,
             view->places && view->places->node ? view->places->nnodes : view->nranks, cells,
             transports);
}

/* ---- replacing ----------------------------------------------------------------------------- */

/* A text that grows. Its memory is large enough from the start. */
struct text {
    char *bytes;
    size_t size;
};

static void append(struct text *text, const char *bytes, size_t size)
{
    memcpy(text->bytes + text->size, bytes, size);
    text->size += size;
    text->bytes[text->size] = '\0';
}

/* Moves *line to its first word, and returns the length of that word. */
static size_t first_word(const char **line)
{
    *line += strspn(*line, " \t");
    return strcspn(*line, " \t\r\n;#");
}

/* Returns the length of the line that begins at `at`, including its end mark. */
static size_t line_size(const char *at)
{
    size_t size = strcspn(at, "\n;#");

    if (at[size] == '#')
        size += strcspn(at + size, "\n");
    return size + (at[size] != '\0');
}

/* True if the "on NAME" at `line` begins a section of this machine. */
static bool names_machine(const char *line, const char *fingerprint)
{
    size_t length;

    line += 2;
    length = first_word(&line);
    return length == strlen(fingerprint) && memcmp(line, fingerprint, length) == 0;
}

int tutti_table_replace(const char *table, const char *fingerprint, uint32_t collectives,
                        const char *lines, char **ret_table)
{
    enum { ADDED_BYTES = 64 }; /* more than "on ", newlines and the terminating zero */
    size_t room = strlen(table) + strlen(fingerprint) + strlen(lines) + ADDED_BYTES;
    struct text others = {.bytes = calloc(1, room)}, ours = {.bytes = calloc(1, room)};
    bool is_ours = false;
    char header[TUTTI_FINGERPRINT_BYTES + 8];

    if (others.bytes == NULL || ours.bytes == NULL) {
        free(others.bytes);
        free(ours.bytes);
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a tuning table of %zu bytes", room);
    }
    for (const char *at = table; *at != '\0';) {
        size_t size = line_size(at);
        const char *word = at;
        size_t length = first_word(&word);
        enum tutti_collective collective = tutti_collective_find(word, length);
        bool is_header = length == 2 && strncmp(word, "on", 2) == 0;

        if (is_header)
            is_ours = names_machine(word, fingerprint);
        if (!is_ours)
            append(&others, at, size);
        else if (!is_header && (collective == TUTTI_COLLECTIVE_COUNT ||
                                (collectives >> collective & 1) == 0))
            append(&ours, at, size);
        at += size;
    }
    if (others.size > 0 && others.bytes[others.size - 1] != '\n')
        append(&others, "\n", 1);
    snprintf(header, sizeof header, "on %s\n", fingerprint);
    append(&others, header, strlen(header));
    append(&others, ours.bytes, ours.size);
    if (others.bytes[others.size - 1] != '\n')
        append(&others, "\n", 1);
    append(&others, lines, strlen(lines));
    free(ours.bytes);
    *ret_table = others.bytes;
    return TUTTI_OK;
}

/* Writes a new file. Returns 0, or the errno of the first step that failed. */
static int write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    int error;

    if (file == NULL)
        return errno;
    error = fputs(text, file) >= 0 && fflush(file) == 0 && fsync(fileno(file)) == 0 ? 0 : errno;
    if (fclose(file) != 0 && error == 0)
        error = errno;
    return error;
}

int tutti_table_write(const char *path, const char *text)
{
    char aside[4096];
    int error;

    if (snprintf(aside, sizeof aside, "%s.%ld", path, (long)getpid()) >= (int)sizeof aside)
        return tutti_fail(TUTTI_ERR_USAGE, "the name of the tuning table is too long: %.64s...",
                          path);
    error = write_file(aside, text);
    if (error == 0 && rename(aside, path) != 0)
        error = errno;
    if (error == 0)
        return TUTTI_OK;
    unlink(aside);
    return tutti_fail(TUTTI_ERR_USAGE, "cannot write %s: %s; rank 0 must be able to make files "
                      "beside it", path, strerror(error));
}
