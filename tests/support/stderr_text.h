/* SPDX-License-Identifier: Apache-2.0
 * Catches the text that some code writes to stderr, for tests of the lines that users read. */
#ifndef TUTTI_TESTS_SUPPORT_STDERR_TEXT_H
#define TUTTI_TESTS_SUPPORT_STDERR_TEXT_H

#include <stddef.h>

/* From now on stderr goes into a file in memory. If a test failed before it called
 * stderr_text_end, its text is shown at the next begin, or when the process exits. */
void stderr_text_begin(void);
/* As before again; what was written, up to 64 KiB less one byte, with a zero at the end. Static. */
const char *stderr_text_end(void);
/* In how many lines of a text a word occurs. */
size_t count_lines_with(const char *text, const char *word);

#endif
