/* SPDX-License-Identifier: Apache-2.0
 * The listener of a fabric: lower ranks call it. A stranger gets no further than
 * the handshake, and no longer than its deadline. */
#include "transport/tcp/tcp.h"

#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/param.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Callers that have not proved themselves: how many beside the ranks that are due, and how long one
 * may keep its place once they are as many. */
#define MOST_STRANGERS 256
#define CALLER_PATIENCE_NS (2 * TUTTI_NS_PER_S)
/* A caller keeps its place for this long even when no descriptor is left for the next one. Peers
 * that call at the same time would otherwise take each other's places, over and over. */
#define CALLER_GRACE_NS (250 * TUTTI_NS_PER_MS)
/* Callers taken per look, so that a flood does not keep a rank from its work. */
#define ACCEPTS_PER_LOOK 64
/* Callers whose sockets are looked at by one system call. */
#define CALLERS_PER_POLL 64

void tutti_tcp_secret(const struct tutti_fabric *fabric, int called,
                      uint8_t ret_secret[TUTTI_SECRET_BYTES])
{
    tutti_secret_derive(fabric->secret, "tcp", (uint64_t)called, ret_secret);
}

/* ---- opening ------------------------------------------------------------------------- */

/* Keep the candidates that we listen at, in their order. */
static void list_candidates(struct tutti_fabric *fabric, struct tutti_tcp *tcp, size_t count,
                            const uint32_t *mbits)
{
    union tutti_record *mine = &fabric->mine;

    for (size_t i = 0; i < count; i++) {
        if (tcp->listen_fds[i] < 0)
            continue;
        if (tcp->nlisten == 0)
            mine->mbits = mbits[i];
        mine->candidates[tcp->nlisten] = mine->candidates[i];
        tcp->listen_fds[tcp->nlisten++] = tcp->listen_fds[i];
    }
    mine->ncandidates = (uint8_t)tcp->nlisten;
}

/* Whatever else this rank needs besides its connections, so that a rank that lacks it can tell so while
 * ranks meet. */
static int reserve(struct tutti_fabric *fabric, struct tutti_tcp *tcp)
{
    char cause[TUTTI_LIMITS_TEXT_BYTES];

    TUTTI_TRY(tutti_wait_reserve(fabric));
    tcp->spare_fd = eventfd(0, EFD_CLOEXEC);
    if (tcp->spare_fd >= 0)
        return TUTTI_OK;
    tutti_limits_describe(errno, cause);
    tutti_wait_release(fabric);
    return tutti_note(TUTTI_ERR_SYSTEM, "a spare descriptor: %s", cause);
}

