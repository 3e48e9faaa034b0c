/* SPDX-License-Identifier: Apache-2.0
 * Reads a machine from a name, a line or a file of any form. */
#include "base/result.h"
#include "support/inventories.h"
#include "topology/formats/known.h"
#include "topology/formats/line.h"
#include "topology/formats/load.h"
#include "topology/formats/nccl_xml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define LINE "2 gpus h100 mesh 4, 1 nic 100G"

static char *xml_of(const char *line)
{
    struct tutti_inventory *inventory;
    char *text;

    assert_int_equal(tutti_line_read("m", line, &inventory), TUTTI_OK);
    assert_int_equal(tutti_xml_write_nccl(inventory, &text), TUTTI_OK);
    tutti_inventory_destroy(inventory);
    return text;
}

/* A temporary file that disappears when its descriptor is closed. Its name is in /proc. */
static FILE *file_of(const char *text, char *ret_name, size_t name_bytes)
{
    FILE *file = tmpfile();

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fflush(file), 0);
    snprintf(ret_name, name_bytes, "/proc/self/fd/%d", fileno(file));
    return file;
}

static void expect(const char *what)
{
    struct tutti_inventory *inventory = NULL, *expected = NULL;

    if (tutti_formats_load(what, &inventory) != TUTTI_OK)
        fail_msg("%s: %s", what, tutti_message_last());
    assert_int_equal(tutti_line_read("m", LINE, &expected), TUTTI_OK);
    assert_true(inventories_equal(inventory, expected));
    tutti_inventory_destroy(inventory);
    tutti_inventory_destroy(expected);
}

static void a_file_is_what_its_content_says(void **state)
{
    static const char *const before[] = {
        "", "\xef\xbb\xbf", "\n  ", "<?xml version=\"1.0\"?>\n<!DOCTYPE system>\n",
        "<!-- <topology> > -->\n <!-- a -->",
    };
    char *xml = xml_of(LINE), name[64], text[16384];
    FILE *file;

    (void)state;
    for (size_t i = 0; i < sizeof before / sizeof before[0]; i++) {
        assert_true(snprintf(text, sizeof text, "%s%s", before[i], xml) < (int)sizeof text);
        file = file_of(text, name, sizeof name);
        expect(name);
        fclose(file);
    }
    file = file_of("# two cards\n" LINE "\n", name, sizeof name);
    expect(name);
    assert_non_null(freopen(name, "r", stdin));
    expect("-");
    fclose(file);
    free(xml);
}

static void a_line_and_a_known_name_need_no_file(void **state)
{
    struct tutti_inventory *inventory, *expected;

    (void)state;
    expect(LINE);
    expect("1 host:2 gpus h100 mesh 4,1 nic 100G");
    assert_int_equal(tutti_formats_load(tutti_known_machine(0)->name, &inventory), TUTTI_OK);
    assert_int_equal(tutti_line_read("m", tutti_known_machine(0)->line, &expected), TUTTI_OK);
    assert_true(inventories_equal(inventory, expected));
    tutti_inventory_destroy(inventory);
    tutti_inventory_destroy(expected);
}

static void hosts_of_a_line_may_be_a_known_machine(void **state)
{
    static const char *const lines[][2] = {
        {"2 hosts: dgx-h100",
         "2 hosts: 8 gpus h100 nvswitch 18, 8 nics 400G rails, 2 cpus sapphire cores 56 threads 2, "
         "8 switches"},
        {"1 host: 4 gpus t4, 1 nic 100G; 3 hosts:gh200 ; 1 host: 2 cpus",
         "1 host: 4 gpus t4, 1 nic 100G; 3 hosts: 1 gpu gh200 c2c 450GB/s, 1 nic 400G, "
         "1 cpu grace cores 72; 1 host: 2 cpus"},
    };
    struct tutti_inventory *inventory, *expected;

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        if (tutti_formats_load(lines[i][0], &inventory) != TUTTI_OK)
            fail_msg("%s", tutti_message_last());
        assert_int_equal(tutti_line_read("line", lines[i][1], &expected), TUTTI_OK);
        assert_true(inventories_equal(inventory, expected));
        tutti_inventory_destroy(inventory);
        tutti_inventory_destroy(expected);
    }
    /* A known machine of several hosts is not one host, and other names are not known. */
    assert_int_equal(tutti_formats_load("2 hosts: gb200-nvl72", &inventory), TUTTI_ERR_ARGUMENT);
    assert_non_null(strstr(tutti_message_last(), "write \"2 racks: gb200-nvl72\" for two of them"));
    assert_int_equal(tutti_formats_load("2 hosts: unequal-vms", &inventory), TUTTI_ERR_ARGUMENT);
    assert_non_null(strstr(tutti_message_last(), "unequal-vms has several hosts itself"));
    assert_int_equal(tutti_formats_load("2 hosts: dgx-h1000", &inventory), TUTTI_ERR_ARGUMENT);
}

