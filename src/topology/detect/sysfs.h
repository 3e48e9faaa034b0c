/* SPDX-License-Identifier: Apache-2.0
 * Files of the kernel's below a root, "" for this machine: small ones, of one value each. */
#ifndef TUTTI_TOPOLOGY_DETECT_SYSFS_H
#define TUTTI_TOPOLOGY_DETECT_SYSFS_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>

/* A longer value is none. */
#define TUTTI_SYSFS_BYTES 4096

/* The text of a file without blanks at its end. false: there is none, or it cannot be read. */
bool tutti_sysfs_read(const char *root, char ret_text[TUTTI_SYSFS_BYTES], const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Where a link points. */
bool tutti_sysfs_link(const char *root, char ret_target[TUTTI_SYSFS_BYTES], const char *format,
                      ...) __attribute__((format(printf, 3, 4)));
bool tutti_sysfs_exists(const char *root, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The names in a folder, in the order of their numbers; none where there is no such folder. Give
 * them back with tutti_sysfs_free(). */
int tutti_sysfs_names(const char *root, const char *folder, struct dirent ***ret_names);
void tutti_sysfs_free(struct dirent **names, int count);

/* Cut a path after the last PCI address in it. false: there is none. */
bool tutti_sysfs_cut_at_busid(char *path, int64_t *ret_busid);

#endif