int tutti_tcp_open(struct tutti_fabric *fabric)
{
    union tutti_record *mine = &fabric->mine;
    struct tutti_tcp *tcp = calloc(1, sizeof *tcp);
    uint32_t mbits[TUTTI_MAX_CANDIDATES];
    size_t count;
    int rc;

    if (tcp == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for TCP");
    tcp->callers_end = &tcp->callers;
    tcp->spare_fd = -1;
    tcp->has_met = calloc((size_t)fabric->nranks, sizeof *tcp->has_met);
    if (tcp->has_met == NULL) {
        rc = tutti_fail(TUTTI_ERR_SYSTEM, "no memory for TCP");
        goto free_tcp;
    }
    TUTTI_TRY_OR(free_tcp, rc,
                 tutti_address_list_rated(mine->candidates, mbits, TUTTI_MAX_CANDIDATES, &count));
    /* Only at addresses that the others are told of. */
    if (tutti_socket_listen_each(mine->candidates, count, tcp->listen_fds, &mine->port_be) == 0) {
        rc = tutti_fail(TUTTI_ERR_SYSTEM, "%s", tutti_last_message());
        goto free_tcp;
    }
    TUTTI_TRY_OR(stop_listening, rc, reserve(fabric, tcp));
    list_candidates(fabric, tcp, count, mbits);
    mine->nsockets = (uint8_t)tutti_param_int(TUTTI_PARAM_SOCKETS_PER_PEER);
    fabric->tcp = tcp;
    return TUTTI_OK;

stop_listening:
    for (size_t i = 0; i < count; i++)
        if (tcp->listen_fds[i] >= 0)
            close(tcp->listen_fds[i]);
    mine->port_be = 0;
free_tcp:
    free(tcp->has_met);
    free(tcp);
    return rc;
}

static void stop_listening(struct tutti_fabric *fabric, size_t index)
{
    struct tutti_tcp *tcp = fabric->tcp;

    if (tcp->listen_fds[index] < 0)
        return;
    tutti_fabric_drop_fd(fabric, tcp->listen_fds[index]);
    close(tcp->listen_fds[index]);
    tcp->listen_fds[index] = -1;
}

static bool has_loopback(const union tutti_record *record, uint8_t family)
{
    for (int i = 0; i < record->ncandidates; i++)
        if (record->candidates[i].is_loopback && record->candidates[i].family == family)
            return true;
    return false;
}

/* Where all ranks can call at the loopback address they do, so nobody else needs to reach us. */
void tutti_tcp_withdraw(struct tutti_fabric *fabric)
{
    struct tutti_tcp *tcp = fabric->tcp;

    if (tcp == NULL)
        return;
    for (int rank = 0; rank < fabric->nranks; rank++)
        if (!tutti_tcp_is_near(fabric, rank))
            return;
    for (size_t i = 0; i < tcp->nlisten; i++)
        if (!fabric->mine.candidates[i].is_loopback &&
            has_loopback(&fabric->mine, fabric->mine.candidates[i].family))
            stop_listening(fabric, i);
}

int tutti_tcp_settle(struct tutti_fabric *fabric, bool is_needed)
{
    struct tutti_tcp *tcp = fabric->tcp;

    if (tcp == NULL)
        return TUTTI_OK;
    if (!is_needed) {
        tutti_tcp_destroy(fabric);
        tutti_wait_release(fabric);
        return TUTTI_OK;
    }
    TUTTI_TRY(tutti_wait_open_sockets(fabric));
    for (size_t i = 0; i < tcp->nlisten; i++) {
        if (tcp->listen_fds[i] < 0)
            continue;
        TUTTI_TRY(tutti_wait_watch(fabric, tcp->listen_fds[i]));
        TUTTI_TRY(tutti_fabric_hold_fd(fabric, tcp->listen_fds[i], -1));
    }
    for (int peer = 0; peer < fabric->rank; peer++)
        if (fabric->routes[peer] == &tutti_tcp_ops)
            tcp->nmissing += TUTTI_CHANNEL_COUNT * tutti_tcp_count_sockets(fabric, peer);
    pthread_mutex_lock(&fabric->lock); /* an abort by another thread may be looking */
    tcp->takes_calls = true;
    pthread_mutex_unlock(&fabric->lock);
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
              "dropped a caller on port %u: %s (further ones are dropped silently)",
              (unsigned)ntohs(fabric->mine.port_be), why);
}

/* A caller has proved to be a member. It still may not say nonsense. */
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
        fabric->tcp->nmissing--;
}

/* The rank before ours tells how far it is. */
static bool was_told(struct tutti_fabric *fabric, const struct tutti_handshake *shake)
{
    struct tutti_tcp_purpose purpose;

    memcpy(&purpose, shake->purpose.bytes, sizeof purpose);
    if (purpose.channel != TUTTI_TCP_TELLS || purpose.rank != fabric->rank - 1)
        return false;
    memcpy(fabric->tcp->told, purpose.words, sizeof fabric->tcp->told);
    fabric->tcp->was_told = true;
    return true;
}

/* Gone before a byte: one who only wanted to know whether we live (probe.c). */
static bool was_probe(const struct tutti_handshake *shake, int rc)
{
    return rc == TUTTI_ERR_REMOTE && shake->phase <= 1 && shake->wire_done == 0;
}

static void free_caller(struct tutti_tcp_caller *caller)
{
    tutti_handshake_forget(&caller->shake);
    free(caller);
}

/* Go on with a caller. TUTTI_OK: the connection stands. TUTTI_ERR_REMOTE and others: it is to be
 * closed. */
static int hear(struct tutti_fabric *fabric, struct tutti_tcp_caller *caller)
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
            note_stranger(fabric, tutti_last_message());
        TUTTI_TRY(rc);
        if (was_told(fabric, &caller->shake))
            return TUTTI_ERR_REMOTE; /* all has been said */
        caller->is_proved = true;
        caller->shake.deadline_ns = TUTTI_NEVER;
    }
    TUTTI_TRY(tutti_socket_recv(caller->fd, &confirmation, 1, &done));
    if (done == 0)
        return TUTTI_AGAIN;
    return confirmation == TUTTI_TCP_CONFIRMATION ? TUTTI_OK : TUTTI_ERR_REMOTE;
}

/* True when it is not a caller any more. */
static bool settle_caller(struct tutti_fabric *fabric, struct tutti_tcp_caller *caller)
{
    int rc = hear(fabric, caller);

    if (rc == TUTTI_AGAIN)
        return false;
    tutti_fabric_drop_fd(fabric, caller->fd);
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

/* Of the next callers those that have said something, or have been silent for too long. */
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
            settle_caller(fabric, caller))
            unlink_caller(fabric->tcp, link, next);
        else
            link = &caller->next;
    }
    *at_link = link;
    return true;
}

