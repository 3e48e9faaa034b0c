/* SPDX-License-Identifier: Apache-2.0
 * Reads files as a whole, or their first lines. */
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

/* Where reading a file ended. */
enum tutti_file_end {
    TUTTI_FILE_DONE,
    TUTTI_FILE_NOT_OPENED, /* errno tells why, also for the next one */
    TUTTI_FILE_NOT_READ,
    TUTTI_FILE_TOO_LONG,
    TUTTI_FILE_NO_MEMORY,
};

/* Read a file of any bytes, without messages: for callers that have messages of their own. A zero
 * byte follows the last one; the caller frees *ret_bytes. Outputs are set only if the result is
 * TUTTI_FILE_DONE. */
enum tutti_file_end tutti_file_load(const char *path, size_t limit_bytes, char **ret_bytes,
                                    size_t *ret_length);

/* Read the first line of a small file, such as those of /proc and /sys, without its newline. A
 * line that does not fit is cut. False, and "" in ret_line, if the file cannot be read or its
 * first line is empty. */
bool tutti_file_line(const char *path, char *ret_line, size_t size_bytes);

/* Find the first line that begins with `name` and a colon or a blank, as in /proc/cpuinfo, and read
 * the rest of it, without blanks and colons before it and without its newline. Text that does not
 * fit is cut. False, and "" in ret_text, if there is none. */
bool tutti_file_field(const char *path, const char *name, char *ret_text, size_t size_bytes);

#endif
