/* SPDX-License-Identifier: Apache-2.0
 * Tests how names are given. A tag with the library's prefix is defined once, so that a debugger
 * and a reader see one struct of a name. Headers export only names with the library's prefix,
 * macros included. The word after that prefix leads to one folder: headers of no other folder
 * declare functions or tags that begin with it. Headers of kernels (.cuh) may also use the prefix
 * gpu_, because no other code includes them. The test reads the sources of the tree. */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sources.h"

enum { MOST_TAGS = 4096, MOST_WORDS = 1024, MOST_NAME = 128, MOST_PATH = 256 };

/* Headers that are templates. An object includes one to get functions of its own, all static, and
 * no other header includes it. */
static const char *const templates[] = {"src/device/cpu/kernels.h", "src/device/cpu/narrow.h"};

/* A name, and the file or the folder that it belongs to. */
struct name {
    char name[MOST_NAME], path[MOST_PATH];
};

static struct name tags[MOST_TAGS], words[MOST_WORDS];
static size_t ntags, nwords, nfaults, nexported;
static bool is_quiet, is_of_kernels;

static bool begins_with(const char *word, size_t length, const char *prefix)
{
    return length >= strlen(prefix) && memcmp(word, prefix, strlen(prefix)) == 0;
}

static bool has_prefix(const char *word, size_t length)
{
    if (is_of_kernels && (begins_with(word, length, "gpu_") || begins_with(word, length, "GPU_")))
        return true;
    return begins_with(word, length, "tutti") || begins_with(word, length, "TUTTI_");
}

static bool is(const char *word, size_t length, const char *const *list)
{
    while (*list != NULL && (strlen(*list) != length || memcmp(*list, word, length) != 0))
        list++;
    return *list != NULL;
}

static size_t length_of(const char *word)
{
    size_t length = 0;

    while (sources_is_part_of_name(word[length]))
        length++;
    return length;
}

static const char *skip_blanks(const char *at)
{
    while (*at != '\0' && isspace((unsigned char)*at))
        at++;
    return at;
}

static void report(const char *path, const char *word, size_t length, const char *fault)
{
    if (!is_quiet)
        print_error("%s: %.*s %s\n", path, (int)length, word, fault);
    nfaults++;
}

static void note_tag(const char *path, const char *word, size_t length)
{
    struct name *tag = &tags[ntags];

    assert_true(length < MOST_NAME && ntags < MOST_TAGS);
    for (size_t i = 0; i < ntags; i++)
        if (strlen(tags[i].name) == length && memcmp(tags[i].name, word, length) == 0)
            report(path, word, length, "is defined in another file, too");
    snprintf(tag->name, sizeof(tag->name), "%.*s", (int)length, word);
    snprintf(tag->path, sizeof(tag->path), "%s", path);
    ntags++;
}

/* Checks that the first word of a name in a header leads to the folder of that header alone. */
static void note_prefix(const char *path, const char *name, size_t length)
{
    struct name word = {.name = ""};
    size_t at = 0;

    if (!begins_with(name, length, "tutti_"))
        return;
    sscanf(name, "tutti_%127[a-z0-9A-Z]", word.name);
    snprintf(word.path, sizeof(word.path), "%.*s", (int)(strrchr(path, '/') - path), path);
    while (at < nwords && strcmp(words[at].name, word.name) != 0)
        at++;
    if (at == nwords) {
        assert_true(nwords < MOST_WORDS);
        words[nwords++] = word;
    } else if (strcmp(words[at].path, word.path) != 0) {
        char fault[MOST_PATH + 64];

        snprintf(fault, sizeof(fault), "has the first word of names in %s", words[at].path);
        report(path, name, length, fault);
    }
}

/* Reports the macros of a header without the library's prefix. Those of expat give its functions
 * other names. */
static void check_macros(const char *path, const char *text)
{
    static const char define[] = "define";

    for (const char *at = strchr(text, '#'); at != NULL; at = strchr(at + 1, '#')) {
        const char *word = skip_blanks(at + 1);

        if (!begins_with(word, length_of(word), define) || length_of(word) != strlen(define))
            continue;
        word = skip_blanks(word + strlen(define));
        if (!has_prefix(word, length_of(word)) && !begins_with(word, length_of(word), "XML_"))
            report(path, word, length_of(word), "is a macro of a header without the prefix TUTTI_");
    }
}

