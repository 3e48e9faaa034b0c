/* SPDX-License-Identifier: Apache-2.0
 * Loads schedules from a text of any known form: detects the form and calls its reader. */
#include "import/load.h"

#include "base/result.h"
#include "import/import.h"
#include "schedule/load.h"

int tutti_import_read(const char *name, const char *text, size_t size_bytes,
                      struct tutti_ensemble *ret_ensemble)
{
    enum tutti_schedule_form form;
    size_t begin;

    TUTTI_TRY(tutti_schedule_form(name, text, size_bytes, &form, &begin));
    switch (form) {
    case TUTTI_SCHEDULE_XML: return tutti_import_xml(name, text, size_bytes, ret_ensemble);
    case TUTTI_SCHEDULE_JSON:
        return tutti_import_json(name, text + begin, size_bytes - begin, ret_ensemble);
    default: return tutti_ensemble_read(name, text + begin, ret_ensemble);
    }
}

int tutti_import_prove(const char *name, const char *text, size_t size_bytes,
                       struct tutti_ensemble *ret_ensemble)
{
    struct tutti_ensemble ensemble;
    int rc;

    TUTTI_TRY(tutti_import_read(name, text, size_bytes, &ensemble));
    rc = tutti_ensemble_prove(name, &ensemble);
    if (rc != TUTTI_OK) {
        tutti_ensemble_fini(&ensemble);
        return rc;
    }
    *ret_ensemble = ensemble;
    return TUTTI_OK;
}
