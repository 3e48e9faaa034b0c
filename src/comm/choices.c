/* SPDX-License-Identifier: Apache-2.0
 * The inputs of a communicator's algorithm choices: a policy, and the machine as all ranks see it.
 * The policy is rank 0's, shared while the communicator forms (share.h); after a split it is the
 * parent's. Choices depend on nothing else, so all ranks choose the same. */
#include "gpu/comm_gpu.h"
#include "tuner/assumed.h"

#include <stdlib.h>

/* Copies the rates of the parent's machine. Its places, links and rings are those of other
 * ranks. */
static int copy_rates(struct tutti_comm *comm, const struct tutti_comm *parent)
{
    comm->machine = calloc(1, sizeof *comm->machine);
    if (comm->machine == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a machine");
    *comm->machine = *parent->machine;
    comm->machine->places = (struct tutti_placement){.nranks = 0};
    comm->machine->links = (struct tutti_machine_links){.nlinks = 0};
    comm->machine->ring_rates = NULL;
    return TUTTI_OK;
}

int tutti_choices_read(struct tutti_comm *comm, const struct tutti_comm *parent)
{
    int rc;

    if (parent != NULL) {
        comm->policy = tutti_policy_retain(parent->policy);
        return copy_rates(comm, parent);
    }
    if (comm->rank != 0)
        return TUTTI_OK;
    rc = tutti_policy_read((uint32_t)comm->nranks, &comm->policy);
    if (rc != TUTTI_OK) {
        tutti_share_fail(&comm->share, rc, tutti_message_last());
        return TUTTI_OK;
    }
    if (comm->policy == NULL)
        return TUTTI_OK;
    return tutti_share_offer(&comm->share, TUTTI_SHARE_TUNING, comm->policy->bytes,
                             comm->policy->size);
}

const char *tutti_choices_transports(const struct tutti_comm *comm)
{
    bool shares = tutti_fabric_shares_hosts(comm->fabric);

    if (comm->view.all_store)
        return "threads";
    if (comm->view.is_one_domain)
        return comm->view.all_read ? "cma" : "shm";
    return shares && comm->places.nnodes < (uint32_t)comm->nranks ? "shm+tcp" : "tcp";
}

/* A child keeps the machine that it copied from its parent. Other communicators use the described
 * machine, or else assume one. */
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
    tutti_tuner_assume_machine(tutti_fabric_shares_hosts(comm->fabric),
                               tutti_fabric_cores(comm->fabric), tutti_fabric_mbits(comm->fabric),
                               comm->machine);
    return TUTTI_OK;
}

/* Nodes and cells come from the description of the machine, if it has nodes. Otherwise nodes are
 * hosts, and cells are those of the hosts. A description without nodes counts each rank as a node
 * of its groups, so these groups are kept only if each rank has a host of its own. */
static int learn_places(struct tutti_comm *comm, uint32_t nhosts)
{
    struct tutti_placement *places = &comm->places;
    uint32_t ncells;

    TUTTI_TRY(tutti_fabric_cells(comm->fabric, comm->hosts, comm->cells, &ncells));
    *places = comm->machine->places;
    places->nranks = (uint32_t)comm->nranks;
    if (places->node == NULL) {
        places->node = comm->hosts;
        places->nnodes = nhosts;
        places->cell = ncells > 0 ? comm->cells : NULL;
        places->ncells = ncells;
        if (nhosts < (uint32_t)comm->nranks) {
            places->group = NULL;
            places->ngroups = 0;
        }
    }
    tutti_placement_align(places);
    return TUTTI_OK;
}

static int learn_view(struct tutti_comm *comm)
{
    const char *host = comm->policy ? comm->policy->text[TUTTI_POLICY_HOST] : "";
    uint32_t nhosts = tutti_fabric_hosts(comm->fabric, comm->hosts);

    TUTTI_TRY(learn_machine(comm));
    TUTTI_TRY(learn_places(comm, nhosts));
    comm->view.machine = comm->machine;
    comm->view.places = &comm->places;
    comm->view.policy = comm->policy;
    tutti_fingerprint(host, &comm->view, tutti_choices_transports(comm), comm->fingerprint);
    comm->view.fingerprint = comm->fingerprint;
    return TUTTI_OK;
}

static int look(struct tutti_comm *comm)
{
    struct tutti_domain *domain = tutti_fabric_domain(comm->fabric);
    const char *shared;
    size_t size;

    comm->hosts = calloc((size_t)comm->nranks, sizeof *comm->hosts);
    comm->cells = calloc((size_t)comm->nranks, sizeof *comm->cells);
    if (comm->hosts == NULL || comm->cells == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the hosts of %d ranks", comm->nranks);
    comm->view = (struct tutti_tuner_view){
        .nranks = (uint32_t)comm->nranks,
        .is_one_domain = comm->engine.domain != NULL,
        .all_read = tutti_fabric_all_read(comm->fabric),
        .all_store = tutti_fabric_all_store(comm->fabric),
        .half_bytes = domain ? domain->half_bytes : 0,
        .stage_bytes = TUTTI_STAGE_BYTES,
        .scratch_bytes = TUTTI_SCRATCH_BYTES,
        .memo = &comm->memo,
    };
    shared = tutti_share_bytes(&comm->share, TUTTI_SHARE_TUNING, &size);
    if (shared != NULL && comm->policy == NULL)
        TUTTI_TRY(tutti_policy_unpack(shared, size, &comm->policy));
    return learn_view(comm);
}

int tutti_choices_fill_view(struct tutti_comm *comm)
{
    int rc = look(comm);

    if (rc == TUTTI_OK)
        return TUTTI_OK;
    /* Queries answer from this array if it exists, and it may hold only zeros here. */
    free(comm->hosts);
    comm->hosts = NULL;
    return rc;
}

int tutti_choices_set_policy(struct tutti_comm *comm, struct tutti_policy *policy)
{
    tutti_policy_release(comm->policy);
    comm->policy = policy;
    tutti_cache_forget(comm->cache);
    TUTTI_TRY(learn_view(comm));
    if (comm->gpu != NULL) {
        TUTTI_TRY(tutti_gpu_plan_fill_view(comm));
        tutti_gpu_programs_forget(comm);
    }
    return TUTTI_OK;
}

void tutti_choices_fini(struct tutti_comm *comm)
{
    tutti_policy_release(comm->policy);
    tutti_machine_destroy(comm->machine);
    free(comm->hosts);
    free(comm->cells);
}

size_t tutti_choices_bytes(const struct tutti_comm *comm)
{
    const struct tutti_placement *places = &comm->places;
    size_t bytes = 2 * (size_t)comm->nranks * sizeof *comm->hosts, nranks = (size_t)comm->nranks;

    if (comm->machine != NULL)
        bytes += sizeof *comm->machine +
                 (places->nrings + places->ntrees) * nranks * sizeof(int32_t) +
                 comm->machine->links.nlinks * sizeof(struct tutti_machine_link) +
                 comm->machine->links.npaths * sizeof(struct tutti_machine_path) +
                 comm->machine->links.ncrossings * sizeof(struct tutti_machine_crossing) +
                 comm->machine->links.nkinds * sizeof(struct tutti_machine_parts);
    for (int i = 0; comm->policy != NULL && i < TUTTI_POLICY_RULES; i++)
        bytes += comm->policy->rules[i].capacity * sizeof(struct tutti_rule);
    return bytes + (comm->policy != NULL ? sizeof *comm->policy + comm->policy->size : 0);
}
