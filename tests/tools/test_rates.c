/* SPDX-License-Identifier: Apache-2.0
 * Tests what the tools say about guessed rates, and the options that replace them. */
#include "tools/running.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define MATRIX \
    " GPU0 GPU1 NIC0 NIC1 CPU Affinity\n" \
    "GPU0 X NV18 PIX SYS 0-7\nGPU1 NV18 X SYS PIX 8-15\n" \
    "NIC0 PIX SYS X SYS\nNIC1 SYS PIX SYS X\n\nNIC Legend:\n  NIC0: rocep1s0\n  NIC1: mlx5_bond_0\n"

static void run_and_hear(const char *program, const char *arguments, const char *guesses)
{
    int status = running_run(program, "%s", arguments);

    if (status != 0)
        fail_msg("%s: exit status %d\n%s", arguments, status, running.err);
    if (guesses == NULL ? *running.err != '\0'
                        : strstr(running.err, guesses) == NULL ||
                              running_count(running.err, "\n") != 1)
        fail_msg("%s\nsays: %s\nnot: %s", arguments, running.err, guesses);
}

static void every_tool_says_which_rates_are_guesses(void **state)
{
    static const struct {
        const char *program, *arguments;
    } calls[] = {
        {TUTTI_TOPO, "--from m"},
        {TUTTI_TOPO, "matrix --from m"},
        {TUTTI_TOPO, "search --from m"},
        {TUTTI_TOPO, "explain --from m"},
        {TUTTI_TOPO, "machine --from m -o machine"},
        {TUTTI_TOPO, "draw --from m --svg it.svg"},
        {TUTTI_TOPO, "export --from m --xml it.xml"},
        {TUTTI_SIM, "allreduce --topo m --size 1M:1M"},
        {TUTTI_SIM, "allreduce --topo m --size 1M:1M --json"},
        {TUTTI_SCHED, "explain allreduce 1M --topo m"},
        {TUTTI_SCHED, "print allreduce ring --topo m"},
    };

    (void)state;
    running_write("m", MATRIX);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        run_and_hear(calls[i].program, calls[i].arguments,
                     ": guessed rates: NVLinks of 2 gpus (20.6 GB/s each), 2 ports (400 Gbit/s), "
                     "6 PCI links, links between NUMA nodes (10 GB/s); to say better: --gpu MODEL, "
                     "--nic RATE, link_speed and link_width in NCCL's XML, --cpu MODEL\n");
}

static void options_replace_guesses_in_every_tool(void **state)
{
    (void)state;
    running_write("m", MATRIX);
    run_and_hear(TUTTI_TOPO, "search --from m --gpu b200 --nic 400G,mlx5_bond_0=25G --cpu emerald",
                 ": guessed rates: 2 PCI links; to say better: link_speed and link_width");
    running_says("722 GB/s");
    run_and_hear(TUTTI_SIM, "allreduce --topo m --gpu b200 --size 1G:1G --algorithm ring --nic "
                 "400G --cpu emerald", ": guessed rates: 2 PCI links;");
    run_and_hear(TUTTI_TOPO, "explain --from m", ": guessed rates: ");
    running_says("and 100 % is guessed.\n  guessed: gpu 0 -> gpu 1 (nvlink): 371 GB/s\n");
    run_and_hear(TUTTI_TOPO, "explain --from m --gpu h100", ": guessed rates: ");
    running_says("100 % is\nknown by products, and 0 % is guessed.\n");
    run_and_hear(TUTTI_TOPO, "search --from dgx-h100", NULL);
    run_and_hear(TUTTI_TOPO, "search --from dgx-h100 --gpu b200", "tutti-topo search: --gpu b200 "
                 "is not used for 8 of 8 gpus, of which another architecture is told\n");
}

static void options_without_devices_are_mistakes(void **state)
{
    (void)state;
    running_is_mistake(running_run(TUTTI_SIM, "allreduce --topo nodes8 --ranks 16 --gpu b200"),
                       "tutti-sim", "leave them out");
    running_is_mistake(running_run(TUTTI_SCHED, "list allreduce --ranks 4 --nic 400G"),
                       "tutti-sched", "give --topo too");
    running_is_mistake(running_run(TUTTI_TOPO, "search --from dgx-h100 --gpu x"),
                       "tutti-topo search", "--gpu x: no such model");
    running_is_mistake(running_run(TUTTI_TOPO, "search --from dgx-h100 --nic"),
                       "tutti-topo search", "--nic needs a value");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_tool_says_which_rates_are_guesses),
        cmocka_unit_test(options_replace_guesses_in_every_tool),
        cmocka_unit_test(options_without_devices_are_mistakes),
    };

    return cmocka_run_group_tests(tests, running_begin, running_end);
}
