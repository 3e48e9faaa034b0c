/* SPDX-License-Identifier: Apache-2.0
 * Splits a communicator. The ranks of a child meet over the parent, by a bootstrap of their own.
 * Its all-gather runs over the whole parent, and each rank keeps the records of its own group. */
#include "base/clock.h"
#include "base/result.h"
#include "queue/group.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

/* What a rank of the parent passed to the split; its record in the first all-gather. */
struct choice {
    int32_t color, key;
};

/* The bootstrap of a child, over its parent. */
struct over_parent {
    struct tutti_bootstrap boot;
    struct tutti_comm *parent;
    enum tutti_caller caller;   /* the public function that splits the parent */
    struct choice *choices;     /* [parent's nranks] */
    int *members;               /* [child's nranks]: their ranks in the parent */
    struct tutti_batch *batch;  /* all-gather of the round under way; NULL: none */
    uint8_t *gathered;          /* records of all ranks of the parent */
};

/* All-gathers `size` bytes over the whole parent. Call it again with the same arguments on
 * TUTTI_AGAIN. */
static int parent_allgather(struct over_parent *over, const void *mine, size_t size, void *all)
{
    struct tutti_call call;

    if (over->batch == NULL) {
        tutti_call_of_bytes(TUTTI_ALLGATHER, (uint8_t)over->caller, mine, all, size, &call);
        TUTTI_TRY(tutti_batch_begin(over->parent, &call, &over->batch));
    }
    return tutti_batch_continue(&over->batch);
}

static int allgather(struct tutti_bootstrap *boot, const void *mine, size_t size, void *all)
{
    struct over_parent *over = (struct over_parent *)boot;

    if (over->gathered == NULL) {
        over->gathered = malloc((size_t)over->parent->nranks * size);
        if (over->gathered == NULL)
            return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to split a communicator");
    }
    TUTTI_TRY(parent_allgather(over, mine, size, over->gathered));
    for (int rank = 0; rank < boot->nranks; rank++)
        memcpy((uint8_t *)all + (size_t)rank * size,
               over->gathered + (size_t)over->members[rank] * size, size);
    free(over->gathered);
    over->gathered = NULL;
    return TUTTI_OK;
}

static int wait_fd(struct tutti_bootstrap *boot)
{
    (void)boot;
    return -1;
}

static void destroy(struct tutti_bootstrap *boot, const char *reason)
{
    struct over_parent *over = (struct over_parent *)boot;

    (void)reason; /* the other ranks learn it from the failure of the parent */
    if (over == NULL)
        return;
    tutti_batch_release(over->batch);
    free(over->gathered);
    free(over->choices);
    free(over->members);
    free(over);
}

static const struct tutti_bootstrap_ops over_parent_ops = {
    .name = "parent", .allgather = allgather, .wait_fd = wait_fd, .destroy = destroy};

/* True if rank `a` of the parent precedes rank `b` in the child. */
static bool comes_before(const struct choice *choices, int a, int b)
{
    return choices[a].key < choices[b].key || (choices[a].key == choices[b].key && a < b);
}

/* Finds the members of this rank's group, in their order, and its own rank among them. */
static void find_members(struct over_parent *over)
{
    int me = over->parent->rank, count = 0;

    for (int rank = 0; rank < over->parent->nranks; rank++) {
        int at = count;

        if (over->choices[rank].color != over->choices[me].color)
            continue;
        for (; at > 0 && comes_before(over->choices, rank, over->members[at - 1]); at--)
            over->members[at] = over->members[at - 1];
        over->members[at] = rank;
        count++;
    }
    over->boot.nranks = count;
    for (int rank = 0; rank < count; rank++)
        if (over->members[rank] == me)
            over->boot.rank = rank;
}

/* Each child has a secret of its own, derived from the parent's secret, the number of the split and
 * the color. */
static void derive_secret(struct over_parent *over, const uint8_t parent_secret[TUTTI_SECRET_BYTES],
                          uint64_t split)
{
    uint8_t secret[TUTTI_SECRET_BYTES];

    tutti_secret_derive(parent_secret, "split", split, secret);
    tutti_secret_derive(secret, "color", (uint64_t)over->choices[over->parent->rank].color,
                        over->boot.secret);
    sodium_memzero(secret, sizeof secret);
}

/* ---- the job ------------------------------------------------------------------------------- */

/* The all-gathers of the parent in which a child forms. A rank without a color must take part in
 * them too, although it gets no child. */
static const size_t rounds[] = {TUTTI_FABRIC_RECORD_BYTES, TUTTI_COMM_VERDICT_BYTES};
enum { ROUNDS = sizeof rounds / sizeof *rounds };

/* A split under way, on one rank. */
struct split {
    struct tutti_job job;
    struct tutti_settings settings;
    struct over_parent *over;  /* NULL once the child has taken it */
    struct tutti_comm *comm;   /* the child that is being formed; NULL: not begun, or no child */
    tuttiComm_t *newcomm;      /* set when the job ends */
    struct choice mine;
    bool is_chosen;            /* the choices of all ranks are known */
    size_t rounds_sat_out;     /* rounds done by a rank without a color */
    uint8_t *nothing;          /* [nranks + 1] records: an empty one to send, then those received */
};

