/* SPDX-License-Identifier: Apache-2.0
 * The proxy of a rank on a GPU: a thread that connects the rank's mailboxes with those of ranks on
 * other hosts. Kernels do not notice it.
 *
 * Two ranks of different hosts reach none of each other's memory. So each of them has both
 * mailboxes of the pair in its own page-locked host memory: an outgoing one that its kernels write,
 * and an incoming one that they read. The proxy sends what kernels have stored in the outgoing
 * mailbox, and the proxy of the other rank stores it in the incoming mailbox there:
 *
 *     kernel -> outgoing mailbox -> proxy ~~ network ~~ proxy -> incoming mailbox -> kernel
 *
 * It carries three things: slots of FIFOs, with their sizes (shows_sizes of work.h); the counts of
 * slots that kernels have emptied; and greetings. A slot is sent from the place where the kernel
 * has filled it, and received at the place from where the other kernel takes it. A kernel fills a
 * slot only if that place is free at the receiver. So a proxy can always store what arrives, and
 * proxies never wait for each other. */
#ifndef TUTTI_EXECUTOR_CUDA_PROXY_H
#define TUTTI_EXECUTOR_CUDA_PROXY_H

#include "device/cuda/work.h"
#include "transport/fabric.h"

/* The mailboxes of a pair of ranks, in this rank's host memory. */
struct tutti_cuda_proxy_pair {
    int rank;                   /* the other rank */
    uint8_t *outgoing, *incoming; /* addresses for the CPU */
};

struct tutti_cuda_proxy_args {
    struct tutti_fabric *fabric; /* connects the ranks of all pairs; borrowed. No other thread may
                                    use it until tutti_cuda_proxy_end has returned */
    struct tutti_kernel_layout layout;
    const struct tutti_cuda_proxy_pair *pairs; /* [npairs], copied */
    uint32_t npairs;
    int rank;
    uint64_t *left; /* a bit for each rank; the proxy sets that of a rank whose proxy has left */
    /* Called on the proxy's thread, at most once, when a connection is lost or a peer sends what no
     * proxy sends. The proxy carries nothing afterwards. */
    void (*fail)(void *context, int rc, const char *message);
    void *context;
};

struct tutti_cuda_proxy;

/* Starts the proxy of a rank. All pairs are connected (tutti_fabric_connect,
 * TUTTI_CHANNEL_COLLECTIVE). TUTTI_ERR_SYSTEM: there is no memory, or no thread. */
int tutti_cuda_proxy_begin(const struct tutti_cuda_proxy_args *args,
                           struct tutti_cuda_proxy **ret_proxy);

/* Tells the proxy that a kernel was enqueued. A proxy that has had nothing to do for some
 * milliseconds looks at the mailboxes only each millisecond. Thread-safe. */
void tutti_cuda_proxy_wake(struct tutti_cuda_proxy *proxy);

/* Ends the proxy, and frees it. `is_orderly`: all kernels of this rank have ended without an error,
 * so the proxy first sends what they have stored, and waits some seconds at most until the other
 * proxies have received it. NULL is ignored. */
void tutti_cuda_proxy_end(struct tutti_cuda_proxy *proxy, bool is_orderly);

#endif
