/* SPDX-License-Identifier: Apache-2.0
 * Parses numbers and sizes as people write them, such as "64K" or "1m": digits, which a letter may
 * follow. The letters K, M, G and T in either case are powers of 1024.
 */
#ifndef TUTTI_BASE_SIZES_H
#define TUTTI_BASE_SIZES_H

#include <stdbool.h>
#include <stdint.h>

/* Returns the binary logarithm of the unit that a letter stands for, such as 10 for 'K'; 0 for any
 * other character. */
unsigned tutti_size_unit(char letter);

/* Parse decimal digits at *at, and move *at past them. False, and nothing changed, if there are no
 * digits before `end`, or if the number is larger than UINT64_MAX. */
bool tutti_digits_read(const char **at, const char *end, uint64_t *ret_number);

/* Does the same as tutti_digits_read for a size with or without a unit, in bytes. */
bool tutti_size_read(const char **at, const char *end, uint64_t *ret_size);

#endif
