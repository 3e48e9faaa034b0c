/* SPDX-License-Identifier: Apache-2.0
 * Sends the state of this rank to the next rank (tutti_fabric_send_state). A rank that has waited
 * for long without a byte from any peer connects to the rank after it, sends its state in the
 * handshake, and closes the connection:
 *
 *     rank 0 --> rank 1 --> rank 2 --> ... --> rank n - 1
 *
 * If all ranks wait because they made different calls, two neighbors that differ learn this,
 * although no message goes from one to the other. The state is not sent on the pair's own
 * connection. The next rank may leave at any time, and if it then had not read all bytes, the
 * connection would look as if it had been reset. */
#include "transport/tcp/tcp.h"

#include "base/clock.h"

#include <string.h>
#include <unistd.h>

/* The time that one connect may take. */
#define CONNECT_PATIENCE_NS (2 * TUTTI_NS_PER_S)
/* The time that the handshake may take. The next rank answers late if it computes. */
#define ANSWER_PATIENCE_NS (20 * TUTTI_NS_PER_S)

bool tutti_tcp_send_state(struct tutti_fabric *fabric, const uint64_t *words)
{
    struct tutti_tcp *tcp = tutti_tcp_of(fabric);

    if (!tcp->takes_calls || tcp->state_call.is_active || fabric->rank + 1 == fabric->nranks)
        return false;
    tcp->state_call = (struct tutti_tcp_state_call){.fd = -1, .is_active = true};
    memcpy(tcp->state_call.words, words, sizeof tcp->state_call.words);
    return true;
}

bool tutti_tcp_recv_state(const struct tutti_fabric *fabric, uint64_t *ret_words)
{
    const struct tutti_tcp *tcp = tutti_tcp_of(fabric);

    if (!tcp->has_previous_state)
        return false;
    memcpy(ret_words, tcp->previous_state, sizeof tcp->previous_state);
    return true;
}

static void close_socket(struct tutti_tcp_state_call *call)
{
    if (call->fd >= 0)
        close(call->fd);
    call->fd = -1;
}

static void start_shake(struct tutti_fabric *fabric, struct tutti_tcp_state_call *call)
{
    struct tutti_tcp_purpose purpose = {.rank = fabric->rank, .channel = TUTTI_TCP_CHANNEL_STATE};
    struct tutti_purpose sealed = {.bytes = {0}};
    uint8_t secret[TUTTI_SECRET_BYTES];

    memcpy(purpose.words, call->words, sizeof purpose.words);
    memcpy(sealed.bytes, &purpose, sizeof purpose);
    tutti_tcp_secret(fabric, fabric->rank + 1, secret);
    tutti_handshake_start(&call->shake, call->fd, false, secret, &sealed,
                          tutti_now_ns() + ANSWER_PATIENCE_NS);
    call->is_connected = true;
}

/* Starts or continues to connect to the next rank. TUTTI_OK: connected. TUTTI_AGAIN: call again.
 * Another result: none of its addresses works. */
static int connect_to_next(struct tutti_fabric *fabric, struct tutti_tcp_state_call *call)
{
    struct tutti_address candidates[TUTTI_MAX_CANDIDATES];
    size_t count = tutti_tcp_candidates(fabric, fabric->rank, fabric->rank + 1, candidates);
    int rc = TUTTI_ERR_REMOTE;

    while (call->candidate < count) {
        if (call->fd < 0)
            call->until_ns = tutti_now_ns() + CONNECT_PATIENCE_NS;
        rc = tutti_socket_connect(&candidates[call->candidate], &call->fd);
        if (rc == TUTTI_OK || (rc == TUTTI_AGAIN && tutti_now_ns() < call->until_ns))
            return rc;
        close_socket(call);
        call->candidate++;
    }
    return rc;
}

void tutti_tcp_state_step(struct tutti_fabric *fabric)
{
    struct tutti_tcp_state_call *call = &tutti_tcp_of(fabric)->state_call;
    int rc = TUTTI_OK;

    if (!call->is_connected) {
        rc = connect_to_next(fabric, call);
        if (rc == TUTTI_OK)
            start_shake(fabric, call);
    }
    if (rc == TUTTI_OK)
        rc = tutti_handshake_step(&call->shake);
    /* The next rank has the state, or cannot be reached. In the second case other checks explain
     * its silence. */
    if (rc != TUTTI_AGAIN)
        tutti_tcp_state_stop(tutti_tcp_of(fabric));
}

void tutti_tcp_state_stop(struct tutti_tcp *tcp)
{
    if (tcp->state_call.is_active) {
        close_socket(&tcp->state_call);
        tutti_handshake_forget(&tcp->state_call.shake);
    }
    tcp->state_call.is_active = false;
}
