/* SPDX-License-Identifier: Apache-2.0
 * Tests NCCL's XML of a machine: every variation that its writers use is read, kept and written
 * again. */
#include "base/result.h"
#include "support/inventories.h"
#include "topology/formats/nccl_xml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define CPU(inside) "<system version=\"1\"><cpu numaid=\"0\">" inside "</cpu></system>"
#define GPU(inside) CPU("<pci busid=\"0000:01:00.0\"><gpu dev=\"0\">" inside "</gpu></pci>")

static struct tutti_inventory *read_good(const char *text)
{
    struct tutti_inventory *inventory;

    if (tutti_xml_read_nccl("t", text, strlen(text), TUTTI_SOURCE_FILE, &inventory) != TUTTI_OK)
        fail_msg("%s\nrefused: %s", text, tutti_message_last());
    return inventory;
}

static void what_is_read_is_written(void **state)
{
    static const struct {
        const char *text, *written;
    } cases[] = {
        {"<system/>", "<system version=\"1\"/>\n"},
        {"<?xml version=\"1.0\"?>\n<!-- by hand -->\n<system version='1'></system>",
         "<system version=\"1\"/>\n"},
        /* Each device with its parent, and values in their written forms. */
        {"<system version=\"1\"><cpu numaid=\"3\" affinity=\"fff0000,1\" arch=\"x86_64\">"
         "<pci busid=\"0000:0A:00.0\" class=\"0x60400\" link_speed=\"16 GT/s\" link_width=\"16\">"
         "<pci busid=\"0000:0b:00.0\" class=\"0x030200\" link_speed=\"\" link_width=\"0\">"
         "<gpu dev=\"0\" sm=\"80\" rank=\"0\" gdr=\"1\">"
         "<nvlink target=\"fffffff:ff:ff.0\" count=\"12\" tclass=\"0x068000\"/>"
         "<c2c bw=\"40000\" count=\"2\"/></gpu></pci>"
         "<pci busid=\"0000:0c:00.0\"><nic><net name=\"mlx5_0\" dev=\"0\" speed=\"200000\" "
         "port=\"1\" guid=\"0xabc\" latency=\"0.000000\" maxconn=\"131072\" gdr=\"1\" coll=\"1\"/>"
         "</nic></pci><pcilink target=\"0000:0d:00.0\"/></pci></cpu><cpu numaid=\"1\"/></system>",
         "<system version=\"1\">\n"
         "  <cpu numaid=\"3\" affinity=\"0fff0000,00000001\" arch=\"x86_64\">\n"
         "    <pci busid=\"0000:0a:00.0\" class=\"0x060400\" link_speed=\"16.0 GT/s PCIe\" "
         "link_width=\"16\">\n"
         "      <pci busid=\"0000:0b:00.0\" class=\"0x030200\" link_speed=\"\" link_width=\"0\">\n"
         "        <gpu dev=\"0\" sm=\"80\" rank=\"0\" gdr=\"1\">\n"
         "          <nvlink target=\"fffffff:ff:ff.0\" count=\"12\" tclass=\"0x068000\"/>\n"
         "          <c2c count=\"2\" bw=\"40000\"/>\n"
         "        </gpu>\n"
         "      </pci>\n"
         "      <pci busid=\"0000:0c:00.0\">\n"
         "        <nic>\n"
         "          <net dev=\"0\" gdr=\"1\" name=\"mlx5_0\" latency=\"0\" speed=\"200000\" "
         "port=\"1\" guid=\"0xabc\" maxconn=\"131072\" coll=\"1\"/>\n"
         "        </nic>\n"
         "      </pci>\n"
         "      <pcilink target=\"0000:0d:00.0\"/>\n"
         "    </pci>\n"
         "  </cpu>\n"
         "  <cpu numaid=\"1\"/>\n"
         "</system>\n"},
        /* Unknown elements with all inside, and attributes, are passed over. */
        {CPU("<dma x=\"1\"><pci busid=\"0000:01:00.0\"/></dma><nic><gin/><net keep=\"1\"/></nic>"),
         "<system version=\"1\">\n  <cpu numaid=\"0\">\n    <nic>\n      <net/>\n    </nic>\n"
         "  </cpu>\n</system>\n"},
        /* So are known ones where they cannot be. */
        {CPU("<gpu dev=\"0\"><nvlink/></gpu><system/>"),
         "<system version=\"1\">\n  <cpu numaid=\"0\"/>\n</system>\n"},
        {GPU("<net dev=\"1\"/>"),
         "<system version=\"1\">\n  <cpu numaid=\"0\">\n    <pci busid=\"0000:01:00.0\">\n"
         "      <gpu dev=\"0\"/>\n    </pci>\n  </cpu>\n</system>\n"},
        /* Attributes without a value are as none, but a text may be empty. */
        {CPU("<pci busid=\"\" class=\"\" link_width=\"\"><nic><net name=\"\" latency=\"\"/></nic>"
             "</pci>"),
         "<system version=\"1\">\n  <cpu numaid=\"0\">\n    <pci>\n      <nic>\n"
         "        <net name=\"\"/>\n      </nic>\n    </pci>\n  </cpu>\n</system>\n"},
        {"<system version=\"1\"><cpu affinity=\"\" arch=\"a&lt;&amp;&quot;\"/></system>",
         "<system version=\"1\">\n  <cpu arch=\"a&#60;&#38;&#34;\"/>\n</system>\n"},
        /* FlagCX's gpu. */
        {CPU("<pci busid=\"0000:01:00.0\"><apu dev=\"3\"/></pci>"),
         "<system version=\"1\">\n  <cpu numaid=\"0\">\n    <pci busid=\"0000:01:00.0\">\n"
         "      <gpu dev=\"3\"/>\n    </pci>\n  </cpu>\n</system>\n"},
        /* Of AMD by version, or by a gpu that says so. */
        {"<system version=\"2\"><cpu><pci><gpu><xgmi target=\"0000:02:00.0\" count=\"1\"/></gpu>"
         "</pci></cpu></system>",
         "<system version=\"2\">\n  <cpu>\n    <pci>\n      <gpu>\n"
         "        <xgmi target=\"0000:02:00.0\" count=\"1\"/>\n      </gpu>\n    </pci>\n  </cpu>\n"
         "</system>\n"},
        {"<system version=\"1\"><cpu><pci><gpu gcn=\"gfx942\"><nvlink/></gpu></pci></cpu></system>",
         "<system version=\"1\">\n  <cpu>\n    <pci>\n      <gpu gcn=\"gfx942\">\n        <xgmi/>\n"
         "      </gpu>\n    </pci>\n  </cpu>\n</system>\n"},
        /* Links to the gpu itself, skeletons and repeated nics stay. */
        {GPU("<nvlink target=\"0000:01:00.0\" count=\"12\"/>"),
         "<system version=\"1\">\n  <cpu numaid=\"0\">\n    <pci busid=\"0000:01:00.0\">\n"
         "      <gpu dev=\"0\">\n        <nvlink target=\"0000:01:00.0\" count=\"12\"/>\n"
         "      </gpu>\n    </pci>\n  </cpu>\n</system>\n"},
        /* Masks of caches are elements, so that no value is too long for NCCL. */
        {"<system version=\"1\"><cpu caches=\"f;f0\"><cache cpus=\"f00\"/></cpu>"
         "<cpu caches=\"\"/></system>",
         "<system version=\"1\">\n  <cpu>\n    <cache cpus=\"f\"/>\n    <cache cpus=\"f0\"/>\n"
         "    <cache cpus=\"f00\"/>\n  </cpu>\n  <cpu>\n    <cache cpus=\"\"/>\n  </cpu>\n"
         "</system>\n"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tutti_inventory *inventory = read_good(cases[i].text), *again;
        char *written;

        assert_int_equal(tutti_xml_write_nccl(inventory, &written), TUTTI_OK);
        assert_string_equal(written, cases[i].written);
        again = read_good(written);
        assert_true(inventories_equal(inventory, again));
        free(written);
        tutti_inventory_destroy(inventory);
        tutti_inventory_destroy(again);
    }
}

static void values_are_the_source_s(void **state)
{
    static const char text[] = CPU("<pci link_width=\"8\"/>");
    struct tutti_inventory *inventory;

    (void)state;
    assert_int_equal(tutti_xml_read_nccl("t", text, strlen(text), TUTTI_SOURCE_HWLOC, &inventory),
                     TUTTI_OK);
    assert_int_equal(inventory->count, 3);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(inventory->devices[i].found_by, TUTTI_SOURCE_HWLOC);
    assert_int_equal(inventory->devices[0].value[TUTTI_PROPERTY_VERSION].found_by,
                     TUTTI_SOURCE_HWLOC);
    assert_int_equal(inventory->devices[2].value[TUTTI_PROPERTY_LINK_WIDTH].found_by,
                     TUTTI_SOURCE_HWLOC);
    tutti_inventory_destroy(inventory);
}

static void mistakes_are_found_where_they_are(void **state)
{
    static const struct {
        const char *text, *said;
    } cases[] = {
        {"", "t:1:1: no element found"},
        {"<graphs version=\"1\"/>", "t:1:1: <graphs>, but a topology begins with <system>"},
        {"<system version=\"3\"/>", "t:1:1: <system>: version=\"3\"; NCCL's is 1, RCCL's is 2"},
        {"<system version=\"one\"/>", "t:1:1: <system>: version=\"one\" is no number, such as 8"},
        {"<system version=\"1\">\n  <cpu numaid=\"x\"/>\n</system>",
         "t:2:3: <cpu>: numaid=\"x\" is no number, such as 8; correct it"},
        {"<system version=\"1\">\n\n\t<cpu package=\"0\" numaid=\"0x\"/></system>",
         "t:3:2: <cpu>: numaid=\"0x\" is no number"},
        {CPU("\n<pci busid=\"01:00.0\"/>"),
         "t:2:1: <pci>: busid=\"01:00.0\" is no PCI address, such as 0000:3b:00.0"},
        {CPU("\n <pci class=\"vga\"/>"),
         "t:2:2: <pci>: class=\"vga\" is no number, such as 0x10de"},
        {CPU("\n  <pci link_speed=\"16 parsecs\"/>"),
         "t:2:3: <pci>: link_speed=\"16 parsecs\" is no speed, such as \"16 GT/s\""},
        {CPU("\n<pci><gpu>\n<nvlink count=\"1.5\"/></gpu></pci>"),
         "t:3:1: <nvlink>: count=\"1.5\" is no number"},
        {CPU("<nic>\n<net speed=\"fast\"/></nic>"), "t:2:1: <net>: speed=\"fast\" is no number"},
        {CPU("<nic>\n<net speed=\"1&#10;2\"/></nic>"), "t:2:1: <net>: speed=\"1?2\" is no number"},
        {CPU("\n <cache/>"), "t:2:2: <cache> without cpus; give it"},
        {"<system version=\"1\">\n <cpu>\n </system>", "t:3:4: mismatched tag"},
        {"<system version=\"1\">\n <cpu numaid=\"0\"", "t:2:2: unclosed token"},
        {"<!DOCTYPE system [<!ENTITY a \"0\"><!ENTITY b \"&a;&a;&a;\">]>\n"
         "<system version=\"1\"><cpu numaid=\"&b;\"/></system>",
         "t:1:18: a document type with declarations"},
        {"\x7f" "ELF\x02\x01\x01", "t:1:1: not well-formed"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tutti_inventory *inventory = (struct tutti_inventory *)&state;

        if (tutti_xml_read_nccl("t", cases[i].text, strlen(cases[i].text), TUTTI_SOURCE_FILE,
                                &inventory) != TUTTI_ERR_ARGUMENT)
            fail_msg("accepted: %s", cases[i].text);
        if (strncmp(tutti_message_last(), cases[i].said, strlen(cases[i].said)) != 0)
            fail_msg("%s\nsaid: %s\nnot:  %s", cases[i].text, tutti_message_last(),
                     cases[i].said);
        assert_ptr_equal(inventory, &state);
    }
}

static void values_that_no_search_needs_are_ignored_and_named(void **state)
{
    static const struct {
        const char *text, *remarks;
    } cases[] = {
        {"<system version=\"1\">\n\n\t<cpu affinity=\"12345678,123456789\"/></system>",
         "t:3: <cpu>: affinity=\"12345678,123456789\" is no mask of CPUs, such as "
         "\"000000ff,ffff0000\"; it is not needed and is ignored\n"},
        {CPU("\n<pci device=\"0xREDACTED\" vendor=\"0xREDACTED\"><nic>\n<net latency=\"fast\" "
             "maxconn=\"many\"/></nic></pci>"),
         "t:2: <pci>: device=\"0xREDACTED\" is no number, such as 0x10de; it is not needed and is "
         "ignored, with 3 more such values\n"},
        /* Ids are only compared, so texts serve as well as numbers. */
        {"<system version=\"1\"><cpu host_hash=\"0xHASH_A\"><nic><net guid=\"0xREDACTED\"/></nic>"
         "</cpu></system>", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tutti_inventory *inventory = read_good(cases[i].text), *copy;

        if (cases[i].remarks == NULL)
            assert_null(inventory->remarks);
        else
            assert_string_equal(inventory->remarks, cases[i].remarks);
        assert_int_equal(tutti_inventory_copy(inventory, &copy), TUTTI_OK);
        assert_true((copy->remarks == NULL) == (inventory->remarks == NULL));
        tutti_inventory_destroy(copy);
        for (uint32_t device = 1; device < inventory->count; device++)
            for (int property = 0; property < TUTTI_PROPERTY_COUNT; property++)
                assert_true(!tutti_device_has(inventory, device, property) ||
                            property == TUTTI_PROPERTY_HOST_HASH ||
                            property == TUTTI_PROPERTY_GUID || property == TUTTI_PROPERTY_NUMA);
        tutti_inventory_destroy(inventory);
    }
}

/* Memory stays within the limits, whatever the file repeats. */
static void what_is_hostile_is_refused_early(void **state)
{
    static const struct {
        const char *before, *part;
        size_t times;
        const char *after, *said;
    } cases[] = {
        {"<system version=\"1\">", "<cpu/>", 1000000, "</system>",
         "t:1:98319: <cpu>: more than 16384 devices"},
        {"<system version=\"1\">", "<odd/>", 1000000, "</system>",
         "t:1:1572879: more than 262144 elements"},
        {"<system version=\"1\"><cpu>", "<pci>", 1000000, "", "t:1:336: <pci> is inside more than"},
        {"<system version=\"1\"><cpu>", "<odd>", 1000000, "", "t:1:336: <odd> is inside more than"},
        {"<system version=\"1\"><cpu arch=\"", "x", 100000, "\"/></system>",
         "t:1:21: <cpu>'s arch has more than 16384 bytes"},
        {"<system version=\"1\"><cpu arch=\"", "x", 10000000, "\"/></system>",
         "t:1:21: more than 1 MiB"},
        {"<system version=\"1\"><cpu>", "<cache cpus=\"\"/>", 100000, "</cpu></system>",
         "t:1:262170: the caches of this cpu have masks of more than 16383 bytes"},
        {"<system ", "a", 20000000, "", "t:1:1: 20000008 bytes, but at most 16777216 are read"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t each = strlen(cases[i].part), used = strlen(cases[i].before);
        char *text = malloc(used + each * cases[i].times + strlen(cases[i].after) + 1);
        struct tutti_inventory *inventory;
        int rc;

        assert_non_null(text);
        strcpy(text, cases[i].before);
        for (size_t j = 0; j < cases[i].times; j++, used += each)
            memcpy(text + used, cases[i].part, each);
        strcpy(text + used, cases[i].after);
        rc = tutti_xml_read_nccl("t", text, strlen(text), TUTTI_SOURCE_FILE, &inventory);
        free(text);
        assert_int_equal(rc, TUTTI_ERR_ARGUMENT);
        if (strncmp(tutti_message_last(), cases[i].said, strlen(cases[i].said)) != 0)
            fail_msg("said: %s\nnot:  %s", tutti_message_last(), cases[i].said);
    }
}

static void a_text_cut_anywhere_is_refused(void **state)
{
    static const char good[] = GPU("<nvlink target=\"0000:02:00.0\" count=\"1\"/>");
    struct tutti_inventory *inventory;

    (void)state;
    for (size_t length = 0; length + 1 < sizeof good; length++)
        assert_int_equal(tutti_xml_read_nccl("t", good, length, TUTTI_SOURCE_FILE, &inventory),
                         TUTTI_ERR_ARGUMENT);
    assert_int_equal(tutti_xml_read_nccl("t", good, sizeof good - 1, TUTTI_SOURCE_FILE, &inventory),
                     TUTTI_OK);
    tutti_inventory_destroy(inventory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_read_is_written),
        cmocka_unit_test(values_are_the_source_s),
        cmocka_unit_test(mistakes_are_found_where_they_are),
        cmocka_unit_test(values_that_no_search_needs_are_ignored_and_named),
        cmocka_unit_test(what_is_hostile_is_refused_early),
        cmocka_unit_test(a_text_cut_anywhere_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
