/* SPDX-License-Identifier: Apache-2.0
 * Forwards the output of the ranks to the output of tutti-run, line by line. */
#include "tutti_run_output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A longer line is forwarded in pieces, so that one rank cannot use up all memory. */
#define LINE_MAX_BYTES ((size_t)1 << 20)

/* A program ends a line of progress with these bytes. They erase the rest of the line and return to
 * its beginning. */
static const char progress_end[] = "\033[K\r";
#define PROGRESS_END_BYTES (sizeof progress_end - 1)

/* These bytes return to the beginning of the terminal's line and erase it. */
static const char erase[] = "\r\033[K";
#define ERASE_BYTES (sizeof erase - 1)

#define TAG_BYTES      16   /* room for a tag such as "[4095] " */
#define FIRST_CAPACITY 4096 /* room for a line at first, in bytes */
#define MOST_READS     64   /* reads of one output before the others have their turn */

/* True if the terminal's current line shows progress. If stdout and stderr are both terminals, they
 * are assumed to be the same terminal. */
static bool shows_progress;

void write_fully(int fd, const char *text, size_t size)
{
    while (size > 0) {
        ssize_t moved = write(fd, text, size);

        if (moved < 0 && errno == EAGAIN) {
            struct pollfd ready = {.fd = fd, .events = POLLOUT};

            poll(&ready, 1, -1);
        } else if (moved < 0 && errno != EINTR) {
            return; /* the reader has ended; the ranks continue */
        } else if (moved > 0) {
            text += moved;
            size -= (size_t)moved;
        }
    }
}

void output_begin(struct output *output, int rank, int from_fd, int to_fd)
{
    *output = (struct output){.rank = rank, .from_fd = from_fd, .to_fd = to_fd,
                              .is_terminal = isatty(to_fd)};
    if (from_fd >= 0)
        fcntl(from_fd, F_SETFL, O_NONBLOCK);
}

void output_erase_progress(void)
{
    if (shows_progress)
        write_fully(STDERR_FILENO, erase, ERASE_BYTES);
    shows_progress = false;
}

/* Writes the tag and the line in one write, so that lines of different ranks do not mix. On a
 * terminal, the line replaces the progress that is shown. Progress itself gets no newline. */
static void emit(const struct output *output, const char *line, size_t length, bool is_progress)
{
    /* `text` has room for ERASE_BYTES, the tag, the line and a newline. */
    char *text = malloc(ERASE_BYTES + TAG_BYTES + length + 1);
    size_t size = 0;

    if (text == NULL) /* this line is lost; the ranks continue */
        return;
    if (output->is_terminal && shows_progress) {
        memcpy(text, erase, ERASE_BYTES);
        size = ERASE_BYTES;
        shows_progress = false;
    }
    if (!is_progress || length > 0)
        size += (size_t)snprintf(text + size, TAG_BYTES, "[%d] ", output->rank);
    memcpy(text + size, line, length);
    size += length;
    if (is_progress)
        shows_progress = length > 0;
    else if (length == 0 || line[length - 1] != '\n')
        text[size++] = '\n';
    write_fully(output->to_fd, text, size);
    free(text);
}

/* Finds the end of a progress text, or returns NULL. Progress exists only on terminals. Elsewhere,
 * its bytes are an ordinary part of the line. */
static char *find_progress(const struct output *output, char *begin, char *end)
{
    if (!output->is_terminal)
        return NULL;
    return memmem(begin, (size_t)(end - begin), progress_end, PROGRESS_END_BYTES);
}

/* Forwards the complete lines and progress in the buffer, and moves the rest to its beginning. */
static void emit_lines(struct output *output)
{
    char *begin = output->line, *end = output->line + output->length;

    for (;;) {
        char *newline = memchr(begin, '\n', (size_t)(end - begin));
        char *progress = find_progress(output, begin, newline == NULL ? end : newline);

        if (progress != NULL) {
            emit(output, begin, (size_t)(progress - begin), true);
            begin = progress + PROGRESS_END_BYTES;
        } else if (newline != NULL) {
            emit(output, begin, (size_t)(newline + 1 - begin), false);
            begin = newline + 1;
        } else {
            break;
        }
    }
    if (begin == output->line && output->length == LINE_MAX_BYTES) {
        emit(output, begin, output->length, false);
        begin = end;
    }
    output->length = (size_t)(end - begin);
    memmove(output->line, begin, output->length);
}

/* Makes room for at least one byte. Returns false if there is no memory. The capacity is never
 * above LINE_MAX_BYTES, because emit_lines then empties the buffer. */
static bool make_room(struct output *output)
{
    size_t capacity = output->capacity == 0 ? FIRST_CAPACITY : output->capacity * 2;
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
        emit(output, output->line, output->length, false);
    if (output->from_fd >= 0)
        close(output->from_fd);
    free(output->line);
    output->from_fd = -1;
    output->line = NULL;
    output->length = output->capacity = 0;
}

void output_pump(struct output *output)
{
    /* The number of reads is limited, so that a rank with endless output does not block the
     * others. */
    for (int i = 0; i < MOST_READS && output->from_fd >= 0 && make_room(output); i++) {
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
