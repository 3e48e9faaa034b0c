/* SPDX-License-Identifier: Apache-2.0
 * tutti-sim compare: shows two machines side by side, for questions such as whether ports of twice
 * the rate would help. */
#include "sim/compare.h"

#include "common/memory.h"
#include "common/table.h"
#include "common/units.h"
#include "sim/commands.h"
#include "tuner/explain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CHOICE_BYTES 96 /* size of a buffer for an algorithm with its options */

double compare_speedup(const struct compared_size *size)
{
    if (size->best[0] == NULL || size->best[1] == NULL || sweep_seconds(size->best[1]) <= 0)
        return NAN;
    return sweep_seconds(size->best[0]) / sweep_seconds(size->best[1]);
}

/* ---- the command line ------------------------------------------------------------------------ */

/* Finds the machines and the collective among the words: compare A B [COLLECTIVE], or compare
 * COLLECTIVE A B. */
static int read_words(const struct request *request, struct comparison *comparison,
                      const char **ret_collective)
{
    const char *const *words = request->words + 1;
    bool is_first = request->nwords > 1 && tutti_collective_find(words[0], strlen(words[0])) !=
                                               TUTTI_COLLECTIVE_COUNT;

    if (request->topo != NULL)
        return mistake(request, "--topo %s: compare takes both machines as words: tutti-sim "
                       "compare MACHINE MACHINE", request->topo);
    if (request->nwords != 4 && (request->nwords != 3 || is_first))
        return mistake(request, "compare takes two machines, such as tutti-sim compare dgx-a100 "
                       "dgx-h100 allreduce");
    if (request->nranks > 1)
        return mistake(request, "--ranks: %zu numbers; compare takes one", request->nranks);
    *ret_collective = request->nwords == 3 ? "allreduce" : is_first ? words[0] : words[2];
    for (size_t i = 0; i < MACHINES; i++)
        comparison->topo[i] = words[i + is_first];
    return REQUEST_GO;
}

/* ---- the table ------------------------------------------------------------------------------- */

/* Writes the algorithm of a case, with its options if the table is wide. */
static void add_algorithm(struct table *table, const struct sim_case *one, bool is_wide)
{
    char text[CHOICE_BYTES];

    if (one == NULL) {
        table_add(table, "-");
        return;
    }
    tutti_choice_format(&one->choice, text, sizeof text);
    table_add(table, "%s", is_wide ? text : one->choice.algorithm->name);
}

/* Writes what is busiest on both machines. That is why they are not faster. */
static void add_links(struct table *table, const struct compared_size *size)
{
    char text[MACHINES][SWEEP_LINK_TEXT];

    table_add(table, "%s; %s", sweep_link(size->best[0], text[0]),
              sweep_link(size->best[1], text[1]));
}

/* Prints the row of a size. */
static void print_size(struct table *table, const struct compared_size *size, bool is_wide)
{
    double speedup = compare_speedup(size);
    char text[UNITS_TEXT];

    table_add(table, "%s", units_bytes(size->size_bytes, text));
    for (int i = 0; i < MACHINES; i++)
        table_add(table, "%s", size->best[i] == NULL
                                   ? "-" : units_seconds(sweep_seconds(size->best[i]), text));
    if (isnan(speedup))
        table_add(table, "-");
    else
        table_add(table, "%.2f", speedup);
    for (int i = 0; i < MACHINES && is_wide; i++)
        table_add(table, "%s", size->best[i] == NULL
                                   ? "-" : units_rate(size->best[i]->bus_bytes_per_s, text));
    add_algorithm(table, size->best[0], is_wide);
    add_algorithm(table, size->best[1], is_wide);
    if (is_wide)
        add_links(table, size);
    table_flush(table, stdout);
}

/* Starts the table. Reserves the width of all algorithms that may turn out to be the fastest. */
static void begin_table(const struct comparison *comparison, bool is_wide, struct table *table)
{
    const struct sweep *sweep = &comparison->sweep[0];
    char text[CHOICE_BYTES];

    table_init(table, is_wide ? ">SIZE|>TIME A|>TIME B|>SPEEDUP|>BUSBW A|>BUSBW B|BEST OF A|"
                                "BEST OF B|BUSIEST LINKS OF A; B"
                              : ">SIZE|>TIME A|>TIME B|>SPEEDUP|BEST OF A|BEST OF B");
    for (size_t i = 0; i < sweep->ncases; i++) {
        table_reserve(table, 0, units_bytes(sweep->cases[i].size_bytes, text));
        tutti_choice_format(&sweep->cases[i].choice, text, sizeof text);
        for (size_t column = is_wide ? 6 : 4; column < (is_wide ? 8 : 5); column++)
            table_reserve(table, column, is_wide ? text : sweep->cases[i].choice.algorithm->name);
    }
    for (size_t column = 1; column <= 2; column++)
        table_reserve(table, column, "99.9 us");
    for (size_t column = 4; column <= 5 && is_wide; column++)
        table_reserve(table, column, "99.9 GB/s");
}

