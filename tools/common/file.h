/* SPDX-License-Identifier: Apache-2.0
 * Reads and writes whole files. */
#ifndef TUTTI_TOOLS_FILE_H
#define TUTTI_TOOLS_FILE_H

/* Reads a file as zero-terminated text, which the caller frees. Returns NULL and sets errno on
 * failure: EILSEQ for a zero byte in the file, EFBIG for more than a gigabyte. */
char *file_read(const char *name);

/* Writes the whole text to a file. Returns 0, or errno. */
int file_write(const char *name, const char *text);

#endif
