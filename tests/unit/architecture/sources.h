/* SPDX-License-Identifier: Apache-2.0
 * Reads the sources of the tree, for tests that hold rules about their text. */
#ifndef TUTTI_TESTS_ARCHITECTURE_SOURCES_H
#define TUTTI_TESTS_ARCHITECTURE_SOURCES_H

#include <stdbool.h>
#include <stddef.h>

/* Blanks out comments and strings. */
void sources_strip(char *text);

/* Blanks out the lines of the preprocessor, with their continuations. For a stripped text. */
void sources_strip_directives(char *text);

/* True for letters, digits and underscores. */
bool sources_is_part_of_name(char c);

/* Calls `see` for each file of C, C++ or CUDA below the folders `tops` of the tree; NULL ends the
 * list. The path is relative to the tree. The text ends with a zero, and `see` may change it. */
void sources_visit(const char *tree, const char *const *tops,
                   void (*see)(const char *path, char *text));

#endif
