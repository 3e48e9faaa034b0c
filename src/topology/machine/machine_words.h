/* SPDX-License-Identifier: Apache-2.0
 * The words of a description, each with its position in the text, and the values that they stand
 * for.
 */
#ifndef TUTTI_TOPOLOGY_MACHINE_WORDS_H
#define TUTTI_TOPOLOGY_MACHINE_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

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
    size_t line;
};

/* Takes the next word of this line. False at the end of the line; *ret_word then has length 0 and
 * the position of the end. */
bool tutti_words_next(struct tutti_words *words, struct tutti_word *ret_word);
/* Goes to the next line; false at the end of the text. */
bool tutti_words_next_line(struct tutti_words *words);

bool tutti_word_is(struct tutti_word word, const char *text);

/* Fails with TUTTI_ERR_ARGUMENT and the message "name:line:column: ...". */
int tutti_words_fail(const struct tutti_words *words, struct tutti_word word, const char *format,
                     ...) __attribute__((format(printf, 3, 4), cold));

/* The value of a word. TUTTI_ERR_ARGUMENT, with a message that says what was expected, if it is
 * none or out of range. */
int tutti_word_number(const struct tutti_words *words, struct tutti_word word, uint32_t least,
                      uint32_t most, uint32_t *ret_number);
int tutti_word_seconds(const struct tutti_words *words, struct tutti_word word,
                       double *ret_seconds);
int tutti_word_bytes(const struct tutti_words *words, struct tutti_word word, double *ret_bytes);
int tutti_word_rate(const struct tutti_words *words, struct tutti_word word,
                    double *ret_bytes_per_s);
/* A plain decimal number from `least` to `most`. */
int tutti_word_decimal(const struct tutti_words *words, struct tutti_word word, double least,
                       double most, double *ret_value);

/* Units, largest first. A value is number * multiply / divide, and both factors are exact, so a
 * value that is written with a unit reads back as the same value. */
struct tutti_unit {
    const char *name;
    double multiply, divide;
};

extern const struct tutti_unit tutti_time_units[];  /* end with an entry whose name is NULL */
extern const struct tutti_unit tutti_rate_units[];
extern const struct tutti_unit tutti_size_units[];
extern const struct tutti_unit tutti_no_units[];

/* Writes a value with the largest unit that leaves at least 1 before the point, and with the fewest
 * digits that read back as the same value. At least three digits are used, so that 350 does not
 * become 3.5e+02. */
void tutti_words_write(FILE *out, const struct tutti_unit *units, double value);

#endif
