/* SPDX-License-Identifier: Apache-2.0
 * Accepts connections at the listener of a fabric, to which lower ranks connect. A process that
 * connects is a caller, and is a stranger until it has proved that it knows the secret. A stranger
 * gets no further than the handshake, and stays no longer than its deadline. */
#include "transport/tcp/tcp.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/param.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The number of callers that are kept in addition to one for each socket that lower ranks may still
 * open, and the time that a caller has for the handshake. */
#define MOST_STRANGERS 256
#define CALLER_PATIENCE_NS (2 * TUTTI_NS_PER_S)
/* A caller keeps its place for this long even if no descriptor is left for the next one. Otherwise
 * peers that call at the same time would take each other's places again and again. */
#define CALLER_GRACE_NS (250 * TUTTI_NS_PER_MS)
/* The number of callers accepted per check, so that a flood of them does not keep a rank from its
 * work. */
#define ACCEPTS_PER_LOOK 64
/* The number of callers whose sockets one system call checks. */
#define CALLERS_PER_POLL 64

void tutti_tcp_secret(const struct tutti_fabric *fabric, int called,
                      uint8_t ret_secret[TUTTI_SECRET_BYTES])
{
    tutti_secret_derive(fabric->secret, "tcp", (uint64_t)called, ret_secret);
}

/* ---- accepting callers --------------------------------------------------------------- */

static void log_stranger(struct tutti_fabric *fabric, const char *why)
{
    struct tutti_tcp *tcp = tutti_tcp_of(fabric);

    if (tcp->has_logged_stranger)
        return;
    tcp->has_logged_stranger = true;
    tutti_log(TUTTI_LOG_WARN,
              "dropped a caller on port %u: %s (further ones are dropped silently)",
              (unsigned)ntohs(tutti_tcp_own_record(fabric)->port_be), why);
}

/* Adds the socket of a caller to its connection. The caller has proved that it is a rank, but it
 * may still send malformed data. Then the socket is closed. */
static void admit(struct tutti_fabric *fabric, const struct tutti_handshake *shake)
{
    struct tutti_tcp_purpose purpose;
    struct tutti_tcp_conn *conn;

    memcpy(&purpose, shake->purpose.bytes, sizeof purpose);
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
    if (purpose.socket >= conn->nsockets || conn->fds[purpose.socket] >= 0) {
        close(shake->fd);
        return;
    }
    if (tutti_tcp_conn_add(conn, purpose.socket, shake) == TUTTI_OK)
        tutti_tcp_of(fabric)->nmissing--;
}

/* Keeps the state that the rank before this one has sent (state.c). Returns false if the caller has
 * another purpose. */
static bool take_state(struct tutti_fabric *fabric, const struct tutti_handshake *shake)
{
    struct tutti_tcp *tcp = tutti_tcp_of(fabric);
    struct tutti_tcp_purpose purpose;

    memcpy(&purpose, shake->purpose.bytes, sizeof purpose);
    if (purpose.channel != TUTTI_TCP_CHANNEL_STATE || purpose.rank != fabric->rank - 1)
        return false;
    memcpy(tcp->previous_state, purpose.words, sizeof tcp->previous_state);
    tcp->has_previous_state = true;
    return true;
}

/* True if the caller closed before it sent a byte, which is in phase 0 or 1 of the handshake. It
 * then only tested whether this rank lives (probe.c). */
static bool was_probe(const struct tutti_handshake *shake, int rc)
{
    return rc == TUTTI_ERR_REMOTE && shake->phase <= 1 && shake->wire_done == 0;
}

static void free_caller(struct tutti_tcp_caller *caller)
{
    tutti_handshake_forget(&caller->shake);
    free(caller);
}

/* Makes progress with a caller. TUTTI_OK: the connection is established. TUTTI_AGAIN: more bytes
 * must arrive. Other results: the caller must be closed. */
