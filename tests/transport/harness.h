/* SPDX-License-Identifier: Apache-2.0
 * Makes fabrics for tests: several in one thread, or one per forked process. */
#ifndef TESTS_TRANSPORT_HARNESS_H
#define TESTS_TRANSPORT_HARNESS_H

#include "transport/fabric.h"
#include "transport/domain.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* Environment of one run: NULL leaves a variable unset. Forgets all parameters read before. */
struct setting {
    const char *name;       /* of the row, for messages */
    const char *route;      /* what two ranks of a host must come to use */
    const char *transports; /* TUTTI_TRANSPORTS */
    const char *family;     /* TUTTI_SOCKET_FAMILY */
    const char *spin_us;    /* TUTTI_SPIN_US */
    const char *fifo_bytes; /* TUTTI_FIFO_BYTES */
    const char *threshold;  /* TUTTI_CMA_THRESHOLD */
    const char *encrypt;    /* TUTTI_ENCRYPT */
    bool lacks_aes;         /* odd ranks are on processors without instructions for AES */
};
void apply_setting(const struct setting *setting);

/* True if this machine can listen on and connect to the IPv6 loopback. */
bool has_ipv6(void);

/* In children and threads, where cmocka's asserts would jump across processes: says where, and
 * exits. */
#define CHECK(claim)                                                                     \
    do {                                                                                 \
        if (!(claim)) {                                                                  \
            fprintf(stderr, "%s:%d: %s (last message: %s)\n", __FILE__, __LINE__, #claim, \
                    tutti_message_last());                                               \
            _exit(1);                                                                    \
        }                                                                                \
    } while (0)

/* Gives the signals of a round from the post of this rank. */
static inline void publish(struct tutti_domain *domain, uint64_t round, uint32_t nsignals)
{
    tutti_domain_give_signals(domain, tutti_domain_post(domain, domain->me, round), round,
                              nsignals);
}

/* ---- one thread ---------------------------------------------------------------------- */

/* Opens, joins and settles `nranks` fabrics; asserts that it works. */
void form_in_one_thread(int nranks, struct tutti_fabric **ret_fabrics);

/* The same as if each `ranks_per_host` of them were on a host of their own. */
void form_on_hosts(int nranks, int ranks_per_host, struct tutti_fabric **ret_fabrics);

/* As far as the verdicts, which the caller may edit: [nranks] of TUTTI_FABRIC_VERDICT_BYTES. */
void join_in_one_thread(int nranks, struct tutti_fabric **ret_fabrics, void *ret_verdicts);

/* Connections of all ranks to each other on `channel`: ret_conns[rank * nranks + peer]. */
void connect_all(int nranks, struct tutti_fabric **fabrics, int channel,
                 struct tutti_conn **ret_conns);
void destroy_all(int nranks, struct tutti_fabric **fabrics);

/* ---- processes ----------------------------------------------------------------------- */

/* Runs `body` in `nranks` forked processes, each with its settled fabric, which is left and
 * destroyed when it returns. A body's nonzero result, or an exit that is not expected, fails
 * the test. `victim` (or -1) is the rank that is expected to end by SIGKILL. */
typedef int (*process_body)(struct tutti_fabric *fabric, int rank, int nranks, void *context);
void run_processes(int nranks, process_body body, void *context, int victim);

/* Call until it is ready, waiting as an executor would. */
struct tutti_conn *connect_waiting(struct tutti_fabric *fabric, int peer, int channel);

#endif
