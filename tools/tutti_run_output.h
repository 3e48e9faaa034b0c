/* SPDX-License-Identifier: Apache-2.0
 * The output of tutti-run's ranks, line by line. */
#ifndef TUTTI_RUN_OUTPUT_H
#define TUTTI_RUN_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

/* One stream of one rank. */
struct output {
    int rank;
    int from_fd; /* non-blocking end of a pipe; -1: none, or ended */
    int to_fd;   /* 1 or 2 */
    bool is_terminal; /* to_fd is one */
    char *line;  /* what has arrived of the current line */
    size_t length, capacity;
};

/* Pass on what comes from the pipe's end `from_fd`, which this makes non-blocking; -1: nothing. */
void output_begin(struct output *output, int rank, int from_fd, int to_fd);

/* Pass on the whole lines that are there, each behind "[rank] " in one piece. At the end of the
 * stream the last line gets its missing newline. On a terminal, text that ends in ESC [ K and a
 * carriage return is shown at once, until the next line or the next such text replaces it. */
void output_pump(struct output *output);

/* The stream ends here, whoever still holds the other end. */
void output_finish(struct output *output);

/* Erase the progress that is on the terminal, if any. */
void output_erase_progress(void);

/* Write all of it, come what may. */
void write_fully(int fd, const char *text, size_t size);

#endif
