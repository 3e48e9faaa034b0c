/* SPDX-License-Identifier: Apache-2.0
 * Makes the machine of the GPUs of a communicator (plan.h), and the tuner's view of it. */
#include "gpu/comm_gpu.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/param.h"
#include "executor/cuda/program.h"
#include "topology/detect/detect.h"
#include "topology/graph/ports.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- this host ------------------------------------------------------------------------------- */

/* The devices of this host, which are detected once for all communicators of the process. */
static struct {
    pthread_mutex_t lock;
    struct tutti_inventory *inventory; /* NULL: not detected yet */
} host = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Describes this rank's host for the other ranks. */
static int describe(struct tutti_comm *comm, struct tutti_gpu_plan *plan)
{
    const char *file = tutti_param_text(TUTTI_PARAM_TOPO_FILE);
    const struct tutti_detect_options options = {.given = file[0] != '\0' ? file : NULL};
    int64_t gpu;
    int rc;

    TUTTI_TRY(tutti_cuda_bus_id(comm->gpu->gpu, &gpu));
    pthread_mutex_lock(&host.lock);
    rc = host.inventory != NULL ? TUTTI_OK : tutti_detect(&options, &host.inventory);
    if (rc == TUTTI_OK && tutti_inventory_find_pci(host.inventory, gpu) == TUTTI_NO_DEVICE) {
        char name[32];

        tutti_busid_write(gpu, name, sizeof name);
        rc = tutti_note(TUTTI_ERR_ARGUMENT, "its GPU %s is not in the description of its host",
                        name);
    }
    if (rc == TUTTI_OK)
        rc = tutti_cluster_describe(host.inventory, 1 + (uint64_t)comm->hosts[comm->rank], gpu,
                                    &plan->record, &plan->text);
    /* Data between hosts goes through proxies, even if an NVSwitch joins the hosts. */
    plan->record.fabric = 0;
    pthread_mutex_unlock(&host.lock);
    return rc;
}

/* Describes the host. If the user's description is wrong, that is an error of this rank. A host
 * that cannot be detected is none. */
static int try_to_describe(struct tutti_comm *comm, struct tutti_gpu_plan *plan)
{
    char why[TUTTI_MESSAGE_BYTES / 2];

    if (describe(comm, plan) == TUTTI_OK)
        return TUTTI_OK;
    snprintf(why, sizeof why, "%s", tutti_message_last());
    snprintf(plan->why_not, sizeof plan->why_not, "%.150s", why);
    if (tutti_param_text(TUTTI_PARAM_TOPO_FILE)[0] == '\0')
        return TUTTI_OK;
    return tutti_fail(TUTTI_ERR_USAGE, "TUTTI_TOPO_FILE on rank %d: %s; unset it, or give a file "
                      "that describes this host", comm->rank, why);
}

/* ---- exchanging ------------------------------------------------------------------------------ */

enum phase { DESCRIBE, GATHER, TAKE_RECORDS, SEND_TEXT, TAKE_TEXT, COMPUTE, DONE };

/* A record of a rank that could not describe its host. */
static bool is_missing(const struct tutti_cluster_record *record)
{
    return record->size_bytes == 0;
}

