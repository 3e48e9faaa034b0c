/* SPDX-License-Identifier: Apache-2.0
 * Replaces the connections of a fabric. This is a separate file because the internals of the
 * fabric and those of the executor, which fuzz_stream.c includes, use some names differently. */
#ifndef TUTTI_TESTS_FUZZ_STREAM_CONNS_H
#define TUTTI_TESTS_FUZZ_STREAM_CONNS_H

#include "transport/transport.h"

/* From now on this is the fabric's connection to `peer`; NULL: it has none. The caller keeps it. */
void stream_put_conn(struct tutti_fabric *fabric, int peer, int channel, struct tutti_conn *conn);

#endif
