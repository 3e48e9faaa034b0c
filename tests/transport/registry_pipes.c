/* SPDX-License-Identifier: Apache-2.0
 * The table of transports with one more: it takes the place of the library's (registry.c). */
#include "transport/registry.h"

#define WITH_PIPES(row)                                                                            \
    TUTTI_TRANSPORT_LIST(row)                                                                      \
    row(tutti_pipes_ops)

TUTTI_TRANSPORT_TABLE(WITH_PIPES);
