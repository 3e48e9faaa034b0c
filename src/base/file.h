/* SPDX-License-Identifier: Apache-2.0
 * A text file as a whole. */
#ifndef TUTTI_BASE_FILE_H
#define TUTTI_BASE_FILE_H

#include <stddef.h>

/* Read a file, or standard input where `name` is "-". The text ends with a zero byte, has none
 * before that, and is the caller's to free. TUTTI_ERR_ARGUMENT: there is no such file, it is longer
 * than limit_bytes, or no text; what to give instead is said with the words of `cure`, a clause
 * such as "give a file of ...". TUTTI_ERR_SYSTEM: no memory. */
int tutti_file_read(const char *name, size_t limit_bytes, const char *cure, char **ret_text,
                    size_t *ret_length);

#endif
