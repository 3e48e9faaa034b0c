/* SPDX-License-Identifier: Apache-2.0
 * Splits a text into words, each with its line and column, for parsers of small languages. Blanks
 * separate words. A line ends with a newline, and in most texts also with a semicolon. A comment
 * reaches from # to the next newline.
 */
#ifndef TUTTI_BASE_WORDS_H
#define TUTTI_BASE_WORDS_H

#include "base/result.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A word points into the text, which must outlive the word. */
struct tutti_word {
    const char *at;
    size_t length;
    size_t line, column; /* from 1 on */
};

struct tutti_words {
    const char *name;       /* of the file, for messages */
    const char *at;         /* the part not yet read */
    const char *line_start; /* of the line that contains `at` */
    const char *stops;      /* characters that end a word as a blank does, and are not skipped */
    size_t line;            /* from 1 on; a semicolon does not begin a new number */
    bool keeps_semicolons; /* a semicolon is part of a word */
};

/* Begin at the start of `text`, without stops, and with semicolons that end lines. Messages begin
 * with `name`. Both texts must outlive the result. */
struct tutti_words tutti_words_of(const char *name, const char *text);

/* Takes the next word of this line. False at the end of the line; *ret_word then has length 0 and
 * the position of the end. */
bool tutti_words_next(struct tutti_words *words, struct tutti_word *ret_word);
/* Goes to the next line; false at the end of the text. */
bool tutti_words_next_line(struct tutti_words *words);

/* True if the word is exactly `text`. */
bool tutti_word_is(struct tutti_word word, const char *text);

/* The two arguments for "%.*s" that print at most 40 characters of a word. */
#define TUTTI_WORD(word) (int)((word).length < 40 ? (word).length : 40), (word).at

/* Records and logs the message "name:line:column: ...". */
void tutti_words_record(const struct tutti_words *words, struct tutti_word word, const char *format,
                        ...) __attribute__((format(printf, 3, 4), cold));
/* These do the same and return `code` or TUTTI_ERR_ARGUMENT. They are macros for the same reason as
 * tutti_fail. */
#define tutti_words_refuse(code, words, word, ...)                                                 \
    tutti_message_recorded((tutti_words_record(words, word, __VA_ARGS__), (code)))
#define tutti_words_fail(words, word, ...)                                                         \
    tutti_words_refuse(TUTTI_ERR_ARGUMENT, words, word, __VA_ARGS__)
/* Fails with TUTTI_ERR_ARGUMENT, and says what was expected in place of the word. */
int tutti_words_expected(const struct tutti_words *words, struct tutti_word word,
                         const char *what);

/* Read a word that is a decimal number from `least` to `most`. TUTTI_ERR_ARGUMENT: the word is no
 * number or out of range; the message names the range. */
int tutti_word_number(const struct tutti_words *words, struct tutti_word word, uint32_t least,
                      uint32_t most, uint32_t *ret_number);

#endif
