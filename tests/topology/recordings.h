/* SPDX-License-Identifier: Apache-2.0
 * Finds the folder of machines that others recorded. TUTTI_TEST_TOPOLOGIES names it; otherwise the
 * build gives a place. Tests that need it are skipped without it, and say why. */
#ifndef TUTTI_TESTS_TOPOLOGY_RECORDINGS_H
#define TUTTI_TESTS_TOPOLOGY_RECORDINGS_H

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static inline const char *recordings_root(void)
{
    const char *named = getenv("TUTTI_TEST_TOPOLOGIES");

    return named != NULL && *named != '\0' ? named : TUTTI_TOPOLOGIES;
}

static inline void recordings_miss(void)
{
    print_message("skipped: no recorded topologies below %s; TUTTI_TEST_TOPOLOGIES names another "
                  "folder\n", recordings_root());
    skip();
}

/* One of its folders, and its path. */
static inline DIR *recordings_open(const char *name, char *ret_path, size_t size_bytes)
{
    DIR *folder;

    snprintf(ret_path, size_bytes, "%s/%s", recordings_root(), name);
    folder = opendir(ret_path);
    if (folder == NULL)
        recordings_miss();
    return folder;
}

/* The whole of a file; to be freed. */
static inline char *recordings_load(const char *folder, const char *name, size_t *ret_length)
{
    char path[2048], *text = malloc(1 << 20);
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(text);
    *ret_length = fread(text, 1, 1 << 20, file);
    assert_true(*ret_length < 1 << 20);
    fclose(file);
    return text;
}

#endif
