/* SPDX-License-Identifier: Apache-2.0
 * Reads the kernel's files, links and folders below a root directory. */
#include "topology/detect/sysfs.h"

#include "topology/inventory/inventory.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool make_path(const char *root, char path[PATH_MAX], const char *format, va_list args)
{
    int length = snprintf(path, PATH_MAX, "%s/", root), rest;

    if (length < 0 || length >= PATH_MAX)
        return false;
    rest = vsnprintf(path + length, (size_t)(PATH_MAX - length), format, args);
    return rest >= 0 && rest < PATH_MAX - length;
}

bool tutti_sysfs_read(const char *root, char ret_text[TUTTI_SYSFS_BYTES], const char *format, ...)
{
    char path[PATH_MAX];
    size_t length;
    va_list args;
    FILE *file;
    bool is_path;

    va_start(args, format);
    is_path = make_path(root, path, format, args);
    va_end(args);
    file = is_path ? fopen(path, "re") : NULL;
    if (file == NULL)
        return false;
    /* Some files can be opened but not read. A file that fills the buffer may be longer than the
     * buffer, so it is refused. */
    length = fread(ret_text, 1, TUTTI_SYSFS_BYTES, file);
    if (ferror(file) != 0 || length == TUTTI_SYSFS_BYTES)
        length = 0;
    fclose(file);
    while (length > 0 && strchr(" \t\r\n", ret_text[length - 1]) != NULL)
        length--;
    ret_text[length] = '\0';
    return length > 0;
}

bool tutti_sysfs_link(const char *root, char ret_target[TUTTI_SYSFS_BYTES], const char *format, ...)
{
    char path[PATH_MAX];
    ssize_t length;
    va_list args;
    bool is_path;

    va_start(args, format);
    is_path = make_path(root, path, format, args);
    va_end(args);
    length = is_path ? readlink(path, ret_target, TUTTI_SYSFS_BYTES - 1) : -1;
    if (length <= 0)
        return false;
    ret_target[length] = '\0';
    return true;
}

bool tutti_sysfs_exists(const char *root, const char *format, ...)
{
    char path[PATH_MAX];
    va_list args;
    bool is_path;

    va_start(args, format);
    is_path = make_path(root, path, format, args);
    va_end(args);
    return is_path && access(path, F_OK) == 0;
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

int tutti_sysfs_names(const char *root, const char *folder, struct dirent ***ret_names)
{
    char path[PATH_MAX];
    int count = 0;

    *ret_names = NULL;
    if ((size_t)snprintf(path, sizeof path, "%s/%s", root, folder) < sizeof path)
        count = scandir(path, ret_names, is_visible, versionsort);
    return count < 0 ? 0 : count;
}

void tutti_sysfs_free(struct dirent **names, int count)
{
    for (int i = 0; i < count; i++)
        free(names[i]);
    free(names);
}

bool tutti_sysfs_cut_at_busid(char *path, int64_t *ret_busid)
{
    for (char *end = path + strlen(path); end > path; *end = '\0') {
        char *slash = memrchr(path, '/', (size_t)(end - path));

        if (tutti_busid_parse(slash == NULL ? path : slash + 1, ret_busid))
            return true;
        end = slash == NULL ? path : slash;
    }
    return false;
}
