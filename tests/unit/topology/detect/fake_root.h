/* SPDX-License-Identifier: Apache-2.0
 * A directory that replaces a machine's root, with files of the kernel that a test writes. */
#ifndef TUTTI_TESTS_FAKE_ROOT_H
#define TUTTI_TESTS_FAKE_ROOT_H

struct fake_root {
    char path[64];
};

void fake_root_create(struct fake_root *root);
void fake_root_destroy(struct fake_root *root);
/* A file with that text; folders on the way are made. */
void fake_root_put(const struct fake_root *root, const char *file, const char *text);
/* A symbolic link. */
void fake_root_link(const struct fake_root *root, const char *file, const char *target);

/* A PCI device with its ids and NUMA node. Its path below sys/devices is, for example,
 * "pci0000:00/0000:00:01.0/0000:01:00.0". */
void fake_root_put_pci(const struct fake_root *root, const char *path, const char *pci_class,
                       const char *node);
/* CPUs 0 to 3 on two NUMA nodes, 0 and 1 on the first. */
void fake_root_put_cpus(const struct fake_root *root);

#endif
