/* SPDX-License-Identifier: Apache-2.0
 * Reads and writes quantities in the words of a description: times, sizes and rates with units.
 */
#ifndef TUTTI_TOPOLOGY_MACHINE_WORDS_H
#define TUTTI_TOPOLOGY_MACHINE_WORDS_H

#include "base/words.h"

#include <stdio.h>

/* These functions read the value of a word. TUTTI_ERR_ARGUMENT: the word has no such value or is
 * out of range, and the message names the expected form. */
int tutti_unit_read_seconds(const struct tutti_words *words, struct tutti_word word,
                            double *ret_seconds);
int tutti_unit_read_bytes(const struct tutti_words *words, struct tutti_word word,
                          double *ret_bytes);
int tutti_unit_read_rate(const struct tutti_words *words, struct tutti_word word,
                         double *ret_bytes_per_s);
/* Reads a plain decimal number from `least` to `most`. */
int tutti_unit_read_decimal(const struct tutti_words *words, struct tutti_word word, double least,
                            double most, double *ret_value);

/* A unit. Tables of units list the largest unit first. A value is number * multiply / divide, and
 * both factors are exact, so a value that is written with a unit reads back as the same value. */
struct tutti_unit {
    const char *name;
    double multiply, divide;
};

/* Each table ends with an entry whose name is NULL. */
extern const struct tutti_unit tutti_time_units[];
extern const struct tutti_unit tutti_rate_units[];
extern const struct tutti_unit tutti_size_units[];
extern const struct tutti_unit tutti_no_units[]; /* for plain numbers */

/* Writes a value with the largest unit that leaves at least 1 before the point, and with the fewest
 * digits that read back as the same value. At least three digits are used, so that 350 does not
 * become 3.5e+02. */
void tutti_unit_write(FILE *out, const struct tutti_unit *units, double value);

#endif
