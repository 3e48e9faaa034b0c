/* SPDX-License-Identifier: Apache-2.0
 * Tests that the fabric knows transports by their table only. None of its files has the name of a
 * transport, or of its folder, not even in a comment. */
#include "transport/transport.h"

#include <ctype.h>
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define TRANSPORT_DIR TUTTI_SOURCE_DIR "/src/transport"

enum { MOST_NAMES = 32, MOST_LINE = 1024 };

struct names {
    char name[MOST_NAMES][64];
    size_t count;
};

static void add(struct names *names, const char *name)
{
    assert_true(names->count < MOST_NAMES);
    assert_true(strlen(name) < sizeof names->name[0]);
    strcpy(names->name[names->count++], name);
}

static void list_names(struct names *ret_names)
{
    DIR *folder = opendir(TRANSPORT_DIR);
    struct dirent *entry;

    ret_names->count = 0;
    for (size_t i = 0; tutti_transports[i] != NULL; i++)
        add(ret_names, tutti_transports[i]->name);
    assert_non_null(folder);
    while ((entry = readdir(folder)) != NULL)
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
            add(ret_names, entry->d_name);
    closedir(folder);
}

/* Returns true if the line has `name`, as a word or a part of an identifier, in any case. */
static int says(const char *line, const char *name)
{
    size_t length = strlen(name);

    for (const char *at = line; *at != '\0'; at++) {
        size_t same = 0;

        while (same < length && tolower((unsigned char)at[same]) == name[same])
            same++;
        if (same == length && (at == line || !isalnum((unsigned char)at[-1])) &&
            !isalnum((unsigned char)at[length]))
            return 1;
    }
    return 0;
}

static size_t count_in_file(const struct names *names, const char *file_name)
{
    char path[512], line[MOST_LINE];
    size_t count = 0;
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", TRANSPORT_DIR, file_name);
    file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL)
        for (size_t i = 0; i < names->count; i++)
            if (says(line, names->name[i])) {
                print_error("%s names %s: %s", file_name, names->name[i], line);
                count++;
            }
    fclose(file);
    return count;
}

static void no_file_of_the_fabric_names_a_transport(void **state)
{
    DIR *folder = opendir(TRANSPORT_DIR);
    struct dirent *entry;
    struct names names;
    size_t files = 0, found = 0;

    (void)state;
    list_names(&names);
    assert_non_null(folder);
    while ((entry = readdir(folder)) != NULL) {
        if (strncmp(entry->d_name, "fabric", 6) != 0)
            continue;
        files++;
        found += count_in_file(&names, entry->d_name);
    }
    closedir(folder);
    /* A reader that finds nothing would find no error either. */
    assert_true(files >= 8);
    assert_true(names.count >= 6);
    assert_int_equal(found, 0);
}

static void names_are_found_in_all_their_forms(void **state)
{
    static const struct {
        const char *line;
        int is_found;
    } cases[] = {
        {"tutti_tcp_progress(fabric);", 1}, {"#include \"transport/tcp/tcp.h\"", 1},
        {"/* a host without TCP */", 1}, {"TUTTI_USE_TCP", 1}, {"tcp", 1},
        {"outcparse", 0}, {"tcpip", 0}, {"", 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(says(cases[i].line, "tcp"), cases[i].is_found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_file_of_the_fabric_names_a_transport),
        cmocka_unit_test(names_are_found_in_all_their_forms),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
