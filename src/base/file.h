/* SPDX-License-Identifier: Apache-2.0
 * Reads a text file as a whole. */
#ifndef TUTTI_BASE_FILE_H
#define TUTTI_BASE_FILE_H

#include <stddef.h>

/* Read a file, or standard input if `name` is "-". *ret_text ends with a zero byte and has none
 * before it; the caller frees it. *ret_length does not count the zero byte.
 * TUTTI_ERR_ARGUMENT: the file cannot be opened or read, is longer than limit_bytes, or is not
 * text. The message ends with `cure`, a clause that tells the user what to give instead, such as
 * "give a file of ...". TUTTI_ERR_SYSTEM: no memory. */
int tutti_file_read(const char *name, size_t limit_bytes, const char *cure, char **ret_text,
                    size_t *ret_length);

#endif
