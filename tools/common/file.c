/* SPDX-License-Identifier: Apache-2.0
 * Reads and writes whole files. */
#include "common/file.h"

#include "common/memory.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MOST_BYTES ((size_t)1 << 30)

static char *read_all(FILE *file)
{
    size_t size = 0, capacity = 1 << 16;
    char *text = must_take(capacity, 1);
    int error = 0;

    while ((size += fread(text + size, 1, capacity - size, file)) == capacity &&
           capacity < MOST_BYTES)
        text = must_have(realloc(text, (capacity *= 2) + 1));
    text[size] = '\0';
    if (ferror(file))
        error = errno;
    else if (size == MOST_BYTES)
        error = EFBIG;
    else if (strlen(text) != size)
        error = EILSEQ;
    if (error == 0)
        return text;
    free(text);
    errno = error;
    return NULL;
}

char *file_read(const char *name)
{
    FILE *file = fopen(name, "re");
    char *text;
    int error;

    if (file == NULL)
        return NULL;
    text = read_all(file);
    error = errno;
    fclose(file);
    errno = error;
    return text;
}

int file_write(const char *name, const char *text)
{
    FILE *file = fopen(name, "we");
    int error = 0;

    if (file == NULL)
        return errno;
    if (fputs(text, file) < 0)
        error = errno;
    if (fclose(file) != 0 && error == 0)
        error = errno;
    return error;
}
