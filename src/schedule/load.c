/* SPDX-License-Identifier: Apache-2.0
 * Finds the form of a schedule file, reads the file and proves its schedules.
 */
#include "schedule/load.h"

#include "base/result.h"
#include "schedule/check/check.h"

#include <stdio.h>
#include <string.h>

int tutti_schedule_form(const char *name, const char *text, size_t size_bytes,
                        enum tutti_schedule_form *ret_form, size_t *ret_begin)
{
    static const char byte_order_mark[] = "\xef\xbb\xbf"; /* of UTF-8 */
    size_t mark_bytes = sizeof(byte_order_mark) - 1;
    bool has_mark = size_bytes >= mark_bytes && memcmp(text, byte_order_mark, mark_bytes) == 0;
    size_t begin = has_mark ? mark_bytes : 0;
    char first = text[begin + strspn(text + begin, " \t\r\n")];

    if (strlen(text) != size_bytes)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: byte %zu is zero; this is no schedule", name,
                          strlen(text));
    *ret_form = first == '<'   ? TUTTI_SCHEDULE_XML
                : first == '{' ? TUTTI_SCHEDULE_JSON
                               : TUTTI_SCHEDULE_OWN;
    *ret_begin = begin;
    return TUTTI_OK;
}

static int prove(const char *name, const struct tutti_ensemble *ensemble)
{
    struct tutti_check_report report;
    char step[64] = "";
    int rc = tutti_check_schedule((const struct tutti_schedule *const *)ensemble->schedules,
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

/* True if any rank adds up sums, or forms a sum in another way than with one gather_reduce of all
 * ranks. */
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

int tutti_ensemble_prove(const char *name, struct tutti_ensemble *ensemble)
{
    bool sums_in_stages;

    TUTTI_TRY(prove(name, ensemble));
    sums_in_stages = has_stages(ensemble);
    for (uint32_t rank = 0; rank < ensemble->nranks; rank++)
        ensemble->schedules[rank]->sums_in_stages = sums_in_stages;
    return TUTTI_OK;
}

int tutti_ensemble_load(const char *name, const char *text, size_t size_bytes,
                        struct tutti_ensemble *ret_ensemble)
{
    enum tutti_schedule_form form;
    struct tutti_ensemble ensemble;
    size_t begin;
    int rc;

    TUTTI_TRY(tutti_schedule_form(name, text, size_bytes, &form, &begin));
    if (form != TUTTI_SCHEDULE_OWN)
        return tutti_fail(TUTTI_ERR_ARGUMENT,
                          "%s is %s, and calls run schedules in Tutti's own form; "
                          "translate it with `tutti-sched import %s -o FILE` and use FILE",
                          name, form == TUTTI_SCHEDULE_XML ? "XML" : "JSON", name);
    TUTTI_TRY(tutti_ensemble_read(name, text + begin, &ensemble));
    rc = tutti_ensemble_prove(name, &ensemble);
    if (rc != TUTTI_OK) {
        tutti_ensemble_fini(&ensemble);
        return rc;
    }
    *ret_ensemble = ensemble;
    return TUTTI_OK;
}
