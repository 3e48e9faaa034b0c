/* SPDX-License-Identifier: Apache-2.0
 * What a communicator's choices of algorithms depend on: rank 0's policy, handed out while the
 * communicator forms, and the machine as all ranks see it. Nothing else, so all choose alike.
 *
 *   rank 0 reads its environment      a malformed one: the notice says so, an exchange of its own
 *     | notice, with the verdicts     brings the message to all, and all fail alike
 *     v
 *   every rank: any policy at all? -- no --> done
 *     | yes: a broadcast over the fabric, whose size the notice has told
 *     v
 *   every rank reads the same bytes
 *
 * A split needs none of this: the parent's ranks hold one policy already. */
#include "batch.h"
#include "tuner/assumed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int tutti_choices_read(struct tutti_comm *comm, const struct tutti_comm *parent)
{
    if (parent != NULL) {
        comm->policy = tutti_policy_share(parent->policy);
        comm->machine = calloc(1, sizeof *comm->machine);
        if (comm->machine == NULL)
            return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a machine");
        *comm->machine = *parent->machine;
        comm->machine->places = (struct tutti_places){.nranks = 0};
        return TUTTI_OK;
    }
    if (comm->rank != 0)
        return TUTTI_OK;
    comm->tally.notice.result = tutti_policy_read((uint32_t)comm->nranks, &comm->policy);
    if (comm->tally.notice.result != TUTTI_OK)
        snprintf(comm->complaint, sizeof comm->complaint, "%s", tutti_last_message());
    else if (comm->policy != NULL)
        comm->tally.notice.size_bytes = (uint32_t)comm->policy->size;
    return TUTTI_OK;
}

int tutti_choices_complain(struct tutti_comm *comm)
{
    int rc = comm->tally.notice.result;

    _Static_assert(sizeof comm->complaint <= TUTTI_FABRIC_RECORD_BYTES, "complaints fit");
    if (rc == TUTTI_OK)
        return TUTTI_OK;
    TUTTI_TRY(comm->boot->ops->allgather(comm->boot, comm->complaint, sizeof comm->complaint,
                                         comm->gathered));
    /* Whatever the other end says, this is a failure, and one of those that there are. */
    if (rc != TUTTI_ERR_SYSTEM)
        rc = TUTTI_ERR_USAGE;
    comm->gathered[sizeof comm->complaint - 1] = '\0';
    return tutti_fail(rc, "rank 0: %.480s", (const char *)comm->gathered);
}

const char *tutti_choices_transports(const struct tutti_comm *comm)
{
    bool shares = tutti_fabric_shares_hosts(comm->fabric, comm->hosts);

    if (comm->view.all_store)
        return "threads";
    if (comm->view.is_one_domain)
        return comm->view.all_read ? "cma" : "shm";
    return shares && comm->places.nnodes < (uint32_t)comm->nranks ? "shm+tcp" : "tcp";
}

