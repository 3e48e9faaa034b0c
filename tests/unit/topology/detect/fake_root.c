/* SPDX-License-Identifier: Apache-2.0
 * Writes and removes a fake root. */
#include "fake_root.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

void fake_root_create(struct fake_root *root)
{
    const char *folder = getenv("TMPDIR");

    snprintf(root->path, sizeof root->path, "%.40s/tutti-root-XXXXXX",
             folder != NULL && *folder != '\0' ? folder : "/tmp");
    assert_non_null(mkdtemp(root->path));
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *at)
{
    (void)status;
    (void)type;
    (void)at;
    return remove(path);
}

void fake_root_destroy(struct fake_root *root)
{
    assert_int_equal(nftw(root->path, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/* The whole path, with the folders on its way made. */
static void make_way(const struct fake_root *root, const char *file, char path[512])
{
    snprintf(path, 512, "%s/%s", root->path, file);
    for (char *at = path + strlen(root->path) + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        mkdir(path, 0700);
        *at = '/';
    }
}

void fake_root_put(const struct fake_root *root, const char *file, const char *text)
{
    char path[512];
    FILE *stream;

    make_way(root, file, path);
    stream = fopen(path, "w");
    assert_non_null(stream);
    fputs(text, stream);
    assert_int_equal(fclose(stream), 0);
}

void fake_root_link(const struct fake_root *root, const char *file, const char *target)
{
    char path[512];

    make_way(root, file, path);
    assert_int_equal(symlink(target, path), 0);
}

void fake_root_put_pci(const struct fake_root *root, const char *path, const char *pci_class,
                       const char *node)
{
    static const char *const files[][2] = {
        {"vendor", "0x1002\n"}, {"device", "0x1234\n"},
        {"subsystem_vendor", "0x0001\n"}, {"subsystem_device", "0x0002\n"},
    };
    char file[256], target[256];

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        snprintf(file, sizeof file, "sys/devices/%s/%s", path, files[i][0]);
        fake_root_put(root, file, files[i][1]);
    }
    snprintf(file, sizeof file, "sys/devices/%s/class", path);
    fake_root_put(root, file, pci_class);
    snprintf(file, sizeof file, "sys/devices/%s/numa_node", path);
    fake_root_put(root, file, node);
    snprintf(file, sizeof file, "sys/bus/pci/devices/%s", strrchr(path, '/') + 1);
    snprintf(target, sizeof target, "../../../devices/%s", path);
    fake_root_link(root, file, target);
}

void fake_root_put_cpus(const struct fake_root *root)
{
    static const char *const masks[] = {"3", "c"};
    char file[128], text[32];

    fake_root_put(root, "proc/meminfo", "MemTotal: 1048576 kB\n");
    fake_root_put(root, "sys/devices/system/cpu/online", "0-3\n");
    fake_root_put(root, "sys/devices/system/cpu/possible", "0-3\n");
    for (int cpu = 0; cpu < 4; cpu++) {
        const char *folder = "sys/devices/system/cpu/cpu%d/topology/%s";

        snprintf(text, sizeof text, "%d\n", cpu / 2);
        snprintf(file, sizeof file, folder, cpu, "physical_package_id");
        fake_root_put(root, file, text);
        snprintf(file, sizeof file, folder, cpu, "core_siblings");
        fake_root_put(root, file, masks[cpu / 2]);
        snprintf(text, sizeof text, "%d\n", cpu);
        snprintf(file, sizeof file, folder, cpu, "core_id");
        fake_root_put(root, file, text);
        snprintf(text, sizeof text, "%x\n", 1u << cpu);
        snprintf(file, sizeof file, folder, cpu, "thread_siblings");
        fake_root_put(root, file, text);
    }
    fake_root_put(root, "sys/devices/system/node/online", "0-1\n");
    fake_root_put(root, "sys/devices/system/node/possible", "0-1\n");
    for (int node = 0; node < 2; node++) {
        snprintf(file, sizeof file, "sys/devices/system/node/node%d/cpumap", node);
        fake_root_put(root, file, masks[node]);
        snprintf(file, sizeof file, "sys/devices/system/node/node%d/meminfo", node);
        fake_root_put(root, file, "Node 0 MemTotal: 524288 kB\n");
    }
}
