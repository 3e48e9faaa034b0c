/* SPDX-License-Identifier: Apache-2.0
 * Tests the XML reader: the elements that it reports, and the errors with their positions. Written
 * files can be read again. */
#include "topology/formats/xml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- a handler that notes what it is told ---------------------------------------------------- */

struct notes {
    char text[512];
    size_t nbegun, nended;
    const char *refuse; /* the element that the handler does not want */
};

static void note(struct notes *notes, const char *format, ...)
{
    size_t used = strlen(notes->text);
    va_list args;

    va_start(args, format);
    vsnprintf(notes->text + used, sizeof notes->text - used, format, args);
    va_end(args);
}

static int on_begin(void *context, struct tutti_xml *xml, const struct tutti_xml_element *element)
{
    struct notes *notes = context;

    notes->nbegun++;
    note(notes, "%u<%s", element->depth, element->name);
    for (uint32_t i = 0; i < element->nattributes; i++)
        note(notes, " %s=%s", element->attributes[i].name, element->attributes[i].value);
    note(notes, ">");
    if (notes->refuse != NULL && strcmp(notes->refuse, element->name) == 0)
        return tutti_xml_fail(xml, "<%s> a\nb", element->name);
    return TUTTI_OK;
}

static int on_end(void *context, struct tutti_xml *xml, const char *name, const char *text)
{
    struct notes *notes = context;

    (void)xml;
    notes->nended++;
    note(notes, "%s</%s>", text, name);
    if (notes->refuse != NULL && notes->refuse[0] == '/' && strcmp(notes->refuse + 1, name) == 0)
        return tutti_xml_fail(xml, "</%s>", name);
    return TUTTI_OK;
}

static const struct tutti_xml_handler handler = {.begin = on_begin, .end = on_end};

static int read_text(const char *text, struct notes *notes)
{
    return tutti_xml_read("f", text, strlen(text), &handler, notes);
}

