/* SPDX-License-Identifier: Apache-2.0
 * The words of a text, each with its line and column. Blanks separate words. A line ends with a
 * newline, in most texts also with a semicolon, and a comment reaches from # to the next newline.
 */
#ifndef TUTTI_BASE_WORDS_H
#define TUTTI_BASE_WORDS_H

#include "base/result.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Points into the text, which must outlive it. */
struct tutti_word {
    const char *at;
    size_t length;
    size_t line, column; /* from 1 on */
};

struct tutti_words {
    const char *name; /* of the file */
    const char *at;   /* the part not yet read */
    const char *line_start;
    const char *stops; /* characters that end a word as a blank does, and are not skipped */
    size_t line;
    bool keeps_semicolons; /* a semicolon is part of a word */
};

/* The words of `text`, from its beginning: without stops, and with semicolons that end lines.
 * `name` is what messages begin with. */
struct tutti_words tutti_words_of(const char *name, const char *text);

/* Takes the next word of this line. False at the end of the line; *ret_word then has length 0 and
 * the position of the end. */
bool tutti_words_next(struct tutti_words *words, struct tutti_word *ret_word);
/* Goes to the next line; false at the end of the text. */
bool tutti_words_next_line(struct tutti_words *words);

bool tutti_word_is(struct tutti_word word, const char *text);

/* A word for "%.*s" in messages, at most 40 characters of it. */
#define TUTTI_WORD(word) (int)((word).length < 40 ? (word).length : 40), (word).at

/* Records and logs the message "name:line:column: ...". */
void tutti_words_record(const struct tutti_words *words, struct tutti_word word, const char *format,
                        ...) __attribute__((format(printf, 3, 4), cold));
/* The same, and returns `code`; these are macros for the same reason as tutti_fail. */
#define tutti_words_refuse(code, words, word, ...)                                                 \
    tutti_recorded((tutti_words_record(words, word, __VA_ARGS__), (code)))
#define tutti_words_fail(words, word, ...)                                                         \
    tutti_words_refuse(TUTTI_ERR_ARGUMENT, words, word, __VA_ARGS__)
/* Fails with TUTTI_ERR_ARGUMENT, and says what was expected in place of the word. */
int tutti_words_expected(const struct tutti_words *words, struct tutti_word word,
                         const char *what);

/* The value of a word. TUTTI_ERR_ARGUMENT, with a message that says what was expected, if it is no
 * number or out of range. */
int tutti_word_number(const struct tutti_words *words, struct tutti_word word, uint32_t least,
                      uint32_t most, uint32_t *ret_number);

#endif
