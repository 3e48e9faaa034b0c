/* SPDX-License-Identifier: Apache-2.0
 * tutti-sim simulates collectives on a machine, which may be real or hypothetical. */
#include "sim/commands.h"
#include "topology/formats/known.h"

#include <stdio.h>
#include <string.h>

static const char help[] =
    "usage: tutti-sim COLLECTIVE [--topo MACHINE] [options]\n"
    "       tutti-sim compare MACHINE MACHINE [COLLECTIVE] [options]\n"
    "\n"
    "Simulates the schedules of all ranks on a machine. It prints their time, the bus bandwidth,\n"
    "and the efficiency: the lower bound on the time, in percent of the time. Nothing is sent.\n"
    "Rows appear as they are simulated. When all algorithms of a size are done, '*' repeats the\n"
    "fastest. `compare` shows the fastest algorithms of two machines side by side, by default of\n"
    "an allreduce.\n"
    "\n"
    "  -t, --topo MACHINE       a machine's file or description, a name of those below, or what\n"
    "                           tutti-topo --from takes, such as dgx-h100 or \"4 hosts: 8 gpus\n"
    "                           h100 nvswitch, 8 nics 400G, 2 cpus\" (default: this, which is the\n"
    "                           machine that runs this command)\n"
    "      --gpu MODEL, --nic RATE, --cpu MODEL  the devices of that machine, where its file\n"
    "                           leaves them to guesses: b200, 400G, sapphire\n"
    "  -n, --ranks N[,N|N-N..]  ranks (default: those of the machine)\n"
    "  -s, --size A[:B[:F]]     sizes of the whole vector from A to B, each F times the last\n"
    "                           (default 1K:64M:4)\n"
    "  -a, --algorithm NAME     one algorithm, or the tuner's choice (chosen), or all that can\n"
    "                           serve (default)\n"
    "      --best               show only the fastest algorithm of each size\n"
    "      --within F           leave out algorithms whose price is above F times the lowest\n"
    "      --option NAME=VALUE  an option of that algorithm; may be repeated. Without it the\n"
    "                           tuner's best options for each size are used\n"
    "      --root R             the root of a rooted collective (default 0)\n"
    "      --steps N            leave out schedules with more steps in all (default 20000000),\n"
    "                           unless a few ranks can stand for all (docs/tools.md)\n"
    "  -o, --output FILE.svg    a picture: time against size or ranks; of one case, its longest\n"
    "                           path\n"
    "      --pieces             cut one-sided calls as hosts do, by TUTTI_WINDOW_BYTES\n"
    "      --wide               more columns: PIECES, in which the library runs a call one after\n"
    "                           the other; BOUND, the lower bound; LATENCY WIRE WORK WAIT, the\n"
    "                           shares of the longest path (the fixed cost of messages, bytes on\n"
    "                           links, reducing and copying, waiting for a port, a link or a\n"
    "                           core); the busiest link. compare: the options of algorithms, and\n"
    "                           bus bandwidths\n"
    "      --json               JSON instead of the table, with all of these\n"
    "\n"
    "Machines:\n";

static void print_help(FILE *out)
{
    const struct tutti_machine_example *machine;
    const struct tutti_known_machine *known;
    size_t column = 0;

    fputs(help, out);
    for (size_t i = 0; (machine = tutti_machine_example_at(i)) != NULL; i++)
        fprintf(out, "  %-9s %s\n", machine->name, machine->about);
    fputs("\nA description is a file or one line: \"node 8; level node latency 1us bandwidth "
          "350GB/s;\nlevel top overhead 5us bandwidth 50GB/s\"; docs/tools.md has it all.\n"
          "\nMachines with a rank for each gpu:", out);
    for (size_t i = 0; (known = tutti_known_machine(i)) != NULL; i++) {
        size_t length = strlen(known->name) + 2;
        bool is_full = column == 0 || column + length > 90;

        fprintf(out, "%s%s", is_full ? "\n  " : ", ", known->name);
        column = is_full ? length : column + length;
    }
    fputc('\n', out);
}

static int run(const struct request *request)
{
    if (request->nwords > 0 && strcmp(request->words[0], "compare") == 0)
        return sim_compare(request);
    return sim_show(request);
}

int main(int argc, char **argv)
{
    static const struct command command = {
        .name = "tutti-sim",
        .options = "ranks root option size topo gpu nic cpu output algorithm best json pieces "
                   "steps wide within",
        .print_help = print_help,
        .run = run,
    };

    if (argc < 2) {
        print_help(stderr);
        return EXIT_MISTAKE;
    }
    return command_run(&command, argc - 1, argv + 1);
}
