/* SPDX-License-Identifier: Apache-2.0
 * Files, whole. */
#ifndef TUTTI_TOOLS_FILE_H
#define TUTTI_TOOLS_FILE_H

/* The text of a file, to be freed; NULL, and errno says why. A zero byte in it is EILSEQ; more than
 * a gigabyte EFBIG. */
char *file_read(const char *name);

/* Write all of it; 0, or errno. */
int file_write(const char *name, const char *text);

#endif
