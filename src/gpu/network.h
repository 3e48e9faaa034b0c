/* SPDX-License-Identifier: Apache-2.0
 * The network between the GPUs of several hosts: a fabric that only the proxies of the ranks use
 * (executor/cuda/proxy.h), beside the communicator's own. */
#ifndef TUTTI_GPU_NETWORK_H
#define TUTTI_GPU_NETWORK_H

#include <stddef.h>
#include <stdint.h>

struct tutti_comm;
struct tutti_gpu_comm;
struct tutti_fabric;
struct tutti_batch;

struct tutti_gpu_network {
    struct tutti_fabric *fabric; /* NULL: none */
    int phase;                   /* of forming (network.c) */
    int next_peer;               /* the rank that is being connected */
    struct tutti_batch *batch;   /* the exchange under way; NULL: none */
    uint8_t *sent, *gathered;    /* this rank's message, and those of all ranks */
};

/* Forms the network, if the ranks are on several hosts and are not too many for kernels. If some
 * rank cannot take part, there is none, which one line of the log says. TUTTI_AGAIN: call again.
 * Other errors are those of forming a fabric. */
int tutti_gpu_network_form(struct tutti_comm *comm);
/* Tells the ranks of other hosts why this rank gives up (tutti_fabric_abort). Any thread. */
void tutti_gpu_network_abort(struct tutti_gpu_comm *gpu_comm, int rc, const char *reason);
/* Frees the network. Its proxy must have ended. */
void tutti_gpu_network_fini(struct tutti_gpu_comm *gpu_comm);

#endif
