/* SPDX-License-Identifier: Apache-2.0
 * Connects to a higher rank. Its addresses are tried one after the other. The time for each grows
 * with every round, because a rank that computes answers late.
 *
 * An address may belong to another host on this network, and another process may answer there.
 * Even a process that greets as a rank does may be a stranger until it has proved that it knows the
 * secret. So each step of an attempt has a time limit, after which the next address is tried. This
 * continues until the call that waits for the connection reaches its deadline. A rank that answers
 * late must not take an abandoned attempt for the connection. So this rank confirms by one byte
 * that it has seen the peer's proof, and never abandons the attempt afterwards.
 *
 * A rank listens from before its record is published until it is destroyed. So a rank that refuses
 * at all its addresses, again and again, is gone. */
#include "transport/tcp/tcp.h"

#include "base/clock.h"
#include "base/param.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The time for each step of an attempt. It doubles with every round, MOST_DOUBLINGS times. */
#define FIRST_PATIENCE_NS (2 * TUTTI_NS_PER_S)
#define MOST_DOUBLINGS 5
/* The pause between two rounds. It doubles with every round up to MOST_PAUSE_NS. */
#define FIRST_PAUSE_NS (5 * TUTTI_NS_PER_MS)
#define MOST_PAUSE_NS (500 * TUTTI_NS_PER_MS)
/* A peer that refuses at all its addresses in this many consecutive rounds has ended. */
#define REFUSED_ROUNDS 12

static uint64_t patience_ns(const struct tutti_tcp_dial *dial)
{
    uint32_t doublings = dial->rounds < MOST_DOUBLINGS ? dial->rounds : MOST_DOUBLINGS;

    return FIRST_PATIENCE_NS << doublings;
}

static uint64_t pause_ns(const struct tutti_tcp_dial *dial)
{
    uint32_t doublings = dial->rounds < 16 ? dial->rounds : 16; /* avoids an overflow */
    uint64_t pause = FIRST_PAUSE_NS << doublings;

    return pause < MOST_PAUSE_NS ? pause : MOST_PAUSE_NS;
}

/* Abandons the attempt, and chooses the next address. */
static void try_next_address(struct tutti_tcp_dial *dial, size_t ncandidates)
{
    if (dial->fd >= 0)
        close(dial->fd);
    dial->fd = -1;
    dial->is_connected = dial->is_greeted = false;
    dial->until_ns = 0;
    dial->candidate++;
    if (dial->candidate < ncandidates)
        return;
    dial->candidate = 0;
    dial->until_ns = tutti_now_ns() + pause_ns(dial);
    dial->rounds++;
}

static void start_shake(struct tutti_tcp_conn *conn, struct tutti_tcp_dial *dial, int index)
{
    struct tutti_fabric *fabric = conn->base.fabric;
    struct tutti_tcp_purpose purpose = {.rank = fabric->rank, .channel = conn->base.channel,
                                        .socket = index};
    struct tutti_purpose sealed = {.bytes = {0}};
    uint8_t secret[TUTTI_SECRET_BYTES];

    memcpy(sealed.bytes, &purpose, sizeof purpose);
    tutti_tcp_secret(fabric, conn->base.peer, secret);
    tutti_handshake_start(&dial->shake, dial->fd, false, secret, &sealed, TUTTI_NEVER);
    dial->is_connected = true;
    dial->refusals = 0;
}

/* Starts or continues to connect to one address. TUTTI_OK: connected, and the handshake has begun.
 * TUTTI_ERR_REMOTE or TUTTI_ERR_TIMEOUT: this address does not work. */
static int connect_socket(struct tutti_tcp_conn *conn, struct tutti_tcp_dial *dial, int index,
                          const struct tutti_address *address)
{
    bool is_new = dial->fd < 0;
    int rc;

    if (is_new)
        dial->until_ns = tutti_now_ns() + patience_ns(dial);
    rc = tutti_socket_connect(address, &dial->fd);
    if (dial->fd >= 0 && is_new)
        TUTTI_TRY(tutti_wait_watch(conn->base.fabric, dial->fd));
    if (rc == TUTTI_AGAIN && tutti_now_ns() >= dial->until_ns)
        return tutti_note(TUTTI_ERR_TIMEOUT, "connect: no answer in time");
    if (rc == TUTTI_ERR_REMOTE)
        dial->refusals++;
    TUTTI_TRY(rc);
    TUTTI_TRY(tutti_socket_tune(dial->fd, (size_t)tutti_param_int(TUTTI_PARAM_SOCKET_BUFFER)));
    start_shake(conn, dial, index);
    return TUTTI_OK;
}

