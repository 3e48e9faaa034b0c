/* SPDX-License-Identifier: Apache-2.0
 * Accepts connections at the listener of a fabric, to which lower ranks connect. A process that
 * connects is a caller. It may be any process that can reach the port, so it is a stranger until it
 * has proved in the handshake that it knows the secret. A stranger gets no further than the
 * handshake, and is closed at the handshake's deadline.
 *
 * A caller is one of these:
 *
 *     a lower rank            handshake, confirmation; its socket is then added to a connection
 *     the rank before         handshake with its state as purpose (state.c); it is then closed
 *     a rank that gives up    a signed note instead of a handshake (note.c)
 *     a rank that probes      closes before it sends a byte (probe.c)
 *
 * No function of this file blocks. */
#include "transport/tcp/tcp.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/param.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The number of callers that are kept at a time, in addition to one for each socket that lower
 * ranks may still open. */
#define MOST_STRANGERS 256
/* The time that a caller has for the handshake. */
#define CALLER_PATIENCE_NS (2 * TUTTI_NS_PER_S)
/* If no descriptor is left for the next caller, a stranger is closed for it, but not before the
 * stranger has been there for this long. Otherwise peers that call at the same time would take each
 * other's places again and again. */
#define CALLER_GRACE_NS (250 * TUTTI_NS_PER_MS)
/* The number of callers accepted per call of tutti_tcp_progress and listener, so that a flood of
 * callers does not keep a rank from its work. */
#define ACCEPTS_PER_LOOK 64
/* The number of callers whose sockets one system call checks. */
#define CALLERS_PER_POLL 64

void tutti_tcp_secret(const struct tutti_fabric *fabric, int called,
                      uint8_t ret_secret[TUTTI_SECRET_BYTES])
{
    tutti_secret_derive(fabric->secret, "tcp", (uint64_t)called, ret_secret);
}

/* ---- one caller ---------------------------------------------------------------------- */

/* Warns of the first stranger that is dropped. */
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

/* Returns the connection to which the socket with this purpose may be added. Returns NULL if the
 * purpose is malformed, if the connection has that socket already, or if memory is out. The
 * connection is created for its first socket. */
static struct tutti_tcp_conn *conn_for(struct tutti_fabric *fabric,
                                       const struct tutti_tcp_purpose *purpose)
{
    struct tutti_tcp_conn *conn;

    /* Only lower ranks call this one. */
    if (purpose->rank < 0 || purpose->rank >= fabric->rank ||
        fabric->routes[purpose->rank] != &tutti_tcp_ops || purpose->channel < 0 ||
        purpose->channel >= TUTTI_CHANNEL_COUNT || purpose->socket < 0)
        return NULL;
    conn = (struct tutti_tcp_conn *)
        fabric->conns[tutti_conn_index(purpose->rank, purpose->channel)];
    if (conn == NULL &&
        tutti_tcp_conn_create(fabric, purpose->rank, purpose->channel, &conn) != TUTTI_OK)
        return NULL;
    if (purpose->socket >= conn->nsockets || conn->fds[purpose->socket] >= 0)
        return NULL;
    return conn;
}

/* Adds the socket of a caller to its connection. The caller has proved that it holds the secret,
 * but its purpose may still be malformed. The socket is then closed. */