static void print_title(const struct comparison *comparison, char about[][TOPO_MACHINE_ABOUT])
{
    char text[UNITS_TEXT];

    printf("%s; SPEEDUP: B is so many times as fast as A\n",
           tutti_collective_name(comparison->sweep[0].collective));
    for (int i = 0; i < MACHINES; i++)
        printf("%c: %s ranks, %s%s%s\n", 'A' + i, units_count(comparison->nranks[i], text),
               comparison->topo[i], *about[i] == '\0' ? "" : ": ", about[i]);
}

/* ---- both machines --------------------------------------------------------------------------- */

/* Simulates one size on both machines. `at` has the index of its first case on each, and moves to
 * the next size. */
static int play_size(const struct request *request, struct tutti_machine *const *machines,
                     struct comparison *comparison, size_t at[MACHINES])
{
    struct compared_size *size = &comparison->sizes[comparison->nsizes];
    int status = REQUEST_GO;

    for (int m = 0; m < MACHINES; m++) {
        struct sweep *sweep = &comparison->sweep[m];
        size_t end = sweep_size_end(sweep, at[m]);

        for (size_t i = at[m]; i < end && status == REQUEST_GO; i++)
            status = sweep_play(request, machines[m], sweep, i);
        if (status != REQUEST_GO)
            return status;
        size->size_bytes = sweep->cases[at[m]].size_bytes;
        size->bound_s[m] = sweep_bound(&sweep->cases[at[m]]);
        size->best[m] = sweep_mark_best(sweep, at[m], end);
        at[m] = end;
    }
    comparison->nsizes++;
    return REQUEST_GO;
}

/* Loads both machines and adds their cases. The caller destroys the machines. */
static int load(const struct request *request, const char *collective,
                struct comparison *comparison, struct tutti_machine *machines[MACHINES],
                char about[][TOPO_MACHINE_ABOUT])
{
    int status = REQUEST_GO;

    for (int i = 0; i < MACHINES && status == REQUEST_GO; i++) {
        struct sweep *sweep = &comparison->sweep[i];

        status = sweep_begin(request, collective, sweep);
        if (status == REQUEST_GO)
            status = sweep_load(request, sweep, comparison->topo[i],
                                request->nranks == 1 ? request->ranks[0] : 0, &machines[i],
                                about[i]);
        if (status != REQUEST_GO)
            return status;
        comparison->nranks[i] = machines[i]->places.nranks;
        status = sweep_add(request, machines[i], sweep);
    }
    comparison->sizes = must_calloc(comparison->sweep[0].ncases, sizeof *comparison->sizes);
    return status;
}

/* Simulates all sizes, and prints the row of each as soon as it is known. */
static int play(const struct request *request, const char *collective,
                struct comparison *comparison)
{
    struct tutti_machine *machines[MACHINES] = {NULL, NULL};
    char about[MACHINES][TOPO_MACHINE_ABOUT];
    size_t at[MACHINES] = {0, 0};
    struct table table = {.ncolumns = 0};
    bool has_table = !request->wants_json;
    int status = load(request, collective, comparison, machines, about);

    if (status == REQUEST_GO && has_table) {
        print_title(comparison, about);
        begin_table(comparison, request->wants_wide, &table);
    }
    while (status == REQUEST_GO && at[0] < comparison->sweep[0].ncases &&
           at[1] < comparison->sweep[1].ncases) {
        status = play_size(request, machines, comparison, at);
        if (status == REQUEST_GO && has_table)
            print_size(&table, &comparison->sizes[comparison->nsizes - 1], request->wants_wide);
    }
    table_fini(&table);
    for (int i = 0; i < MACHINES; i++) {
        if (status == REQUEST_GO && has_table) {
            sweep_print_symmetric(&comparison->sweep[i], i == 0 ? " on A" : " on B");
            sweep_print_left_out(&comparison->sweep[i], i == 0 ? " on A" : " on B");
        }
        tutti_machine_destroy(machines[i]);
    }
    return status;
}

/* Draws the picture of -o. */
static int draw(const struct request *request, const struct comparison *comparison)
{
    bool is_drawable = false;
    int error;

    if (!tutti_collective_has_data(comparison->sweep[0].collective))
        return mistake(request, "-o: a barrier has no sizes to draw; leave -o out");
    for (size_t i = 0; i < comparison->nsizes; i++)
        is_drawable = is_drawable || comparison->sizes[i].best[0] != NULL ||
                      comparison->sizes[i].best[1] != NULL;
    if (!is_drawable)
        return mistake(request, "-o: no case was simulated; raise --steps");
    error = view_compare_picture(comparison, request->output);
    return error == 0 ? REQUEST_GO : write_failure(request, request->output, error);
}

int sim_compare(const struct request *request)
{
    struct comparison comparison = {.sizes = NULL};
    const char *collective = NULL;
    int status = read_words(request, &comparison, &collective);

    if (status == REQUEST_GO)
        status = play(request, collective, &comparison);
    if (status == REQUEST_GO && request->wants_json)
        view_compare_json(&comparison, stdout);
    if (status == REQUEST_GO && request->output != NULL)
        status = draw(request, &comparison);
    for (int i = 0; i < MACHINES; i++)
        sweep_fini(&comparison.sweep[i]);
    free(comparison.sizes);
    return status == REQUEST_GO ? EXIT_SUCCESS : status;
}
