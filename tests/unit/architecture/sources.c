/* SPDX-License-Identifier: Apache-2.0
 * Reads the sources of the tree. */
#include "sources.h"

#include <ctype.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

void sources_strip(char *text)
{
    enum { CODE, LINE, BLOCK, STRING } state = CODE;

    for (size_t i = 0; text[i] != '\0'; i++) {
        bool opens = text[i] == '/' && (text[i + 1] == '/' || text[i + 1] == '*');
        char now = text[i];

        if (state == CODE && opens)
            state = text[i + 1] == '/' ? LINE : BLOCK;
        else if (state == CODE && now == '\'' && text[i + 1] != '\0' && text[i + 2] == '\'')
            i += 2;
        else if (state == CODE && now == '"')
            state = STRING;
        else if (state == STRING && now == '\\' && text[i + 1] != '\0')
            text[i++] = ' ';
        else if ((state == STRING && now == '"') || (state == LINE && now == '\n'))
            state = CODE;
        else if (state == BLOCK && now == '*' && text[i + 1] == '/') {
            text[i++] = ' ';
            state = CODE;
        }
        /* A directive goes on after a line that ends with a backslash, also within a comment. */
        if (state != CODE && text[i] != '\n' && !(text[i] == '\\' && text[i + 1] == '\n'))
            text[i] = ' ';
    }
}

void sources_strip_directives(char *text)
{
    bool is_directive = false, is_line_start = true;

    for (size_t i = 0; text[i] != '\0'; i++) {
        if (text[i] == '\n') {
            is_directive = is_directive && i > 0 && text[i - 1] == '\\';
            is_line_start = true;
            continue;
        }
        is_directive = is_directive || (is_line_start && text[i] == '#');
        is_line_start = is_line_start && text[i] == ' ';
        if (is_directive && text[i] != '\\')
            text[i] = ' ';
    }
    for (size_t i = 0; text[i] != '\0'; i++)
        if (text[i] == '\\')
            text[i] = ' ';
}

bool sources_is_part_of_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* nftw passes no context to its callback. */
static const char *visited_tree;
static void (*visitor)(const char *path, char *text);

static int visit(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    static const char *const endings[] = {".c", ".h", ".cu", ".cuh", ".cc"};
    const char *dot = strrchr(path, '.');
    bool is_source = false;
    char *text;
    FILE *file;

    (void)at;
    for (size_t i = 0; dot != NULL && i < sizeof(endings) / sizeof(endings[0]); i++)
        is_source = is_source || strcmp(dot, endings[i]) == 0;
    if (kind != FTW_F || !is_source)
        return 0;
    file = fopen(path, "r");
    text = calloc(1, (size_t)info->st_size + 1);
    assert_true(file != NULL && text != NULL);
    assert_int_equal(fread(text, 1, (size_t)info->st_size, file), info->st_size);
    fclose(file);
    visitor(path + strlen(visited_tree) + 1, text);
    free(text);
    return 0;
}

void sources_visit(const char *tree, const char *const *tops,
                   void (*see)(const char *path, char *text))
{
    visited_tree = tree;
    visitor = see;
    for (size_t i = 0; tops[i] != NULL; i++) {
        char path[1024];

        snprintf(path, sizeof(path), "%s/%s", tree, tops[i]);
        assert_int_equal(nftw(path, visit, 16, FTW_PHYS), 0);
    }
}
