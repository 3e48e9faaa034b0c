/* SPDX-License-Identifier: Apache-2.0
 * Tests whether a peer that has not connected to this rank yet still runs. The peer may compute for
 * hours before it connects, or it may have ended. This rank has no connection that would show the
 * end of the peer's process. So this rank tests whether the peer still listens, as every rank does
 * until its communicator is destroyed. A completed connect proves this, even if the peer is busy,
 * because the peer's operating system accepts the connect.
 *
 * One round of the probe tries all addresses of the peer. The peer counts as ended if
 * REFUSED_ROUNDS consecutive rounds bring at least one refusal each and no success. Silence and an
 * unreachable network prove nothing, because the peer may still be able to connect to this rank. */
#include "transport/tcp/tcp.h"

#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define FIRST_PAUSE_NS (100 * TUTTI_NS_PER_MS)
/* Pauses grow, because each probe stays in the peer's accept queue until the peer next reads that
 * queue. Once a pause has reached this value, it does not grow any further. */
#define MOST_PAUSE_NS (20 * TUTTI_NS_PER_S)
/* The time that one connect may take. */
#define PATIENCE_NS TUTTI_NS_PER_S
#define REFUSED_ROUNDS 3

static void close_socket(struct tutti_tcp_probe *probe)
{
    if (probe->fd >= 0)
        close(probe->fd);
    probe->fd = -1;
}

static void start_pause(struct tutti_tcp_probe *probe, uint64_t now)
{
    close_socket(probe);
    probe->candidate = 0;
    probe->is_refused = false;
    probe->until_ns = now + probe->pause_ns;
}

/* The peer listens, so this rank probes it again after a longer pause. */
static void note_alive(struct tutti_tcp_probe *probe, uint64_t now)
{
    probe->refused_rounds = 0;
    if (probe->pause_ns < MOST_PAUSE_NS)
        probe->pause_ns *= 2;
    start_pause(probe, now);
}

/* All candidates of this round have failed. */
static void end_round(struct tutti_tcp_probe *probe, uint64_t now)
{
    probe->refused_rounds = probe->is_refused ? probe->refused_rounds + 1 : 0;
    if (probe->refused_rounds > 0)
        probe->pause_ns = FIRST_PAUSE_NS;
    start_pause(probe, now);
}

void tutti_tcp_probe_init(struct tutti_tcp_probe *probe)
{
    *probe = (struct tutti_tcp_probe){.fd = -1, .pause_ns = FIRST_PAUSE_NS};
}

void tutti_tcp_probe_fini(struct tutti_tcp_probe *probe)
{
    close_socket(probe);
}

int tutti_tcp_probe_step(struct tutti_tcp_conn *conn)
{
    struct tutti_fabric *fabric = conn->base.fabric;
    struct tutti_tcp_probe *probe = &conn->probe;
    struct tutti_address candidates[TUTTI_MAX_CANDIDATES];
    uint64_t now = tutti_now_ns();
    size_t count;
    int rc;

    if (probe->until_ns == 0)
        start_pause(probe, now);
    if (probe->fd < 0 && now < probe->until_ns)
        return TUTTI_OK;
    count = tutti_tcp_candidates(fabric, fabric->rank, conn->base.peer, candidates);
    if (count == 0) { /* only the peer can connect: this rank has no address of the peer */
        start_pause(probe, now);
        return TUTTI_OK;
    }
    if (probe->fd < 0)
        probe->until_ns = now + PATIENCE_NS;
    rc = tutti_socket_connect(&candidates[probe->candidate], &probe->fd);
    if (rc == TUTTI_AGAIN && now < probe->until_ns)
        return TUTTI_OK;
    if (rc == TUTTI_OK) {
        note_alive(probe, now);
        return TUTTI_OK;
    }
    if (rc == TUTTI_ERR_REMOTE && errno == ECONNREFUSED)
        probe->is_refused = true;
    close_socket(probe);
    if (++probe->candidate < count) {
        probe->until_ns = now; /* no pause between the addresses of a round */
        return TUTTI_OK;
    }
    end_round(probe, now);
    if (probe->refused_rounds < REFUSED_ROUNDS)
        return TUTTI_OK;
    snprintf(conn->reason, sizeof conn->reason,
             "does not listen any more: it has ended before it was connected to");
    return TUTTI_ERR_REMOTE;
}
