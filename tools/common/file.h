/* SPDX-License-Identifier: Apache-2.0
 * Reads and writes whole text files for the tools. */
#ifndef TUTTI_TOOLS_FILE_H
#define TUTTI_TOOLS_FILE_H

/* Reads a whole file as zero-terminated text. The caller frees the text. Returns NULL and sets
 * errno on failure. errno is EILSEQ if the file contains a zero byte, and EFBIG if it is larger
 * than 1 GiB. */
char *file_read(const char *name);

/* Replaces the contents of a file with the text. Returns 0, or an error number of errno.h. */
int file_write(const char *name, const char *text);

#endif
