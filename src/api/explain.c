/* SPDX-License-Identifier: Apache-2.0
 * tuttiCommExplain reports the algorithm and the transport of a call, and which rule or setting
 * chose them. It asks the tuner as a call does, but runs nothing. */
#include "api/api.h"
#include "gpu/comm_gpu.h"

#include "transport/shm/memory.h"
#include "tuner/explain.h"

#include <stdio.h>
#include <string.h>

static const char *const function = "tuttiCommExplain";

enum { MOST_PARTS = 128 }; /* the most allocations that a process lends */

/* Parses the name of a collective. A "v" after the name selects the form with a count per rank. */
static int parse_name(const char *name, enum tutti_collective *ret_collective, bool *ret_is_vector)
{
    size_t length = name == NULL ? 0 : strlen(name);
    char list[TUTTI_COLLECTIVE_LIST_BYTES];

    *ret_is_vector = false;
    *ret_collective = tutti_collective_find(name == NULL ? "" : name, length);
    if (*ret_collective == TUTTI_COLLECTIVE_COUNT && length > 0 && name[length - 1] == 'v') {
        *ret_is_vector = true;
        *ret_collective = tutti_collective_find(name, length - 1);
        if (*ret_collective != TUTTI_COLLECTIVE_COUNT &&
            tutti_collective_call(*ret_collective, true) == TUTTI_NO_CALL)
            *ret_collective = TUTTI_COLLECTIVE_COUNT;
    }
    if (*ret_collective != TUTTI_COLLECTIVE_COUNT)
        return TUTTI_OK;
    return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: \"%.40s\" is no collective; they are %s", function,
                      name == NULL ? "" : name, tutti_collective_list(TUTTI_LIST_VECTORS, list));
}

static int check_root(const struct tutti_comm *comm, enum tutti_collective collective, int root)
{
    if (!tutti_collective_has_root(collective) || (root >= 0 && root < comm->nranks))
        return TUTTI_OK;
    return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: root %d is not a rank; rank %d's communicator has "
                      "ranks 0 to %d", function, root, comm->rank, comm->nranks - 1);
}

/* True if `buffer` is in memory that this process lends to other ranks. */
static bool is_lent_memory(const void *buffer)
{
    struct tutti_memory_part parts[MOST_PARTS];
    size_t count = tutti_memory_list(parts, MOST_PARTS);
    uint64_t at = (uint64_t)(uintptr_t)buffer;

    for (size_t i = 0; i < count; i++)
        if (at >= parts[i].begin && at - parts[i].begin < parts[i].size_bytes)
            return true;
    return false;
}

/* ---- on host memory -------------------------------------------------------------------------- */

/* Returns a copy of the view without its memo of prices, because only the thread that executes
 * calls may use the memo. */
static struct tutti_tuner_view view_of(const struct tutti_comm *comm)
{
    struct tutti_tuner_view view = comm->view;

    view.memo = NULL;
    return view;
}

static int explain_host(const struct tutti_comm *comm, const struct tutti_call *call,
                        tuttiExplanation_t *explanation)
{
    struct tutti_tuner_query query = tutti_cache_query(comm, call);
    struct tutti_tuner_view view = view_of(comm);
    const struct tutti_plan *plan;
    struct tutti_choice choice, lent;
    enum tutti_authority by;

    snprintf(explanation->transport, sizeof explanation->transport, "%s",
             tutti_choices_transports(comm));
    plan = tutti_schedules_find(comm->schedules, &view, &query);
    if (plan != NULL) {
        snprintf(explanation->algorithm, sizeof explanation->algorithm, "file");
        snprintf(explanation->reason, sizeof explanation->reason, "by TUTTI_SCHEDULE");
        return TUTTI_OK;
    }
    TUTTI_TRY(tutti_tuner_choose(&view, &query, &choice, &by));
    /* An algorithm that the user has named is used for lent memory, too. */
    if (comm->engine.lend != NULL && by >= TUTTI_BY_TABLE && is_lent_memory(call->input) &&
        tutti_cache_lent_choice(comm, call, &query, &choice, &lent)) {
        choice = lent;
        by = TUTTI_BY_HOST;
    }
    tutti_choice_format(&choice, explanation->algorithm, sizeof explanation->algorithm);
    tutti_authority_format(&view, &query, by, explanation->reason, sizeof explanation->reason);
    return TUTTI_OK;
}

