/* SPDX-License-Identifier: Apache-2.0
 * Reads words, numbers and spans of the text form.
 */
#include "schedule/text_private.h"

#include "base/sizes.h"
#include "schedule/access.h"

#include <string.h>

void tutti_text_next(struct tutti_text_reader *reader)
{
    tutti_words_next(&reader->words, &reader->word);
}

bool tutti_text_is(const struct tutti_text_reader *reader, const char *text)
{
    return tutti_word_is(reader->word, text);
}

int tutti_text_number64(struct tutti_text_reader *reader, const char *what, uint64_t least,
                        uint64_t most, uint64_t *ret_value)
{
    const char *end, *at;
    uint64_t value;

    tutti_text_next(reader);
    at = reader->word.at;
    end = at + reader->word.length;
    if (!tutti_digits_read(&at, end, &value) || at != end || value < least || value > most)
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

    TUTTI_TRY(tutti_text_number64(reader, what, least, most, &value));
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
    at = reader->word.at;
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
    if (!tutti_digits_read(&at, end, &first) || first > UINT32_MAX)
        return tutti_text_refuse(reader, "\"%.*s\": no chunk after '['", TUTTI_TEXT_WORD(reader));
    if (at < end && *at == '+') {
        at++;
        if (!tutti_digits_read(&at, end, &count) || count == 0 || count > UINT32_MAX)
            return tutti_text_refuse(reader, "\"%.*s\": no count of chunks after '+'",
                                     TUTTI_TEXT_WORD(reader));
    }
    if (at + 1 != end || *at != ']')
        return tutti_text_refuse(reader, "\"%.*s\" does not end with ']'", TUTTI_TEXT_WORD(reader));
    *ret_span = tutti_span((enum tutti_buffer)buffer, (uint32_t)first, (uint32_t)count);
    return TUTTI_OK;
}

int tutti_text_expect_end(struct tutti_text_reader *reader)
{
    tutti_text_next(reader);
    if (reader->word.length > 0)
        return tutti_text_refuse(reader, "\"%.*s\" is more than this line has; remove it",
                                 TUTTI_TEXT_WORD(reader));
    return TUTTI_OK;
}
