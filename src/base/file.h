/* SPDX-License-Identifier: Apache-2.0
 * Reads whole files, or single lines of small files such as those of /proc and /sys. */
#ifndef TUTTI_BASE_FILE_H
#define TUTTI_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* Read a file, or standard input if `name` is "-". *ret_text ends with a zero byte and has none
 * before it; the caller frees it. *ret_length does not count the zero byte.
 * TUTTI_ERR_ARGUMENT: the file cannot be opened or read, is longer than limit_bytes, or is not
 * text. The message ends with `cure`, a clause that tells the user what to give instead, such as
 * "give a file of ...". TUTTI_ERR_SYSTEM: no memory. */
int tutti_file_read(const char *name, size_t limit_bytes, const char *cure, char **ret_text,
                    size_t *ret_length);

/* The outcome of reading a file. */
enum tutti_file_end {
    TUTTI_FILE_DONE,
    TUTTI_FILE_NOT_OPENED, /* errno tells why */
    TUTTI_FILE_NOT_READ,   /* errno tells why */
    TUTTI_FILE_TOO_LONG,
    TUTTI_FILE_NO_MEMORY,
};

/* Read a file of any bytes. This function records and logs no message, so that the caller can write
 * its own. A zero byte follows the last byte, and the caller frees *ret_bytes. *ret_bytes is set
 * only if the result is TUTTI_FILE_DONE, and *ret_length is valid only then. */
enum tutti_file_end tutti_file_load(const char *path, size_t limit_bytes, char **ret_bytes,
                                    size_t *ret_length);

/* Read the first line of a file into `ret_line`, without its newline. A line that does not fit into
 * `size_bytes` is cut. False, with "" in ret_line: the file cannot be read, or its first line is
 * empty. */
bool tutti_file_line(const char *path, char *ret_line, size_t size_bytes);

/* Find the first line that begins with `name` and a colon, blank or tab, as in /proc/cpuinfo. Read
 * the text after these separators into `ret_text`, without the newline. Text that does not fit into
 * `size_bytes` is cut. False, with "" in ret_text: no line has such a text. */
bool tutti_file_field(const char *path, const char *name, char *ret_text, size_t size_bytes);

#endif