/* ---- on device memory ------------------------------------------------------------------------ */

static int explain_device(struct tutti_comm *comm, const struct tutti_call *call,
                          tuttiExplanation_t *explanation)
{
    struct tutti_tuner_view view = comm->gpu->view;
    struct tutti_choice choice;

    view.memo = NULL; /* as in view_of */
    if (!comm->gpu->has_domain) {
        TUTTI_TRY(explain_host(comm, call, explanation));
        snprintf(explanation->transport, sizeof explanation->transport, "host+%s",
                 tutti_choices_transports(comm));
        return TUTTI_OK;
    }
    snprintf(explanation->transport, sizeof explanation->transport, "gpu");
    TUTTI_TRY(tutti_gpu_choose(comm, &view, call, &choice, explanation->reason,
                               sizeof explanation->reason));
    tutti_choice_format(&choice, explanation->algorithm, sizeof explanation->algorithm);
    return TUTTI_OK;
}

/* ---- the function ---------------------------------------------------------------------------- */

/* Explains a call that no algorithm runs. */
static void explain_nothing(const struct tutti_comm *comm, tuttiExplanation_t *explanation)
{
    bool is_alone = comm->nranks == 1;

    snprintf(explanation->algorithm, sizeof explanation->algorithm, "%s",
             is_alone ? "copy" : "none");
    snprintf(explanation->transport, sizeof explanation->transport, "%s",
             is_alone ? "self" : tutti_choices_transports(comm));
    snprintf(explanation->reason, sizeof explanation->reason, "%s",
             is_alone ? "there is one rank" : "the count is 0");
}

static int explain(struct tutti_comm *comm, const char *name, const void *buffer,
                   size_t count, tuttiDataType_t type, int op, int root,
                   tuttiExplanation_t *explanation)
{
    struct tutti_call call = {.input = buffer, .count = count};
    bool is_vector;

    TUTTI_TRY(parse_name(name, &call.collective, &is_vector));
    if ((unsigned)type >= tuttiNumTypes)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: datatype %d is unknown; use a tuttiDataType_t",
                          function, (int)type);
    TUTTI_TRY(check_root(comm, call.collective, root));
    if (tutti_collective_reduces(call.collective))
        TUTTI_TRY(tutti_api_resolve_redop(comm, function, op, type, &call));
    /* The counts per rank of a v-form are not given here, so `count` is taken as their mean. */
    call.kind = is_vector ? TUTTI_CALL_VECTOR : TUTTI_CALL_COLLECTIVE;
    call.type = (enum tutti_type)type;
    call.root = tutti_collective_has_root(call.collective) ? root : 0;
    if (comm->nranks == 1 || (count == 0 && tutti_collective_has_data(call.collective))) {
        explain_nothing(comm, explanation);
        return TUTTI_OK;
    }
    if (comm->gpu != NULL && buffer != NULL && tutti_gpu_is_device_memory(comm, buffer))
        return explain_device(comm, &call, explanation);
    return explain_host(comm, &call, explanation);
}

static int explain_into(struct tutti_comm *comm, const char *collective, const void *buffer,
                        size_t count, tuttiDataType_t type, int op, int root,
                        tuttiExplanation_t *ret_explanation)
{
    tuttiExplanation_t explanation = {.size = sizeof explanation};

    if (ret_explanation == NULL)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: explanation is NULL", function);
    TUTTI_TRY(tutti_public_check_size(function, "explanation", "tuttiExplanation_t",
                                      ret_explanation->size));
    TUTTI_TRY(explain(comm, collective, buffer, count, type, op, root, &explanation));
    tutti_public_copy(&explanation, sizeof explanation, ret_explanation);
    return TUTTI_OK;
}

tuttiResult_t tuttiCommExplain(tuttiComm_t handle, const char *collective, const void *buffer,
                               size_t count, tuttiDataType_t datatype, tuttiRedOp_t op, int root,
                               tuttiExplanation_t *explanation)
{
    struct tutti_comm *comm;
    int rc = tutti_handle_enter_ready(handle, function, &comm);

    if (rc == TUTTI_OK) {
        rc = explain_into(comm, collective, buffer, count, datatype, (int)op, root, explanation);
        tutti_comm_leave(comm);
    }
    return tutti_public_result(rc);
}
