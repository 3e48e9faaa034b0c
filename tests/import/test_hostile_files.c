/* SPDX-License-Identifier: Apache-2.0
 * Files contain typing errors, truncations and large numbers. Each is refused, or it is right and
 * can be written and read again. Under the sanitizers this also proves that no byte outside is
 * accessed. */
#include "base/result.h"
#include "describe/ensemble.h"
#include "import/load.h"
#include "import/samples.h"
#include "schedule/load.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { EDITS = 400, MOST_BYTES = 1 << 20 };

static uint64_t draw(uint64_t *random, uint64_t count)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return (*random >> 11) % count;
}

/* Put `with` over the number or word that stands at or behind a place; returns the new size. */
static size_t replace(char *text, size_t size, size_t at, const char *with)
{
    size_t begin = at, end, length = strlen(with);

    while (begin < size && !((text[begin] >= '0' && text[begin] <= '9') || text[begin] == '-'))
        begin++;
    end = begin;
    while (end < size && ((text[end] >= '0' && text[end] <= '9') || text[end] == '-'))
        end++;
    if (begin == size || size + length >= MOST_BYTES)
        return size;
    memmove(text + begin + length, text + end, size - end + 1);
    memcpy(text + begin, with, length);
    return size - (end - begin) + length;
}

static size_t edit(char *text, size_t size, uint64_t *random)
{
    static const char *const numbers[] = {"0",
                                          "1",
                                          "2",
                                          "3",
                                          "4",
                                          "5",
                                          "-1",
                                          "255",
                                          "256",
                                          "65536",
                                          "1048576",
                                          "4294967295",
                                          "4294967296",
                                          "18446744073709551616",
                                          "99999999999999999999999",
                                          ""};
    size_t at = (size_t)draw(random, size), length;

    switch (draw(random, 5)) {
    case 0: text[at] = (char)(1 + draw(random, 255)); return size;
    case 1: return replace(text, size, at, numbers[draw(random, sizeof numbers / sizeof *numbers)]);
    case 2: /* a cut */
        length = (size_t)draw(random, 40);
        length = length < size - at ? length : size - at;
        memmove(text + at, text + at + length, size - at - length + 1);
        return size - length > 0 ? size - length : 1;
    case 3: /* a repetition */
        length = (size_t)draw(random, 200);
        length = length < size - at ? length : size - at;
        if (size + length >= MOST_BYTES)
            return size;
        memmove(text + at + length, text + at, size - at + 1);
        return size + length;
    default: return replace(text, size, at, numbers[draw(random, 6)]);
    }
}

static bool judge(const char *what, const char *text, size_t size)
{
    struct tutti_ensemble ensemble, again;
    int rc = tutti_import_prove("file", text, size, &ensemble);
    char *written;

    if (rc == TUTTI_ERR_ARGUMENT)
        return false;
    if (rc != TUTTI_OK)
        fail_msg("%s: result %d, %s", what, rc, tutti_message_last());
    assert_int_equal(tutti_describe_ensemble(&ensemble, &written), TUTTI_OK);
    if (tutti_ensemble_load("written", written, strlen(written), &again) != TUTTI_OK)
        fail_msg("%s: written, and then refused: %s", what, tutti_message_last());
    tutti_ensemble_fini(&again);
    tutti_ensemble_fini(&ensemble);
    free(written);
    return true;
}

static void an_edited_file_is_refused_or_right(void **state)
{
    char *text = malloc(MOST_BYTES), what[100];

    (void)state;
    assert_non_null(text);
    for (size_t i = 0; sample_name(i) != NULL; i++) {
        uint64_t random = 0x9e3779b97f4a7c15u + i;
        size_t size, refused = 0;
        char *sample = sample_read(sample_name(i), &size);

        for (int n = 0; n < EDITS; n++) {
            size_t edited = size;

            memcpy(text, sample, size + 1);
            for (uint64_t k = 0; k <= (uint64_t)n % 3; k++)
                edited = edit(text, edited, &random);
            text[edited] = '\0';
            snprintf(what, sizeof what, "%s, edit %d", sample_name(i), n);
            refused += !judge(what, text, edited);
        }
        /* Else the edits would not be worth the name. */
        assert_true(refused > EDITS / 4);
        free(sample);
    }
    free(text);
}

static void a_file_cut_off_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; sample_name(i) != NULL; i++) {
        size_t size;
        char *sample = sample_read(sample_name(i), &size);

        for (size_t cut = 0; cut < size; cut += 1 + size / 150) {
            char last = sample[cut];

            sample[cut] = '\0';
            judge(sample_name(i), sample, cut);
            sample[cut] = last;
        }
        free(sample);
    }
}

static void deep_nonsense_ends(void **state)
{
    static const char *const parts[] = {"[",     "{\"a\":", "<a>",        "<algo>",
                                        "rank ", "\"",      "{\"gpus\":["};

    (void)state;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        size_t length = strlen(parts[i]), count = 100000;
        char *text = malloc(length * count + 1);

        assert_non_null(text);
        for (size_t n = 0; n < count; n++)
            memcpy(text + n * length, parts[i], length + 1);
        assert_false(judge(parts[i], text, length * count));
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_edited_file_is_refused_or_right),
        cmocka_unit_test(a_file_cut_off_is_refused),
        cmocka_unit_test(deep_nonsense_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
