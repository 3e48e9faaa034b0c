/* SPDX-License-Identifier: Apache-2.0
 * Replaces the connections of a fabric. */
#include "fuzz/stream_conns.h"

#include "transport/fabric_private.h"

void stream_put_conn(struct tutti_fabric *fabric, int peer, int channel, struct tutti_conn *conn)
{
    size_t index = tutti_conn_index(peer, channel);

    fabric->conns[index] = conn;
    fabric->is_ready[index] = conn != NULL;
}