/* Rates and orders as described; of a parent rates alone, for it has other ranks; else assumed. */
static int learn_machine(struct tutti_comm *comm)
{
    const char *text = comm->policy ? comm->policy->text[TUTTI_POLICY_MACHINE] : "";

    if (comm->machine != NULL)
        return TUTTI_OK;
    if (*text != '\0')
        return tutti_machine_parse("TUTTI_MACHINE", text, (uint32_t)comm->nranks, &comm->machine);
    comm->machine = calloc(1, sizeof *comm->machine);
    if (comm->machine == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a machine");
    tutti_machine_assume(tutti_fabric_shares_hosts(comm->fabric, comm->hosts),
                         tutti_fabric_cores(comm->fabric), comm->machine);
    return TUTTI_OK;
}

/* Nodes as described, else the hosts; groups only of nodes as described. */
static void learn_places(struct tutti_comm *comm, uint32_t nhosts)
{
    struct tutti_places *places = &comm->places;

    *places = comm->machine->places;
    places->nranks = (uint32_t)comm->nranks;
    if (places->node != NULL)
        return;
    places->node = comm->hosts;
    places->nnodes = nhosts;
    if (nhosts < (uint32_t)comm->nranks) {
        places->group = NULL;
        places->ngroups = 0;
    }
}

/* With the policy that there is. */
static int look_around(struct tutti_comm *comm)
{
    const char *host = comm->policy ? comm->policy->text[TUTTI_POLICY_HOST] : "";
    uint32_t nhosts = tutti_fabric_hosts(comm->fabric, comm->hosts);

    TUTTI_TRY(learn_machine(comm));
    learn_places(comm, nhosts);
    comm->view.machine = comm->machine;
    comm->view.places = &comm->places;
    comm->view.policy = comm->policy;
    tutti_fingerprint(host, &comm->view, tutti_choices_transports(comm), comm->fingerprint);
    comm->view.fingerprint = comm->fingerprint;
    return TUTTI_OK;
}

int tutti_choices_look(struct tutti_comm *comm)
{
    struct tutti_domain *domain = tutti_fabric_domain(comm->fabric);

    comm->hosts = calloc((size_t)comm->nranks, sizeof *comm->hosts);
    if (comm->hosts == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the hosts of %d ranks", comm->nranks);
    comm->view = (struct tutti_tuner_view){
        .nranks = (uint32_t)comm->nranks,
        .is_one_domain = comm->engine.domain != NULL,
        .all_read = tutti_fabric_all_read(comm->fabric),
        .all_store = tutti_fabric_all_store(comm->fabric),
        .half_bytes = domain ? domain->half_bytes : 0,
        .stage_bytes = TUTTI_STAGE_BYTES,
    };
    return comm->tally.notice.size_bytes == 0 ? look_around(comm) : TUTTI_OK;
}

/* ---- handing out ------------------------------------------------------------------------------ */

/* By what rules there are without a policy or a machine: alike on all ranks. */
static int begin_handout(struct tutti_comm *comm)
{
    uint32_t size = comm->tally.notice.size_bytes;
    struct tutti_call call;

    if (size > TUTTI_POLICY_MOST_BYTES)
        return tutti_fail(TUTTI_ERR_USAGE, "rank 0 announces tuning rules of %u bytes; all ranks "
                          "must run one version of the library", size);
    comm->handed_out = malloc(size);
    if (comm->handed_out == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %u bytes of tuning rules", size);
    if (comm->rank == 0)
        memcpy(comm->handed_out, comm->policy->bytes, size);
    tutti_call_of_bytes(TUTTI_BROADCAST, comm->handed_out, comm->handed_out, size, &call);
    TUTTI_TRY(tutti_batch_create(comm, &comm->handout));
    TUTTI_TRY(tutti_batch_add(comm->handout, &call));
    tutti_batch_issue(comm->handout);
    return TUTTI_OK;
}

int tutti_choices_hand_out(struct tutti_comm *comm)
{
    struct tutti_policy *policy;
    bool moved = false;

    if (comm->tally.notice.size_bytes == 0)
        return TUTTI_OK;
    if (comm->handout == NULL)
        TUTTI_TRY(begin_handout(comm));
    TUTTI_TRY(tutti_batch_progress(comm->handout, &moved));
    tutti_batch_release(comm->handout);
    comm->handout = NULL;
    TUTTI_TRY(tutti_policy_unpack(comm->handed_out, comm->tally.notice.size_bytes, &policy));
    free(comm->handed_out);
    comm->handed_out = NULL;
    return tutti_choices_use(comm, policy);
}

int tutti_choices_use(struct tutti_comm *comm, struct tutti_policy *policy)
{
    tutti_policy_release(comm->policy);
    comm->policy = policy;
    tutti_cache_forget(comm->cache);
    return look_around(comm);
}

void tutti_choices_fini(struct tutti_comm *comm)
{
    /* Given up on the way: nobody may touch what was to be handed out any more. */
    if (comm->handout != NULL && !comm->handout->is_done)
        tutti_run_cancel(&comm->engine);
    tutti_batch_release(comm->handout);
    free(comm->handed_out);
    tutti_policy_release(comm->policy);
    tutti_machine_destroy(comm->machine);
    free(comm->hosts);
}
