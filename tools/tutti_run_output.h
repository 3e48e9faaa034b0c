/* SPDX-License-Identifier: Apache-2.0
 * Forwards the output of tutti-run's ranks, line by line. */
#ifndef TUTTI_RUN_OUTPUT_H
#define TUTTI_RUN_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

/* One output stream of one rank. */
struct output {
    int rank;
    int from_fd; /* non-blocking end of a pipe; -1: none, or ended */
    int to_fd;   /* 1 or 2 */
    bool is_terminal; /* true if to_fd is a terminal */
    char *line;  /* what has arrived of the current line; owned */
    size_t length, capacity;
};

/* Starts forwarding from the pipe end `from_fd`, which becomes non-blocking; -1: nothing to
 * forward. */
void output_begin(struct output *output, int rank, int from_fd, int to_fd);

/* Forwards the complete lines that have arrived, each in one write and prefixed with "[rank] ". At
 * the end of the stream the last line gets its missing newline. On a terminal, text that ends in
 * ESC [ K and a carriage return is shown at once, until the next line or the next such text
 * replaces it. */
void output_pump(struct output *output);

/* Ends the stream here, even if another process still holds the other end. */
void output_finish(struct output *output);

/* Erases the progress that is on the terminal, if any. */
void output_erase_progress(void);

/* Writes all bytes, retrying partial writes; errors are ignored. */
void write_fully(int fd, const char *text, size_t size);

#endif
