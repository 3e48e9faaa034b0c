/* SPDX-License-Identifier: Apache-2.0
 * Gives the sample files of tests/import/files. */
#ifndef TUTTI_TESTS_IMPORT_SAMPLES_H
#define TUTTI_TESTS_IMPORT_SAMPLES_H

#include <stddef.h>

/* NULL from the end on. */
const char *sample_name(size_t index);

/* All of it, with a zero behind; the caller frees it. Asserts that it is there. */
char *sample_read(const char *name, size_t *ret_size_bytes);

#endif