static int step_handshake(struct tutti_tcp_dial *dial)
{
    static const uint8_t confirmation = TUTTI_TCP_CONFIRMATION;
    size_t done;
    int rc = tutti_handshake_step(&dial->shake);

    if (tutti_handshake_is_greeted(&dial->shake) && !dial->is_greeted) {
        dial->is_greeted = true;
        dial->until_ns = tutti_now_ns() + patience_ns(dial);
    }
    if (rc == TUTTI_AGAIN && tutti_now_ns() >= dial->until_ns)
        return tutti_note(TUTTI_ERR_TIMEOUT, "no %s in time",
                          dial->is_greeted ? "proof" : "greeting");
    TUTTI_TRY(rc);
    TUTTI_TRY(tutti_socket_send(dial->fd, &confirmation, sizeof confirmation, &done));
    return done == sizeof confirmation ? TUTTI_OK : TUTTI_AGAIN;
}

/* Makes progress with one socket of a connection. TUTTI_OK: the socket belongs to the connection
 * now. */
static int step_dial(struct tutti_tcp_conn *conn, struct tutti_tcp_dial *dial, int index)
{
    struct tutti_fabric *fabric = conn->base.fabric;
    struct tutti_address candidates[TUTTI_MAX_CANDIDATES];
    size_t count = tutti_tcp_candidates(fabric, fabric->rank, conn->base.peer, candidates);
    int rc = TUTTI_OK;

    if (dial->fd < 0 && dial->until_ns > tutti_now_ns())
        return TUTTI_AGAIN;
    if (!dial->is_connected)
        rc = connect_socket(conn, dial, index, &candidates[dial->candidate]);
    if (rc == TUTTI_OK)
        rc = step_handshake(dial);
    if (rc == TUTTI_AGAIN)
        return TUTTI_AGAIN;
    if (rc == TUTTI_OK) {
        dial->fd = -1;
        dial->is_proved = true;
        return tutti_tcp_conn_add(conn, index, &dial->shake);
    }
    if (rc != TUTTI_ERR_REMOTE && rc != TUTTI_ERR_TIMEOUT)
        return rc;
    if (dial->refusals >= REFUSED_ROUNDS * count) {
        char text[TUTTI_ADDRESS_TEXT_BYTES];

        snprintf(conn->reason, sizeof conn->reason,
                 "takes no calls at %s (and %zu other addresses): it has ended, or a firewall is "
                 "in the way (%.400s)",
                 tutti_address_format(&candidates[0], text), count - 1, tutti_message_last());
        return TUTTI_ERR_REMOTE;
    }
    try_next_address(dial, count);
    return TUTTI_AGAIN;
}

/* ---- all sockets --------------------------------------------------------------------- */

int tutti_tcp_dial_start(struct tutti_tcp_conn *conn)
{
    struct tutti_tcp *tcp = tutti_tcp_of(conn->base.fabric);

    conn->dials = calloc((size_t)conn->nsockets, sizeof *conn->dials);
    if (conn->dials == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to connect to rank %d", conn->base.peer);
    for (int i = 0; i < conn->nsockets; i++)
        conn->dials[i].fd = -1;
    conn->next_dialing = tcp->dialing;
    tcp->dialing = conn;
    return TUTTI_OK;
}

void tutti_tcp_dial_step(struct tutti_fabric *fabric)
{
    struct tutti_tcp_conn *conn = tutti_tcp_of(fabric)->dialing;

    for (; conn != NULL; conn = conn->next_dialing) {
        for (int i = 0; i < conn->nsockets && conn->rc == TUTTI_OK; i++) {
            int rc = conn->dials[i].is_proved ? TUTTI_OK : step_dial(conn, &conn->dials[i], i);

            if (rc != TUTTI_OK && rc != TUTTI_AGAIN) {
                conn->rc = rc;
                if (conn->reason[0] == '\0')
                    snprintf(conn->reason, sizeof conn->reason, "%s%.900s",
                             rc == TUTTI_ERR_SYSTEM ? "" : "cannot be connected to: ",
                             tutti_message_last());
            }
        }
    }
}

void tutti_tcp_dial_stop(struct tutti_tcp_conn *conn)
{
    struct tutti_tcp_conn **link = &tutti_tcp_of(conn->base.fabric)->dialing;

    if (conn->dials == NULL)
        return;
    while (*link != NULL && *link != conn)
        link = &(*link)->next_dialing;
    if (*link == conn)
        *link = conn->next_dialing;
    for (int i = 0; i < conn->nsockets; i++) {
        if (conn->dials[i].fd >= 0)
            close(conn->dials[i].fd);
        tutti_handshake_forget(&conn->dials[i].shake);
    }
    free(conn->dials);
    conn->dials = NULL;
}