static int step_caller(struct tutti_fabric *fabric, struct tutti_tcp_caller *caller)
{
    uint8_t confirmation = 0;
    size_t done = 0;
    int rc;

    if (caller->brings_note)
        return tutti_tcp_note_step(fabric, caller);
    if (!caller->is_proved) {
        rc = tutti_handshake_step(&caller->shake);
        if (rc == TUTTI_ERR_REMOTE && tutti_tcp_note_begins(caller))
            return tutti_tcp_note_step(fabric, caller);
        if (rc != TUTTI_OK && rc != TUTTI_AGAIN && !was_probe(&caller->shake, rc))
            log_stranger(fabric, tutti_message_last());
        TUTTI_TRY(rc);
        if (take_state(fabric, &caller->shake))
            return TUTTI_ERR_REMOTE; /* the caller sends nothing more, so close it */
        caller->is_proved = true;
        caller->shake.deadline_ns = TUTTI_NEVER;
    }
    TUTTI_TRY(tutti_socket_recv(caller->fd, &confirmation, 1, &done));
    if (done == 0)
        return TUTTI_AGAIN;
    return confirmation == TUTTI_TCP_CONFIRMATION ? TUTTI_OK : TUTTI_ERR_REMOTE;
}

/* Makes progress with a caller. Returns true if it has become a connection or was closed. */
static bool serve_caller(struct tutti_fabric *fabric, struct tutti_tcp_caller *caller)
{
    int rc = step_caller(fabric, caller);

    if (rc == TUTTI_AGAIN)
        return false;
    tutti_tcp_release(fabric, caller->fd);
    if (rc == TUTTI_OK)
        admit(fabric, &caller->shake);
    else
        close(caller->fd);
    free_caller(caller);
    return true;
}

static void unlink_caller(struct tutti_tcp *tcp, struct tutti_tcp_caller **link,
                          struct tutti_tcp_caller *next)
{
    *link = next;
    if (next == NULL)
        tcp->callers_end = link;
    tcp->ncallers--;
}

/* Checks up to CALLERS_PER_POLL callers from *at_link on, and handles those that have sent
 * something or whose deadline has passed. Sets *at_link to the link after the last of them. Returns
 * false if the callers cannot be checked. */
static bool step_some(struct tutti_fabric *fabric, struct tutti_tcp_caller ***at_link)
{
    struct tutti_tcp_caller **link = *at_link;
    struct pollfd polled[CALLERS_PER_POLL];
    uint64_t now_ns = tutti_now_ns();
    nfds_t count = 0;

    for (struct tutti_tcp_caller *at = *link; at != NULL && count < CALLERS_PER_POLL; at = at->next)
        polled[count++] = (struct pollfd){.fd = at->fd, .events = POLLIN};
    if (poll(polled, count, 0) < 0)
        return false;
    for (nfds_t i = 0; i < count; i++) {
        struct tutti_tcp_caller *caller = *link, *next = caller->next;

        if ((polled[i].revents != 0 || now_ns >= caller->shake.deadline_ns) &&
            serve_caller(fabric, caller))
            unlink_caller(tutti_tcp_of(fabric), link, next);
        else
            link = &caller->next;
    }
    *at_link = link;
    return true;
}

static void step_callers(struct tutti_fabric *fabric)
{
    struct tutti_tcp_caller **link = &tutti_tcp_of(fabric)->callers;

    while (*link != NULL && step_some(fabric, &link))
        ;
}

/* Returns the link to the caller that has been a stranger for longest, or NULL if all callers have
 * proved themselves. */
static struct tutti_tcp_caller **find_stranger(struct tutti_tcp *tcp)
{
    struct tutti_tcp_caller **link = &tcp->callers;

    while (*link != NULL && (*link)->is_proved)
        link = &(*link)->next;
    return *link != NULL ? link : NULL;
}

static void drop_stranger(struct tutti_fabric *fabric, struct tutti_tcp_caller **link,
                          const char *why)
{
    struct tutti_tcp_caller *caller = *link;

    log_stranger(fabric, why);
    tutti_tcp_release(fabric, caller->fd);
    close(caller->fd);
    unlink_caller(tutti_tcp_of(fabric), link, caller->next);
    free_caller(caller);
}

/* Drops the oldest stranger if there are too many callers. */
static void make_room(struct tutti_fabric *fabric)
{
    struct tutti_tcp *tcp = tutti_tcp_of(fabric);
    struct tutti_tcp_caller **link = find_stranger(tcp);

    if (link != NULL && tcp->ncallers >= MOST_STRANGERS + (size_t)tcp->nmissing)
        drop_stranger(fabric, link, "too many callers at once that do not prove themselves");
}

static bool has_had_its_grace(const struct tutti_tcp_caller *caller)
{
    uint64_t arrived_ns = caller->shake.deadline_ns - CALLER_PATIENCE_NS;

    return tutti_now_ns() >= arrived_ns + CALLER_GRACE_NS;
}

