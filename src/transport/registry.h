/* SPDX-License-Identifier: Apache-2.0
 * The list of transports. The first one in it that reaches a peer serves it. */
#ifndef TUTTI_TRANSPORT_REGISTRY_H
#define TUTTI_TRANSPORT_REGISTRY_H

#include "transport/transport.h"

/* One line for each: the name of its struct tutti_transport_ops. */
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
