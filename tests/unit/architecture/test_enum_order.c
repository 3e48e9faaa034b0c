/* SPDX-License-Identifier: Apache-2.0
 * Collectives, kinds of calls and kinds of steps have no order. No code compares one with < or >,
 * or adds to one: a new one may get any place in its list. This reads the sources of the tree. */
#include <ctype.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "executor/call.h"
#include "schedule/step.h"

static const char *const constants[] = {
#define CONSTANT(collective, ...) #collective,
    TUTTI_COLLECTIVES(CONSTANT)
#undef CONSTANT
    "TUTTI_CALL_COLLECTIVE", "TUTTI_CALL_VECTOR", "TUTTI_CALL_SEND", "TUTTI_CALL_RECV",
    "TUTTI_STEP_SEND", "TUTTI_STEP_RECV", "TUTTI_STEP_RECV_REDUCE", "TUTTI_STEP_RECV_COPY_SEND",
    "TUTTI_STEP_RECV_REDUCE_SEND", "TUTTI_STEP_RECV_REDUCE_COPY_SEND", "TUTTI_STEP_COPY",
    "TUTTI_STEP_REDUCE", "TUTTI_STEP_PUT", "TUTTI_STEP_GET", "TUTTI_STEP_GATHER_REDUCE",
    "TUTTI_STEP_SIGNAL", "TUTTI_STEP_WAIT",
};
_Static_assert(sizeof(constants) / sizeof(constants[0]) ==
                   TUTTI_COLLECTIVE_COUNT + 4 + TUTTI_STEP_KIND_COUNT,
               "every constant is listed");

static bool is_part_of_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static bool is_constant(const char *word, size_t length)
{
    for (size_t i = 0; i < sizeof(constants) / sizeof(constants[0]); i++)
        if (strlen(constants[i]) == length && memcmp(constants[i], word, length) == 0)
            return true;
    return false;
}

/* The operator that ends before `at`, or that begins there: '<', '>', '+' or '-'; 0: another, or
 * none. A shift is another: a constant may be the number of a bit. */
static char operator_before(const char *text, size_t at)
{
    while (at > 0 && strchr(" \t\n(", text[at - 1]) != NULL)
        at--;
    if (at > 1 && text[at - 1] == '=' && strchr("<>+-", text[at - 2]) != NULL)
        at--;
    if (at == 0 || strchr("<>+-", text[at - 1]) == NULL)
        return 0;
    if (at > 1 && strchr("<>", text[at - 1]) != NULL && strchr("<>-", text[at - 2]) != NULL)
        return 0;
    return text[at - 1];
}

static char operator_after(const char *text, size_t at)
{
    while (text[at] != '\0' && strchr(" \t\n)", text[at]) != NULL)
        at++;
    if (text[at] == '\0' || strchr("<>+-", text[at]) == NULL)
        return 0;
    return strchr("<>", text[at]) != NULL && text[at + 1] == text[at] ? 0 : text[at];
}

/* Blanks out comments and strings. */
static void strip(char *text)
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
        if (state != CODE && text[i] != '\n')
            text[i] = ' ';
    }
}

/* The number of uses of a constant as a number in an order; names each if `path` is not NULL. */
static size_t count_orders(const char *path, char *text, size_t *uses)
{
    size_t found = 0, line = 1;

    strip(text);
    for (size_t i = 0; text[i] != '\0'; i++) {
        size_t length = 0;

        line += text[i] == '\n';
        if (!is_part_of_name(text[i]))
            continue;
        while (is_part_of_name(text[i + length]))
            length++;
        if (is_constant(text + i, length)) {
            ++*uses;
            if (operator_before(text, i) != 0 || operator_after(text, i + length) != 0) {
                if (path != NULL)
                    print_error("%s:%zu: %.*s is compared or counted with\n", path, line,
                                (int)length, text + i);
                found++;
            }
        }
        i += length - 1;
    }
    return found;
}

/* ---- the tree -------------------------------------------------------------------------------- */

static size_t total_orders, total_uses;

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
    total_orders += count_orders(path, text, &total_uses);
    free(text);
    return 0;
}

static void no_source_orders_collectives_calls_or_steps(void **state)
{
    static const char *const tops[] = {"src", "perf", "examples", "tools", "bench", "tests"};

    (void)state;
    for (size_t i = 0; i < sizeof(tops) / sizeof(tops[0]); i++) {
        char path[1024];

        snprintf(path, sizeof(path), "%s/%s", TUTTI_SOURCE_DIR, tops[i]);
        assert_int_equal(nftw(path, visit, 16, FTW_PHYS), 0);
    }
    /* A reader that finds nothing would find nothing wrong. */
    assert_true(total_uses > 500);
    assert_int_equal(total_orders, 0);
}

static void an_order_is_found_in_all_its_forms(void **state)
{
    static const struct {
        const char *text;
        size_t orders;
    } cases[] = {
        {"for (c = 0; c < TUTTI_BARRIER; c++)", 1},
        {"if (kind >= TUTTI_STEP_RECV)", 1},
        {"if (TUTTI_CALL_SEND <= kind)", 1},
        {"if (TUTTI_CALL_SEND > kind)", 1},
        {"kind = TUTTI_CALL_VECTOR + collective", 1},
        {"kind = collective + (TUTTI_CALL_VECTOR)", 1},
        {"kind = kind - TUTTI_STEP_PUT", 1},
        {"kind += TUTTI_STEP_PUT;", 1},
        {"next = TUTTI_ALLTOALL\n    + 1;", 1},
        {"bits = 1u << TUTTI_ALLREDUCE;", 0},
        {"bits >> TUTTI_ALLREDUCE & 1", 0},
        {"step->kind == TUTTI_STEP_PUT && a < b", 0},
        {"if (a < b || kind != TUTTI_STEP_GET)", 0},
        {"/* c < TUTTI_BARRIER */ \"< TUTTI_BARRIER\" // < TUTTI_BARRIER", 0},
        {"c < TUTTI_COLLECTIVE_COUNT", 0},
        {"c < TUTTI_BARRIERS", 0},
        {"'\"' c < TUTTI_BARRIER '\"'", 1},
        {"\"\\\"\" c < TUTTI_BARRIER", 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[128];
        size_t uses = 0;

        snprintf(text, sizeof(text), "%s", cases[i].text);
        assert_int_equal(count_orders(NULL, text, &uses), cases[i].orders);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_source_orders_collectives_calls_or_steps),
        cmocka_unit_test(an_order_is_found_in_all_its_forms),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
