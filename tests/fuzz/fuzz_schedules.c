/* SPDX-License-Identifier: Apache-2.0
 * Any bytes are a file of schedules (Tutti's text, MSCCL's XML, MSCCL++'s JSON), and the data that
 * rank 0 shares. An accepted file can be written, and reading that gives the same text again. */
#include "fuzz/fuzz.h"

#include "comm/schedules.h"
#include "describe/ensemble.h"
#include "import/load.h"
#include "schedule/load.h"

static void try_file(const char *text, size_t size)
{
    struct tutti_ensemble ensemble, again;
    char *written, *rewritten;

    if (tutti_import_prove("fuzz", text, size, &ensemble) != TUTTI_OK)
        return;
    fuzz_require(tutti_describe_ensemble(&ensemble, &written) == TUTTI_OK, "it can be written");
    fuzz_require(tutti_ensemble_load("written", written, strlen(written), &again) == TUTTI_OK,
                 "what was written can be read");
    fuzz_require(tutti_describe_ensemble(&again, &rewritten) == TUTTI_OK, "and written again");
    fuzz_require(strcmp(written, rewritten) == 0, "both texts are the same");
    free(written);
    free(rewritten);
    tutti_ensemble_fini(&ensemble);
    tutti_ensemble_fini(&again);
}

static void try_shared(const uint8_t *bytes, size_t size)
{
    struct tutti_share share = {.failure = 0};
    struct tutti_schedules *schedules;

    if (size > 0 &&
        tutti_share_offer(&share, TUTTI_SHARE_SCHEDULES, bytes, size) == TUTTI_OK &&
        tutti_schedules_take(&share, 4, 1, &schedules) == TUTTI_OK)
        tutti_schedules_destroy(schedules);
    tutti_share_fini(&share);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char *text = fuzz_text(bytes, size);

    try_file(text, size);
    try_shared(bytes, size);
    free(text);
    return 0;
}
