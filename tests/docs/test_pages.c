/* SPDX-License-Identifier: Apache-2.0
 * Every link between the pages leads to a file or heading, and the index of docs/ has each page
 * once. The test reads all Markdown files of the source tree. */
#include <ctype.h>
#include <dirent.h>
#include <libgen.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define PATH_BYTES 1024
#define LINE_BYTES 65536
#define PAGES_MOST 200

/* ---- lines of a page ------------------------------------------------------------------------- */

/* Where a page is being read: prose, without code. */
struct reader {
    FILE *file;
    bool is_in_fence;
    char line[LINE_BYTES];
};

static void open_page(struct reader *reader, const char *path)
{
    reader->file = fopen(path, "r");
    reader->is_in_fence = false;
    if (reader->file == NULL)
        fail_msg("cannot read %s", path);
}

/* Blank what stands between backticks. */
static void blank_code(char *line)
{
    for (char *at = strchr(line, '`'), *end; at != NULL; at = strchr(end + 1, '`')) {
        end = strchr(at + 1, '`');
        if (end == NULL)
            return;
        memset(at + 1, 'x', (size_t)(end - at - 1));
    }
}

/* The next line that is not in a block of code; false at the end. */
static bool next_line(struct reader *reader)
{
    while (fgets(reader->line, sizeof reader->line, reader->file) != NULL) {
        if (strncmp(reader->line, "```", 3) == 0)
            reader->is_in_fence = !reader->is_in_fence;
        else if (!reader->is_in_fence && strncmp(reader->line, "    ", 4) != 0)
            return true;
    }
    fclose(reader->file);
    return false;
}

/* ---- headings -------------------------------------------------------------------------------- */

/* The anchor that a heading gets: lower case, blanks as hyphens, letters, digits and '_' kept. Of
 * other characters than ASCII's only Greek letters are kept. */
static void anchor_of(const char *heading, char *ret_anchor, size_t size)
{
    size_t length = 0;

    for (const char *at = heading; *at != '\0' && *at != '\n' && length + 3 < size; at++) {
        unsigned char c = (unsigned char)*at;

        if (strncmp(at, "](", 2) == 0) /* only the text of a link counts */
            at += strcspn(at, ")\n");
        else if (isalnum(c) || c == '_' || c == '-')
            ret_anchor[length++] = (char)tolower(c);
        else if (c == ' ')
            ret_anchor[length++] = '-';
        else if (c == 0xce || c == 0xcf) {
            ret_anchor[length++] = (char)c;
            ret_anchor[length++] = *++at;
        }
    }
    while (length > 0 && ret_anchor[length - 1] == '\r')
        length--;
    ret_anchor[length] = '\0';
}

static bool has_anchor(const char *path, const char *wanted)
{
    struct reader *reader = malloc(sizeof *reader);
    char anchor[512];
    bool is_there = false;

    assert_non_null(reader);
    open_page(reader, path);
    while (next_line(reader)) {
        size_t depth = strspn(reader->line, "#");

        if (depth == 0 || reader->line[depth] != ' ')
            continue;
        anchor_of(reader->line + depth + 1, anchor, sizeof anchor);
        is_there = is_there || strcmp(anchor, wanted) == 0;
    }
    free(reader);
    return is_there;
}

/* ---- links ----------------------------------------------------------------------------------- */

static size_t links, broken;

static void check_link(const char *page, const char *target)
{
    char folder[PATH_BYTES], path[2 * PATH_BYTES];
    size_t length = strcspn(target, "#");

    if (strstr(target, "://") != NULL || strncmp(target, "mailto:", 7) == 0)
        return;
    links++;
    snprintf(folder, sizeof folder, "%s", page);
    if (length == 0)
        snprintf(path, sizeof path, "%s", page);
    else
        snprintf(path, sizeof path, "%s/%.*s", dirname(folder), (int)length, target);
    if (access(path, R_OK) != 0) {
        print_error("%s: (%s) leads to no file\n", page, target);
        broken++;
    } else if (target[length] == '#' && !has_anchor(path, target + length + 1)) {
        print_error("%s: (%s) leads to no heading\n", page, target);
        broken++;
    }
}

