/* SPDX-License-Identifier: Apache-2.0
 * Wrong lines are refused at the wrong word, and the message says what was expected. */
#include "base/result.h"
#include "support/inventories.h"
#include "topology/formats/line.h"
#include "topology/formats/nccl_xml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void mistakes_are_found_where_they_are(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "m:1:1: the text describes nothing; give a line such as \"8 gpus h100 nvswitch, "
             "8 nics 400G, 2 cpus\""},
        {"# only a comment\n", "m:2:1: the text describes nothing"},
        {"gpus", "m:1:1: \"gpus\"; expected a count and a kind of device, such as \"8 gpus"},
        {"8", "m:1:2: the line ends here; expected cpus, switches, gpus or nics"},
        {"8 apples", "m:1:3: \"apples\"; expected cpus, switches, gpus or nics"},
        {"8x gpus", "m:1:1: \"8x\"; expected a number from 1 to 256"},
        {"0 gpus", "m:1:1: \"0\"; expected a number from 1 to 256"},
        {"257 gpus", "m:1:1: \"257\"; expected a number from 1 to 256"},
        {"99999999999999999999 gpus", "m:1:1: \"99999999999999999999\"; expected a number from 1"},
        {"257 nics", "m:1:1: \"257\"; expected a number from 1 to 256"},
        {"257 switches", "m:1:1: \"257\"; expected a number from 1 to 256"},
        {"65 cpus", "m:1:1: \"65\"; expected a number from 1 to 64"},
        {"1 gpu,", "m:1:7: the line ends here; expected a count and a kind of device"},
        {"1 gpu,, 1 nic", "m:1:7: the item ends here; expected a count"},
        {", 1 gpu", "m:1:1: the item ends here; expected a count"},
        {"1 gpu, 2 gpus", "m:1:10: \"gpus\" again; a host has them once"},
        {"1 nic,1 nic,1 nic,1 nic,1 nic,1 nic,1 nic,1 nic,1 nic",
         "m:1:51: a host has at most 8 items of nics"},
        {"1 cpu\n2 gpus\n  3 oranges", "m:3:5: \"oranges\"; expected"},
        {"2 hosts 8 gpus", "m:1:3: \"hosts\"; expected \"hosts:\", and what each of them has"},
        {"2 hosts:", "m:1:9: the line ends here; expected a count"},
        {"0 hosts: 1 cpu", "m:1:1: \"0\"; expected a number from 1 to 1048576"},
        {"two hosts: 1 cpu", "m:1:1: \"two\"; expected a number from 1"},
        {"2 hosts: 2 hosts: 1 cpu", "m:1:12: \"hosts:\"; expected cpus, switches, gpus or nics"},
        /* cpus */
        {"1 cpu pentium", "m:1:7: \"pentium\"; expected a model such as amd or milan, cores, "
                          "threads, nodes, caches, \",\" or the end"},
        {"1 cpu amd intel",
         "m:1:11: \"intel\" repeats or contradicts an earlier word of this item"},
        {"1 cpu cores", "m:1:12: the line ends here; expected a number from 1 to 2048"},
        {"1 cpu cores, 1 gpu", "m:1:12: the item ends here; expected a number from 1 to 2048"},
        {"1 cpu cores many", "m:1:13: \"many\"; expected a number from 1 to 2048"},
        {"1 cpu cores 2049", "m:1:13: \"2049\"; expected a number from 1 to 2048"},
        {"64 cpus cores 2048 threads 8", "m:1:1: 64 cpus of 2048 cores with 8 threads are 1048576 "
                                         "CPUs; a host has at most 2048"},
        {"2 cpus nodes 64", "m:1:1: 2 cpus of 64 nodes are 128 NUMA nodes; a host has at most 64"},
        {"1 gpu, 1 cpu cores 8 nodes 3", "m:1:8: 8 cores do not divide evenly among 3 nodes"},
        {"1 cpu cores 8 caches 3",
         "m:1:1: 3 caches do not divide evenly among 1 nodes, or 8 cores"},
        /* switches */
        {"4 switches under 5", "m:1:18: \"5\"; expected a number from 1 to 4"},
        {"4 switches gen8", "m:1:15: \"8\"; expected a number from 1 to 7"},
        {"4 switches x33", "m:1:13: \"33\"; expected a number from 0 to 32"},
        {"4 switches gen", "m:1:12: \"gen\"; expected under, gen4, x16, \",\" or the end"},
        /* gpus */
        {"1 gpu h101", "m:1:7: \"h101\"; expected a model such as h100, sm, gcn, nvswitch, mesh, "
                       "ring, pairs, cube-mesh, links, pcie, hives, cpu-links, c2c, fabric, gen5, "
                       "x16, gdr, no-gdr, on, \",\" or the end"},
        {"1 gpu h100 sm 90", "m:1:12: \"sm\" repeats or contradicts"},
        {"1 gpu sm 9", "m:1:10: \"9\"; expected a number from 10 to 999"},
        {"1 gpu gcn GFX", "m:1:11: \"GFX\"; expected an architecture of AMD's, such as gfx90a"},
        {"1 gpu gcn gfx9012345678901", "m:1:11: \"gfx9012345678901\"; expected an architecture"},
        {"1 gpu gcn", "m:1:10: the line ends here; expected an architecture"},
        {"2 gpus mesh nvswitch", "m:1:13: \"nvswitch\" repeats or contradicts"},
        {"2 gpus mesh 65", "m:1:13: \"65\"; expected a number from 1 to 64"},
        {"1 gpu mesh", "m:1:1: 1 GPUs cannot form 1 hives of shape mesh"},
        {"2 gpus ring", "m:1:1: 2 GPUs cannot form 1 hives of shape ring"},
        {"3 gpus pairs", "m:1:1: 3 GPUs cannot form 1 hives of shape pairs"},
        {"4 gpus cube-mesh", "m:1:1: 4 GPUs cannot form 1 hives of shape cube-mesh"},
        {"8 gpus mesh hives 3", "m:1:1: 8 GPUs cannot form 3 hives of shape mesh"},
        {"8 gpus mesh hives 9", "m:1:19: \"9\"; expected a number from 1 to 8"},
        {"8 gpus nvswitch hives 2", "m:1:1: hives need mesh, ring, pairs or cube-mesh, not "
                                    "nvswitch"},
        {"8 gpus hives 2", "m:1:1: hives need mesh, ring, pairs or cube-mesh, not pcie"},
        {"4 gpus l4 nvswitch", "m:1:1: this GPU's usual links to NVSwitches are not known; give "
                               "their number, such as nvswitch 4"},
        {"4 gpus mi100 nvswitch 4", "m:1:1: AMD's GPUs have no NVSwitch; say mesh, ring or links"},
        {"1 gpu mi100 c2c 1GB/s", "m:1:1: cpu-links and c2c are of NVIDIA's GPUs"},
        {"4 gpus mesh fabric", "m:1:1: a fabric is made of NVSwitches; say nvswitch, too"},
        {"2 gpus links", "m:1:13: the line ends here; expected pairs of GPUs with their links"},
        {"2 gpus links mesh", "m:1:14: \"mesh\"; expected pairs of GPUs with their links, such as"},
        {"2 gpus links 0-2", "m:1:14: \"0-2\"; expected two different GPUs from 0 to 1 and their "
                             "links, at most 64, such as 0-1:4"},
        {"2 gpus links 0-0", "m:1:14: \"0-0\"; expected two different GPUs"},
        {"2 gpus links 0-1:0", "m:1:14: \"0-1:0\"; expected two different GPUs"},
        {"2 gpus links 0-1:65", "m:1:14: \"0-1:65\"; expected two different GPUs"},
        {"2 gpus links 0-1:", "m:1:14: \"0-1:\"; expected two different GPUs"},
        {"2 gpus links 0-1:4x", "m:1:14: \"0-1:4x\"; expected two different GPUs"},
        {"2 gpus links 0-4294967297", "m:1:14: \"0-4294967297\"; expected two different GPUs"},
        {"2 gpus links 01", "m:1:14: \"01\"; expected two different GPUs"},
        {"2 gpus links 0-1 1-0", "m:1:18: GPUs 1 and 0 are joined again"},
        {"1 gpu c2c 450G", "m:1:11: \"450G\"; expected a rate such as 50GB/s"},
        {"1 gpu c2c 1B/s", "m:1:11: \"1B/s\"; expected a rate from 1MB/s to 1000TB/s"},
        {"1 gpu c2c 1e300TB/s", "m:1:11: \"1e300TB/s\"; expected a rate"},
        {"1 gpu c2c", "m:1:10: the line ends here; expected a rate such as 450GB/s"},
        {"1 gpu on gpu 0", "m:1:10: \"gpu\"; expected cpu, as in \"on cpu 0\""},
        {"1 gpu on cpu", "m:1:13: the line ends here; expected a number from 0 to 255"},
        {"1 gpu on cpu 1", "m:1:1: on cpu 1, but this host has 1, from 0 to 0"},
        /* nics */
        {"1 nic 400", "m:1:7: \"400\"; expected a speed such as 400G or 2500M"},
        {"1 nic 0G", "m:1:7: \"0\"; expected a number from 1 to 10000"},
        {"1 nic 10001G", "m:1:7: \"10001\"; expected a number from 1 to 10000"},
        {"1 nic 400G 200G", "m:1:12: \"200G\" repeats or contradicts"},
        {"1 nic ports 17", "m:1:13: \"17\"; expected a number from 1 to 16"},
        {"1 nic rails no-rails", "m:1:13: \"no-rails\" repeats or contradicts"},
        {"1 nic near gpu 0", "m:1:1: near gpu 0, but this host has no gpus"},
        {"1 gpu, 1 nic near gpu 1", "m:1:1: near gpu 1, but this host has 1, from 0 to 0"},
        {"1 gpu, 1 nic near cpu 0", "m:1:19: \"cpu\"; expected gpu, as in \"near gpu 0\""},
        {"1 nic fast", "m:1:7: \"fast\"; expected a speed such as 400G, ib, roce, ethernet, "
                       "slingshot, efa, ports, rails, no-rails, gen5, x16, gdr, no-gdr, near, on"},
        {"\xff\xfe", "m:1:1: \"\xff\xfe\"; expected a count"},
        /* too much */
        {"1000000 hosts: 8 gpus nvswitch fabric",
         "m:1:1: 1000000 of these hosts are too many: an "
         "inventory holds 16384 devices, which is full at host 656 of the line"},
        {"1 cpu; 1048577 hosts: 1 cpu", "m:1:8: \"1048577\"; expected a number from 1 to 1048576"},
        {"2 racks: 1 cpu", "m:1:8: \":\"; expected \"of\" and the hosts of a rack"},
        {"2 racks of 4 gpus", "m:1:12: \"4\"; expected \"hosts:\""},
        {"2 racks of 4 hosts 1 cpu", "m:1:14: \"hosts\"; expected \"hosts:\""},
        {"2 racks of 4 hosts: 4 gpus mesh", "m:1:1: the gpus of a rack share an NVSwitch"},
        {"2 racks of 4 hosts: 1 cpu", "m:1:1: the gpus of a rack share an NVSwitch"},
        {"256 gpus mesh", "m:1:1: 1 of these hosts are too many: an inventory holds 16384"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tutti_inventory *inventory = (struct tutti_inventory *)&state;
        const char *said;

        if (tutti_line_read("m", cases[i].text, &inventory) != TUTTI_ERR_ARGUMENT)
            fail_msg("accepted: %s", cases[i].text);
        said = tutti_message_last();
        if (strncmp(said, cases[i].says, strlen(cases[i].says)) != 0 || strchr(said, '\n') != NULL)
            fail_msg("%s\nsaid: %s\nnot:  %s", cases[i].text, said, cases[i].says);
        /* Outputs change only on success. */
        assert_ptr_equal(inventory, &state);
    }
}

