/* SPDX-License-Identifier: Apache-2.0
 * Forms the network between the GPUs of several hosts, in phases as a communicator forms. */
#include "gpu/comm_gpu.h"

#include "base/interface.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

enum phase { BEGIN, JOIN, SETTLE, CONNECT, LINGER, DONE };

/* ---- exchanges ------------------------------------------------------------------------------- */

/* Gathers the first `bytes` bytes of network->sent of all ranks. */
static int begin_exchange(struct tutti_comm *comm, struct tutti_gpu_network *network, size_t bytes)
{
    struct tutti_call call;

    tutti_call_of_bytes(TUTTI_ALLGATHER, TUTTI_FOR_FORMING, network->sent, network->gathered, bytes,
                        &call);
    return tutti_batch_begin(comm, &call, &network->batch);
}

/* Continues the exchange under way, if there is one. In the last one, other ranks may still be
 * connecting to this one. */
static int continue_exchange(struct tutti_gpu_network *network)
{
    if (network->batch != NULL && network->phase == DONE)
        tutti_fabric_progress(network->fabric);
    return tutti_batch_continue(&network->batch);
}

/* ---- phases ---------------------------------------------------------------------------------- */

static bool is_wanted(const struct tutti_comm *comm)
{
    bool has_hosts = false;

    for (int rank = 0; rank < comm->nranks; rank++)
        has_hosts = has_hosts || comm->hosts[rank] != comm->hosts[0];
    return has_hosts && comm->nranks <= TUTTI_KERNEL_RANKS;
}

/* Replaces the fabric, which another thread may be about to abort. */
static void set_fabric(struct tutti_gpu_comm *gpu_comm, struct tutti_fabric *fabric)
{
    struct tutti_fabric *old;

    pthread_mutex_lock(&gpu_comm->lock);
    old = gpu_comm->network.fabric;
    gpu_comm->network.fabric = fabric;
    pthread_mutex_unlock(&gpu_comm->lock);
    tutti_fabric_destroy(old);
}

/* Finds the network interface next to the GPU of this rank. Other ranks should call it there, so
 * that the data of each GPU takes a port of its own. */
static void find_nearest(const struct tutti_comm *comm, char ret_name[TUTTI_INTERFACE_NAME_BYTES])
{
    const char *port = tutti_gpu_plan_port(comm);

    ret_name[0] = '\0';
    if (port == NULL || !tutti_interface_of_port("", port, ret_name))
        return;
    tutti_log(comm->rank == 0 ? TUTTI_LOG_INFO : TUTTI_LOG_TRACE,
              "data from other hosts to this rank's GPU arrive at interface %s if they reach it: "
              "the port next to the GPU", ret_name);
}

