/* SPDX-License-Identifier: Apache-2.0
 * Tells the next rank the state of this rank (tutti_fabric_send_state). A rank that has waited for
 * long without a byte from any peer connects to the rank after it, sends its state in the
 * handshake, and closes:
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

#define PATIENCE_NS (2 * TUTTI_NS_PER_S)
#define ANSWER_PATIENCE_NS (20 * TUTTI_NS_PER_S) /* time for a rank that computes */

bool tutti_tcp_tell(struct tutti_fabric *fabric, const uint64_t *words)
{
    struct tutti_tcp *tcp = tutti_tcp_of(fabric);

    if (!tcp->takes_calls || tcp->tell.is_active || fabric->rank + 1 == fabric->nranks)
        return false;
    tcp->tell = (struct tutti_tcp_tell){.fd = -1, .is_active = true};
    memcpy(tcp->tell.words, words, sizeof tcp->tell.words);
    return true;
}

bool tutti_tcp_told(const struct tutti_fabric *fabric, uint64_t *ret_words)
{
    const struct tutti_tcp *tcp = tutti_tcp_of(fabric);

    if (!tcp->was_told)
        return false;
    memcpy(ret_words, tcp->told, sizeof tcp->told);
    return true;
}

static void hang_up(struct tutti_tcp_tell *tell)
{
    if (tell->fd >= 0)
        close(tell->fd);
    tell->fd = -1;
}

static void start_shake(struct tutti_fabric *fabric, struct tutti_tcp_tell *tell)
{
    struct tutti_tcp_purpose purpose = {.rank = fabric->rank, .channel = TUTTI_TCP_TELLS};
    struct tutti_purpose sealed = {.bytes = {0}};
    uint8_t secret[TUTTI_SECRET_BYTES];

    memcpy(purpose.words, tell->words, sizeof purpose.words);
    memcpy(sealed.bytes, &purpose, sizeof purpose);
    tutti_tcp_secret(fabric, fabric->rank + 1, secret);
    tutti_handshake_start(&tell->shake, tell->fd, false, secret, &sealed,
                          tutti_now_ns() + ANSWER_PATIENCE_NS);
    tell->is_connected = true;
}

/* Starts or continues to connect to the next rank. TUTTI_OK: connected. TUTTI_AGAIN: call again.
 * Another result: none of its addresses works. */
static int reach_out(struct tutti_fabric *fabric, struct tutti_tcp_tell *tell)
{
    struct tutti_address candidates[TUTTI_MAX_CANDIDATES];
    size_t count = tutti_tcp_candidates(fabric, fabric->rank, fabric->rank + 1, candidates);
    int rc = TUTTI_ERR_REMOTE;

    while (tell->candidate < count) {
        if (tell->fd < 0)
            tell->until_ns = tutti_now_ns() + PATIENCE_NS;
        rc = tutti_socket_connect(&candidates[tell->candidate], &tell->fd);
        if (rc == TUTTI_OK || (rc == TUTTI_AGAIN && tutti_now_ns() < tell->until_ns))
            return rc;
        hang_up(tell);
        tell->candidate++;
    }
    return rc;
}

void tutti_tcp_tell_step(struct tutti_fabric *fabric)
{
    struct tutti_tcp_tell *tell = &tutti_tcp_of(fabric)->tell;
    int rc = TUTTI_OK;

    if (!tell->is_connected) {
        rc = reach_out(fabric, tell);
        if (rc == TUTTI_OK)
            start_shake(fabric, tell);
    }
    if (rc == TUTTI_OK)
        rc = tutti_handshake_step(&tell->shake);
    /* The next rank was told, or cannot be reached. In the second case other checks explain its
     * silence. */
    if (rc != TUTTI_AGAIN)
        tutti_tcp_tell_stop(tutti_tcp_of(fabric));
}

void tutti_tcp_tell_stop(struct tutti_tcp *tcp)
{
    if (tcp->tell.is_active) {
        hang_up(&tcp->tell);
        tutti_handshake_forget(&tcp->tell.shake);
    }
    tcp->tell.is_active = false;
}
