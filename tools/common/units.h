/* SPDX-License-Identifier: Apache-2.0
 * Parses and writes numbers with units, in the forms that people use. Each function that writes a
 * text returns that text. */
#ifndef TUTTI_TOOLS_UNITS_H
#define TUTTI_TOOLS_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The size of a buffer for any of the texts below. */
#define UNITS_TEXT 32

/* Parses a size such as "64K", "1.5MiB" or "100". The units are those of base/sizes.h, with or
 * without "iB" or "B". Returns false if the text is not such a size. */
bool units_read_bytes(const char *text, double *ret_bytes);
/* Parses a number that consists only of digits. Returns false if the text is not such a number, or
 * if the number is not in least .. most. */
bool units_read_count(const char *text, uint64_t least, uint64_t most, uint64_t *ret_count);

/* Writes a size such as "64 KiB", "1000 B" or "1.5 GiB". Rounds a fraction to three digits. */
const char *units_bytes(double bytes, char text[UNITS_TEXT]);
/* Writes a time such as "52.1 us" or "1.04 ms", with three digits. */
const char *units_seconds(double seconds, char text[UNITS_TEXT]);
/* Writes a time for a picture, such as "52.1 µs". */
const char *units_seconds_drawn(double seconds, char text[UNITS_TEXT]);
/* Writes a rate such as "48.3 GB/s", with three digits. The units are powers of 1000. */
const char *units_rate(double bytes_per_s, char text[UNITS_TEXT]);
/* Writes a count such as "16,384". */
const char *units_count(uint64_t count, char text[UNITS_TEXT]);

#endif