static void a_list_of_places_has_an_end(void **state)
{
    char text[4096] = "1 gpu on cpu";
    struct tutti_inventory *inventory;

    (void)state;
    for (int i = 0; i < 257; i++)
        strcat(text, " 0");
    assert_int_equal(tutti_line_read("m", text, &inventory), TUTTI_ERR_ARGUMENT);
    assert_non_null(strstr(tutti_message_last(), "\"0\"; expected the end of the list"));
}

/* One byte of a good line changed at a time, to every other value: it is read or refused, and the
 * inventory holds nothing that NCCL's XML cannot say. */
static void mutated_lines_are_read_or_refused(void **state)
{
    static const char good[] =
        "2 hosts: 4 gpus h100 links 0-1:4 2-3 gen4 x8 c2c 4GB/s, 2 nics 40G roce ports 2 near gpu "
        "1, 2 cpus rome cores 4 threads 2 nodes 2 caches 2, 2 switches under 1;1 host: 3 gpus ring";
    size_t accepted = 0, refused = 0;
    char text[sizeof good];

    (void)state;
    for (size_t at = 0; at + 1 < sizeof good; at++)
        for (int byte = 1; byte < 256; byte++) {
            struct tutti_inventory *inventory, *back;
            char *written;

            memcpy(text, good, sizeof good);
            text[at] = (char)byte;
            if (tutti_line_read("m", text, &inventory) != TUTTI_OK) {
                refused++;
                continue;
            }
            accepted++;
            assert_int_equal(tutti_xml_write_nccl(inventory, &written), TUTTI_OK);
            if (tutti_xml_read_nccl("w", written, strlen(written), TUTTI_SOURCE_FILE, &back) !=
                TUTTI_OK)
                fail_msg("%s\nwas written and is refused: %s", text, tutti_message_last());
            assert_true(inventories_equal(inventory, back));
            tutti_inventory_destroy(inventory);
            tutti_inventory_destroy(back);
            free(written);
        }
    assert_true(accepted > 0 && refused > accepted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mistakes_are_found_where_they_are),
        cmocka_unit_test(a_list_of_places_has_an_end),
        cmocka_unit_test(mutated_lines_are_read_or_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
