/* SPDX-License-Identifier: Apache-2.0
 * tutti-sim simulates collectives on a machine, which may be real or hypothetical. */
#include "sim/views.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: tutti-sim COLLECTIVE --topo MACHINE [options]\n"
    "\n"
    "Simulates the schedules of all ranks on a machine. It prints their time, how near that is to\n"
    "the lower bound (BOUND, EFFICIENCY), and the busiest link. Nothing is sent. '*' marks the\n"
    "fastest of its size. LATENCY, WIRE, WORK and WAIT are shares of the longest path: the fixed\n"
    "cost of messages, bytes on links, reducing and copying, waiting for a port, a link or a\n"
    "core. A call that the library runs in PIECES takes that many times as long as one piece.\n"
    "\n"
    "  -t, --topo MACHINE       a machine's file or description, a name of those below, or what\n"
    "                           tutti-topo --from takes, such as dgx-h100\n"
    "      --gpu MODEL, --nic RATE, --cpu MODEL  the devices of that machine, where its file\n"
    "                           leaves them to guesses: b200, 400G, sapphire\n"
    "  -n, --ranks N[,N|N-N..]  ranks (default: those of the machine)\n"
    "  -s, --size A[:B[:F]]     sizes of the whole vector from A to B, each F times the last\n"
    "                           (default 1K:64M:4)\n"
    "  -a, --algorithm NAME     one algorithm, or the tuner's choice (chosen), or all that can\n"
    "                           serve (default)\n"
    "      --within F           leave out algorithms whose price is above F times the lowest\n"
    "      --option NAME=VALUE  an option of that algorithm; may be repeated. Without it the\n"
    "                           tuner's best options for each size are used\n"
    "      --root R             the root of a rooted collective (default 0)\n"
    "      --steps N            leave out schedules with more steps in all (default 20000000)\n"
    "  -o, --output FILE.svg    a picture: time against size or ranks; of one case, its longest\n"
    "                           path\n"
    "      --pieces             cut one-sided calls as hosts do, by TUTTI_WINDOW_BYTES\n"
    "      --json               JSON instead of the table\n"
    "\n"
    "Machines:\n";

static void print_help(FILE *out)
{
    const struct tutti_machine_example *machine;

    fputs(help, out);
    for (size_t i = 0; (machine = tutti_machine_example_at(i)) != NULL; i++)
        fprintf(out, "  %-9s %s\n", machine->name, machine->about);
    fputs("\nA description is a file or one line: \"node 8; level node latency 1us bandwidth "
          "350GB/s;\nlevel top overhead 5us bandwidth 50GB/s\"; docs/tools.md has it all.\n", out);
}

static int run(const struct request *request)
{
    struct sweep sweep;
    int status;

    if (request->nwords > 0 && request->topo == NULL)
        return mistake(request, "no machine is given; add --topo, "
                                "such as --topo flat --ranks 64");
    status = sweep_run(request, &sweep);
    if (status == REQUEST_GO) {
        if (request->wants_json)
            view_json(&sweep, stdout);
        else
            view_table(&sweep, stdout);
        if (request->output != NULL)
            status = view_picture(request, &sweep);
    }
    sweep_fini(&sweep);
    return status == REQUEST_GO ? EXIT_SUCCESS : status;
}

int main(int argc, char **argv)
{
    static const struct command command = {
        .name = "tutti-sim",
        .options = "ranks root option size topo gpu nic cpu output algorithm json pieces steps "
                   "within",
        .print_help = print_help,
        .run = run,
    };

    if (argc < 2) {
        print_help(stderr);
        return EXIT_MISTAKE;
    }
    return command_run(&command, argc - 1, argv + 1);
}
