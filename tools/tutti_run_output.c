/* SPDX-License-Identifier: Apache-2.0
 * The output of tutti-run's ranks, line by line. */
#include "tutti_run_output.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A line longer than this is passed on in pieces, or one rank could eat all memory. */
#define LINE_MAX_BYTES ((size_t)1 << 20)

void write_fully(int fd, const char *text, size_t size)
{
    while (size > 0) {
        ssize_t moved = write(fd, text, size);

        if (moved < 0 && errno == EAGAIN) {
            struct pollfd ready = {.fd = fd, .events = POLLOUT};

            poll(&ready, 1, -1);
        } else if (moved < 0 && errno != EINTR) {
            return; /* the reader has gone; the ranks' work goes on */
        } else if (moved > 0) {
            text += moved;
            size -= (size_t)moved;
        }
    }
}

/* Tag and line in one write, so that lines of ranks do not mix. */
static void emit(const struct output *output, const char *line, size_t length)
{
    char *text = malloc(length + 16);
    int size;

    if (text == NULL)
        return;
    size = snprintf(text, 16, "[%d] ", output->rank);
    memcpy(text + size, line, length);
    size += (int)length;
    if (length == 0 || line[length - 1] != '\n')
        text[size++] = '\n';
    write_fully(output->to_fd, text, (size_t)size);
    free(text);
}

static void emit_lines(struct output *output)
{
    char *begin = output->line, *end = output->line + output->length, *newline;

    while ((newline = memchr(begin, '\n', (size_t)(end - begin))) != NULL) {
        emit(output, begin, (size_t)(newline + 1 - begin));
        begin = newline + 1;
    }
    if (begin == output->line && output->length == LINE_MAX_BYTES) {
        emit(output, begin, output->length);
        begin = end;
    }
    output->length = (size_t)(end - begin);
    memmove(output->line, begin, output->length);
}

static bool make_room(struct output *output)
{
    size_t capacity = output->capacity == 0 ? 4096 : output->capacity * 2;
    char *line;

    if (output->length < output->capacity)
        return true;
    line = realloc(output->line, capacity);
    if (line == NULL)
        return false;
    output->line = line;
    output->capacity = capacity;
    return true;
}

void output_finish(struct output *output)
{
    if (output->length > 0)
        emit(output, output->line, output->length);
    if (output->from_fd >= 0)
        close(output->from_fd);
    free(output->line);
    output->from_fd = -1;
    output->line = NULL;
    output->length = output->capacity = 0;
}

void output_pump(struct output *output)
{
    /* Bounded, so that one rank that never stops talking leaves others their turn. */
    for (int turn = 0; turn < 64 && output->from_fd >= 0 && make_room(output); turn++) {
        ssize_t moved = read(output->from_fd, output->line + output->length,
                             output->capacity - output->length);

        if (moved < 0 && errno == EINTR)
            continue;
        if (moved < 0 && errno == EAGAIN)
            return;
        if (moved <= 0) {
            output_finish(output);
            return;
        }
        output->length += (size_t)moved;
        emit_lines(output);
    }
}
