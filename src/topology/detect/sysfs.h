/* SPDX-License-Identifier: Apache-2.0
 * Reads the kernel's files about devices. Each of these small files holds one value. `root` is the
 * directory above all paths: "" for this machine, or the top of a copy of another machine's files.
 * The path below `root` is given as a printf format, without a leading '/'. */
#ifndef TUTTI_TOPOLOGY_DETECT_SYSFS_H
#define TUTTI_TOPOLOGY_DETECT_SYSFS_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>

/* Size of a caller's buffer for a text, with its terminating zero. A file with a longer text counts
 * as missing. */
#define TUTTI_SYSFS_BYTES 4096

/* Reads the text of a file, without trailing blanks and line ends. Returns false if the file is
 * empty, is missing or cannot be read. */
bool tutti_sysfs_read(const char *root, char ret_text[TUTTI_SYSFS_BYTES], const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Reads the target of a symbolic link. Returns false if there is no such link. */
bool tutti_sysfs_link(const char *root, char ret_target[TUTTI_SYSFS_BYTES], const char *format,
                      ...) __attribute__((format(printf, 3, 4)));
/* Returns true if there is a file or folder at the path. */
bool tutti_sysfs_exists(const char *root, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Lists the names in a folder, except names that start with a dot. Names are sorted so that numbers
 * in them count as numbers. Returns the number of names, or 0 if there is no such folder. The
 * caller frees the list with tutti_sysfs_free. */
int tutti_sysfs_names(const char *root, const char *folder, struct dirent ***ret_names);
/* Frees a list of names; `count` is the result of tutti_sysfs_names(). */
void tutti_sysfs_free(struct dirent **names, int count);

/* Truncates a path after its last component that is a PCI address, and stores this address in
 * *ret_busid. Returns false if the path has no such component; the path is then empty. */
bool tutti_sysfs_cut_at_busid(char *path, int64_t *ret_busid);

#endif
