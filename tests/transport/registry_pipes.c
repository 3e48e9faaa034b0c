/* SPDX-License-Identifier: Apache-2.0
 * Defines a table of transports with one more row. It replaces that of the library (registry.c). */
#include "transport/registry.h"

#define WITH_PIPES(row)                                                                            \
    TUTTI_TRANSPORT_LIST(row)                                                                      \
    row(tutti_pipes_ops)

TUTTI_TRANSPORT_TABLE(WITH_PIPES);
