/* SPDX-License-Identifier: Apache-2.0
 * tutti-topo machine: prints a description of a machine for the option --topo of the other tools.
 * The description has the cores of this machine, the gpus of any machine, or measured rates of this
 * machine. */
#include "base/result.h"
#include "common/topo_machine.h"
#include "common/topo_remarks.h"
#include "common/tuner_view.h"
#include "topo/commands.h"
#include "topo/crew.h"
#include "topo/subject.h"
#include "topo/survey.h"

#include <stdlib.h>
#include <string.h>

enum { RANKS_MOST = 256 }; /* most ranks that --measure forks */

static const char help[] =
    "usage: tutti-topo machine [-n N] [-o FILE]\n"
    "       tutti-topo machine --from WHAT [-o FILE]\n"
    "       tutti-topo machine --measure [options]\n"
    "\n"
    "Prints a description of a machine, for --topo of the other tools. Without options it has the\n"
    "places of the ranks on this machine, a rank for each core. With --from it has a rank for\n"
    "each gpu of that machine, the links between the gpus, the path of each pair, and the rings\n"
    "and trees that tutti-topo search finds. With --measure it has the costs of messages, copies\n"
    "and reductions here: latency, overhead and bandwidth by the size of buffers, fitted to the\n"
    "times of tuttiSend and tuttiRecv between two ranks, and the rates of a core in its memory.\n"
    "Under tutti-run or another launcher on several hosts it measures the links between them.\n"
    "\n"
    "  -f, --from WHAT        a machine; see tutti-topo --help\n"
    "      --measure          measure: some seconds; the machine should have nothing else to do\n"
    "  -n, --ranks N          with --measure: fork N ranks here (default 2); else: ranks that are\n"
    "                         described (default: one per core)\n"
    "      --transport LIST   transports to measure, as in TUTTI_TRANSPORTS: shm, cma, tcp, or\n"
    "                         several with commas (default: the library's choice)\n"
    "      --quick            fewer sizes and repetitions: a second, rough figures\n"
    "      --xml FILE         with --measure: write the devices of this machine there, too, as\n"
    "                         NCCL's topology XML, with measured rates beside the nominal ones\n"
    "  -o, --output FILE      write there (default: stdout)\n";

/* ---- the cores of this machine --------------------------------------------------------------- */

static int describe_cores(const struct request *request, uint32_t nranks)
{
    char text[512];

    snprintf(text, sizeof text,
             "tutti-machine 1\n"
             "ranks %u\n"
             "node %u\n"
             "cores %u\n"
             "# What messages cost is not known: tutti-topo --measure finds out. By hand:\n"
             "# level node latency 1us overhead 0.3us bandwidth 10GB/s\n",
             nranks, nranks, usable_cores());
    return survey_write(request->output, text);
}

/* ---- the gpus of any machine ----------------------------------------------------------------- */

static int describe_gpus(const struct request *request, const struct subject *subject)
{
    struct tutti_machine *machine = NULL;
    char *text = NULL;
    int rc, status;

    TUTTI_TRY_OR(fail, rc, topo_machine_make(subject->paths, &machine));
    TUTTI_TRY_OR(fail, rc, tutti_machine_write(machine, &text));
    status = survey_write(request->output, text);

leave:
    free(text);
    tutti_machine_destroy(machine);
    return status;

fail:
    status = failure(request, rc);
    goto leave;
}

/* Describes the gpus of the machine that --from names. */
static int describe_from(const struct request *request)
{
    struct subject subject;
    int status;

    if (request->nranks > 0)
        return mistake(request, "--ranks: there is a rank for each gpu of %s; leave it out",
                       request->from);
    status = subject_open(request, true, &subject);
    if (status != REQUEST_GO)
        return status;
    status =
        subject.graph->count[TUTTI_NODE_GPU] == 0
            ? mistake(request, "--from %s has no gpus, and each rank would be a gpu", subject.name)
            : describe_gpus(request, &subject);
    topo_remarks_print(subject.graph, stderr);
    subject_close(&subject);
    return status;
}

/* ---- measured costs -------------------------------------------------------------------------- */

/* Checks the names of the transports, so that a wrong name is reported before any rank starts. */
static int check_transports(const struct request *request)
{
    char copy[64], *rest = copy, *name;

    if (strlen(request->transport) >= sizeof copy)
        return mistake(request, "--transport %s is too long; give shm, cma or tcp",
                       request->transport);
    strcpy(copy, request->transport);
    while ((name = strsep(&rest, ",")) != NULL)
        if (strcmp(name, "shm") != 0 && strcmp(name, "cma") != 0 && strcmp(name, "tcp") != 0)
            return mistake(request, "--transport %s: \"%s\" is no transport; give shm, cma or tcp",
                           request->transport, name);
    return REQUEST_GO;
}

static int measure(const struct request *request, uint32_t nranks)
{
    struct crew crew = {.is_quick = request->wants_quick, .output = request->output,
                        .xml = request->xml};
    int status;

    if (request->transport != NULL) {
        status = check_transports(request);
        if (status != REQUEST_GO)
            return status;
        setenv("TUTTI_TRANSPORTS", request->transport, 1);
    }
    if (!crew_is_launched()) {
        if (nranks < 2)
            return mistake(request, "--ranks 1: a measurement needs two ranks; give 2 or "
                           "more");
        return crew_fork(&crew, (int)nranks, survey_run);
    }
    if (request->nranks > 0)
        return mistake(request, "--ranks: the launcher has started the ranks; leave it out");
    return crew_join(&crew, survey_run);
}

static int run(const struct request *request)
{
    uint32_t nranks = request->wants_measure ? 2 : usable_cores();

    if (request->nwords > 0)
        return mistake(request, "\"%s\" is one word too many; see tutti-topo machine --help",
                       request->words[0]);
    if (request->wants_measure && request->from != NULL)
        return mistake(request,
                       "--from %s: only this machine can be measured; leave out --from or "
                       "--measure",
                       request->from);
    if (request->nranks > 1)
        return mistake(request, "--ranks: %zu numbers; give one", request->nranks);
    if (request->nranks == 1)
        nranks = request->ranks[0];
    if (request->wants_measure && nranks > RANKS_MOST)
        return mistake(request, "--ranks %u: at most %d are forked; start more with a launcher",
                       nranks, RANKS_MOST);
    if (!request->wants_measure &&
        (request->transport != NULL || request->wants_quick || request->xml != NULL))
        return mistake(request, "%s is about measuring; add --measure",
                       request->transport != NULL ? "--transport"
                       : request->wants_quick     ? "--quick"
                                                  : "--xml");
    if (request->wants_measure)
        return measure(request, nranks);
    return request->from != NULL ? describe_from(request) : describe_cores(request, nranks);
}

const struct command topo_machine = {
    .name = "tutti-topo machine",
    .options = "from gpu nic cpu ranks output measure transport quick xml",
    .help = help,
    .run = run,
};
