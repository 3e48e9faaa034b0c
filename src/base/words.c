/* SPDX-License-Identifier: Apache-2.0
 * Splits a text into words. */
#include "base/words.h"

#include "base/sizes.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct tutti_words tutti_words_of(const char *name, const char *text)
{
    return (struct tutti_words){
        .name = name, .at = text, .line_start = text, .stops = "", .line = 1};
}

static bool ends_line(const struct tutti_words *words, char c)
{
    return c == '\0' || c == '\n' || c == '#' || (c == ';' && !words->keeps_semicolons);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

bool tutti_words_next(struct tutti_words *words, struct tutti_word *ret_word)
{
    while (is_blank(*words->at))
        words->at++;
    *ret_word = (struct tutti_word){
        .at = words->at,
        .line = words->line,
        .column = (size_t)(words->at - words->line_start) + 1,
    };
    while (!ends_line(words, *words->at) && !is_blank(*words->at) &&
           strchr(words->stops, *words->at) == NULL)
        words->at++;
    ret_word->length = (size_t)(words->at - ret_word->at);
    return ret_word->length > 0;
}

bool tutti_words_next_line(struct tutti_words *words)
{
    /* A semicolon does not end a comment; only a newline does. */
    while (!ends_line(words, *words->at))
        words->at++;
    if (*words->at == '#')
        words->at += strcspn(words->at, "\n");
    if (*words->at == '\0')
        return false;
    if (*words->at++ == '\n') {
        words->line++;
        words->line_start = words->at;
    }
    return true;
}

bool tutti_word_is(struct tutti_word word, const char *text)
{
    return word.length == strlen(text) && memcmp(word.at, text, word.length) == 0;
}

void tutti_words_record(const struct tutti_words *words, struct tutti_word word, const char *format,
                        ...)
{
    char what[TUTTI_MESSAGE_BYTES];
    va_list args;

    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    tutti_message_record_failure("%s:%zu:%zu: %s", words->name, word.line, word.column, what);
}

int tutti_words_expected(const struct tutti_words *words, struct tutti_word word, const char *what)
{
    if (word.length == 0)
        return tutti_words_fail(words, word, "the line ends here; expected %s", what);
    return tutti_words_fail(words, word, "\"%.*s\"; expected %s", TUTTI_WORD(word), what);
}

int tutti_word_number(const struct tutti_words *words, struct tutti_word word, uint32_t least,
                      uint32_t most, uint32_t *ret_number)
{
    const char *at = word.at, *end = word.at + word.length;
    uint64_t value;
    char what[64];

    if (!tutti_digits_read(&at, end, &value) || at != end || value < least || value > most) {
        snprintf(what, sizeof what, "a number from %u to %u", least, most);
        return tutti_words_expected(words, word, what);
    }
    *ret_number = (uint32_t)value;
    return TUTTI_OK;
}
