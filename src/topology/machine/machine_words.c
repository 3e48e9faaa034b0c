/* SPDX-License-Identifier: Apache-2.0
 * Converts the words of a description, which have units, to values and back. */
#include "topology/machine/machine_words.h"

#include "base/result.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct tutti_unit tutti_time_units[] = {
    {"s", 1, 1}, {"ms", 1, 1e3}, {"us", 1, 1e6}, {"ns", 1, 1e9}, {NULL, 0, 0},
};

const struct tutti_unit tutti_rate_units[] = {
    {"TB/s", 1e12, 1},
    {"GB/s", 1e9, 1},
    {"MB/s", 1e6, 1},
    {"KB/s", 1e3, 1},
    {"B/s", 1, 1},
    {"TiB/s", 1024.0 * 1024 * 1024 * 1024, 1},
    {"GiB/s", 1024.0 * 1024 * 1024, 1},
    {"MiB/s", 1024.0 * 1024, 1},
    {"KiB/s", 1024.0, 1},
    {NULL, 0, 0},
};

const struct tutti_unit tutti_size_units[] = {
    {"GiB", 1024.0 * 1024 * 1024, 1},
    {"MiB", 1024.0 * 1024, 1},
    {"KiB", 1024.0, 1},
    {"B", 1, 1},
    {NULL, 0, 0},
};

const struct tutti_unit tutti_no_units[] = {
    {"", 1, 1},
    {NULL, 0, 0},
};

/* ---- values ---------------------------------------------------------------------------------- */

/* Finds the length of the decimal number at the start of a text: digits with at most one point and
 * one exponent. Returns false if there is none. strtod() alone would accept much more, such as
 * hexadecimal numbers, "inf" and "nan". */
static bool measure_decimal(const char *text, size_t length, size_t *ret_used)
{
    size_t at = 0, digits = 0, begin;

    for (bool has_point = false; at < length; at++) {
        if (text[at] >= '0' && text[at] <= '9')
            digits++;
        else if (text[at] == '.' && !has_point)
            has_point = true;
        else
            break;
    }
    *ret_used = at;
    if (digits == 0)
        return false;
    if (at < length && text[at] == 'e') {
        begin = at + 1;
        if (begin < length && (text[begin] == '-' || text[begin] == '+'))
            begin++;
        for (at = begin; at < length && text[at] >= '0' && text[at] <= '9'; at++)
            *ret_used = at + 1;
    }
    return true;
}

/* Reads a number with one of these units. `what` describes the expected form for the message. */
static int read_quantity(const struct tutti_words *words, struct tutti_word word,
                         const struct tutti_unit *units, const char *what, double *ret_value)
{
    char number[64];
    size_t used;

    if (!measure_decimal(word.at, word.length, &used) || used >= sizeof number)
        return tutti_words_expected(words, word, what);
    memcpy(number, word.at, used);
    number[used] = '\0';
    for (; units->name != NULL; units++) {
        struct tutti_word unit = {.at = word.at + used, .length = word.length - used};
        double value;

        if (!tutti_word_is(unit, units->name))
            continue;
        value = strtod(number, NULL) * units->multiply / units->divide;
        if (!isfinite(value))
            break;
        *ret_value = value;
        return TUTTI_OK;
    }
    return tutti_words_expected(words, word, what);
}

int tutti_unit_read_seconds(const struct tutti_words *words, struct tutti_word word,
                            double *ret_seconds)
{
    return read_quantity(words, word, tutti_time_units, "a time such as 2.5us (ns, us, ms, s)",
                         ret_seconds);
}

int tutti_unit_read_bytes(const struct tutti_words *words, struct tutti_word word,
                          double *ret_bytes)
{
    return read_quantity(words, word, tutti_size_units, "a size such as 1MiB (B, KiB, MiB, GiB)",
                         ret_bytes);
}

int tutti_unit_read_rate(const struct tutti_words *words, struct tutti_word word,
                         double *ret_bytes_per_s)
{
    double value;

    TUTTI_TRY(read_quantity(words, word, tutti_rate_units,
                            "a rate such as 50GB/s (B/s, KB/s, MB/s, GB/s, TB/s, KiB/s, ...)",
                            &value));
    if (value <= 0)
        return tutti_words_expected(words, word,
                                    "a rate above 0; leave the line out where nothing limits");
    *ret_bytes_per_s = value;
    return TUTTI_OK;
}

int tutti_unit_read_decimal(const struct tutti_words *words, struct tutti_word word, double least,
                            double most, double *ret_value)
{
    char what[64];
    double value;

    snprintf(what, sizeof what, "a number from %g to %g", least, most);
    TUTTI_TRY(read_quantity(words, word, tutti_no_units, what, &value));
    if (!(value >= least && value <= most))
        return tutti_words_expected(words, word, what);
    *ret_value = value;
    return TUTTI_OK;
}

/* Writes a value in a unit, with the fewest digits that read back as the same value. Returns false
 * if no digits do, because the value is not exact in this unit. */
static bool write_exactly(FILE *out, const struct tutti_unit *unit, double value)
{
    char number[64];

    for (int digits = 3; digits <= 17; digits++) {
        snprintf(number, sizeof number, "%.*g", digits, value * unit->divide / unit->multiply);
        if (strtod(number, NULL) * unit->multiply / unit->divide == value) {
            fprintf(out, "%s%s", number, unit->name);
            return true;
        }
    }
    return false;
}

void tutti_unit_write(FILE *out, const struct tutti_unit *units, double value)
{
    const struct tutti_unit *unit = units, *base = units;

    while (base->multiply != 1 || base->divide != 1)
        base++;
    while (unit->name != NULL && value * unit->divide / unit->multiply < 1)
        unit++;
    /* The unit with factor 1 is always exact, so zero and inexact values use this unit. */
    if (unit->name == NULL || !write_exactly(out, unit, value))
        write_exactly(out, base, value);
}
