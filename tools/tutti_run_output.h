/* SPDX-License-Identifier: Apache-2.0
 * Forwards the output of the ranks to the output of tutti-run, line by line. Only one thread may
 * use these functions. */
#ifndef TUTTI_RUN_OUTPUT_H
#define TUTTI_RUN_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

/* One output stream of one rank. */
struct output {
    int rank;
    int from_fd; /* non-blocking end of a pipe, owned; -1: there is none, or it has ended */
    int to_fd;   /* STDOUT_FILENO or STDERR_FILENO */
    bool is_terminal; /* true if to_fd is a terminal */
    char *line; /* the part of the current line that has arrived; no zero byte ends it; owned */
    size_t length, capacity; /* of `line`, in bytes */
};

/* Initializes an output that forwards from the pipe end `from_fd` to `to_fd`. Makes from_fd
 * non-blocking and takes it over. With -1, there is nothing to forward. The caller ends the output
 * with output_finish. */
void output_begin(struct output *output, int rank, int from_fd, int to_fd);

/* Forwards the complete lines that have arrived, without blocking on from_fd. Each line is one
 * write and starts with "[rank] ". At the end of the stream, adds a missing newline and finishes
 * the output. A text that ends with ESC [ K and a carriage return is progress. On a terminal, it is
 * shown at once, and the next line or progress replaces it. */
void output_pump(struct output *output);

/* Forwards the last line if it is incomplete, closes from_fd, and frees the memory. Does this even
 * if another process still has the other end of the pipe open. May be called twice. */
void output_finish(struct output *output);

/* Erases the progress on the terminal if there is any. */
void output_erase_progress(void);

/* Writes all bytes, with as many writes as needed. Waits if `fd` is non-blocking and full. Ignores
 * errors. */
void write_fully(int fd, const char *text, size_t size);

#endif
