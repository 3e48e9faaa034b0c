/* SPDX-License-Identifier: Apache-2.0
 * tutti-sched explain: shows the algorithm that a call would use, and why it would not use the
 * others. */
#include "tuner/explain.h"

#include "base/result.h"
#include "common/tuner_view.h"
#include "common/table.h"
#include "common/units.h"
#include "sched/commands.h"
#include "tuner/policy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char help[] =
    "usage: tutti-sched explain COLLECTIVE SIZE [options]\n"
    "\n"
    "Prints the algorithm that the tuner chooses for a call on a machine, all others that could\n"
    "serve it with their predicted times, and why the rest cannot. TUTTI_ALGORITHM, TUTTI_TUNE\n"
    "and TUTTI_TUNE_TABLE apply as in a program. SIZE is that of the whole vector, as in the perf\n"
    "programs: 64K, 1M. Without --topo the ranks are processes of this host, and TUTTI_MACHINE\n"
    "and TUTTI_TRANSPORTS apply, too.\n"
    "\n"
    "  -t, --topo MACHINE  a machine's file, description or name (default: this host)\n"
    "      --gpu MODEL, --nic RATE, --cpu MODEL  for guesses: b200, 400G, sapphire\n"
    "  -n, --ranks N       ranks (default: those of the machine; on this host, one per core)\n"
    "      --root R        the root of a rooted collective (default 0)\n";

#define MOST_BYTES 0x1p50 /* the largest size of a call: 1024 TiB */

static void print_candidates(const struct tutti_candidate *candidates, size_t count)
{
    struct table table;
    char text[96], time[UNITS_TEXT];

    table_init(&table, " |ALGORITHM|>TIME|WHY");
    for (size_t i = 0; i < count; i++) {
        const struct tutti_candidate *candidate = &candidates[i];

        table_add(&table, candidate->is_chosen ? "*" : "");
        tutti_choice_format(&candidate->choice, text, sizeof text);
        table_add(&table, "%s", text);
        table_add(&table, "%s",
                  isnan(candidate->seconds) ? "-" : units_seconds(candidate->seconds, time));
        table_add(&table, "%s", candidate->reason);
    }
    table_print(&table, stdout);
    table_fini(&table);
}

/* Prints the algorithms for a call of `size` bytes, as the tuner sees them on this machine. */
static int explain(const struct request *request, const struct tutti_tuner_view *view,
                   enum tutti_collective collective, double size)
{
    struct tutti_tuner_query query = {.collective = collective, .root = request->root};
    struct tutti_candidate *candidates;
    char bytes[UNITS_TEXT], ranks[UNITS_TEXT];
    size_t count;
    int rc;

    query.block_bytes = vector_block_bytes(collective, view->nranks, size);
    rc = tutti_tuner_explain(view, &query, &candidates, &count);
    if (rc != TUTTI_OK)
        return failure(request, rc);
    printf("%s of %s on %s ranks%s\n\n", tutti_collective_name(collective),
           units_bytes(size, bytes), units_count(view->nranks, ranks),
           request->topo == NULL ? ", processes of this host" : "");
    print_candidates(candidates, count);
    free(candidates);
    return EXIT_SUCCESS;
}

/* Explains the choice on the given machine, or on this host if `machine` is NULL. */
static int explain_on(const struct request *request, const struct tutti_machine *machine,
                      uint32_t nranks, enum tutti_collective collective, double size)
{
    struct tutti_policy *policy = NULL;
    struct host_view host = {.node = NULL};
    struct tutti_tuner_view view;
    int rc, status;

    TUTTI_TRY_OR(fail, rc, tutti_policy_read(nranks, &policy));
    if (machine != NULL) {
        tuner_view_init(machine, &view);
        view.policy = policy;
    } else {
        TUTTI_TRY_OR(fail, rc, host_view_open(nranks, policy, &host));
        view = host.view;
    }
    status = explain(request, &view, collective, size);

leave:
    host_view_close(&host);
    tutti_policy_release(policy);
    return status;

fail:
    status = failure(request, rc);
    goto leave;
}

/* Determines the number of ranks on this host: one per core, unless the user gives a number. */
static int request_ranks_here(const struct request *request, uint32_t *ret_nranks)
{
    if (request->nranks > 1)
        return mistake(request, "--ranks: %zu numbers; this command takes one", request->nranks);
    *ret_nranks = request->nranks == 1 ? request->ranks[0] : usable_cores();
    return REQUEST_GO;
}

static int run(const struct request *request)
{
    enum tutti_collective collective;
    struct tutti_machine *machine = NULL;
    uint32_t nranks;
    double size;
    int status;

    status = request_collective(request, request->words[0], &collective);
    if (status != REQUEST_GO)
        return status;
    if (request->nwords != 2 || !units_read_bytes(request->words[1], &size) || size > MOST_BYTES)
        return mistake(request, "give one size of at most 1024 TiB after %s, such as 1M",
                       request->words[0]);
    status = request->topo == NULL ? request_ranks_here(request, &nranks)
                                   : request_one_machine(request, &nranks, &machine);
    if (status == REQUEST_GO)
        status = request_root(request, collective, nranks);
    if (status == REQUEST_GO)
        status = explain_on(request, machine, nranks, collective, size);
    tutti_machine_destroy(machine);
    return status;
}

const struct command sched_explain = {
    .name = "tutti-sched explain",
    .options = "ranks root topo gpu nic cpu",
    .help = help,
    .run = run,
};