static int sit_out(struct split *split)
{
    struct over_parent *over = split->over;
    size_t nranks = (size_t)over->parent->nranks;

    if (split->nothing == NULL) {
        split->nothing = calloc(nranks + 1, TUTTI_FABRIC_RECORD_BYTES);
        if (split->nothing == NULL)
            return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to split %zu ranks", nranks);
    }
    for (; split->rounds_sat_out < ROUNDS; split->rounds_sat_out++)
        TUTTI_TRY(parent_allgather(over, split->nothing, rounds[split->rounds_sat_out],
                                   split->nothing + TUTTI_FABRIC_RECORD_BYTES));
    return TUTTI_OK;
}

static int progress(struct tutti_job *job)
{
    struct split *split = (struct split *)job;
    struct over_parent *over = split->over;

    if (!split->is_chosen) {
        TUTTI_TRY(parent_allgather(over, &split->mine, sizeof split->mine, over->choices));
        split->is_chosen = true;
        find_members(over);
        derive_secret(over, over->parent->secret, ++over->parent->splits);
    }
    if (split->mine.color == TUTTI_SPLIT_NOCOLOR)
        return sit_out(split);
    if (split->comm == NULL) {
        split->over = NULL;
        TUTTI_TRY(tutti_comm_create(&over->boot, &split->settings, &split->comm));
    }
    return tutti_comm_form(split->comm);
}

static void idle(struct tutti_job *job)
{
    struct split *split = (struct split *)job;

    if (split->over != NULL && split->over->batch != NULL)
        tutti_batch_idle(split->over->batch);
    else if (split->comm != NULL)
        tutti_comm_form_idle(split->comm);
}

static int close_split(struct tutti_job *job, int rc)
{
    struct split *split = (struct split *)job;
    tuttiComm_t handle = NULL;

    if (rc == TUTTI_OK && split->comm != NULL) {
        handle = tutti_handle_create(split->comm);
        if (handle == NULL)
            rc = tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a communicator's handle");
    }
    if (rc == TUTTI_OK)
        *split->newcomm = handle;
    else
        tutti_comm_free(split->comm);
    if (split->over != NULL)
        destroy(&split->over->boot, NULL);
    free(split->nothing);
    free(split);
    return rc;
}

static int open_over_parent(struct tutti_comm *parent, enum tutti_caller caller,
                            uint64_t deadline_ns, struct over_parent **ret_over)
{
    struct over_parent *over = calloc(1, sizeof *over);

    if (over == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to split a communicator");
    over->boot.ops = &over_parent_ops;
    over->boot.deadline_ns = deadline_ns;
    over->parent = parent;
    over->caller = caller;
    over->choices = malloc((size_t)parent->nranks * sizeof *over->choices);
    over->members = malloc((size_t)parent->nranks * sizeof *over->members);
    if (over->choices == NULL || over->members == NULL) {
        destroy(&over->boot, NULL);
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to split %d ranks", parent->nranks);
    }
    *ret_over = over;
    return TUTTI_OK;
}

static int split_comm(struct tutti_comm *parent, int color, int key, enum tutti_caller caller,
                      const tuttiConfig_t *config, tuttiComm_t *newcomm)
{
    const char *function = tutti_caller_name((uint8_t)caller);
    struct tutti_settings settings;
    struct split *split;

    if (newcomm == NULL)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: newcomm is NULL on rank %d", function,
                          parent->rank);
    if (color < 0 && color != TUTTI_SPLIT_NOCOLOR)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: color %d on rank %d; it must be at least 0, or "
                          "TUTTI_SPLIT_NOCOLOR", function, color, parent->rank);
    TUTTI_TRY(tutti_settings_read(config, parent, &settings));
    split = calloc(1, sizeof *split);
    if (split == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to split a communicator");
    *split = (struct split){
        .job = {.parent = parent, .progress = progress, .idle = idle, .close = close_split},
        .settings = settings, .newcomm = newcomm, .mine = {.color = color, .key = key}};
    /* The split is complete when its call, or its group, returns. */
    split->settings.is_blocking = true;
    if (open_over_parent(parent, caller, tutti_deadline_ns(settings.init_timeout_ms),
                         &split->over) != TUTTI_OK) {
        free(split);
        return TUTTI_ERR_SYSTEM;
    }
    return tutti_group_job(&split->job);
}

int tutti_comm_split(tuttiComm_t handle, int color, int key, enum tutti_caller caller,
                     const tuttiConfig_t *config, tuttiComm_t *ret_child)
{
    struct tutti_comm *parent;
    int rc;

    TUTTI_TRY(tutti_handle_enter_ready(handle, tutti_caller_name((uint8_t)caller), &parent));
    rc = split_comm(parent, color, key, caller, config, ret_child);
    tutti_comm_leave(parent);
    return rc;
}

tuttiResult_t tuttiCommSplit(tuttiComm_t handle, int color, int key, tuttiComm_t *newcomm,
                             const tuttiConfig_t *config)
{
    int rc = tutti_comm_split(handle, color, key, TUTTI_FOR_SPLIT, config, newcomm);

    return tutti_public_result(tutti_group_note(rc));
}
