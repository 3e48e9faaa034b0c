/* SPDX-License-Identifier: Apache-2.0
 * Loading schedules. */
#include "schedule/import/load.h"

#include "base/result.h"
#include "schedule/check/check.h"
#include "schedule/import/import.h"

#include <stdio.h>
#include <string.h>

int tutti_ensemble_import(const char *name, const char *text, size_t size_bytes,
                          struct tutti_ensemble *ret_ensemble)
{
    size_t mark = size_bytes >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    size_t blank = strspn(text + mark, " \t\r\n");

    if (strlen(text) != size_bytes)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: byte %zu is zero; this is no schedule", name,
                          strlen(text));
    if (text[mark + blank] == '<')
        return tutti_import_xml(name, text, size_bytes, ret_ensemble);
    if (text[mark + blank] == '{')
        return tutti_import_json(name, text + mark, size_bytes - mark, ret_ensemble);
    return tutti_ensemble_read(name, text + mark, ret_ensemble);
}

static int prove(const char *name, const struct tutti_ensemble *ensemble)
{
    struct tutti_check_report report;
    char step[64] = "";
    int rc = tutti_schedule_check((const struct tutti_schedule *const *)ensemble->schedules,
                                  ensemble->nranks, &report);

    if (rc != TUTTI_ERR_ARGUMENT)
        return rc;
    if (report.step != UINT32_MAX)
        snprintf(
            step, sizeof(step), ", step %u (%s)", report.step,
            tutti_step_name(
                (enum tutti_step_kind)ensemble->schedules[report.rank]->steps[report.step].kind));
    return tutti_fail(
        TUTTI_ERR_ARGUMENT, "%s: not a right %s: rank %u%s: %s", name,
        tutti_collective_name((enum tutti_collective)ensemble->schedules[0]->collective),
        report.rank, step, report.what);
}

/* True if any rank sums sums, or sums without a gather_reduce of all ranks. */
static bool has_stages(const struct tutti_ensemble *ensemble)
{
    for (uint32_t rank = 0; rank < ensemble->nranks; rank++) {
        const struct tutti_schedule *schedule = ensemble->schedules[rank];

        for (uint32_t i = 0; i < schedule->nsteps; i++)
            if (schedule->steps[i].among_count > 0 || schedule->steps[i].kind == TUTTI_STEP_REDUCE)
                return true;
    }
    return false;
}

int tutti_ensemble_load(const char *name, const char *text, size_t size_bytes,
                        struct tutti_ensemble *ret_ensemble)
{
    struct tutti_ensemble ensemble;
    bool sums_in_stages;
    int rc;

    TUTTI_TRY(tutti_ensemble_import(name, text, size_bytes, &ensemble));
    rc = prove(name, &ensemble);
    if (rc != TUTTI_OK) {
        tutti_ensemble_fini(&ensemble);
        return rc;
    }
    sums_in_stages = has_stages(&ensemble);
    for (uint32_t rank = 0; rank < ensemble.nranks; rank++)
        ensemble.schedules[rank]->sums_in_stages = sums_in_stages;
    *ret_ensemble = ensemble;
    return TUTTI_OK;
}
