/* SPDX-License-Identifier: Apache-2.0
 * Runs a tool. */
#include "running.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct running running;
static char directory[64];

int running_begin(void **state)
{
    (void)state;
    snprintf(directory, sizeof directory, "/tmp/tutti-test-XXXXXX");
    return mkdtemp(directory) == NULL || chdir(directory) != 0;
}

int running_end(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof command, "cd / && rm -r '%s'", directory);
    return system(command);
}

void running_write(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

void running_read(const char *name, char *text, size_t size)
{
    FILE *file = fopen(name, "r");
    size_t length;

    if (file == NULL)
        fail_msg("there is no file %s", name);
    length = fread(text, 1, size - 1, file);
    assert_true(length < size - 1);
    text[length] = '\0';
    fclose(file);
}

int running_run(const char *program, const char *format, ...)
{
    char arguments[4096], command[8192];
    va_list args;
    int status;

    va_start(args, format);
    vsnprintf(arguments, sizeof arguments, format, args);
    va_end(args);
    snprintf(command, sizeof command, "'%s' %s >.out 2>.err", program, arguments);
    status = system(command);
    running_read(".out", running.out, sizeof running.out);
    running_read(".err", running.err, sizeof running.err);
    status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (status >= 128)
        fail_msg("%s was ended by signal %d: %s", command, status - 128, running.err);
    return status;
}

void running_is_mistake(int status, const char *who, const char *what)
{
    size_t length = strlen(running.err);

    if (status != 2 || running.out[0] != '\0' || strncmp(running.err, who, strlen(who)) != 0 ||
        strstr(running.err, what) == NULL || length == 0 ||
        strchr(running.err, '\n') != running.err + length - 1)
        fail_msg("status %d, said:\n%s%s, not \"%s... %s\"", status, running.out, running.err, who,
                 what);
}

void running_says(const char *what)
{
    if (strstr(running.out, what) == NULL)
        fail_msg("\"%s\" is not in:\n%s%s", what, running.out, running.err);
}

size_t running_count(const char *text, const char *word)
{
    size_t count = 0;

    for (const char *at = text; (at = strstr(at, word)) != NULL; at++)
        count++;
    return count;
}

/* ---- XML ------------------------------------------------------------------------------------- */

#define DEPTH 16

struct reader {
    const char *at, *begin;
    char open[DEPTH][32];
    int depth;
    const char *why;
};

static bool refuse(struct reader *reader, const char *why)
{
    reader->why = why;
    return false;
}

static size_t name_length(const char *at)
{
    size_t length = 0;

    while (isalnum((unsigned char)at[length]) || strchr("-_:.", at[length]) != NULL) {
        if (at[length] == '\0')
            break;
        length++;
    }
    return isalpha((unsigned char)at[0]) ? length : 0;
}

/* Up to `end`, which is not part of it. */
static bool read_text(struct reader *reader, char end)
{
    static const char *const references[] = {"&amp;", "&lt;", "&gt;", "&quot;"};

    for (; *reader->at != end; reader->at++) {
        bool is_known = *reader->at != '&';

        if (*reader->at == '\0' || *reader->at == '<')
            return refuse(reader, "text does not end, or has a <");
        if ((unsigned char)*reader->at < ' ' && !isspace((unsigned char)*reader->at))
            return refuse(reader, "control character");
        for (size_t i = 0; i < 4; i++)
            is_known = is_known || strncmp(reader->at, references[i], strlen(references[i])) == 0;
        if (!is_known)
            return refuse(reader, "unknown reference");
    }
    return true;
}

static bool read_attributes(struct reader *reader)
{
    char seen[16][32];
    size_t count = 0;

    for (;;) {
        size_t blanks = strspn(reader->at, " \n"), length;

        reader->at += blanks;
        if (*reader->at == '>' || *reader->at == '/')
            return true;
        length = name_length(reader->at);
        if (blanks == 0 || length == 0 || length >= sizeof seen[0] || count == 16)
            return refuse(reader, "no attribute");
        snprintf(seen[count], sizeof seen[count], "%.*s", (int)length, reader->at);
        for (size_t i = 0; i < count; i++)
            if (strcmp(seen[i], seen[count]) == 0)
                return refuse(reader, "attribute twice");
        count++;
        reader->at += length;
        if (strncmp(reader->at, "=\"", 2) != 0)
            return refuse(reader, "attribute without value");
        reader->at += 2;
        if (!read_text(reader, '"'))
            return false;
        reader->at++;
    }
}

static bool read_tag(struct reader *reader)
{
    bool is_end = reader->at[1] == '/';
    size_t length = name_length(reader->at += 1 + is_end);
    char name[32];

    if (length == 0 || length >= sizeof name)
        return refuse(reader, "no tag");
    snprintf(name, sizeof name, "%.*s", (int)length, reader->at);
    reader->at += length;
    if (is_end) {
        if (reader->depth == 0 || strcmp(reader->open[--reader->depth], name) != 0)
            return refuse(reader, "end without beginning");
        return *reader->at++ == '>' || refuse(reader, "end tag goes on");
    }
    if (reader->depth == 0 && strcmp(name, "svg") != 0)
        return refuse(reader, "root is not svg");
    if (!read_attributes(reader))
        return false;
    if (*reader->at == '/')
        return (reader->at += 2)[-1] == '>' || refuse(reader, "/ without >");
    if (reader->depth == DEPTH)
        return refuse(reader, "too deep");
    strcpy(reader->open[reader->depth++], name);
    reader->at++;
    return true;
}

static bool read_document(struct reader *reader)
{
    bool has_ended = false;

    while (!has_ended) {
        if (reader->depth > 0 && !read_text(reader, '<'))
            return false;
        if (*reader->at != '<')
            return refuse(reader, "does not begin with <");
        if (!read_tag(reader))
            return false;
        has_ended = reader->depth == 0;
    }
    return reader->at[strspn(reader->at, "\n")] == '\0' || refuse(reader, "goes on after </svg>");
}

bool running_is_svg(const char *name)
{
    static char text[8 << 20];
    struct reader reader = {.at = text, .begin = text};

    running_read(name, text, sizeof text);
    if (read_document(&reader))
        return true;
    print_error("%s, byte %td: %s: %.60s\n", name, reader.at - reader.begin, reader.why, reader.at);
    return false;
}
