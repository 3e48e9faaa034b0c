/* SPDX-License-Identifier: Apache-2.0
 * tutti-sched works with schedules: it lists, prints, checks, draws, imports, explains and builds
 * them. This file runs the command that the first argument names. */
#include "sched/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: tutti-sched COMMAND [arguments]\n"
    "\n"
    "  list     list the algorithms and their options\n"
    "  print    print a schedule, step by step\n"
    "  check    prove a schedule, or report its errors\n"
    "  draw     draw a schedule\n"
    "  import   convert MSCCL XML or MSCCL++ JSON to a schedule file\n"
    "  explain  show which algorithm serves a call, and why\n"
    "  build    measure the time and memory to build a schedule\n"
    "\n"
    "tutti-sched COMMAND --help says more. A schedule is a collective, an algorithm and a number\n"
    "of ranks: tutti-sched draw allreduce ring --ranks 8 -o ring.svg\n"
    "\n"
    "Exit status: 0 done, 1 failed or not proved, 2 a mistake in the command line.\n";

static const struct command *const commands[] = {
    &sched_list, &sched_print, &sched_check, &sched_draw, &sched_import, &sched_explain,
    &sched_build,
};

int main(int argc, char **argv)
{
    if (argc < 2) {
        fputs(help, stderr);
        return EXIT_MISTAKE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        fputs(help, stdout);
        return EXIT_SUCCESS;
    }
    if (strcmp(argv[1], "--version") == 0)
        return print_version("tutti-sched");
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        if (strcmp(strrchr(commands[i]->name, ' ') + 1, argv[1]) == 0)
            return command_run(commands[i], argc - 2, argv + 2);
    fprintf(stderr, "tutti-sched: \"%s\" is no command; see tutti-sched --help\n", argv[1]);
    return EXIT_MISTAKE;
}