static void admit(struct tutti_fabric *fabric, const struct tutti_handshake *shake)
{
    struct tutti_tcp_purpose purpose;
    struct tutti_tcp_conn *conn;

    memcpy(&purpose, shake->purpose.bytes, sizeof purpose);
    conn = conn_for(fabric, &purpose);
    if (conn == NULL) {
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

/* True if the caller closed before it sent a byte. It then only tested whether this rank lives
 * (probe.c). `rc` is the result of the handshake. In phase 0 the handshake sends the greeting, and
 * in phase 1 it waits for the caller's first message. */
static bool was_probe(const struct tutti_handshake *shake, int rc)
{
    return rc == TUTTI_ERR_REMOTE && shake->phase <= 1 && shake->wire_done == 0;
}

static void free_caller(struct tutti_tcp_caller *caller)
{
    tutti_handshake_forget(&caller->shake);
    free(caller);
}

/* Continues the handshake with a stranger, or begins to read its note. TUTTI_OK: the caller has
 * proved itself and will confirm. TUTTI_AGAIN: more bytes must arrive. Other results: the caller
 * must be closed. */
static int prove_caller(struct tutti_fabric *fabric, struct tutti_tcp_caller *caller)
{
    int rc = tutti_handshake_step(&caller->shake);

    if (rc == TUTTI_ERR_REMOTE && tutti_tcp_note_begins(caller))
        return tutti_tcp_note_step(fabric, caller);
    if (rc != TUTTI_OK && rc != TUTTI_AGAIN && !was_probe(&caller->shake, rc))
        log_stranger(fabric, tutti_message_last());
    TUTTI_TRY(rc);
    if (take_state(fabric, &caller->shake))
        return TUTTI_ERR_REMOTE; /* the caller sends nothing more, so close it */
    caller->is_proved = true;
    caller->shake.deadline_ns = TUTTI_NEVER;
    return TUTTI_OK;
}

/* Makes progress with a caller. TUTTI_OK: its socket can be added to a connection. TUTTI_AGAIN:
 * more bytes must arrive. Other results: the caller must be closed. */
static int step_caller(struct tutti_fabric *fabric, struct tutti_tcp_caller *caller)
{
    uint8_t confirmation = 0;
    size_t done = 0;

    if (caller->brings_note)
        return tutti_tcp_note_step(fabric, caller);
    if (!caller->is_proved)
        TUTTI_TRY(prove_caller(fabric, caller));
    TUTTI_TRY(tutti_socket_recv(caller->fd, &confirmation, 1, &done));
    if (done == 0)
        return TUTTI_AGAIN;
    return confirmation == TUTTI_TCP_CONFIRMATION ? TUTTI_OK : TUTTI_ERR_REMOTE;
}

/* Makes progress with a caller. Returns true if its socket was added to a connection or closed; the
 * caller is then freed, but it is still in the list if it was there. */
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

/* ---- the list of callers ------------------------------------------------------------- */

/* A link is the address of the pointer that points to a caller: the head of the list, or `next` of
 * the caller before it. */

/* Removes a caller from the list. `link` is the caller's link, and `next` is the caller after it.
 * The caller itself may be freed already. */
static void unlink_caller(struct tutti_tcp *tcp, struct tutti_tcp_caller **link,
                          struct tutti_tcp_caller *next)
{
    *link = next;
    if (next == NULL)
        tcp->callers_end = link;
    tcp->ncallers--;
}

static void append_caller(struct tutti_tcp *tcp, struct tutti_tcp_caller *caller)
{
    *tcp->callers_end = caller;
    tcp->callers_end = &caller->next;
    tcp->ncallers++;
}

/* Checks up to CALLERS_PER_POLL callers, beginning with the one at `link`. Serves those that have
 * sent something or whose deadline has passed. Returns the link after the last of them, or NULL if
 * the callers cannot be checked. */
static struct tutti_tcp_caller **serve_some(struct tutti_fabric *fabric,
                                            struct tutti_tcp_caller **link)
{
    struct pollfd polled[CALLERS_PER_POLL];
    uint64_t now_ns = tutti_now_ns();
    nfds_t count = 0;

    for (struct tutti_tcp_caller *at = *link; at != NULL && count < CALLERS_PER_POLL; at = at->next)
        polled[count++] = (struct pollfd){.fd = at->fd, .events = POLLIN};
    if (poll(polled, count, 0) < 0)
        return NULL;
    for (nfds_t i = 0; i < count; i++) {
        struct tutti_tcp_caller *caller = *link, *next = caller->next;
        bool is_due = polled[i].revents != 0 || now_ns >= caller->shake.deadline_ns;

        if (is_due && serve_caller(fabric, caller))
            unlink_caller(tutti_tcp_of(fabric), link, next);
        else
            link = &caller->next;
    }
    return link;
}

static void serve_callers(struct tutti_fabric *fabric)
{
    struct tutti_tcp_caller **link = &tutti_tcp_of(fabric)->callers;

    while (link != NULL && *link != NULL)
        link = serve_some(fabric, link);
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

/* Closes a stranger and removes it from the list. `why` is for the log. */
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

/* ---- new callers --------------------------------------------------------------------- */

/* Drops the oldest stranger if there are too many callers. */
static void make_room(struct tutti_fabric *fabric)
{
    struct tutti_tcp *tcp = tutti_tcp_of(fabric);
    struct tutti_tcp_caller **link = find_stranger(tcp);

    if (link != NULL && tcp->ncallers >= MOST_STRANGERS + (size_t)tcp->nmissing)
        drop_stranger(fabric, link, "too many callers at once that do not prove themselves");
}

/* True if the stranger has been there for CALLER_GRACE_NS. */
static bool has_had_its_grace(const struct tutti_tcp_caller *caller)
{
    uint64_t arrived_ns = caller->shake.deadline_ns - CALLER_PATIENCE_NS;

    return tutti_now_ns() >= arrived_ns + CALLER_GRACE_NS;
}

/* Accepts the socket of the next caller. TUTTI_AGAIN: none can be accepted now.
 *
 * If no descriptor is left, strangers are closed, the oldest first. Until the oldest has had its
 * grace period, the new caller waits in the kernel's queue. If there are no strangers, this rank
 * fails, because the new caller would wait forever. */
static int accept_caller(struct tutti_fabric *fabric, int listen_fd, int *ret_fd)
{
    struct tutti_tcp_caller **oldest;
    int rc;

    while ((rc = tutti_socket_accept(listen_fd, ret_fd)) == TUTTI_ERR_SYSTEM) {
        oldest = find_stranger(tutti_tcp_of(fabric));
        if (oldest == NULL) {
            rc = tutti_fail(rc, "cannot take a peer's connection: %s", tutti_message_last());
            return tutti_fabric_keep_failure(fabric, rc);
        }
        if (!has_had_its_grace(*oldest))
            return TUTTI_AGAIN;
        drop_stranger(fabric, oldest, tutti_message_last());
    }
    return rc;
}

/* Accepts the next caller. Returns false if no caller waits, or if none can be accepted now. */
static bool take_new_caller(struct tutti_fabric *fabric, int listen_fd)
{
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
    /* The acceptor sends the first message of the handshake, so serve the caller at once. */
    if (!serve_caller(fabric, caller))
        append_caller(tutti_tcp_of(fabric), caller);
    return true;
}

/* Accepts the callers that wait at the listeners. */
static void take_new_callers(struct tutti_fabric *fabric)
{
    struct tutti_tcp *tcp = tutti_tcp_of(fabric);
    struct pollfd polled[TUTTI_MAX_CANDIDATES];

    for (size_t i = 0; i < tcp->nlisten; i++)
        polled[i] = (struct pollfd){.fd = tcp->listen_fds[i], .events = POLLIN};
    if (poll(polled, tcp->nlisten, 0) <= 0)
        return;
    for (size_t i = 0; i < tcp->nlisten; i++) {
        bool has_callers = tcp->listen_fds[i] >= 0 && (polled[i].revents & POLLIN) != 0;

        for (int k = 0; has_callers && k < ACCEPTS_PER_LOOK; k++)
            has_callers = take_new_caller(fabric, tcp->listen_fds[i]);
    }
}

void tutti_tcp_progress(struct tutti_fabric *fabric)
{
    struct tutti_tcp *tcp = tutti_tcp_of(fabric);

    if (tcp == NULL || !tcp->takes_calls)
        return;
    if (tcp->dialing != NULL)
        tutti_tcp_dial_step(fabric);
    /* Callers that have answered come first, because a new caller might take their places. */
    serve_callers(fabric);
    take_new_callers(fabric);
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
