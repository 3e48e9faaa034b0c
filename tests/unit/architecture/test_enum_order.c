/* SPDX-License-Identifier: Apache-2.0
 * Tests that no code relies on an order of collectives, kinds of calls and kinds of steps. No code
 * compares one with < or >, or adds to one, so a new one may get any place in its list. The test
 * reads the sources of the tree. */
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
#include "sources.h"

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

static bool is_constant(const char *word, size_t length)
{
    for (size_t i = 0; i < sizeof(constants) / sizeof(constants[0]); i++)
        if (strlen(constants[i]) == length && memcmp(constants[i], word, length) == 0)
            return true;
    return false;
}

/* These functions return the operator that ends before `at`, or that begins there: '<', '>', '+' or
 * '-'. They return 0 for another one, or none. A shift is another one, because a constant may be the
 * number of a bit. */
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

/* Returns the number of uses of constants as numbers in an order. Prints each if `path` is not
 * NULL. */
static size_t count_orders(const char *path, char *text, size_t *uses)
{
    size_t found = 0, line = 1;

    sources_strip(text);
    for (size_t i = 0; text[i] != '\0'; i++) {
        size_t length = 0;

        line += text[i] == '\n';
        if (!sources_is_part_of_name(text[i]))
            continue;
        while (sources_is_part_of_name(text[i + length]))
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

static void count(const char *path, char *text)
{
    total_orders += count_orders(path, text, &total_uses);
}

static void no_source_orders_collectives_calls_or_steps(void **state)
{
    static const char *const tops[] = {"src",   "model", "perf",  "examples",
                                       "tools", "bench", "tests", NULL};

    (void)state;
    sources_visit(TUTTI_SOURCE_DIR, tops, count);
    /* A reader that finds nothing would find no error either. */
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
