/* SPDX-License-Identifier: Apache-2.0
 * Detects that a connection is lost, also one for which no rank waits now.
 *
 * A peer that ends resets or closes its connections. If the network is cut or a host is down,
 * nothing arrives any more, and there are two cases. On a connection without unacknowledged bytes
 * the kernel probes the other end at intervals (keepalive). Otherwise the kernel sends the bytes
 * again for a quarter of an hour. The option TCP_USER_TIMEOUT would shorten this time. But it would
 * also end a connection to a live rank that computes for as long and does not read. So this file
 * checks which connections have bytes that stay unacknowledged. */
#include "transport/tcp/tcp.h"

#include "base/clock.h"
#include "base/param.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* The number of sockets that one system call checks. */
enum { AT_ONCE = 64 };

/* The number of checks for silent peers within the time limit TUTTI_NETWORK_TIMEOUT_MS. */
enum { LOOKS_PER_TIMEOUT = 16 };
#define MOST_PAUSE_NS TUTTI_NS_PER_S

static bool is_network_error(int error)
{
    return error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH ||
           error == ENETDOWN || error == EHOSTDOWN;
}

const char *tutti_tcp_describe_loss(struct tutti_tcp_conn *conn, int error, const char *verb)
{
    char address[TUTTI_ADDRESS_TEXT_BYTES];

    if (is_network_error(error))
        snprintf(conn->reason, sizeof conn->reason,
                 "(%s): no answer for %.3g s: the network is cut or its host is down "
                 "(TUTTI_NETWORK_TIMEOUT_MS)",
                 tutti_address_format(&conn->far_end, address),
                 (double)tutti_param_int(TUTTI_PARAM_NETWORK_TIMEOUT) / 1000);
    else
        snprintf(conn->reason, sizeof conn->reason, "%s its connection (it aborted or died)", verb);
    return conn->reason;
}

/* ---- resets -------------------------------------------------------------------------- */

struct polled_socket {
    struct tutti_tcp_conn *conn;
    int fd;
};

/* Finds a connection that was reset. A socket shows a reset as an error or as shut down in both
 * directions. It shows neither if its peer has left in good order. */
static struct tutti_tcp_conn *find_among(const struct polled_socket *sockets, size_t count,
                                         int *ret_error)
{
    struct pollfd polled[AT_ONCE];
    socklen_t size = sizeof *ret_error;

    for (size_t i = 0; i < count; i++)
        polled[i] = (struct pollfd){.fd = sockets[i].fd};
    if (count == 0 || poll(polled, count, 0) <= 0)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        if ((polled[i].revents & (POLLERR | POLLHUP)) == 0)
            continue;
        if (getsockopt(sockets[i].fd, SOL_SOCKET, SO_ERROR, ret_error, &size) != 0)
            *ret_error = 0;
        return sockets[i].conn;
    }
    return NULL;
}

/* ---- silence ------------------------------------------------------------------------- */

/* True if bytes or probes on this socket have not been acknowledged for the whole time limit. */
static bool is_silent(struct tutti_tcp_conn *conn, int index, uint64_t now_ns, uint64_t timeout_ns)
{
    struct tcp_info info = {.tcpi_unacked = 0};
    socklen_t size = sizeof info;
    uint64_t *since_ns = &conn->silent_ns[index];

    if (getsockopt(conn->fds[index], IPPROTO_TCP, TCP_INFO, &info, &size) != 0)
        return false;
    if (info.tcpi_unacked == 0 && info.tcpi_probes == 0)
        *since_ns = 0;
    else if (*since_ns == 0 ||
             info.tcpi_last_ack_recv * TUTTI_NS_PER_MS < now_ns - *since_ns)
        *since_ns = now_ns;
    return *since_ns != 0 && now_ns - *since_ns >= timeout_ns;
}

/* Returns true if the next check for silent peers is due, and sets the time of the one after it. */
static bool is_time_to_look(struct tutti_tcp *tcp, uint64_t now_ns, uint64_t timeout_ns)
{
    uint64_t pause_ns = timeout_ns / LOOKS_PER_TIMEOUT;

    if (timeout_ns == 0 || now_ns < tcp->next_look_ns)
        return false;
    tcp->next_look_ns = now_ns + (pause_ns < MOST_PAUSE_NS ? pause_ns : MOST_PAUSE_NS);
    return true;
}

/* ---- both ---------------------------------------------------------------------------- */

/* One search over all connections. It ends at the first lost one. */
struct search {
    bool looks_for_silence; /* else only for resets */
    uint64_t now_ns, timeout_ns;
    struct polled_socket sockets[AT_ONCE]; /* not yet checked for resets */
    size_t count;
    struct tutti_tcp_conn *lost; /* NULL: none so far */
    int error;                   /* the errno value of the loss; 0: not known */
};

static void check_for_resets(struct search *search)
{
    if (search->lost == NULL)
        search->lost = find_among(search->sockets, search->count, &search->error);
    search->count = 0;
}

static void check_sockets(struct search *search, struct tutti_tcp_conn *conn)
{
    bool may_be_silent =
        search->looks_for_silence && !tutti_tcp_is_near(conn->base.fabric, conn->base.peer);

    for (int index = 0; index < conn->nsockets && search->lost == NULL; index++) {
        if (conn->fds[index] < 0)
            continue;
        if (may_be_silent && is_silent(conn, index, search->now_ns, search->timeout_ns)) {
            search->error = ETIMEDOUT;
            search->lost = conn;
            return;
        }
        search->sockets[search->count++] = (struct polled_socket){conn, conn->fds[index]};
        if (search->count == AT_ONCE)
            check_for_resets(search);
    }
}

bool tutti_tcp_find_lost(struct tutti_fabric *fabric, struct tutti_loss *ret_loss)
{
    struct tutti_tcp *tcp = tutti_tcp_of(fabric);
    size_t nconns = (size_t)fabric->nranks * TUTTI_CHANNEL_COUNT;
    struct search search;

    if (tcp->nsockets_open == 0)
        return false;
    search.count = 0;
    search.lost = NULL;
    search.error = 0;
    search.now_ns = tutti_now_ns();
    search.timeout_ns = (uint64_t)tutti_param_int(TUTTI_PARAM_NETWORK_TIMEOUT) * TUTTI_NS_PER_MS;
    search.looks_for_silence = is_time_to_look(tcp, search.now_ns, search.timeout_ns);
    for (size_t i = 0; i < nconns && search.lost == NULL; i++) {
        struct tutti_tcp_conn *conn = (struct tutti_tcp_conn *)fabric->conns[i];

        if (conn != NULL && fabric->routes[conn->base.peer] == &tutti_tcp_ops)
            check_sockets(&search, conn);
    }
    check_for_resets(&search);
    if (search.lost == NULL)
        return false;
    ret_loss->peer = search.lost->base.peer;
    tutti_message_copy(ret_loss->what, sizeof ret_loss->what,
                       tutti_tcp_describe_loss(search.lost, search.error, "reset"));
    return true;
}
