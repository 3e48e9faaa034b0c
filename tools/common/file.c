/* SPDX-License-Identifier: Apache-2.0
 * Reads and writes whole text files for the tools. */
#include "common/file.h"

#include "base/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BYTES ((size_t)1 << 30) /* the size that file.h promises */

char *file_read(const char *name)
{
    size_t length;
    char *text;

    switch (tutti_file_load(name, MOST_BYTES, &text, &length)) {
    case TUTTI_FILE_DONE: break;
    case TUTTI_FILE_TOO_LONG: errno = EFBIG; return NULL;
    case TUTTI_FILE_NO_MEMORY: errno = ENOMEM; return NULL;
    default: return NULL; /* tutti_file_load has set errno */
    }
    if (strlen(text) == length)
        return text;
    free(text);
    errno = EILSEQ;
    return NULL;
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
