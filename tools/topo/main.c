/* SPDX-License-Identifier: Apache-2.0
 * tutti-topo shows machines and their links, finds rings and trees, and measures this machine. This
 * file runs the command that the first argument names. Without a command, it shows the machine. */
#include "topo/commands.h"

#include <string.h>

static const struct command *const commands[] = {
    &topo_matrix, &topo_search, &topo_explain, &topo_draw, &topo_export, &topo_machine,
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof commands[0]; i++)
        if (strcmp(strrchr(commands[i]->name, ' ') + 1, argv[1]) == 0)
            return command_run(commands[i], argc - 2, argv + 2);
    return command_run(&topo_show, argc - 1, argv + 1);
}
