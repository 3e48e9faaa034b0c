/* SPDX-License-Identifier: Apache-2.0
 * Tests that a text is split into words that know their line and column. */
#include "base/words.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Writes all words as "line:column:word" with a bar after each line. */
static void list_words(struct tutti_words words, char *list, size_t size_bytes)
{
    struct tutti_word word;
    size_t used = 0;

    do {
        while (tutti_words_next(&words, &word)) {
            used += (size_t)snprintf(list + used, size_bytes - used, "%zu:%zu:%.*s ", word.line,
                                     word.column, (int)word.length, word.at);
            words.at += *words.at != '\0' && strchr(words.stops, *words.at) != NULL;
        }
        used += (size_t)snprintf(list + used, size_bytes - used, "|");
    } while (tutti_words_next_line(&words));
}

static void words_know_where_they_are(void **state)
{
    static const struct {
        const char *text, *stops;
        bool keeps_semicolons;
        const char *words;
    } cases[] = {
        {"", "", false, "|"},
        {"one  two\n\tthree", "", false, "1:1:one 1:6:two |2:2:three |"},
        {"a;b # c; d\r\ne\n", "", false, "1:1:a |1:3:b |2:1:e ||"},
        {"a;b # c; d\ne", "", true, "1:1:a;b |2:1:e |"},
        {"a:b,c", ":,", false, "1:1:a 1:3:b 1:5:c |"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tutti_words words = tutti_words_of("t", cases[i].text);
        char list[256];

        words.stops = cases[i].stops;
        words.keeps_semicolons = cases[i].keeps_semicolons;
        list_words(words, list, sizeof list);
        assert_string_equal(list, cases[i].words);
    }
}

static void messages_begin_with_the_position(void **state)
{
    struct tutti_words words = tutti_words_of("file", "a\n b 12");
    struct tutti_word word;
    uint32_t number;

    (void)state;
    assert_true(tutti_words_next_line(&words));
    assert_true(tutti_words_next(&words, &word));
    assert_true(tutti_word_is(word, "b"));
    assert_false(tutti_word_is(word, "bb"));
    assert_int_equal(tutti_words_fail(&words, word, "\"%.*s\" is bad", TUTTI_WORD(word)),
                     TUTTI_ERR_ARGUMENT);
    assert_string_equal(tutti_message_last(), "file:2:2: \"b\" is bad");
    assert_int_equal(tutti_word_number(&words, word, 1, 9, &number), TUTTI_ERR_ARGUMENT);
    assert_string_equal(tutti_message_last(), "file:2:2: \"b\"; expected a number from 1 to 9");
    assert_true(tutti_words_next(&words, &word));
    assert_int_equal(tutti_word_number(&words, word, 1, 9, &number), TUTTI_ERR_ARGUMENT);
    assert_int_equal(tutti_word_number(&words, word, 1, 12, &number), TUTTI_OK);
    assert_int_equal(number, 12);
    assert_false(tutti_words_next(&words, &word));
    assert_int_equal(tutti_words_expected(&words, word, "more"), TUTTI_ERR_ARGUMENT);
    assert_string_equal(tutti_message_last(), "file:2:6: the line ends here; expected more");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_know_where_they_are),
        cmocka_unit_test(messages_begin_with_the_position),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