static void elements_attributes_and_text_are_handed_over(void **state)
{
    static const struct {
        const char *text, *told;
    } cases[] = {
        {"<a/>", "0<a></a>"},
        {"<a x=\"1\" y='&lt;&#65;'>t</a>", "0<a x=1 y=<A>t</a>"},
        {"<?xml version=\"1.0\"?><!-- c --><a> 1 <b>2</b> 3 </a>", "0<a>1<b>2</b> 3 </a>"},
        {"<!DOCTYPE topology SYSTEM \"hwloc2.dtd\"><a x=\"&amp;&quot;\"/>", "0<a x=&\"></a>"},
        {"<a><![CDATA[<&]]></a>", "0<a><&</a>"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct notes notes = {0};

        assert_int_equal(read_text(cases[i].text, &notes), TUTTI_OK);
        assert_string_equal(notes.text, cases[i].told);
    }
}

static void mistakes_are_found_where_they_are(void **state)
{
    static const struct {
        const char *text, *refuse, *said;
    } cases[] = {
        {"", NULL, "f:1:1: no element found"},
        {"<a>\n  <b>\n</a>", NULL, "f:3:3: mismatched tag"},
        {"<a", NULL, "f:1:1: unclosed token"},
        {"<a>\n", NULL, "f:2:1: no element found"},
        {"<a/>\n<b/>", NULL, "f:2:1: junk after document element"},
        {"<a x=\"1\" x=\"2\"/>", NULL, "f:1:10: duplicate attribute"},
        {"<a x=1/>", NULL, "f:1:6: not well-formed"},
        {"\x01\x02\xff garbage", NULL, "f:1:1: not well-formed"},
        {"<a>&b;</a>", NULL, "f:1:4: undefined entity"},
        {"<!DOCTYPE a SYSTEM \"d\"><a>\n&b;</a>", NULL, "f:2:1: \"&b;\" is not defined"},
        {"<!DOCTYPE a SYSTEM \"d\"><a>\n <b x='&c;'/></a>", NULL, "f:2:2: <b> has an entity"},
        {"<?xml version=\"1.0\"?>\n<!DOCTYPE a [ <!ENTITY b \"bb\"> ]>\n<a>&b;</a>", NULL,
         "f:2:13: a document type with declarations of its own"},
        {"<!DOCTYPE a [ <!ENTITY % b SYSTEM \"/etc/hostname\"> %b; ]><a/>", NULL,
         "f:1:13: a document type with declarations"},
        {"<a>\n  <b/></a>", "b", "f:2:3: <b> a?b"},
        {"<a>\n  <b></b></a>", "/b", "f:2:6: </b>"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct notes notes = {.refuse = cases[i].refuse};

        if (read_text(cases[i].text, &notes) != TUTTI_ERR_ARGUMENT)
            fail_msg("accepted: %s", cases[i].text);
        if (strncmp(tutti_message_last(), cases[i].said, strlen(cases[i].said)) != 0)
            fail_msg("%s\nsaid: %s\nnot:  %s", cases[i].text, tutti_message_last(),
                     cases[i].said);
    }
}

static void nothing_is_handed_over_after_an_error(void **state)
{
    struct notes notes = {.refuse = "b"};

    (void)state;
    assert_int_equal(read_text("<a><b/><c/></a>", &notes), TUTTI_ERR_ARGUMENT);
    assert_int_equal(notes.nbegun, 2);
    assert_int_equal(notes.nended, 0);
}

/* ---- limits ---------------------------------------------------------------------------------- */

/* The parts, the second of them `times` times. */
static char *repeat(const char *before, const char *part, size_t times, const char *after)
{
    size_t length = strlen(before), each = strlen(part);
    char *text = malloc(length + each * times + strlen(after) + 1);

    assert_non_null(text);
    strcpy(text, before);
    for (size_t i = 0; i < times; i++, length += each)
        memcpy(text + length, part, each);
    strcpy(text + length, after);
    return text;
}

static int count_begin(void *context, struct tutti_xml *xml,
                       const struct tutti_xml_element *element)
{
    (void)xml, (void)element;
    ++*(size_t *)context;
    return TUTTI_OK;
}

static const struct tutti_xml_handler counter = {.begin = count_begin};

static void what_is_within_a_limit_is_read_and_one_more_refused(void **state)
{
    static const struct {
        const char *before, *part, *after;
        size_t fits;
        const char *said;
    } cases[] = {
        {"<a>", "<b/>", "</a>", TUTTI_XML_ELEMENTS - 1, "f:1:1048576: more than 262144 elements"},
        {"<a x=\"", "y", "\"/>", TUTTI_XML_VALUE_BYTES, "f:1:1: <a>'s x has more than 16384"},
        {"<a><!--", "y", "--></a>", TUTTI_XML_SPAN_BYTES - 7, "f:1:4: more than 1 MiB"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (size_t more = 0; more < 2; more++) {
            char *text = repeat(cases[i].before, cases[i].part, cases[i].fits + more,
                                cases[i].after);
            size_t count = 0;
            int rc = tutti_xml_read("f", text, strlen(text), &counter, &count);

            free(text);
            assert_int_equal(rc, more == 0 ? TUTTI_OK : TUTTI_ERR_ARGUMENT);
            if (more == 1 && strstr(tutti_message_last(), cases[i].said) != tutti_message_last())
                fail_msg("%s, not %s", tutti_message_last(), cases[i].said);
        }
}

static void depth_and_attributes_are_limited(void **state)
{
    (void)state;
    for (uint32_t depth = TUTTI_XML_DEPTH; depth <= TUTTI_XML_DEPTH + 1; depth++) {
        char *opened = repeat("", "<a>", depth, ""), *text = repeat(opened, "</a>", depth, "");
        size_t count = 0;

        assert_int_equal(tutti_xml_read("f", text, strlen(text), &counter, &count),
                         depth == TUTTI_XML_DEPTH ? TUTTI_OK : TUTTI_ERR_ARGUMENT);
        assert_int_equal(count, TUTTI_XML_DEPTH);
        free(opened);
        free(text);
    }
    assert_non_null(strstr(tutti_message_last(), "f:1:193: <a> is inside more than 63 others"));
    for (uint32_t nattributes = 64; nattributes <= 65; nattributes++) {
        char text[1024] = "<a";
        size_t count = 0;

        for (uint32_t i = 0; i < nattributes; i++)
            sprintf(text + strlen(text), " x%u=''", i);
        strcat(text, "/>");
        assert_int_equal(tutti_xml_read("f", text, strlen(text), &counter, &count),
                         nattributes == 64 ? TUTTI_OK : TUTTI_ERR_ARGUMENT);
    }
    assert_non_null(strstr(tutti_message_last(), "f:1:1: <a> has more than 64 attributes"));
}

static void what_is_no_text_or_too_long_is_refused(void **state)
{
    char *text = repeat("<a>", "<!---->", TUTTI_XML_BYTES / 7, "</a>");
    size_t count = 0;

    (void)state;
    assert_int_equal(tutti_xml_read("f", text, strlen(text), &counter, &count),
                     TUTTI_ERR_ARGUMENT);
    assert_non_null(strstr(tutti_message_last(),
                           "f:1:1: 16777222 bytes, but at most 16777216 are read"));
    free(text);
    assert_int_equal(tutti_xml_read("f", "<a>\n<\0b/></a>", 13, &counter, &count),
                     TUTTI_ERR_ARGUMENT);
    assert_non_null(strstr(tutti_message_last(), "f:2:2: a zero byte"));
    assert_int_equal(count, 0);
}

/* ---- writing --------------------------------------------------------------------------------- */

static void what_is_written_reads_as_the_same(void **state)
{
    static const struct {
        const char *value, *read;
    } cases[] = {
        {"", ""},
        {"plain", "plain"},
        {"<&>\"' \t\n\r", "<&>\"' \t\n\r"},
        {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\x7f", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\x7f"},
        {"\x01\x1f", "??"},
        {"\xff\xc0\x80\xc3", "????"},
        {"\xed\xa0\x80", "???"},
        {"\xef\xbf\xbe\xf4\x90\x80\x80", "???????"},
        {"\xe2\x82", "??"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct notes notes = {0};
        char *text = NULL, expected[64];
        size_t size = 0;
        FILE *out = open_memstream(&text, &size);

        assert_non_null(out);
        fputs("<a", out);
        tutti_xml_put(out, "v", cases[i].value);
        fputs("/>", out);
        assert_int_equal(fclose(out), 0);
        assert_int_equal(read_text(text, &notes), TUTTI_OK);
        snprintf(expected, sizeof expected, "0<a v=%s></a>", cases[i].read);
        assert_string_equal(notes.text, expected);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_attributes_and_text_are_handed_over),
        cmocka_unit_test(mistakes_are_found_where_they_are),
        cmocka_unit_test(nothing_is_handed_over_after_an_error),
        cmocka_unit_test(what_is_within_a_limit_is_read_and_one_more_refused),
        cmocka_unit_test(depth_and_attributes_are_limited),
        cmocka_unit_test(what_is_no_text_or_too_long_is_refused),
        cmocka_unit_test(what_is_written_reads_as_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