/* One word of a stripped text at file scope or deeper. */
static void check_word(const char *path, const char *word, size_t length, bool is_header,
                       bool is_file_scope)
{
    static const char *const kinds[] = {"struct", "union", "enum", NULL};
    static const char *const no_functions[] = {
        "__attribute__", "_Static_assert", "alignas", "_Alignas", "void", "int", "bool", "char",
        "size_t", NULL};
    const char *next = skip_blanks(word + length);

    if (is(word, length, kinds)) {
        size_t name = length_of(next);

        /* In C++ a tag inside a struct belongs to that struct. */
        if (name == 0 || *skip_blanks(next + name) != '{' || (is_of_kernels && !is_file_scope))
            return;
        if (has_prefix(next, name))
            note_tag(path, next, name);
        else if (is_header)
            report(path, next, name, "is a tag of a header without the prefix tutti_");
        if (is_header)
            note_prefix(path, next, name);
        nexported += is_header;
        return;
    }
    if (!is_header || !is_file_scope || *next != '(' || is(word, length, no_functions))
        return;
    nexported++;
    if (!has_prefix(word, length))
        report(path, word, length, "is a function of a header without the prefix tutti_");
    note_prefix(path, word, length);
}

static void check_text(const char *path, char *text, bool is_header)
{
    size_t braces = 0, parentheses = 0;

    sources_strip(text);
    if (is_header)
        check_macros(path, text);
    sources_strip_directives(text);
    for (size_t i = 0; text[i] != '\0'; i++) {
        size_t length = length_of(text + i);

        if (length > 0) {
            check_word(path, text + i, length, is_header, braces == 0 && parentheses == 0);
            i += length - 1;
            continue;
        }
        braces += text[i] == '{';
        braces -= text[i] == '}' && braces > 0;
        parentheses += text[i] == '(';
        parentheses -= text[i] == ')' && parentheses > 0;
    }
}

static bool is_template(const char *path)
{
    for (size_t i = 0; i < sizeof(templates) / sizeof(templates[0]); i++)
        if (strcmp(templates[i], path) == 0)
            return true;
    return false;
}

static void check_file(const char *path, char *text)
{
    const char *dot = strrchr(path, '.');

    is_of_kernels = strcmp(dot, ".cuh") == 0;
    check_text(path, text, (is_of_kernels || strcmp(dot, ".h") == 0) && !is_template(path));
    is_of_kernels = false;
}

static void tags_are_defined_once_and_prefixes_of_headers_lead_to_one_folder(void **state)
{
    static const char *const tops[] = {"src", "model", "include", NULL};

    (void)state;
    ntags = nwords = nfaults = nexported = 0;
    sources_visit(TUTTI_SOURCE_DIR, tops, check_file);
    /* A reader that finds nothing would find no fault either. */
    assert_true(ntags > 300 && nwords > 200 && nexported > 1000);
    assert_int_equal(nfaults, 0);
}

static void each_fault_is_found(void **state)
{
    /* `text` is a header of the folder src/a, `other` one of src/b. */
    static const struct {
        const char *text;
        size_t faults;
        const char *other;
        bool is_of_kernels;
    } cases[] = {
        {"struct tutti_a { int b; }; enum tutti_a { C };", 1, "", false},
        {"struct tutti_a; struct tutti_a { int b; };", 0, "", false},
        {"struct a { int b; };", 1, "", false},
        {"int tutti_f(int (*g)(void)), f(void);", 1, "", false},
        {"static inline int f(void) { return g(); }", 1, "", false},
        {"static inline int tutti_f(void) { return g(); }", 0, "", false},
        {"void tutti_f(void) __attribute__((cold));", 0, "", false},
        {"#define TUTTI_X(a) f(a)\nint tutti_f(void);", 0, "", false},
        {"#define TUTTI_X(a) \\\n f(a)\nint f(void);", 1, "", false},
        {"# define X(a) a\n#define Y", 2, "", false},
        {"/* int f(void); */ \"f(\" // f()\n", 0, "", false},
        {"int tutti_a_f(void);", 1, "int tutti_a_g(void);", false},
        {"int tutti_a_f(void);", 0, "int tutti_ab_g(void) { tutti_a_f(); }", false},
        {"struct tutti_a { int b; };", 1, "struct tutti_a_c *tutti_a_get(void);", false},
        {"struct tutti_a { int b; };", 0, "struct tutti_a; int tutti_b(struct tutti_a *a);", false},
        {"struct tutti_a { int b; };", 1, "enum tutti_a_kind { C };", false},
        {"#define GPU_X 1\nvoid gpu_f(void); struct gpu_a { int b; };", 3, "", false},
        {"#define GPU_X 1\nvoid gpu_f(void); struct gpu_a { int b; };", 0, "", true},
        {"#define X 1\nvoid f(void); struct a { int b; };", 3, "", true},
        {"struct gpu_a { struct b { int c; }; };", 0, "", true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[128];

        ntags = nwords = nfaults = 0;
        is_quiet = true;
        is_of_kernels = cases[i].is_of_kernels;
        snprintf(text, sizeof(text), "%s", cases[i].text);
        check_text("src/a/a.h", text, true);
        snprintf(text, sizeof(text), "%s", cases[i].other);
        check_text("src/b/b.h", text, true);
        is_quiet = is_of_kernels = false;
        assert_int_equal(nfaults, cases[i].faults);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tags_are_defined_once_and_prefixes_of_headers_lead_to_one_folder),
        cmocka_unit_test(each_fault_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
