/* SPDX-License-Identifier: Apache-2.0
 * tutti-sched list: lists the algorithms and the cost that each declares. */
#include "base/result.h"
#include "common/table.h"
#include "sched/commands.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: tutti-sched list [COLLECTIVE] [options]\n"
    "\n"
    "Lists the algorithms: the memory that they need, their options, and their cost on the\n"
    "longest path: rounds, and bytes in blocks of the call (the whole buffer of an all-reduce,\n"
    "a rank's part of an all-gather).\n"
    "\n"
    "      --wide          one table with more columns: whether blocks may differ in size (the\n"
    "                      v-forms), the valid values of options (the default in brackets), and\n"
    "                      the places of ranks that the algorithm uses\n"
    "  -n, --ranks N       ranks that the costs are for (default 8)\n"
    "      --root R        root that the costs are for (default 0)\n"
    "  -t, --topo MACHINE  a machine's file, description or name: the places of ranks\n"
    "      --gpu MODEL, --nic RATE, --cpu MODEL  for guesses: b200, 400G, sapphire\n";

#define USUAL_RANKS 8 /* ranks that the costs are for, unless the user gives a number */

/* Writes the names of the flags that are set. `names` has a name for each bit, from the lowest on,
 * and ends with NULL. Returns the text, or "-" if no flag is set. */
static const char *join_flags(uint32_t flags, const char *const *names, char *text, size_t size)
{
    text[0] = '\0';
    for (int bit = 0; names[bit] != NULL; bit++)
        if (flags & (1u << bit))
            snprintf(text + strlen(text), size - strlen(text), "%s%s", *text == '\0' ? "" : " ",
                     names[bit]);
    return *text == '\0' ? "-" : text;
}

/* Writes the names of the options of an algorithm. Returns "-" if it has none. */
static const char *join_option_names(const struct tutti_algorithm *algorithm, char *text,
                                     size_t size)
{
    text[0] = '\0';
    for (int i = 0; i < TUTTI_OPTION_COUNT; i++)
        if (algorithm->options[i].most != 0)
            snprintf(text + strlen(text), size - strlen(text), "%s%s", *text == '\0' ? "" : " ",
                     tutti_option_name((enum tutti_option)i));
    return *text == '\0' ? "-" : text;
}

/* Writes the options of an algorithm with their ranges, such as "segments=1-64[4]". Returns "-" if
 * it has none. */
static const char *join_options(const struct tutti_algorithm *algorithm, char *text, size_t size)
{
    text[0] = '\0';
    for (int i = 0; i < TUTTI_OPTION_COUNT; i++) {
        const struct tutti_algorithm_range *range = &algorithm->options[i];

        if (range->most == 0)
            continue;
        snprintf(text + strlen(text), size - strlen(text), "%s%s=%u-%u[", *text == '\0' ? "" : " ",
                 tutti_option_name((enum tutti_option)i), range->least, range->most);
        if (range->usual == 0)
            snprintf(text + strlen(text), size - strlen(text), "auto]");
        else
            snprintf(text + strlen(text), size - strlen(text), "%u]", range->usual);
    }
    return *text == '\0' ? "-" : text;
}

/* Adds the cost of the levels that have one, such as "14" for one level, or "node 3 top 4". */
static void add_cost(struct table *table, const double *value)
{
    static const char *const levels[] = {"node", "group", "top"};
    char text[96] = "";
    int used = 0;

    for (int i = 0; i < TUTTI_LEVEL_COUNT; i++)
        used += value[i] > 0;
    for (int i = 0; i < TUTTI_LEVEL_COUNT; i++)
        if (value[i] > 0)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s%s%.4g",
                     *text == '\0' ? "" : " ", used > 1 ? levels[i] : "", used > 1 ? " " : "",
                     value[i]);
    table_add(table, "%s", used == 0 ? "0" : text);
}

/* Adds the rounds and the blocks of an algorithm's cost. Adds "-" if the algorithm cannot run on
 * these ranks. */
static void add_costs(struct table *table, const struct tutti_algorithm *algorithm,
                      struct tutti_shape shape)
{
    const struct tutti_options usual = {.value = {0}};
    double rounds[TUTTI_LEVEL_COUNT], bytes[TUTTI_LEVEL_COUNT];
    struct tutti_cost cost;

