/* SPDX-License-Identifier: Apache-2.0
 * Reads small files of the kernel, with one value each, below a root directory: "" for this
 * machine. Paths after `root` are given as a printf format, without a leading '/'. */
#ifndef TUTTI_TOPOLOGY_DETECT_SYSFS_H
#define TUTTI_TOPOLOGY_DETECT_SYSFS_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>

/* A text that does not fit in this size is treated as missing. */
#define TUTTI_SYSFS_BYTES 4096

/* Reads the text of a file, without trailing blanks. False if it is empty, missing or cannot be
 * read. */
bool tutti_sysfs_read(const char *root, char ret_text[TUTTI_SYSFS_BYTES], const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Reads the target of a symbolic link. False if there is none. */
bool tutti_sysfs_link(const char *root, char ret_target[TUTTI_SYSFS_BYTES], const char *format,
                      ...) __attribute__((format(printf, 3, 4)));
bool tutti_sysfs_exists(const char *root, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Lists the names in a folder, sorted by version order (numbers count as numbers). Returns their
 * number, or 0 if there is no such folder. Free the list with tutti_sysfs_free(). */
int tutti_sysfs_names(const char *root, const char *folder, struct dirent ***ret_names);
void tutti_sysfs_free(struct dirent **names, int count);

/* Truncates a path after the last PCI address in it. False if the path has none. */
bool tutti_sysfs_cut_at_busid(char *path, int64_t *ret_busid);

#endif
