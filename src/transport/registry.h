/* SPDX-License-Identifier: Apache-2.0
 * Lists the transports. A peer is served by the first one in the list that reaches it. */
#ifndef TUTTI_TRANSPORT_REGISTRY_H
#define TUTTI_TRANSPORT_REGISTRY_H

#include "transport/transport.h"

/* The list has one line for each transport, with the name of its struct tutti_transport_ops. */
#define TUTTI_TRANSPORT_LIST(row)                                                                  \
    row(tutti_self_ops)                                                                            \
    row(tutti_cma_ops)                                                                             \
    row(tutti_shm_ops)                                                                             \
    row(tutti_tcp_ops)

/* Defines tutti_transports from such a list. */
#define TUTTI_TRANSPORT_DECLARE(ops) extern const struct tutti_transport_ops ops;
#define TUTTI_TRANSPORT_ADDRESS(ops) &ops,
#define TUTTI_TRANSPORT_TABLE(list)                                                                \
    list(TUTTI_TRANSPORT_DECLARE)                                                                  \
    const struct tutti_transport_ops *const tutti_transports[] = {                                 \
        list(TUTTI_TRANSPORT_ADDRESS) NULL}

#endif