    if (shape.nranks < 2 ||
        tutti_algorithm_options(algorithm, &usual, &shape.options) != TUTTI_OK) {
        table_add(table, "-");
        table_add(table, "-");
        return;
    }
    tutti_algorithm_cost(algorithm, &shape, 1, &cost);
    for (int i = 0; i < TUTTI_LEVEL_COUNT; i++) {
        rounds[i] = cost.level[i].rounds;
        bytes[i] = cost.level[i].bytes;
    }
    if (cost.torus.rounds > 0) { /* all links of a rank work at the same time */
        memset(rounds, 0, sizeof rounds);
        memset(bytes, 0, sizeof bytes);
        rounds[TUTTI_LEVEL_TOP] = cost.torus.rounds;
        bytes[TUTTI_LEVEL_TOP] = cost.torus.bytes;
    }
    add_cost(table, rounds);
    add_cost(table, bytes);
}

static void add_algorithm(struct table *table, const struct tutti_algorithm *algorithm,
                          const struct tutti_shape *shape, bool is_wide)
{
    /* In the order of TUTTI_NEEDS_* and of TUTTI_USES_*. */
    static const char *const needs[] = {"window", "peer-read", "peer-store", NULL};
    static const char *const uses[] = {"nodes", "groups", "rings", "trees", "torus", "cells", NULL};
    char text[256];

    if (is_wide)
        table_add(table, "%s", tutti_collective_name(algorithm->collective));
    table_add(table, "%s", algorithm->name);
    table_add(table, "%s", join_flags(algorithm->needs, needs, text, sizeof text));
    if (is_wide) {
        table_add(table, "%s", algorithm->serves_vector ? "yes" : "-");
        table_add(table, "%s", join_options(algorithm, text, sizeof text));
        table_add(table, "%s", join_flags(algorithm->uses, uses, text, sizeof text));
    } else {
        table_add(table, "%s", join_option_names(algorithm, text, sizeof text));
    }
    add_costs(table, algorithm, *shape);
}

static void add_collective(struct table *table, enum tutti_collective collective,
                           const struct tutti_shape *shape, bool is_wide)
{
    for (size_t i = 0; i < tutti_algorithm_count(); i++)
        if (tutti_algorithm(i)->collective == collective)
            add_algorithm(table, tutti_algorithm(i), shape, is_wide);
}

/* Prints a table of each collective from `first` to `last`. */
static void print_tables(enum tutti_collective first, enum tutti_collective last,
                         const struct tutti_shape *shape)
{
    for (int i = first; i <= (int)last; i++) {
        struct table table;

        printf("%s%s, %u ranks\n", i == (int)first ? "" : "\n",
               tutti_collective_name((enum tutti_collective)i), shape->nranks);
        table_init(&table, "ALGORITHM|NEEDS|OPTIONS|>ROUNDS|>BLOCKS");
        add_collective(&table, (enum tutti_collective)i, shape, false);
        table_print(&table, stdout);
        table_fini(&table);
    }
}

/* Prints one table of these collectives with all columns. */
static void print_wide(enum tutti_collective first, enum tutti_collective last,
                       const struct tutti_shape *shape)
{
    struct table table;
    char heads[160];

    snprintf(heads, sizeof heads, "COLLECTIVE|ALGORITHM|NEEDS|VECTOR|OPTIONS|KNOWS|>ROUNDS (%u "
             "RANKS)|>BLOCKS", shape->nranks);
    table_init(&table, heads);
    for (int i = first; i <= (int)last; i++)
        add_collective(&table, (enum tutti_collective)i, shape, true);
    table_print(&table, stdout);
    table_fini(&table);
}

static int run(const struct request *request)
{
    enum tutti_collective collective = TUTTI_COLLECTIVE_COUNT;
    struct tutti_shape shape = {.nranks = USUAL_RANKS, .root = request->root};
    struct tutti_machine *machine = NULL;
    enum tutti_collective last;
    int status = REQUEST_GO;

    if (request->nwords > 1)
        return mistake(request, "\"%s\" is one word too many; list takes one collective",
                       request->words[1]);
    if (request->nwords == 1)
        status = request_collective(request, request->words[0], &collective);
    if (status == REQUEST_GO && (request->nranks > 0 || request->topo != NULL))
        status = request_one_machine(request, &shape.nranks, &machine);
    if (status != REQUEST_GO)
        return status;
    if (request->root >= shape.nranks) {
        tutti_machine_destroy(machine);
        return mistake(request, "--root %u: give a rank from 0 to %u", request->root,
                       shape.nranks - 1);
    }
    shape.places = machine == NULL ? NULL : &machine->places;

    last = request->nwords == 1 ? collective : TUTTI_COLLECTIVE_COUNT - 1;
    collective = request->nwords == 1 ? collective : 0;
    if (request->wants_wide)
        print_wide(collective, last, &shape);
    else
        print_tables(collective, last, &shape);
    tutti_machine_destroy(machine);
    return EXIT_SUCCESS;
}

const struct command sched_list = {
    .name = "tutti-sched list",
    .options = "ranks root topo gpu nic cpu wide",
    .help = help,
    .run = run,
};
