/* SPDX-License-Identifier: Apache-2.0
 * tutti-topo: describe this machine, as far as it is known or as it measures. */
#include "common/request.h"
#include "topo/crew.h"
#include "topo/survey.h"

#include <stdlib.h>
#include <string.h>

enum { RANKS_MOST = 256 };

static const char help[] =
    "usage: tutti-topo [--measure] [options]\n"
    "\n"
    "Prints a description of this machine, for --topo of the other tools. Without --measure\n"
    "that is who lives where; with it, what messages, copies and reductions cost, too: latency,\n"
    "overhead and bandwidth by the size of buffers, fitted to what tuttiSend and tuttiRecv take\n"
    "between two ranks, and what a core does in its memory. Started by tutti-run or another\n"
    "launcher on several hosts it measures the links between them.\n"
    "\n"
    "      --measure          measure: some seconds; the machine should have nothing else to do\n"
    "  -n, --ranks N          with --measure: fork N ranks here (default 2); else: ranks that are\n"
    "                         described (default: one per core)\n"
    "      --transport LIST   transports to measure, as in TUTTI_TRANSPORTS: shm, cma, tcp, or\n"
    "                         several with commas (default: what the library takes)\n"
    "      --quick            fewer sizes and repetitions: a second, rough figures\n"
    "  -o, --output FILE      write there (default: stdout)\n";

static int describe(const struct request *request, uint32_t nranks)
{
    char text[512];

    snprintf(text, sizeof text,
             "tutti-machine 1\n"
             "ranks %u\n"
             "node %u\n"
             "cores %d\n"
             "# What messages cost is not known: tutti-topo --measure finds out. By hand:\n"
             "# level node latency 1us overhead 0.3us bandwidth 10GB/s\n",
             nranks, nranks, survey_cores());
    return survey_write(request->output, text);
}

/* Known names, so that what is misspelt is found before anything starts. */
static int check_transports(const struct request *request)
{
    char copy[64], *rest = copy, *name;

    if (strlen(request->transport) >= sizeof copy)
        return mistake(request, "--transport %s is too long; give shm, cma or tcp",
                       request->transport);
    strcpy(copy, request->transport);
    while ((name = strsep(&rest, ",")) != NULL)
        if (strcmp(name, "shm") != 0 && strcmp(name, "cma") != 0 && strcmp(name, "tcp") != 0)
            return mistake(request, "--transport %s: \"%s\" is none; give shm, cma or tcp",
                           request->transport, name);
    return REQUEST_GO;
}

static int measure(const struct request *request, uint32_t nranks)
{
    struct crew crew = {.is_quick = request->wants_quick, .output = request->output};
    int status;

    if (request->transport != NULL) {
        status = check_transports(request);
        if (status != REQUEST_GO)
            return status;
        setenv("TUTTI_TRANSPORTS", request->transport, 1);
    }
    if (!crew_is_launched()) {
        if (nranks < 2)
            return mistake(request, "--ranks 1: alone there is nobody to measure with; give 2 or "
                           "more");
        return crew_fork(&crew, (int)nranks, survey_run);
    }
    if (request->nranks > 0)
        return mistake(request, "--ranks: the launcher has started the ranks; leave it out");
    return crew_join(&crew, survey_run);
}

static int run(const struct request *request)
{
    uint32_t nranks = request->wants_measure ? 2 : (uint32_t)survey_cores();

    if (request->nwords > 0)
        return mistake(request, "\"%s\" is one word too many; see tutti-topo --help",
                       request->words[0]);
    if (request->nranks > 1)
        return mistake(request, "--ranks: %zu numbers; give one", request->nranks);
    if (request->nranks == 1)
        nranks = request->ranks[0];
    if (request->wants_measure && nranks > RANKS_MOST)
        return mistake(request, "--ranks %u: at most %d are forked; start more with a launcher",
                       nranks, RANKS_MOST);
    if (!request->wants_measure && (request->transport != NULL || request->wants_quick))
        return mistake(request, "%s is about measuring; add --measure",
                       request->transport != NULL ? "--transport" : "--quick");
    return request->wants_measure ? measure(request, nranks) : describe(request, nranks);
}

int main(int argc, char **argv)
{
    static const struct command command = {
        .name = "tutti-topo",
        .options = "ranks output measure transport quick",
        .help = help,
        .run = run,
    };

    return command_run(&command, argc - 1, argv + 1);
}
