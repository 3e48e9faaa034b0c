/* SPDX-License-Identifier: Apache-2.0
 * Parses numbers and sizes. */
#include "base/sizes.h"

#include <stddef.h>
#include <string.h>

unsigned tutti_size_unit(char letter)
{
    static const char letters[] = "kKmMgGtT";
    const char *found = letter != '\0' ? strchr(letters, letter) : NULL;

    return found != NULL ? 10 * ((unsigned)(found - letters) / 2 + 1) : 0;
}

bool tutti_digits_read(const char **at, const char *end, uint64_t *ret_number)
{
    const char *digit = *at;
    uint64_t number = 0;

    for (; digit < end && *digit >= '0' && *digit <= '9'; digit++) {
        uint64_t value = (uint64_t)(*digit - '0');

        if (number > (UINT64_MAX - value) / 10)
            return false;
        number = number * 10 + value;
    }
    if (digit == *at)
        return false;
    *at = digit;
    *ret_number = number;
    return true;
}

bool tutti_size_read(const char **at, const char *end, uint64_t *ret_size)
{
    const char *unit = *at;
    uint64_t number;
    unsigned shift;

    if (!tutti_digits_read(&unit, end, &number))
        return false;
    shift = unit < end ? tutti_size_unit(*unit) : 0;
    if (number > UINT64_MAX >> shift)
        return false;
    *at = unit + (shift > 0);
    *ret_size = number << shift;
    return true;
}
