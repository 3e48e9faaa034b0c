/* SPDX-License-Identifier: Apache-2.0
 * Simulates a collective on one machine, and prints each case as soon as it is known. */
#include "common/units.h"
#include "sim/commands.h"
#include "sim/view_table.h"
#include "sim/views.h"

#include <stdlib.h>

/* What the functions below work on. */
struct show {
    const struct request *request;
    struct sweep sweep;
    struct view_table view; /* not used for JSON */
};

/* Prints what the table is about. `about` describes this machine; "": it is another one. */
static void print_title(const struct show *show, const struct tutti_machine *machine,
                        const char *about)
{
    const char *collective = tutti_collective_name(show->sweep.collective);
    char ranks[UNITS_TEXT];

    if (*about != '\0')
        printf("this machine: %s\n", about);
    if (show->view.has_ranks)
        puts(collective);
    else
        printf("%s, %s ranks\n", collective, units_count(machine->places.nranks, ranks));
}

/* Simulates the cases from `first` to `end`, which differ only in the algorithm. */
static int show_size(struct show *show, const struct tutti_machine *machine, size_t first,
                     size_t end)
{
    const struct request *request = show->request;
    bool has_rows = !request->wants_json && !request->wants_best && end - first > 1;
    const struct sim_case *best;

    for (size_t i = first; i < end; i++) {
        int status = sweep_play(request, machine, &show->sweep, i);

        if (status != REQUEST_GO)
            return status;
        if (has_rows)
            view_table_row(&show->view, &show->sweep.cases[i]);
    }
    best = sweep_mark_best(&show->sweep, first, end);
    if (request->wants_json)
        return REQUEST_GO;
    if (best != NULL)
        view_table_row(&show->view, best);
    else if (end - first == 1)
        view_table_row(&show->view, &show->sweep.cases[first]);
    else if (!has_rows)
        view_table_no_row(&show->view, &show->sweep.cases[first]);
    return REQUEST_GO;
}

/* Simulates all cases on one machine. */
static int show_machine(struct show *show, uint32_t nranks, uint32_t most_ranks)
{
    const struct request *request = show->request;
    struct sweep *sweep = &show->sweep;
    struct tutti_machine *machine;
    char about[TOPO_MACHINE_ABOUT];
    size_t at = sweep->ncases, end;
    int status = sweep_load(request, sweep, request->topo, nranks, &machine, about);

    if (status != REQUEST_GO)
        return status;
    status = sweep_add(request, machine, sweep);
    if (status == REQUEST_GO && !request->wants_json) {
        if (at == 0)
            print_title(show, machine, about);
        view_table_reserve(&show->view, sweep,
                           most_ranks > 0 ? most_ranks : machine->places.nranks);
    }
    for (; status == REQUEST_GO && at < sweep->ncases; at = end) {
        end = sweep_size_end(sweep, at);
        status = show_size(show, machine, at, end);
    }
    tutti_machine_destroy(machine);
    return status;
}

static int show_all(struct show *show)
{
    const struct request *request = show->request;
    uint32_t most_ranks = 0;
    int status = REQUEST_GO;

    for (size_t i = 0; i < request->nranks; i++)
        most_ranks = request->ranks[i] > most_ranks ? request->ranks[i] : most_ranks;
    view_table_init(request->wants_wide, request->nranks > 1, stdout, &show->view);
    if (request->nranks == 0)
        status = show_machine(show, 0, 0);
    for (size_t i = 0; i < request->nranks && status == REQUEST_GO; i++)
        status = show_machine(show, request->ranks[i], most_ranks);
    view_table_fini(&show->view);
    if (status == REQUEST_GO && !request->wants_wide && !request->wants_json)
        sweep_print_symmetric(&show->sweep, "");
    if (status == REQUEST_GO && request->wants_best && !request->wants_json)
        sweep_print_left_out(&show->sweep, "");
    return status;
}

int sim_show(const struct request *request)
{
    struct show show = {.request = request};
    int status = sweep_begin(request, request->words[0], &show.sweep);

    if (status == REQUEST_GO && request->nwords > 1)
        status = mistake(request, "\"%s\" is one word too many; see %s --help", request->words[1],
                         request->command);
    if (status == REQUEST_GO)
        status = show_all(&show);
    if (status == REQUEST_GO && request->wants_json)
        view_json(&show.sweep, request->wants_best, stdout);
    if (status == REQUEST_GO && request->output != NULL)
        status = view_picture(request, &show.sweep);
    sweep_fini(&show.sweep);
    return status == REQUEST_GO ? EXIT_SUCCESS : status;
}
