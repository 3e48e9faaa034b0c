/* SPDX-License-Identifier: Apache-2.0
 * tutti-sched import: reads a schedule in another format, proves that it is correct, and writes it
 * as a schedule file. */
#include "import/load.h"

#include "base/result.h"
#include "common/file.h"
#include "common/units.h"
#include "describe/ensemble.h"
#include "sched/commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: tutti-sched import FILE [-o FILE]\n"
    "\n"
    "Reads a schedule in MSCCL's XML, as an MSCCL++ JSON plan, or in Tutti's own form, proves\n"
    "that it keeps the promise of its collective, and writes it in Tutti's own form.\n"
    "docs/schedule-files.md says what can be expressed and how to run it.\n"
    "\n"
    "  -o, --output FILE  the schedule file (default: standard output)\n";

/* Writes the schedules to the file of --output, or to stdout. Returns the exit status. */
static int write_out(const struct request *request, const struct tutti_ensemble *ensemble)
{
    char count[UNITS_TEXT], *text;
    int rc = tutti_describe_ensemble(ensemble, &text), error = 0;

    if (rc != TUTTI_OK)
        return failure(request, rc);
    if (request->output == NULL)
        fputs(text, stdout);
    else
        error = file_write(request->output, text);
    free(text);
    if (error != 0)
        return write_failure(request, request->output, error);
    if (request->output != NULL)
        printf("%s: %s %s, %s ranks, proved\n", request->output,
               tutti_collective_name((enum tutti_collective)ensemble->schedules[0]->collective),
               ensemble->name, units_count(ensemble->nranks, count));
    return EXIT_SUCCESS;
}

static int run(const struct request *request)
{
    struct tutti_ensemble ensemble;
    char *text;
    int status, rc;

    if (request->nwords != 1)
        return mistake(request, "which file? Give one; see tutti-sched import --help");
    text = file_read(request->words[0]);
    if (text == NULL)
        return mistake(request, "%s: %s", request->words[0], strerror(errno));
    rc = tutti_import_prove(request->words[0], text, strlen(text), &ensemble);
    free(text);
    if (rc != TUTTI_OK)
        return failure(request, rc);
    status = write_out(request, &ensemble);
    tutti_ensemble_fini(&ensemble);
    return status;
}

const struct command sched_import = {
    .name = "tutti-sched import",
    .options = "output",
    .help = help,
    .run = run,
};