static int gather_records(struct tutti_comm *comm, struct tutti_gpu_plan *plan)
{
    struct tutti_call call;

    plan->records = calloc((size_t)comm->nranks, sizeof *plan->records);
    if (plan->records == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the GPUs of %d ranks", comm->nranks);
    tutti_call_of_bytes(TUTTI_ALLGATHER, TUTTI_FOR_FORMING, &plan->record, plan->records,
                        sizeof plan->record, &call);
    return tutti_batch_begin(comm, &call, &plan->batch);
}

/* Opens the cluster. Without a description of each host there is none. */
static int take_records(struct tutti_comm *comm, struct tutti_gpu_plan *plan)
{
    for (int rank = 0; rank < comm->nranks; rank++)
        if (is_missing(&plan->records[rank])) {
            if (comm->rank == 0)
                tutti_log(TUTTI_LOG_INFO, "the links between GPUs are not known: rank %d: %s", rank,
                          rank == 0 ? plan->why_not : "its log says why");
            plan->phase = DONE;
            return TUTTI_OK;
        }
    TUTTI_TRY(tutti_cluster_open(plan->records, (uint32_t)comm->nranks, &plan->cluster));
    /* If there is one text, all ranks have it. */
    if (plan->cluster->ntexts > 1)
        return TUTTI_OK;
    plan->phase = COMPUTE;
    return tutti_cluster_put(plan->cluster, 0, plan->text, plan->record.size_bytes);
}

static int send_text(struct tutti_comm *comm, struct tutti_gpu_plan *plan)
{
    const struct tutti_cluster_text *text = &plan->cluster->text[plan->next_text];
    bool is_own = plan->cluster->text_of[comm->rank] == plan->next_text;
    struct tutti_call call;

    plan->received = malloc((size_t)text->size_bytes + 1);
    if (plan->received == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the description of a host");
    if (is_own)
        memcpy(plan->received, plan->text, text->size_bytes);
    tutti_call_of_bytes(TUTTI_BROADCAST, TUTTI_FOR_FORMING, plan->received, plan->received,
                        text->size_bytes, &call);
    call.root = (int)text->owner;
    call.signature.root = (uint16_t)text->owner;
    return tutti_batch_begin(comm, &call, &plan->batch);
}

static int take_text(struct tutti_gpu_plan *plan)
{
    uint32_t size_bytes = plan->cluster->text[plan->next_text].size_bytes;
    int rc = tutti_cluster_put(plan->cluster, plan->next_text, plan->received, size_bytes);

    free(plan->received);
    plan->received = NULL;
    plan->phase = ++plan->next_text < plan->cluster->ntexts ? SEND_TEXT : COMPUTE;
    return rc;
}

/* ---- computing ------------------------------------------------------------------------------- */

/* Logs the machine as tutti-topo search does. */
static void report(const struct tutti_comm *comm, const struct tutti_gpu_plan *plan,
                   uint64_t started_ns)
{
    const struct tutti_cluster_orders *orders = &plan->orders;
    double ms = (double)(tutti_now_ns() - started_ns) / 1e6;

    if (comm->rank != 0)
        return;
    if (plan->machine == NULL)
        tutti_log(TUTTI_LOG_INFO, "GPUs of %u hosts, of %u kind%s, which no NVLinks join: more "
                  "than %d ranks go through the hosts", plan->cluster->nhosts,
                  plan->cluster->nkinds, plan->cluster->nkinds == 1 ? "" : "s",
                  TUTTI_KERNEL_RANKS);
    else
        tutti_log(TUTTI_LOG_INFO, "GPUs of %u host%s: %u rings of %.1f GB/s together, %u trees of "
                  "%.1f GB/s, found in %.1f ms", plan->cluster->nhosts,
                  plan->cluster->nhosts == 1 ? "" : "s", orders->places.nrings,
                  orders->ring_bytes_per_s / 1e9, orders->places.ntrees,
                  orders->tree_bytes_per_s / 1e9, ms);
}

/* So many ranks that they have several domains run no kernels that communicate, so nothing is
 * searched for them. */
static int find_orders(struct tutti_gpu_plan *plan)
{
    TUTTI_TRY(tutti_cluster_build(plan->cluster));
    if (plan->cluster->ndomains > 1 && plan->cluster->nranks > TUTTI_KERNEL_RANKS)
        return TUTTI_OK;
    TUTTI_TRY(tutti_cluster_search(plan->cluster, 0, &plan->orders));
    return tutti_cluster_machine(plan->cluster, &plan->orders, &plan->machine);
}

/* Computes the machine. All ranks have the same input, so all succeed, or all fail. */
static int compute(struct tutti_comm *comm, struct tutti_gpu_plan *plan)
{
    uint64_t started_ns = tutti_now_ns();
    int rc = find_orders(plan);

    if (rc == TUTTI_OK) {
        report(comm, plan, started_ns);
        return TUTTI_OK;
    }
    if (rc == TUTTI_ERR_SYSTEM)
        return rc;
    if (comm->rank == 0)
        tutti_log(TUTTI_LOG_INFO, "the links between GPUs are not used: %s", tutti_message_last());
    tutti_gpu_plan_fini(plan);
    plan->phase = DONE;
    return TUTTI_OK;
}

/* Does one phase, and sets plan->phase to the next one. */
static int do_phase(struct tutti_comm *comm, struct tutti_gpu_plan *plan)
{
    switch ((enum phase)plan->phase++) {
    case DESCRIBE: return try_to_describe(comm, plan);
    case GATHER: return gather_records(comm, plan);
    case TAKE_RECORDS: return take_records(comm, plan);
    case SEND_TEXT: return send_text(comm, plan);
    case TAKE_TEXT: return take_text(plan);
    case COMPUTE: return compute(comm, plan);
    case DONE: break;
    }
    plan->phase = DONE;
    return TUTTI_OK;
}

int tutti_gpu_plan_form(struct tutti_comm *comm)
{
    struct tutti_gpu_plan *plan = &comm->gpu->plan;

    if (comm->nranks == 1)
        plan->phase = DONE;
    while (plan->phase != DONE || plan->batch != NULL) {
        TUTTI_TRY(tutti_batch_continue(&plan->batch));
        if (plan->phase != DONE)
            TUTTI_TRY(do_phase(comm, plan));
    }
    free(plan->records);
    free(plan->text);
    plan->records = NULL;
    plan->text = NULL;
    return TUTTI_OK;
}

uint64_t tutti_gpu_plan_nvlinked(const struct tutti_comm *comm)
{
    const struct tutti_gpu_plan *plan = &comm->gpu->plan;
    const struct tutti_cluster *cluster = plan->cluster;
    const struct tutti_cluster_kind *kind;
    uint64_t nvlinked = 0;
    uint32_t domain, own;

    if (plan->machine == NULL)
        return 0;
    domain = cluster->domain[cluster->host[comm->rank]];
    kind = &cluster->kind[cluster->domains[domain].kind];
    own = tutti_graph_gpu(kind->graph, kind->gpu[cluster->slot[comm->rank]]);
    for (int rank = 0; rank < comm->nranks && rank < TUTTI_KERNEL_RANKS; rank++) {
        uint32_t gpu;

        if (cluster->domain[cluster->host[rank]] != domain)
            continue;
        gpu = tutti_graph_gpu(kind->graph, kind->gpu[cluster->slot[rank]]);
        if (tutti_paths_between(kind->paths, own, gpu)->class == TUTTI_PATH_NVL)
            nvlinked |= UINT64_C(1) << rank;
    }
    return nvlinked;
}

const char *tutti_gpu_plan_port(const struct tutti_comm *comm)
{
    const struct tutti_cluster *cluster = comm->gpu->plan.cluster;
    const struct tutti_cluster_kind *kind;
    struct tutti_ports *ports;
    uint32_t port;

    if (cluster == NULL || cluster->slot[comm->rank] == TUTTI_NO_NODE)
        return NULL;
    kind = &cluster->kind[cluster->domains[cluster->domain[cluster->host[comm->rank]]].kind];
    if (tutti_ports_deal(kind->paths, &ports) != TUTTI_OK)
        return NULL; /* without memory, the rank is called as if it had no port of its own */
    port = ports->of_gpu[kind->gpu[cluster->slot[comm->rank]]];
    tutti_ports_destroy(ports);
    if (port == TUTTI_NO_NODE)
        return NULL;
    return tutti_device_text(kind->graph->inventory, kind->graph->nodes[port].device,
                             TUTTI_PROPERTY_NET_NAME);
}

/* The order of the hosts does not matter. */
void tutti_gpu_plan_name(const struct tutti_gpu_plan *plan,
                         char ret_name[TUTTI_GPU_PLAN_NAME_BYTES])
{
    uint8_t sum[4] = {0};

    snprintf(ret_name, TUTTI_GPU_PLAN_NAME_BYTES, "gpu");
    if (plan->cluster == NULL)
        return;
    for (uint32_t i = 0; i < plan->cluster->ntexts; i++)
        for (size_t k = 0; k < sizeof sum; k++)
            sum[k] ^= plan->cluster->text[i].digest[k];
    snprintf(ret_name, TUTTI_GPU_PLAN_NAME_BYTES, "gpu-%02x%02x%02x%02x", sum[0], sum[1], sum[2],
             sum[3]);
}

void tutti_gpu_plan_fini(struct tutti_gpu_plan *plan)
{
    tutti_batch_release(plan->batch);
    tutti_cluster_destroy(plan->cluster);
    tutti_cluster_orders_fini(&plan->orders);
    tutti_machine_destroy(plan->machine);
    free(plan->records);
    free(plan->text);
    free(plan->received);
    *plan = (struct tutti_gpu_plan){.phase = DESCRIBE};
}

size_t tutti_gpu_plan_bytes(const struct tutti_gpu_plan *plan)
{
    const struct tutti_machine *machine = plan->machine;
    size_t bytes = 0;

    if (plan->cluster != NULL)
        bytes += (size_t)plan->cluster->nranks *
                 (sizeof(struct tutti_cluster_record) +
                  (1 + plan->orders.places.nrings + plan->orders.places.ntrees) * sizeof(uint32_t));
    if (machine != NULL)
        bytes += sizeof *machine + machine->links.nlinks * sizeof *machine->links.links +
                 machine->links.npaths * sizeof *machine->links.paths +
                 machine->links.ncrossings * sizeof *machine->links.crossings;
    return bytes;
}

/* ---- the view -------------------------------------------------------------------------------- */

/* Sets the machine of the view: that of the user (TUTTI_MACHINE), or else the plan's. */
static void set_machine(struct tutti_comm *comm, struct tutti_tuner_view *view)
{
    const struct tutti_machine *machine = comm->gpu->plan.machine;
    const char *described = comm->policy ? comm->policy->text[TUTTI_POLICY_MACHINE] : "";
    double rings;

    view->places = &comm->places;
    view->is_even = view->is_one_domain;
    if (*described != '\0')
        machine = comm->machine;
    else if (machine != NULL)
        view->places = &machine->places;
    if (machine == NULL || tutti_machine_exchange_rates(machine, &view->exchange) != TUTTI_OK)
        return;
    view->machine = machine;
    rings = tutti_machine_rings_rate(machine, 2 * machine->places.nrings);
    /* Prices are not exact to some per cent. */
    view->is_even = view->is_one_domain &&
                    (view->exchange.pairs_bytes_per_s == 0 ||
                     view->exchange.pairs_bytes_per_s >= 0.9 * rings);
}

int tutti_gpu_plan_fill_view(struct tutti_comm *comm)
{
    struct tutti_gpu_comm *gpu_comm = comm->gpu;
    const char *name = comm->policy ? comm->policy->text[TUTTI_POLICY_HOST] : "";
    const struct tutti_cuda_grid *grid;
    char gpus[TUTTI_GPU_PLAN_NAME_BYTES];
    bool reaches_all;

    if (!gpu_comm->has_domain)
        return TUTTI_OK;
    grid = tutti_cuda_grid(gpu_comm->gpu);
    reaches_all = tutti_cuda_reaches_all(gpu_comm->gpu);
    gpu_comm->memo = (struct tutti_memo){.entries = {{0}}};
    gpu_comm->view = (struct tutti_tuner_view){
        .nranks = (uint32_t)comm->nranks,
        .is_one_domain = !tutti_cuda_spans_hosts(gpu_comm->gpu),
        .all_read = reaches_all,
        .all_store = reaches_all,
        .half_bytes = (size_t)(grid->layout.window_bytes / grid->nblocks / 2),
        .stage_bytes = TUTTI_STAGE_BYTES,
        .scratch_bytes = TUTTI_SCRATCH_BYTES,
        .policy = comm->policy,
        .fingerprint = gpu_comm->fingerprint,
        .memo = &gpu_comm->memo,
    };
    set_machine(comm, &gpu_comm->view);
    /* Tables that were measured on CPUs have other names. */
    tutti_gpu_plan_name(&gpu_comm->plan, gpus);
    tutti_fingerprint(name, &gpu_comm->view, gpus, gpu_comm->fingerprint);
    /* Calls may need programs. To allocate their memory now waits for no kernel. */
    if (gpu_comm->view.is_even && comm->policy == NULL && comm->schedules == NULL)
        return TUTTI_OK;
    return tutti_cuda_store_reserve(gpu_comm->gpu);
}
