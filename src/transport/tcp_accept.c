/* SPDX-License-Identifier: Apache-2.0
 * The listener of a fabric: lower ranks call it. A stranger gets no further than
 * the handshake, and no longer than its deadline. */
#include "transport/tcp.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/param.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_CALLERS 256
#define CALLER_PATIENCE_NS (10 * TUTTI_NS_PER_S)
/* Callers taken per look, so that a flood does not keep a rank from its work. */
#define ACCEPTS_PER_LOOK 64

void tutti_tcp_secret(const struct tutti_fabric *fabric, int called,
                      uint8_t ret_secret[TUTTI_SECRET_BYTES])
{
    tutti_secret_derive(fabric->secret, "tcp", (uint64_t)called, ret_secret);
}

/* ---- opening ------------------------------------------------------------------------- */

int tutti_tcp_open(struct tutti_fabric *fabric)
{
    static const struct tutti_address any = {.family = 0};
    union tutti_record *mine = &fabric->mine;
    struct tutti_tcp *tcp = calloc(1, sizeof *tcp);
    uint32_t mbits[TUTTI_MAX_CANDIDATES];
    size_t count;
    int rc;

    if (tcp == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for TCP");
    TUTTI_TRY_OR(free_tcp, rc,
                 tutti_address_list_rated(mine->candidates, mbits, TUTTI_MAX_CANDIDATES, &count));
    TUTTI_TRY_OR(free_tcp, rc, tutti_socket_listen(&any, &tcp->listen_fd, &mine->port_be));
    mine->ncandidates = (uint8_t)count;
    mine->mbits = mbits[0];
    mine->nsockets = (uint8_t)tutti_param_int(TUTTI_PARAM_SOCKETS_PER_PEER);
    fabric->tcp = tcp;
    return TUTTI_OK;

free_tcp:
    free(tcp);
    return rc;
}

static void stop_listening(struct tutti_fabric *fabric)
{
    struct tutti_tcp *tcp = fabric->tcp;

    if (tcp->listen_fd < 0)
        return;
    tutti_fabric_drop_fd(fabric, tcp->listen_fd);
    close(tcp->listen_fd);
    tcp->listen_fd = -1;
}

int tutti_tcp_settle(struct tutti_fabric *fabric, bool is_needed)
{
    struct tutti_tcp *tcp = fabric->tcp;

    if (tcp == NULL)
        return TUTTI_OK;
    if (!is_needed) {
        tutti_tcp_destroy(fabric);
        return TUTTI_OK;
    }
    TUTTI_TRY(tutti_wait_open_sockets(fabric));
    TUTTI_TRY(tutti_wait_watch(fabric, tcp->listen_fd));
    TUTTI_TRY(tutti_fabric_hold_fd(fabric, tcp->listen_fd));
    for (int peer = 0; peer < fabric->rank; peer++)
        if (fabric->routes[peer] == &tutti_tcp_ops)
            tcp->nmissing += TUTTI_CHANNEL_COUNT * tutti_tcp_count_sockets(fabric, peer);
    tcp->takes_calls = true;
    return TUTTI_OK;
}

/* ---- taking calls -------------------------------------------------------------------- */

static void note_stranger(struct tutti_fabric *fabric, const char *why)
{
    struct tutti_tcp *tcp = fabric->tcp;

    if (tcp->has_told_stranger)
        return;
    tcp->has_told_stranger = true;
    tutti_log(TUTTI_LOG_WARN,
              "rank %d: dropped a caller on port %u: %s (further ones are dropped silently)",
              fabric->rank, (unsigned)ntohs(fabric->mine.port_be), why);
}

static bool take_new_caller(struct tutti_fabric *fabric)
{
    struct tutti_tcp *tcp = fabric->tcp;
    struct tutti_tcp_caller *caller;
    uint8_t secret[TUTTI_SECRET_BYTES];
    int fd;

    if (tutti_load_acquire(&fabric->is_aborted) != 0 || tcp->ncallers >= MAX_CALLERS ||
        tutti_socket_accept(tcp->listen_fd, &fd) != TUTTI_OK)
        return false;
    caller = calloc(1, sizeof *caller);
    if (caller == NULL || tutti_wait_watch(fabric, fd) != TUTTI_OK ||
        tutti_socket_tune(fd, (size_t)tutti_param_int(TUTTI_PARAM_SOCKET_BUFFER)) != TUTTI_OK ||
        tutti_fabric_hold_fd(fabric, fd) != TUTTI_OK) {
        free(caller);
        close(fd);
        return false;
    }
    caller->fd = fd;
    tutti_tcp_secret(fabric, fabric->rank, secret);
    tutti_handshake_start(&caller->shake, fd, true, secret, NULL,
                          tutti_now_ns() + CALLER_PATIENCE_NS);
    caller->next = tcp->callers;
    tcp->callers = caller;
    tcp->ncallers++;
    return true;
}

/* A caller has proved to be a member. It still may not say nonsense. */
static void admit(struct tutti_fabric *fabric, const struct tutti_handshake *shake)
{
    struct tutti_tcp_purpose purpose;
    struct tutti_tcp_conn *conn;
    bool is_replacement;

    memcpy(&purpose, shake->purpose.bytes, sizeof purpose);
    if (purpose.channel == TUTTI_TCP_TELLS && purpose.rank == fabric->rank - 1) {
        memcpy(fabric->tcp->told, purpose.words, sizeof fabric->tcp->told);
        fabric->tcp->was_told = true;
        close(shake->fd);
        return;
    }
    if (purpose.rank < 0 || purpose.rank >= fabric->rank ||
        fabric->routes[purpose.rank] != &tutti_tcp_ops || purpose.channel < 0 ||
        purpose.channel >= TUTTI_CHANNEL_COUNT || purpose.socket < 0) {
        close(shake->fd);
        return;
    }
    conn = (struct tutti_tcp_conn *)
        fabric->conns[tutti_conn_index(purpose.rank, purpose.channel)];
    if (conn == NULL &&
        tutti_tcp_conn_create(fabric, purpose.rank, purpose.channel, &conn) != TUTTI_OK) {
        close(shake->fd);
        return;
    }
    if (conn->is_up || purpose.socket >= conn->nsockets) {
        close(shake->fd);
        return;
    }
    is_replacement = conn->fds[purpose.socket] >= 0;
    if (tutti_tcp_conn_add(conn, purpose.socket, shake->fd) == TUTTI_OK && !is_replacement)
        fabric->tcp->nmissing--;
}

/* Gone before a byte: one who only wanted to know whether we live (tcp_probe.c). */
static bool was_probe(const struct tutti_handshake *shake, int rc)
{
    return rc == TUTTI_ERR_REMOTE && shake->phase <= 1 && shake->wire_done == 0;
}

static void step_callers(struct tutti_fabric *fabric)
{
    struct tutti_tcp_caller **link = &fabric->tcp->callers;

    while (*link != NULL) {
        struct tutti_tcp_caller *caller = *link;
        int rc = tutti_handshake_step(&caller->shake);

        if (rc == TUTTI_AGAIN) {
            link = &caller->next;
            continue;
        }
        tutti_fabric_drop_fd(fabric, caller->fd);
        if (rc == TUTTI_OK) {
            admit(fabric, &caller->shake);
        } else {
            if (!was_probe(&caller->shake, rc))
                note_stranger(fabric, tutti_last_message());
            close(caller->fd);
        }
        *link = caller->next;
        fabric->tcp->ncallers--;
        free(caller);
    }
}

void tutti_tcp_progress(struct tutti_fabric *fabric)
{
    struct tutti_tcp *tcp = fabric->tcp;

    if (tcp == NULL || !tcp->takes_calls)
        return;
    if (tcp->dialing != NULL)
        tutti_tcp_dial_step(fabric);
    if (tcp->listen_fd >= 0)
        for (int i = 0; i < ACCEPTS_PER_LOOK && take_new_caller(fabric); i++)
            ;
    if (tcp->callers != NULL)
        step_callers(fabric);
    if (tcp->tell.is_active)
        tutti_tcp_tell_step(fabric);
}

bool tutti_tcp_is_busy(const struct tutti_fabric *fabric)
{
    const struct tutti_tcp *tcp = fabric->tcp;

    return tcp != NULL && tcp->takes_calls &&
           (tcp->nmissing > 0 || tcp->nsockets_open > 0 || tcp->dialing != NULL);
}

void tutti_tcp_destroy(struct tutti_fabric *fabric)
{
    struct tutti_tcp *tcp = fabric->tcp;

    if (tcp == NULL)
        return;
    while (tcp->callers != NULL) {
        struct tutti_tcp_caller *caller = tcp->callers;

        tcp->callers = caller->next;
        tutti_fabric_drop_fd(fabric, caller->fd);
        close(caller->fd);
        free(caller);
    }
    tutti_tcp_tell_stop(tcp);
    stop_listening(fabric);
    fabric->tcp = NULL;
    free(tcp);
}