static void check_page(const char *page)
{
    struct reader *reader = malloc(sizeof *reader);
    char target[PATH_BYTES];

    assert_non_null(reader);
    open_page(reader, page);
    while (next_line(reader)) {
        blank_code(reader->line);
        for (char *at = reader->line; (at = strstr(at, "](")) != NULL;) {
            at += 2;
            snprintf(target, sizeof target, "%.*s", (int)strcspn(at, ") \n"), at);
            check_link(page, target);
        }
    }
    free(reader);
}

/* ---- the tree -------------------------------------------------------------------------------- */

static bool is_page(const char *name)
{
    size_t length = strlen(name);

    return length > 3 && strcmp(name + length - 3, ".md") == 0;
}

/* Calls `see` for each page in the folder and below; folders that builds make are left out. */
static void walk(const char *folder, void (*see)(const char *page))
{
    DIR *stream = opendir(folder);
    struct dirent *entry;

    if (stream == NULL)
        fail_msg("cannot read %s", folder);
    while ((entry = readdir(stream)) != NULL) {
        char path[PATH_BYTES];

        if (snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) >= (int)sizeof path)
            continue;
        if (entry->d_type == DT_DIR && strncmp(entry->d_name, "build", 5) != 0 &&
            (entry->d_name[0] != '.' || strcmp(entry->d_name, ".github") == 0))
            walk(path, see);
        else if (entry->d_type == DT_REG && is_page(entry->d_name))
            see(path);
    }
    closedir(stream);
}

static void every_link_between_pages_leads_somewhere(void **state)
{
    (void)state;
    links = broken = 0;
    walk(SOURCE, check_page);
    /* A reader that finds nothing would find nothing broken. */
    assert_true(links > 100);
    assert_int_equal(broken, 0);
}

static void a_broken_link_is_found(void **state)
{
    static const char *const targets[] = {"no-such-page.md", "glossary.md#no-such-heading",
                                          "#no-such-heading", "../docs", "glossary.md#glossary",
                                          "https://example.com/nowhere", "../README.md"};
    char page[PATH_BYTES];

    (void)state;
    snprintf(page, sizeof page, "%s/docs/README.md", SOURCE);
    broken = 0;
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++)
        check_link(page, targets[i]);
    assert_int_equal(broken, 3);
}

static void headings_have_the_anchors_that_hosting_sites_give_them(void **state)
{
    static const char *const cases[][2] = {
        {"Exit code and JSON", "exit-code-and-json"},
        {"tutti-run: one host, nothing to install\n", "tutti-run-one-host-nothing-to-install"},
        {"`TUTTI_X` and [a link](to.md)", "tutti_x-and-a-link"},
        {"TCP, from 1 MiB on: \xce\xb1", "tcp-from-1-mib-on-\xce\xb1"},
    };
    char anchor[128];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        anchor_of(cases[i][0], anchor, sizeof anchor);
        assert_string_equal(anchor, cases[i][1]);
    }
}

/* ---- the index ------------------------------------------------------------------------------- */

static char index_text[LINE_BYTES];
static size_t indexed;

static void find_in_index(const char *page)
{
    const char *name = strrchr(page, '/') + 1;
    char row[PATH_BYTES];
    size_t count = 0;

    if (strcmp(name, "README.md") == 0)
        return;
    snprintf(row, sizeof row, "](%s) |", name);
    for (const char *at = index_text; (at = strstr(at, row)) != NULL; at++)
        count++;
    if (count != 1)
        fail_msg("docs/README.md has %zu rows for %s, not one", count, name);
    indexed++;
}

static void the_index_has_every_page_once(void **state)
{
    FILE *file = fopen(SOURCE "/docs/README.md", "r");

    (void)state;
    assert_non_null(file);
    index_text[fread(index_text, 1, sizeof index_text - 1, file)] = '\0';
    fclose(file);
    indexed = 0;
    walk(SOURCE "/docs", find_in_index);
    assert_true(indexed > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_link_between_pages_leads_somewhere),
        cmocka_unit_test(a_broken_link_is_found),
        cmocka_unit_test(headings_have_the_anchors_that_hosting_sites_give_them),
        cmocka_unit_test(the_index_has_every_page_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