/* Opens the fabric. A rank that cannot tells the others why. */
static int begin(struct tutti_comm *comm, struct tutti_gpu_network *network)
{
    struct tutti_fabric_args args = {.nranks = comm->nranks, .rank = comm->rank,
                                     .deadline_ns = comm->deadline_ns, .cells = {-1, -1, -1},
                                     .is_between_hosts = true};
    char nearest[TUTTI_INTERFACE_NAME_BYTES];
    struct tutti_fabric *fabric = NULL;
    int rc;

    _Static_assert(TUTTI_FABRIC_VERDICT_BYTES <= TUTTI_FABRIC_RECORD_BYTES, "one buffer for both");
    tutti_secret_derive(comm->secret, "network of GPUs", 0, args.secret);
    network->sent = malloc(TUTTI_FABRIC_RECORD_BYTES);
    network->gathered = malloc((size_t)comm->nranks * TUTTI_FABRIC_RECORD_BYTES);
    if (network->sent == NULL || network->gathered == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the network of %d GPUs", comm->nranks);
    find_nearest(comm, nearest);
    args.nearest = nearest;
    rc = tutti_fabric_open(&args, &fabric);
    if (rc == TUTTI_OK && !tutti_fabric_reaches_hosts(fabric)) {
        rc = TUTTI_ERR_SYSTEM; /* the last message says why */
        tutti_fabric_destroy(fabric);
        fabric = NULL;
    }
    set_fabric(comm->gpu, fabric);
    if (rc == TUTTI_OK)
        memcpy(network->sent, tutti_fabric_record(network->fabric), TUTTI_FABRIC_RECORD_BYTES);
    else
        tutti_fabric_decline(comm->nranks, comm->rank, rc, tutti_message_last(), network->sent);
    return begin_exchange(comm, network, TUTTI_FABRIC_RECORD_BYTES);
}

/* Joins the others. A rank that cannot sends zeros in place of a verdict. */
static int join(struct tutti_comm *comm, struct tutti_gpu_network *network)
{
    int rc = network->fabric != NULL ? tutti_fabric_join(network->fabric, network->gathered)
                                     : TUTTI_ERR_SYSTEM;

    if (rc == TUTTI_AGAIN) {
        network->phase = JOIN;
        return rc;
    }
    if (rc == TUTTI_OK)
        memcpy(network->sent, tutti_fabric_verdict(network->fabric), TUTTI_FABRIC_VERDICT_BYTES);
    else
        memset(network->sent, 0, TUTTI_FABRIC_VERDICT_BYTES);
    if (rc != TUTTI_OK && network->fabric != NULL)
        tutti_log(TUTTI_LOG_INFO, "no network between GPUs: %s", tutti_message_last());
    return begin_exchange(comm, network, TUTTI_FABRIC_VERDICT_BYTES);
}

/* Returns the first rank that has sent zeros; -1: none. */
static int find_missing(const struct tutti_comm *comm, const struct tutti_gpu_network *network)
{
    static const uint8_t zeros[TUTTI_FABRIC_VERDICT_BYTES];

    for (int rank = 0; rank < comm->nranks; rank++)
        if (memcmp(network->gathered + (size_t)rank * sizeof zeros, zeros, sizeof zeros) == 0)
            return rank;
    return -1;
}

/* If some rank cannot take part, all go on without a network. */
static int settle(struct tutti_comm *comm, struct tutti_gpu_network *network)
{
    int missing = find_missing(comm, network);

    if (missing < 0)
        return tutti_fabric_settle(network->fabric, network->gathered);
    if (comm->rank == 0)
        tutti_log(TUTTI_LOG_INFO, "rank %d has no network for its GPU, so data of GPUs go through "
                  "the calls of the hosts", missing);
    tutti_gpu_network_fini(comm->gpu);
    network->phase = DONE;
    return TUTTI_OK;
}

/* Connects this rank with all ranks of other hosts. */
static int connect_all(struct tutti_comm *comm, struct tutti_gpu_network *network)
{
    for (; network->next_peer < comm->nranks; network->next_peer++) {
        struct tutti_conn *conn;
        int rc;

        if (comm->hosts[network->next_peer] == comm->hosts[comm->rank])
            continue;
        rc = tutti_fabric_connect(network->fabric, network->next_peer, TUTTI_CHANNEL_COLLECTIVE,
                                  &conn);
        if (rc == TUTTI_AGAIN) {
            network->phase = CONNECT;
            /* This rank may be out of descriptors. */
            TUTTI_TRY(tutti_fabric_check(network->fabric));
        }
        if (rc != TUTTI_OK)
            return rc;
    }
    return TUTTI_OK;
}

/* Waits until all ranks are connected, and helps them meanwhile. */
static int linger(struct tutti_comm *comm, struct tutti_gpu_network *network)
{
    return begin_exchange(comm, network, 1);
}

/* Does one phase, and sets network->phase to the next one. */
static int do_phase(struct tutti_comm *comm, struct tutti_gpu_network *network)
{
    switch ((enum phase)network->phase++) {
    case BEGIN: return begin(comm, network);
    case JOIN: return join(comm, network);
    case SETTLE: return settle(comm, network);
    case CONNECT: return connect_all(comm, network);
    case LINGER: return linger(comm, network);
    case DONE: break;
    }
    network->phase = DONE;
    return TUTTI_OK;
}

int tutti_gpu_network_form(struct tutti_comm *comm)
{
    struct tutti_gpu_network *network = &comm->gpu->network;

    if (network->phase == BEGIN && !is_wanted(comm))
        network->phase = DONE;
    while (network->phase != DONE || network->batch != NULL) {
        TUTTI_TRY(continue_exchange(network));
        if (network->phase != DONE)
            TUTTI_TRY(do_phase(comm, network));
    }
    free(network->sent);
    free(network->gathered);
    network->sent = network->gathered = NULL;
    return TUTTI_OK;
}

void tutti_gpu_network_abort(struct tutti_gpu_comm *gpu_comm, int rc, const char *reason)
{
    pthread_mutex_lock(&gpu_comm->lock);
    if (gpu_comm->network.fabric != NULL)
        tutti_fabric_abort(gpu_comm->network.fabric, rc, reason);
    pthread_mutex_unlock(&gpu_comm->lock);
}

void tutti_gpu_network_fini(struct tutti_gpu_comm *gpu_comm)
{
    struct tutti_gpu_network *network = &gpu_comm->network;

    tutti_batch_release(network->batch);
    set_fabric(gpu_comm, NULL);
    free(network->sent);
    free(network->gathered);
    *network = (struct tutti_gpu_network){.phase = BEGIN};
}
