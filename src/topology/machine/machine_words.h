/* SPDX-License-Identifier: Apache-2.0
 * A description cut into words, each of which knows where it stands, and the values that words
 * stand for.
 */
#ifndef TUTTI_TOPOLOGY_MACHINE_WORDS_H
#define TUTTI_TOPOLOGY_MACHINE_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Borrows the text. */
struct tutti_word {
    const char *at;
    size_t length;
    size_t line, column; /* from 1 on */
};

struct tutti_words {
    const char *name; /* of the file */
    const char *at;   /* what is not yet read */
    const char *line_start;
    size_t line;
};

/* The next word of this line; false at its end. A word of length 0 then says where that is. */
bool tutti_words_next(struct tutti_words *words, struct tutti_word *ret_word);
/* Go to the next line; false at the end of the text. */
bool tutti_words_next_line(struct tutti_words *words);

bool tutti_word_is(struct tutti_word word, const char *text);

/* Say "name:line:column: ..." and give TUTTI_ERR_ARGUMENT. */
int tutti_words_fail(const struct tutti_words *words, struct tutti_word word, const char *format,
                     ...) __attribute__((format(printf, 3, 4), cold));

/* The value of a word, or an error that says what was expected instead of it. */
int tutti_word_number(const struct tutti_words *words, struct tutti_word word, uint32_t least,
                      uint32_t most, uint32_t *ret_number);
int tutti_word_seconds(const struct tutti_words *words, struct tutti_word word,
                       double *ret_seconds);
int tutti_word_bytes(const struct tutti_words *words, struct tutti_word word, double *ret_bytes);
int tutti_word_rate(const struct tutti_words *words, struct tutti_word word,
                    double *ret_bytes_per_s);
/* A plain decimal from `least` to `most`. */
int tutti_word_decimal(const struct tutti_words *words, struct tutti_word word, double least,
                       double most, double *ret_value);

/* Units, largest first; a value is number * multiply / divide, both exact, so that what is
 * written with a unit reads as the same value again. */
struct tutti_unit {
    const char *name;
    double multiply, divide;
};

extern const struct tutti_unit tutti_time_units[];  /* up to one with name NULL */
extern const struct tutti_unit tutti_rate_units[];
extern const struct tutti_unit tutti_size_units[];
extern const struct tutti_unit tutti_no_units[];

/* Write a value with the largest unit that leaves 1 or more before the point, and as few digits as
 * give the same value when read again; from three on, so that 350 is not 3.5e+02. */
void tutti_words_write(FILE *out, const struct tutti_unit *units, double value);

#endif
