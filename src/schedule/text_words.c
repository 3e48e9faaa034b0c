/* SPDX-License-Identifier: Apache-2.0
 * Words, numbers and spans of the text form, and their position in the file.
 */
#include "schedule/text_private.h"

#include "base/result.h"
#include "schedule/access.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void tutti_text_record(const struct tutti_text_reader *reader, const char *format, ...)
{
    char what[TUTTI_MESSAGE_BYTES];
    va_list args;

    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    tutti_record_failure("%s:%u:%u: %s", reader->name, reader->line, reader->word.column, what);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

void tutti_text_next(struct tutti_text_reader *reader)
{
    const char *at = reader->at;

    while (is_blank(*at))
        at++;
    reader->word =
        (struct tutti_text_word){.text = at, .column = (uint32_t)(at - reader->line_start) + 1};
    while (*at != '\0' && *at != '\n' && *at != '#' && !is_blank(*at))
        at++;
    reader->word.length = (size_t)(at - reader->word.text);
    reader->at = at;
}

bool tutti_text_is(const struct tutti_text_reader *reader, const char *text)
{
    return strlen(text) == reader->word.length &&
           memcmp(text, reader->word.text, reader->word.length) == 0;
}

static int parse_digits(const char **at, const char *end, uint64_t *ret_value)
{
    uint64_t value = 0;

    if (*at == end || **at < '0' || **at > '9')
        return TUTTI_ERR_ARGUMENT;
    for (; *at < end && **at >= '0' && **at <= '9'; ++*at) {
        uint64_t digit = (uint64_t)(**at - '0');

        if (value > (UINT64_MAX - digit) / 10)
            return TUTTI_ERR_ARGUMENT;
        value = value * 10 + digit;
    }
    *ret_value = value;
    return TUTTI_OK;
}

int tutti_text_size(struct tutti_text_reader *reader, const char *what, uint64_t least,
                    uint64_t most, uint64_t *ret_value)
{
    const char *end, *at;
    uint64_t value;

    tutti_text_next(reader);
    at = reader->word.text;
    end = at + reader->word.length;
    if (parse_digits(&at, end, &value) != TUTTI_OK || at != end || value < least || value > most)
        return tutti_text_refuse(reader, "\"%.*s\" is no %s; give a number from %llu to %llu",
                                 TUTTI_TEXT_WORD(reader), what, (unsigned long long)least,
                                 (unsigned long long)most);
    *ret_value = value;
    return TUTTI_OK;
}

int tutti_text_number(struct tutti_text_reader *reader, const char *what, uint64_t least,
                      uint32_t most, uint32_t *ret_value)
{
    uint64_t value;

    TUTTI_TRY(tutti_text_size(reader, what, least, most, &value));
    *ret_value = (uint32_t)value;
    return TUTTI_OK;
}

int tutti_text_read_span(struct tutti_text_reader *reader, struct tutti_span *ret_span)
{
    const char *at, *end;
    uint64_t first, count = 1;
    uint32_t buffer;
    size_t length = 0;

    tutti_text_next(reader);
    at = reader->word.text;
    end = at + reader->word.length;
    for (buffer = TUTTI_BUF_INPUT; buffer < TUTTI_BUF_COUNT; buffer++) {
        const char *name = tutti_buffer_name((enum tutti_buffer)buffer);

        length = strlen(name);
        if (length < reader->word.length && memcmp(at, name, length) == 0 && at[length] == '[')
            break;
    }
    if (buffer == TUTTI_BUF_COUNT)
        return tutti_text_refuse(
            reader,
            "\"%.*s\" is no span; write buffer[first] or buffer[first+count] of "
            "input, output, scratch or window",
            TUTTI_TEXT_WORD(reader));
    at += length + 1;
    if (parse_digits(&at, end, &first) != TUTTI_OK || first > UINT32_MAX)
        return tutti_text_refuse(reader, "\"%.*s\": no chunk after '['", TUTTI_TEXT_WORD(reader));
    if (at < end && *at == '+') {
        at++;
        if (parse_digits(&at, end, &count) != TUTTI_OK || count == 0 || count > UINT32_MAX)
            return tutti_text_refuse(reader, "\"%.*s\": no count of chunks after '+'",
                                     TUTTI_TEXT_WORD(reader));
    }
    if (at + 1 != end || *at != ']')
        return tutti_text_refuse(reader, "\"%.*s\" does not end with ']'", TUTTI_TEXT_WORD(reader));
    *ret_span = tutti_span((enum tutti_buffer)buffer, (uint32_t)first, (uint32_t)count);
    return TUTTI_OK;
}

int tutti_text_end(struct tutti_text_reader *reader)
{
    tutti_text_next(reader);
    if (reader->word.length > 0)
        return tutti_text_refuse(reader, "\"%.*s\" is more than this line has; remove it",
                                 TUTTI_TEXT_WORD(reader));
    return TUTTI_OK;
}