static void what_a_file_leaves_to_the_driver_is_filled_in(void **state)
{
    struct tutti_inventory *inventory;
    char name[64];
    FILE *file = file_of("<system><cpu numaid=\"0\"><pci busid=\"0000:01:00.0\" class=\"0x030200\""
                         "/></cpu></system>", name, sizeof name);

    (void)state;
    assert_int_equal(tutti_formats_load(name, &inventory), TUTTI_OK);
    assert_int_not_equal(tutti_inventory_next_of(inventory, TUTTI_NO_DEVICE, TUTTI_DEVICE_GPU),
                         TUTTI_NO_DEVICE);
    tutti_inventory_destroy(inventory);
    fclose(file);
}

static void xml_of_hwloc_is_known_by_its_outermost_element(void **state)
{
    struct tutti_inventory *inventory;
    char name[64];
    FILE *file = file_of("<?xml version=\"1.0\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
                         "<topology version=\"2.0\"><object type=\"Machine\" "
                         "cpuset=\"0x3\" nodeset=\"0x1\"><object type=\"NUMANode\" "
                         "os_index=\"0\" cpuset=\"0x3\" nodeset=\"0x1\"/></object></topology>",
                         name, sizeof name);
    uint32_t cpu;

    (void)state;
    assert_int_equal(tutti_formats_load(name, &inventory), TUTTI_OK);
    cpu = tutti_inventory_next_of(inventory, TUTTI_NO_DEVICE, TUTTI_DEVICE_CPU);
    assert_int_not_equal(cpu, TUTTI_NO_DEVICE);
    assert_string_equal(tutti_device_text(inventory, cpu, TUTTI_PROPERTY_AFFINITY), "00000003");
    tutti_inventory_destroy(inventory);
    fclose(file);
}

static void what_is_none_of_them_is_refused_with_what_to_give(void **state)
{
    static const struct {
        const char *content, *says; /* NULL: a name without a file */
    } cases[] = {
        {NULL, "open no-such-machine: No such file or directory; give a file of at most 16 MiB "
               "with NCCL's or hwloc's XML or lines, a line such as \"8 gpus h100 nvswitch, "
               "8 nics 400G, 2 cpus\", or a known name such as \"dgx-1v\""},
        {"", ":1:1: the text describes nothing; give a line such as"},
        {"8 gpus\n8 apples\n", ":2:3: \"apples\"; expected cpus, switches, gpus or nics"},
        {"<graphs version=\"1\">", " begins with <graphs>; a machine is XML that begins with "},
        {"<system", ":1:"},
        {"<!-- no end", ":1:1: unclosed token"},
        {"<?xml version=\"1.0\"?> 8 gpus", ":1:23: syntax error"},
        {"<", ":1:1: unclosed token"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tutti_inventory *inventory = (struct tutti_inventory *)&state;
        char name[64] = "no-such-machine";
        FILE *file = NULL;

        if (cases[i].content != NULL)
            file = file_of(cases[i].content, name, sizeof name);
        assert_int_equal(tutti_formats_load(name, &inventory), TUTTI_ERR_ARGUMENT);
        if (strstr(tutti_message_last(), cases[i].says) == NULL)
            fail_msg("case %zu said: %s\nnot %s", i, tutti_message_last(), cases[i].says);
        /* Outputs change only on success. */
        assert_ptr_equal(inventory, &state);
        if (file != NULL)
            fclose(file);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_what_its_content_says),
        cmocka_unit_test(a_line_and_a_known_name_need_no_file),
        cmocka_unit_test(hosts_of_a_line_may_be_a_known_machine),
        cmocka_unit_test(what_a_file_leaves_to_the_driver_is_filled_in),
        cmocka_unit_test(xml_of_hwloc_is_known_by_its_outermost_element),
        cmocka_unit_test(what_is_none_of_them_is_refused_with_what_to_give),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
