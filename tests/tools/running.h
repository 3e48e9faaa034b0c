/* SPDX-License-Identifier: Apache-2.0
 * Runs a tool as a user does, in a directory of its own, and reads its output. */
#ifndef TUTTI_TESTS_RUNNING_H
#define TUTTI_TESTS_RUNNING_H

#include <stdbool.h>
#include <stddef.h>

#define RUNNING_TEXT (1 << 20)

/* The output of the last run. */
struct running {
    char out[RUNNING_TEXT], err[RUNNING_TEXT];
};

extern struct running running;

/* Group fixtures: make the directory, and remove it with all that is in it. */
int running_begin(void **state);
int running_end(void **state);

/* "PROGRAM ARGUMENTS" by the shell, in the directory; gives the exit status. */
int running_run(const char *program, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Write a file of the directory, and read one into `text`. */
void running_write(const char *name, const char *text);
void running_read(const char *name, char *text, size_t size);

/* Fails with what was said unless the run was a mistake of the user: exit status 2, nothing on
 * stdout, one line on stderr that begins with `who` and has `what` in it. */
void running_is_mistake(int status, const char *who, const char *what);

/* Fails with what the last run said unless stdout has `what` in it. */
void running_says(const char *what);

/* How often `word` is in `text`. */
size_t running_count(const char *text, const char *word);

/* True if this file of the directory is a well-formed XML document whose root is <svg>. Tags,
 * attributes, references and nesting are checked. Prints the first error. */
bool running_is_svg(const char *name);

#endif