static void step_callers(struct tutti_fabric *fabric)
{
    struct tutti_tcp_caller **link = &fabric->tcp->callers;

    while (*link != NULL && step_some(fabric, &link))
        ;
}

/* The link to the caller that has been a stranger for longest. NULL: all callers have proved
 * themselves. */
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

    note_stranger(fabric, why);
    tutti_fabric_drop_fd(fabric, caller->fd);
    close(caller->fd);
    unlink_caller(fabric->tcp, link, caller->next);
    free_caller(caller);
}

static void make_room(struct tutti_fabric *fabric)
{
    struct tutti_tcp *tcp = fabric->tcp;
    struct tutti_tcp_caller **link = find_stranger(tcp);

    if (link != NULL && tcp->ncallers >= MOST_STRANGERS + (size_t)tcp->nmissing)
        drop_stranger(fabric, link, "too many callers at once that do not prove themselves");
}

static bool has_had_its_time(const struct tutti_tcp_caller *caller)
{
    return tutti_now_ns() + CALLER_PATIENCE_NS >= caller->shake.deadline_ns + CALLER_GRACE_NS;
}

/* Without a descriptor left, strangers make room, the oldest first; until it has had its time, the
 * new caller waits in the system's queue. When there are none, this rank has failed: its caller
 * would wait for ever. */
static int accept_caller(struct tutti_fabric *fabric, int listen_fd, int *ret_fd)
{
    struct tutti_tcp_caller **link;
    int rc;

    while ((rc = tutti_socket_accept(listen_fd, ret_fd)) == TUTTI_ERR_SYSTEM &&
           (link = find_stranger(fabric->tcp)) != NULL) {
        if (!has_had_its_time(*link))
            return TUTTI_AGAIN;
        drop_stranger(fabric, link, tutti_last_message());
    }
    if (rc == TUTTI_ERR_SYSTEM)
        tutti_fabric_remember(fabric, tutti_fail(rc, "cannot take a peer's connection: %s",
                                                 tutti_last_message()));
    return rc;
}

static bool take_new_caller(struct tutti_fabric *fabric, int listen_fd)
{
    struct tutti_tcp *tcp = fabric->tcp;
    struct tutti_tcp_caller *caller;
    uint8_t secret[TUTTI_SECRET_BYTES];
    int fd;

    if (tutti_load_acquire(&fabric->is_aborted) != 0 || fabric->failure != TUTTI_OK ||
        accept_caller(fabric, listen_fd, &fd) != TUTTI_OK)
        return false;
    make_room(fabric);
    caller = calloc(1, sizeof *caller);
    if (caller == NULL || tutti_wait_watch(fabric, fd) != TUTTI_OK ||
        tutti_socket_tune(fd, (size_t)tutti_param_int(TUTTI_PARAM_SOCKET_BUFFER)) != TUTTI_OK ||
        tutti_fabric_hold_fd(fabric, fd, -1) != TUTTI_OK) {
        free(caller);
        close(fd);
        return false;
    }
    caller->fd = fd;
    tutti_tcp_secret(fabric, fabric->rank, secret);
    tutti_handshake_start(&caller->shake, fd, true, secret, NULL,
                          tutti_now_ns() + CALLER_PATIENCE_NS);
    if (settle_caller(fabric, caller)) /* we speak first */
        return true;
    *tcp->callers_end = caller;
    tcp->callers_end = &caller->next;
    tcp->ncallers++;
    return true;
}

/* Those who have answered come before new ones, who might take their places. */
static void look_at_callers(struct tutti_fabric *fabric)
{
    struct tutti_tcp *tcp = fabric->tcp;
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
    struct tutti_tcp *tcp = fabric->tcp;

    if (tcp == NULL || !tcp->takes_calls)
        return;
    if (tcp->dialing != NULL)
        tutti_tcp_dial_step(fabric);
    look_at_callers(fabric);
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
        free_caller(caller);
    }
    tutti_tcp_tell_stop(tcp);
    for (size_t i = 0; i < tcp->nlisten; i++)
        stop_listening(fabric, i);
    pthread_mutex_lock(&fabric->lock); /* an abort by another thread may be looking */
    fabric->tcp = NULL;
    pthread_mutex_unlock(&fabric->lock);
    if (tcp->spare_fd >= 0)
        close(tcp->spare_fd);
    free(tcp->has_met);
    free(tcp);
}
