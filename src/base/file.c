/* SPDX-License-Identifier: Apache-2.0
 * Reads a text file as a whole. Pipes and files of /proc do not report their length, so every file
 * is read until it ends. */
#include "base/file.h"

#include "base/result.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BYTES ((size_t)4096)

/* Of the two bytes beyond the limit, one is for the terminating zero, and one tells a file of
 * exactly limit_bytes from a longer one. */
static int read_all(FILE *file, const char *name, size_t limit_bytes, char **text,
                    size_t *ret_length)
{
    size_t length = 0, capacity = 0, most = limit_bytes + 2;

    do {
        char *grown;

        capacity = capacity == 0 ? FIRST_BYTES : 2 * capacity;
        if (capacity > most)
            capacity = most;
        grown = realloc(*text, capacity);
        if (grown == NULL)
            return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %zu bytes of %s", capacity, name);
        *text = grown;
        length += fread(grown + length, 1, capacity - length - 1, file);
    } while (length == capacity - 1 && capacity < most);
    if (ferror(file))
        return tutti_fail(TUTTI_ERR_ARGUMENT, "read %s: %s; is it a file?", name, strerror(errno));
    (*text)[length] = '\0';
    *ret_length = length;
    return TUTTI_OK;
}

int tutti_file_read(const char *name, size_t limit_bytes, const char *cure, char **ret_text,
                    size_t *ret_length)
{
    bool is_input = strcmp(name, "-") == 0;
    FILE *file = is_input ? stdin : fopen(name, "re");
    char *text = NULL;
    size_t length = 0;
    int rc;

    if (file == NULL)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "open %s: %s; %s", name, strerror(errno), cure);
    rc = read_all(file, name, limit_bytes, &text, &length);
    if (!is_input)
        fclose(file);
    if (rc != TUTTI_OK)
        goto drop_text;
    if (length > limit_bytes) {
        rc = tutti_fail(TUTTI_ERR_ARGUMENT, "%s has more than %zu bytes; %s", name, limit_bytes,
                        cure);
        goto drop_text;
    }
    if (strlen(text) != length) {
        rc = tutti_fail(TUTTI_ERR_ARGUMENT, "%s has a zero byte, so it is no text; %s", name, cure);
        goto drop_text;
    }
    *ret_text = text;
    *ret_length = length;
    return TUTTI_OK;

drop_text:
    free(text);
    return rc;
}
