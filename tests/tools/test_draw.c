/* SPDX-License-Identifier: Apache-2.0
 * Tests numbers with units, ticks, labels that must not overlap, and pictures, which must be
 * well-formed documents. */
#include "common/table.h"
#include "common/units.h"
#include "draw/plot.h"
#include "draw/svg.h"
#include "tools/running.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void sizes_are_read_with_all_their_units(void **state)
{
    static const struct {
        const char *text;
        double bytes; /* -1: refused */
    } cases[] = {
        {"1", 1},          {"64K", 65536},      {"64KiB", 65536},  {"1M", 1048576},
        {"1.5M", 1572864}, {"1GiB", 1073741824}, {"2T", 0x1p41},   {"100B", 100},
        {"", -1},          {"K", -1},           {"1X", -1},        {"-1", -1},
        {"1.2.3", -1},     {"0.3", -1},         {"1 M", -1},       {"1Mi", -1},
        {"0x10", -1},      {"1e3", -1},         {"1KK", -1},       {".", -1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double bytes = -1;

        if (!units_read_bytes(cases[i].text, &bytes))
            bytes = -1;
        if (bytes != cases[i].bytes)
            fail_msg("%s is %g, not %g", cases[i].text, bytes, cases[i].bytes);
    }
}

static void numbers_are_written_with_three_digits_and_a_unit(void **state)
{
    char text[UNITS_TEXT];

    (void)state;
    assert_string_equal(units_bytes(1, text), "1 B");
    assert_string_equal(units_bytes(1000, text), "1000 B");
    assert_string_equal(units_bytes(65536, text), "64 KiB");
    assert_string_equal(units_bytes(1572864, text), "1.5 MiB");
    assert_string_equal(units_bytes(0x1p40, text), "1 TiB");
    assert_string_equal(units_seconds(0, text), "0 us");
    assert_string_equal(units_seconds(5e-7, text), "500 ns");
    assert_string_equal(units_seconds(5e-6, text), "5 us");
    assert_string_equal(units_seconds(52.14e-6, text), "52.1 us");
    assert_string_equal(units_seconds(0.9999e-3, text), "1 ms");
    assert_string_equal(units_seconds(0.26834, text), "268 ms");
    assert_string_equal(units_seconds(12.5, text), "12.5 s");
    assert_string_equal(units_seconds_drawn(5e-6, text), "5 µs");
    assert_string_equal(units_rate(48.31e9, text), "48.3 GB/s");
    assert_string_equal(units_rate(999.9e6, text), "1 GB/s");
    assert_string_equal(units_count(16384, text), "16,384");
    assert_string_equal(units_count(999, text), "999");
    assert_string_equal(units_count(1234567, text), "1,234,567");
}

static void columns_are_as_wide_as_what_stands_in_them(void **state)
{
    struct table table;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    (void)state;
    table_init(&table, "NAME|>N|END");
    table_add(&table, "a");
    table_add(&table, "%d", 5);
    table_add(&table, "x");
    table_add(&table, "longer");
    table_add(&table, "%d", 123);
    table_add(&table, "%s", "");
    table_print(&table, out);
    fclose(out);
    assert_string_equal(text, "NAME      N  END\n"
                              "a         5  x\n"
                              "longer  123  \n");
    table_fini(&table);
    free(text);
}

/* Rows may be printed one by one. Reserved widths keep them in line, and a text that takes the rest
 * of its row makes no column wider. */
static void rows_may_be_printed_one_by_one(void **state)
{
    struct table table;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    (void)state;
    table_init(&table, "NAME|>N|>END");
    table_reserve(&table, 0, "longer");
    table_reserve(&table, 1, "");
    table_add(&table, "a");
    table_add(&table, "1");
    table_add(&table, "2");
    table_flush(&table, out);
    assert_string_equal(text, "NAME    N  END\na       1    2\n");
    table_add(&table, "b");
    table_add_rest(&table, "no %s", "more than this");
    table_add(&table, "longer");
    table_add(&table, "3");
    table_add(&table, "4");
    table_flush(&table, out);
    table_flush(&table, out);
    fclose(out);
    assert_string_equal(text, "NAME    N  END\na       1    2\nb       no more than this\n"
                              "longer  3    4\n");
    table_fini(&table);
    free(text);
}

static void labels_move_apart_as_little_as_possible(void **state)
{
    static const struct {
        size_t count;
        double before[5], after[5];
    } cases[] = {
        {1, {50}, {50}},
        {2, {50, 80}, {50, 80}},
        {2, {50, 50}, {45, 55}},
        {3, {50, 51, 52}, {41, 51, 61}},
        {4, {10, 50, 50, 90}, {10, 45, 55, 90}},
        {2, {0, 0}, {0, 10}},
        {2, {100, 100}, {90, 100}},
        {5, {40, 40, 41, 58, 60}, {27.8, 37.8, 47.8, 57.8, 67.8}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double y[5];

        memcpy(y, cases[i].before, sizeof y);
        plot_spread(y, cases[i].count, 10, 0, 100);
        for (size_t j = 0; j < cases[i].count; j++) {
            if (j > 0)
                assert_true(y[j] - y[j - 1] > 10 - 1e-9);
            if (fabs(y[j] - cases[i].after[j]) > 1e-6)
                fail_msg("case %zu: label %zu at %g, not %g", i, j, y[j], cases[i].after[j]);
        }
    }
}

static void ticks_are_round_and_inside(void **state)
{
    static const struct {
        struct axis axis;
        size_t labels;
        const char *names; /* in order, with '|' between */
    } cases[] = {
        {{AXIS_BYTES, true, 1024, 65536, 0, 1}, 9,
         "1 KiB|2 KiB|4 KiB|8 KiB|16 KiB|32 KiB|64 KiB"},
        {{AXIS_BYTES, true, 1024, 67108864, 0, 1}, 9, "1 KiB|4 KiB|16 KiB|64 KiB|256 KiB|1 MiB|"
                                                      "4 MiB|16 MiB|64 MiB"},
        {{AXIS_COUNT, true, 2, 16384, 0, 1}, 14, "2|4|8|16|32|64|128|256|512|1,024|2,048|4,096|"
                                                 "8,192|16,384"},
        {{AXIS_COUNT, true, 3, 24, 0, 1}, 9, "4|8|16"},
        {{AXIS_SECONDS, true, 1e-6, 1e-2, 0, 1}, 9, "1 µs|10 µs|100 µs|1 ms|10 ms"},
        {{AXIS_SECONDS, true, 2e-5, 5e-4, 0, 1}, 9, "20 µs|50 µs|100 µs|200 µs|500 µs"},
        {{AXIS_SECONDS, false, 0, 2.6e-4, 0, 1}, 9, "0|50 µs|100 µs|150 µs|200 µs|250 µs"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct axis_tick ticks[AXIS_TICKS];
        size_t count = axis_ticks(&cases[i].axis, cases[i].labels, ticks);
        char names[512] = "";

        for (size_t j = 0; j < count; j++) {
            assert_true(ticks[j].value >= cases[i].axis.low * 0.999999);
            assert_true(ticks[j].value <= cases[i].axis.high * 1.000001);
            if (ticks[j].label[0] != '\0')
                snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s",
                         *names == '\0' ? "" : "|", ticks[j].label);
        }
        assert_string_equal(names, cases[i].names);
    }
}

static void a_range_without_extent_is_widened(void **state)
{
    struct axis axis = {AXIS_SECONDS, true, 3e-6, 3e-6, 0, 1};

    (void)state;
    axis_widen(&axis);
    assert_true(axis.low < 3e-6 && axis.high > 3e-6);
    axis = (struct axis){AXIS_BYTES, true, 64, 64, 0, 1};
    axis_widen(&axis);
    assert_true(axis.low < 64 && axis.high > 64);
    assert_true(fabs(axis_at(&axis, 64) - 0.5) < 1e-9);
}

static void what_is_written_is_escaped(void **state)
{
    struct svg svg;
    char text[4096];

    (void)state;
    svg_begin(&svg, 100, 50, "a < b & \"c\"");
    svg_text(&svg, 10, 10, (struct svg_font){.size = 10, .color = "#000"}, "<&>\"\x01 µ");
    assert_int_equal(svg_end(&svg, "escaped.svg"), 0);
    assert_true(running_is_svg("escaped.svg"));
    running_read("escaped.svg", text, sizeof text);
    assert_non_null(strstr(text, "&lt;&amp;&gt;&quot;  µ</text>"));
    svg_begin(&svg, 1, 1, "");
    assert_int_not_equal(svg_end(&svg, "no/such/folder.svg"), 0);
}

/* The judge must see what is wrong. */
static void broken_documents_are_noticed(void **state)
{
    static const char *const broken[] = {
        "", "svg", "<svg>", "<svg></svg><svg></svg>", "<svg><a></svg></a>", "<svg a=b></svg>",
        "<svg a=\"1\" a=\"2\"></svg>", "<svg>a & b</svg>", "<svg>a < b</svg>", "<a></a>",
        "<svg a=\"<\"></svg>", "<svg><a/ ></svg>", "<svg a=\"1\"b=\"2\"></svg>", "<svg/></svg>",
        "<svg>\x02</svg>", "<svg>&nbsp;</svg>",
    };

    (void)state;
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        running_write("broken.svg", broken[i]);
        if (running_is_svg("broken.svg"))
            fail_msg("not noticed: %s", broken[i]);
    }
    running_write("whole.svg", "<svg a=\"1\">\n<a/>x &lt; &amp;<b c-d=\"\">y</b></svg>\n");
    assert_true(running_is_svg("whole.svg"));
}

static void a_plot_with_gaps_and_with_nothing_is_a_picture(void **state)
{
    static const double x[] = {1, 2, 4}, y[] = {1e-6, NAN, 3e-6}, none[] = {NAN, NAN, NAN};
    struct plot_series series[] = {{.name = "gap", .x = x, .y = y, .count = 3},
                                   {.name = "none", .x = x, .y = none, .count = 3,
                                    .is_bound = true}};
    struct plot plot = {.title = "t", .subtitle = "s", .x_name = "x", .y_name = "y",
                        .x_unit = AXIS_COUNT, .y_unit = AXIS_SECONDS, .series = series,
                        .nseries = 2};
    static char text[65536];

    (void)state;
    assert_int_equal(plot_draw(&plot, "gap.svg"), 0);
    assert_true(running_is_svg("gap.svg"));
    running_read("gap.svg", text, sizeof text);
    assert_null(strstr(text, "nan"));
    assert_non_null(strstr(text, ">gap</text>"));
    assert_null(strstr(text, ">none</text>"));
    plot.nseries = 0;
    assert_int_equal(plot_draw(&plot, "nothing.svg"), 0);
    assert_true(running_is_svg("nothing.svg"));
}

/* No part of a note is lost: it continues in the next line, which begins with the next word, or in
 * the middle of a word that is longer than a line. The frame moves down by a line each. */
static void long_notes_take_several_lines(void **state)
{
    char word[301] = "", words[301] = "", line[160];
    const char *notes[] = {"short", word, words};
    struct plot plot = {.title = "t", .subtitle = "s", .x_name = "x", .y_name = "y",
                        .x_unit = AXIS_COUNT, .y_unit = AXIS_SECONDS, .notes = notes, .nnotes = 3};
    static char text[65536];

    (void)state;
    memset(word, 'w', 300);
    for (int i = 0; i < 30; i++)
        memcpy(words + (ptrdiff_t)i * 10, "123456789 ", 10);
    words[299] = '\0';
    assert_int_equal(plot_draw(&plot, "notes.svg"), 0);
    assert_true(running_is_svg("notes.svg"));
    running_read("notes.svg", text, sizeof text);
    assert_non_null(strstr(text, ">short</text>"));
    assert_int_equal(running_count(text, "123456789"), 30);
    assert_int_equal(running_count(text, "w</text>"), 3);
    snprintf(line, sizeof line, ">%.110s</text>", word);
    assert_int_equal(running_count(text, line), 2);
    /* The lines end after 109, 109 and 79 characters. */
    snprintf(line, sizeof line, ">%.109s</text>", words);
    assert_int_equal(running_count(text, line), 2);
    assert_non_null(strstr(text, "height=\"677\""));
    plot.nnotes = 0;
    assert_int_equal(plot_draw(&plot, "notes.svg"), 0);
    running_read("notes.svg", text, sizeof text);
    assert_non_null(strstr(text, "height=\"558\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_read_with_all_their_units),
        cmocka_unit_test(numbers_are_written_with_three_digits_and_a_unit),
        cmocka_unit_test(columns_are_as_wide_as_what_stands_in_them),
        cmocka_unit_test(rows_may_be_printed_one_by_one),
        cmocka_unit_test(labels_move_apart_as_little_as_possible),
        cmocka_unit_test(ticks_are_round_and_inside),
        cmocka_unit_test(a_range_without_extent_is_widened),
        cmocka_unit_test(what_is_written_is_escaped),
        cmocka_unit_test(broken_documents_are_noticed),
        cmocka_unit_test(a_plot_with_gaps_and_with_nothing_is_a_picture),
        cmocka_unit_test(long_notes_take_several_lines),
    };

    return cmocka_run_group_tests(tests, running_begin, running_end);
}
