/* SPDX-License-Identifier: Apache-2.0
 * Reads files as a whole. Pipes and files of /proc do not report their length, so every file is
 * read until it ends. */
#include "base/file.h"

#include "base/result.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BYTES ((size_t)4096)

/* Of the two bytes beyond the limit, one is for the terminating zero, and one tells a file of
 * exactly limit_bytes from a longer one. */
static enum tutti_file_end read_all(FILE *file, size_t limit_bytes, char **bytes,
                                    size_t *ret_length)
{
    size_t length = 0, capacity = 0, most = limit_bytes + 2;

    do {
        char *grown;

        capacity = capacity == 0 ? FIRST_BYTES : 2 * capacity;
        if (capacity > most)
            capacity = most;
        grown = realloc(*bytes, capacity);
        if (grown == NULL)
            return TUTTI_FILE_NO_MEMORY;
        *bytes = grown;
        length += fread(grown + length, 1, capacity - length - 1, file);
    } while (length == capacity - 1 && capacity < most);
    if (ferror(file))
        return TUTTI_FILE_NOT_READ;
    if (length > limit_bytes)
        return TUTTI_FILE_TOO_LONG;
    (*bytes)[length] = '\0';
    *ret_length = length;
    return TUTTI_FILE_DONE;
}

/* Reads the rest of `file` and closes it, unless it is standard input. NULL: fopen has failed. */
static enum tutti_file_end load(FILE *file, size_t limit_bytes, char **ret_bytes,
                                size_t *ret_length)
{
    enum tutti_file_end end;
    char *bytes = NULL;
    int error;

    if (file == NULL)
        return TUTTI_FILE_NOT_OPENED;
    end = read_all(file, limit_bytes, &bytes, ret_length);
    error = errno;
    if (file != stdin)
        fclose(file);
    errno = error;
    if (end == TUTTI_FILE_DONE)
        *ret_bytes = bytes;
    else
        free(bytes);
    return end;
}

enum tutti_file_end tutti_file_load(const char *path, size_t limit_bytes, char **ret_bytes,
                                    size_t *ret_length)
{
    return load(fopen(path, "re"), limit_bytes, ret_bytes, ret_length);
}

int tutti_file_read(const char *name, size_t limit_bytes, const char *cure, char **ret_text,
                    size_t *ret_length)
{
    FILE *file = strcmp(name, "-") == 0 ? stdin : fopen(name, "re");
    size_t length;
    char *text;

    switch (load(file, limit_bytes, &text, &length)) {
    case TUTTI_FILE_DONE: break;
    case TUTTI_FILE_NOT_OPENED:
        return tutti_fail(TUTTI_ERR_ARGUMENT, "open %s: %s; %s", name, strerror(errno), cure);
    case TUTTI_FILE_NOT_READ:
        return tutti_fail(TUTTI_ERR_ARGUMENT, "read %s: %s; give a regular file", name,
                          strerror(errno));
    case TUTTI_FILE_TOO_LONG:
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%s has more than %zu bytes; %s", name, limit_bytes,
                          cure);
    case TUTTI_FILE_NO_MEMORY: return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to read %s", name);
    }
    if (strlen(text) != length) {
        free(text);
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%s has a zero byte, so it is no text; %s", name,
                          cure);
    }
    *ret_text = text;
    *ret_length = length;
    return TUTTI_OK;
}

bool tutti_file_line(const char *path, char *ret_line, size_t size_bytes)
{
    FILE *file = fopen(path, "re");

    ret_line[0] = '\0';
    if (file == NULL)
        return false;
    if (fgets(ret_line, (int)size_bytes, file) == NULL)
        ret_line[0] = '\0';
    fclose(file);
    ret_line[strcspn(ret_line, "\n")] = '\0';
    return ret_line[0] != '\0';
}

bool tutti_file_field(const char *path, const char *name, char *ret_text, size_t size_bytes)
{
    FILE *file = fopen(path, "re");
    size_t length = strlen(name);
    char line[256];

    ret_text[0] = '\0';
    if (file == NULL)
        return false;
    while (ret_text[0] == '\0' && fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, name, length) == 0 && line[length] != '\0' &&
            strchr(": \t", line[length]) != NULL)
            snprintf(ret_text, size_bytes, "%s", line + length + strspn(line + length, ": \t"));
    }
    fclose(file);
    return ret_text[0] != '\0';
}
