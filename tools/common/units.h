/* SPDX-License-Identifier: Apache-2.0
 * Numbers with units, as people write and read them. */
#ifndef TUTTI_TOOLS_UNITS_H
#define TUTTI_TOOLS_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Room for any of the texts below. */
#define UNITS_TEXT 32

/* Parses "64K", "1.5MiB", "100": the units of base/sizes.h, with or without "iB" or "B". False if
 * the text is no such size. */
bool units_read_bytes(const char *text, double *ret_bytes);
/* Parses a number of digits only. False if it is not within least .. most. */
bool units_read_count(const char *text, uint64_t least, uint64_t most, uint64_t *ret_count);

/* "64 KiB", "1000 B", "1.5 GiB": exact up to three digits. */
const char *units_bytes(double bytes, char text[UNITS_TEXT]);
/* "52.1 us", "1.04 ms": three digits. */
const char *units_seconds(double seconds, char text[UNITS_TEXT]);
/* The same for pictures: "52.1 µs". */
const char *units_seconds_drawn(double seconds, char text[UNITS_TEXT]);
/* "48.3 GB/s", powers of 1000: three digits. */
const char *units_rate(double bytes_per_s, char text[UNITS_TEXT]);
/* "16,384". */
const char *units_count(uint64_t count, char text[UNITS_TEXT]);

#endif
