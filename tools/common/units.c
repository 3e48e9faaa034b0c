/* SPDX-License-Identifier: Apache-2.0
 * Parses and writes numbers with units. */
#include "common/units.h"

#include "base/sizes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_DIGITS 18 /* most characters of a number in a size; no real size has more */

bool units_read_count(const char *text, uint64_t least, uint64_t most, uint64_t *ret_count)
{
    const char *at = text, *end = text + strlen(text);
    uint64_t count;

    if (!tutti_digits_read(&at, end, &count) || at != end || count < least || count > most)
        return false;
    *ret_count = count;
    return true;
}

bool units_read_bytes(const char *text, double *ret_bytes)
{
    size_t digits = strspn(text, "0123456789.");
    const char *unit = text + digits;
    unsigned shift = tutti_size_unit(*unit);
    double bytes;
    char *end;

    if (digits == 0 || digits > MOST_DIGITS)
        return false;
    bytes = strtod(text, &end);
    if (end != unit)
        return false;
    bytes *= ldexp(1, (int)shift);
    unit += shift > 0;
    if (shift > 0 && *unit == 'i' && unit[1] == 'B')
        unit++;
    if (*unit == 'B')
        unit++;
    if (*unit != '\0' || bytes != floor(bytes)) /* "0.3" is no number of bytes, but "0.5K" is */
        return false;
    *ret_bytes = bytes;
    return true;
}

/* Writes a number with at least three significant digits, without trailing zeros after the decimal
 * point. */
static void write_number(char *text, size_t size, double value)
{
    /* The limits are the values that round up to 100 and to 10. */
    int decimals = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;

    snprintf(text, size, "%.*f", decimals, value);
    if (decimals > 0) {
        char *end = text + strlen(text);

        while (end[-1] == '0')
            *--end = '\0';
        if (end[-1] == '.')
            end[-1] = '\0';
    }
}

const char *units_bytes(double bytes, char text[UNITS_TEXT])
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    char number[24];
    int unit = 0;

    /* A size below 100000 bytes that is not a whole number of KiB is written in bytes. */
    while (unit < 5 && bytes >= 1024 && (unit > 0 || bytes >= 1e5 || fmod(bytes, 1024) == 0)) {
        bytes /= 1024;
        unit++;
    }
    write_number(number, sizeof number, bytes);
    snprintf(text, UNITS_TEXT, "%s %s", number, names[unit]);
    return text;
}

const char *units_seconds(double seconds, char text[UNITS_TEXT])
{
    char number[24];

    /* The limits are just below the next unit, because write_number would round up to 1000. */
    if (seconds > 0 && seconds < 0.9995e-6) {
        write_number(number, sizeof number, seconds * 1e9);
        snprintf(text, UNITS_TEXT, "%s ns", number);
    } else if (seconds < 0.9995e-3) {
        write_number(number, sizeof number, seconds * 1e6);
        snprintf(text, UNITS_TEXT, "%s us", number);
    } else if (seconds < 0.9995) {
        write_number(number, sizeof number, seconds * 1e3);
        snprintf(text, UNITS_TEXT, "%s ms", number);
    } else {
        write_number(number, sizeof number, seconds);
        snprintf(text, UNITS_TEXT, "%s s", number);
    }
    return text;
}

const char *units_seconds_drawn(double seconds, char text[UNITS_TEXT])
{
    char *us = strstr(units_seconds(seconds, text), "us");

    if (us != NULL)
        strcpy(us, "µs");
    return text;
}

const char *units_rate(double bytes_per_s, char text[UNITS_TEXT])
{
    static const char *const names[] = {"B/s", "KB/s", "MB/s", "GB/s", "TB/s", "PB/s"};
    char number[24];
    int unit = 0;

    while (unit < 5 && bytes_per_s >= 999.5) {
        bytes_per_s /= 1000;
        unit++;
    }
    write_number(number, sizeof number, bytes_per_s);
    snprintf(text, UNITS_TEXT, "%s %s", number, names[unit]);
    return text;
}

const char *units_count(uint64_t count, char text[UNITS_TEXT])
{
    char digits[24];
    size_t length = (size_t)snprintf(digits, sizeof digits, "%llu", (unsigned long long)count);
    size_t at = 0;

    for (size_t i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            text[at++] = ',';
        text[at++] = digits[i];
    }
    text[at] = '\0';
    return text;
}