/* If no descriptor is left, strangers are closed, the oldest first. Until the oldest has had its
 * grace period, the new caller waits in the kernel's queue. If there are no strangers, this rank
 * fails, because its caller would wait forever. */
static int accept_caller(struct tutti_fabric *fabric, int listen_fd, int *ret_fd)
{
    struct tutti_tcp_caller **link;
    int rc;

    while ((rc = tutti_socket_accept(listen_fd, ret_fd)) == TUTTI_ERR_SYSTEM &&
           (link = find_stranger(tutti_tcp_of(fabric))) != NULL) {
        if (!has_had_its_grace(*link))
            return TUTTI_AGAIN;
        drop_stranger(fabric, link, tutti_message_last());
    }
    if (rc == TUTTI_ERR_SYSTEM)
        tutti_fabric_keep_failure(fabric, tutti_fail(rc, "cannot take a peer's connection: %s",
                                                 tutti_message_last()));
    return rc;
}

/* Accepts the next caller. Returns false if no caller waits, or if none can be accepted now. */
static bool take_new_caller(struct tutti_fabric *fabric, int listen_fd)
{
    struct tutti_tcp *tcp = tutti_tcp_of(fabric);
    struct tutti_tcp_caller *caller;
    uint8_t secret[TUTTI_SECRET_BYTES];
    int fd;

    /* acquire: pairs with the release in tutti_fabric_abort; abort_code and abort_reason are set */
    if (tutti_load_acquire(&fabric->is_aborted) != 0 || fabric->failure != TUTTI_OK ||
        accept_caller(fabric, listen_fd, &fd) != TUTTI_OK)
        return false;
    make_room(fabric);
    caller = calloc(1, sizeof *caller);
    if (caller == NULL || tutti_wait_watch(fabric, fd) != TUTTI_OK ||
        tutti_socket_tune(fd, (size_t)tutti_param_int(TUTTI_PARAM_SOCKET_BUFFER)) != TUTTI_OK ||
        tutti_tcp_hold(fabric, fd, -1) != TUTTI_OK) {
        free(caller);
        close(fd);
        return false;
    }
    caller->fd = fd;
    tutti_tcp_secret(fabric, fabric->rank, secret);
    tutti_handshake_start(&caller->shake, fd, true, secret, NULL,
                          tutti_now_ns() + CALLER_PATIENCE_NS);
    if (serve_caller(fabric, caller)) /* the acceptor sends the first message */
        return true;
    *tcp->callers_end = caller;
    tcp->callers_end = &caller->next;
    tcp->ncallers++;
    return true;
}

/* Callers that have answered are served before new ones, which might take their places. */
static void look_at_callers(struct tutti_fabric *fabric)
{
    struct tutti_tcp *tcp = tutti_tcp_of(fabric);
    struct pollfd polled[TUTTI_MAX_CANDIDATES];

    if (tcp->callers != NULL)
        step_callers(fabric);
    for (size_t i = 0; i < tcp->nlisten; i++)
        polled[i] = (struct pollfd){.fd = tcp->listen_fds[i], .events = POLLIN};
    if (poll(polled, tcp->nlisten, 0) <= 0)
        return;
    for (size_t i = 0; i < tcp->nlisten; i++)
        if (tcp->listen_fds[i] >= 0 && (polled[i].revents & POLLIN) != 0)
            for (int k = 0; k < ACCEPTS_PER_LOOK; k++)
                if (!take_new_caller(fabric, tcp->listen_fds[i]))
                    break;
}

void tutti_tcp_progress(struct tutti_fabric *fabric)
{
    struct tutti_tcp *tcp = tutti_tcp_of(fabric);

    if (tcp == NULL || !tcp->takes_calls)
        return;
    if (tcp->dialing != NULL)
        tutti_tcp_dial_step(fabric);
    look_at_callers(fabric);
    if (tcp->state_call.is_active)
        tutti_tcp_state_step(fabric);
}

void tutti_tcp_drop_callers(struct tutti_fabric *fabric)
{
    struct tutti_tcp *tcp = tutti_tcp_of(fabric);

    while (tcp->callers != NULL) {
        struct tutti_tcp_caller *caller = tcp->callers;

        tcp->callers = caller->next;
        tutti_tcp_release(fabric, caller->fd);
        close(caller->fd);
        free_caller(caller);
    }
}
