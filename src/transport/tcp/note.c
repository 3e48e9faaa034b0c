/* SPDX-License-Identifier: Apache-2.0
 * Sends and receives notes. A rank that gives up tells its peers the reason in a note, before it
 * resets its connections. The stream of a connection cannot carry the note, because it may be in
 * the middle of other data. So the rank connects to its peers once more, sends a note that is
 * signed with a secret derived from the communicator's, and closes.
 *
 *     rank that gives up                    peer
 *       connect                               (its kernel accepts)
 *       note, end
 *       reset all connections                 accepts, greets, reads the note
 *
 * The rank does not wait for the peer's greeting. So the peer may compute meanwhile, and this
 * process may end at once, because the note is already in the peer's kernel.
 *
 * The first rank that gives up tells all ranks, also those that have yet to connect to it. Each of
 * them passes on the note that it received, not its own error, to the ranks that it has met. So
 * all ranks learn the reason of the first, also if there are too many for one rank to tell. */
#include "transport/tcp/tcp.h"

#include "base/clock.h"

#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The time for all peers together. It is used up only if some peers do not answer, or if there is
 * no descriptor for a connection to them. */
#define PATIENCE_NS (300 * TUTTI_NS_PER_MS)
/* The number of connections that are in progress at a time. */
enum { AT_ONCE = 32 };
/* With more ranks than this, even the first rank that gives up tells only those that it has met. */
enum { MOST_RANKS_TOLD = 256 };

/* The first bytes of a note. The first DISTINCT_BYTES of them distinguish it from a greeting. */
enum { DISTINCT_BYTES = 4 };
static const uint8_t magic[8] = {'T', 'U', 'T', 'n', 0, 0, 0, 1};

#define SIGNED_BYTES offsetof(struct tutti_tcp_note, mac)

/* ---- sending ------------------------------------------------------------------------- */

/* A connection that delivers a note to one peer. */
struct delivery {
    int fd, peer;
    struct tutti_address address;
};

static void note_secret(const struct tutti_fabric *fabric, int called,
                        uint8_t ret_secret[TUTTI_SECRET_BYTES])
{
    uint8_t secret[TUTTI_SECRET_BYTES];

    tutti_tcp_secret(fabric, called, secret);
    tutti_secret_derive(secret, "note", 0, ret_secret);
}

/* Finds the address of the peer's listener: the other end of a connection to it, else the address
 * that is tried first. */
static bool find_address(const struct tutti_fabric *fabric, int peer,
                         struct tutti_address *ret_address)
{
    const struct tutti_tcp *tcp = tutti_tcp_of(fabric);
    struct tutti_address candidates[TUTTI_MAX_CANDIDATES];

    for (size_t i = 0; i < tcp->nheld; i++) {
        if (tcp->held[i].peer != peer)
            continue;
        tutti_socket_peer(tcp->held[i].fd, ret_address);
        ret_address->port_be = tutti_tcp_record(fabric, peer)->port_be;
        if (ret_address->family != 0)
            return true;
    }
    if (tutti_tcp_candidates(fabric, fabric->rank, peer, candidates) == 0)
        return false;
    *ret_address = candidates[0];
    return true;
}

/* True if this rank sends the note to `peer`. */
static bool gets_note(const struct tutti_fabric *fabric, const struct tutti_cause *cause, int peer)
{
    if (tutti_load_relaxed(&tutti_tcp_of(fabric)->has_met[peer]) != 0)
        return true;
    return cause->rank == fabric->rank && fabric->nranks <= MOST_RANKS_TOLD &&
           fabric->routes[peer] == &tutti_tcp_ops;
}

/* Starts or continues to deliver a note. TUTTI_OK: the note was sent. TUTTI_AGAIN: call again;
 * there may not have been a descriptor yet. Another result: the note cannot be sent. */
static int step_delivery(const struct tutti_fabric *fabric, const struct tutti_cause *cause,
                         struct delivery *delivery)
{
    struct tutti_tcp_note note = {.code = cause->code, .rank = cause->rank};
    uint8_t secret[TUTTI_SECRET_BYTES];
    size_t done;
    int rc = tutti_socket_connect(&delivery->address, &delivery->fd);

    if (rc == TUTTI_ERR_SYSTEM && delivery->fd < 0)
        return TUTTI_AGAIN;
    TUTTI_TRY(rc);
    memcpy(note.magic, magic, sizeof magic);
    memcpy(note.reason, cause->reason, sizeof note.reason);
    note_secret(fabric, delivery->peer, secret);
    tutti_secret_sign(secret, &note, SIGNED_BYTES, note.mac);
    /* These are the first bytes of a connection, so there is room. */
    return tutti_socket_send(delivery->fd, &note, sizeof note, &done);
}

/* Makes progress with all deliveries, and removes the completed ones. Returns how many are left. */
static size_t step_deliveries(const struct tutti_fabric *fabric, const struct tutti_cause *cause,
                              struct delivery *deliveries, size_t count)
{
    size_t left = 0;

    for (size_t i = 0; i < count; i++) {
        if (step_delivery(fabric, cause, &deliveries[i]) == TUTTI_AGAIN)
            deliveries[left++] = deliveries[i];
        else if (deliveries[i].fd >= 0)
            close(deliveries[i].fd);
    }
    return left;
}

/* Waits until a delivery can continue. Returns false if no delivery has a descriptor. */
static bool wait_for_any(const struct delivery *deliveries, size_t count, uint64_t until_ns)
{
    struct pollfd polled[AT_ONCE];
    uint64_t now_ns = tutti_now_ns();
    bool is_any_open = false;

    for (size_t i = 0; i < count; i++) {
        polled[i] = (struct pollfd){.fd = deliveries[i].fd, .events = POLLOUT};
        is_any_open |= deliveries[i].fd >= 0;
    }
    if (is_any_open && now_ns < until_ns)
        (void)poll(polled, count,
                   tutti_system_timeout_ms((int)((until_ns - now_ns) / TUTTI_NS_PER_MS) + 1));
    return is_any_open;
}

void tutti_tcp_note_send(struct tutti_fabric *fabric, const struct tutti_cause *cause)
{
    struct tutti_tcp *tcp = tutti_tcp_of(fabric);
    uint64_t until_ns = tutti_now_ns() + PATIENCE_NS;
    char message[TUTTI_MESSAGE_BYTES];
    struct delivery deliveries[AT_ONCE];
    size_t count = 0;

    if (!tcp->takes_calls)
        return;
    /* A rank that gives up because it has no descriptor left must tell its peers, too. The spare
     * descriptor is closed, and its number is free for one connection after the other. */
    if (tcp->spare_fd >= 0)
        close(tcp->spare_fd);
    tcp->spare_fd = -1;
    /* Keep the caller's last message, which failed deliveries would overwrite. */
    snprintf(message, sizeof message, "%s", tutti_message_last());
    for (int peer = 0; peer < fabric->nranks; peer++) {
        struct delivery delivery = {.fd = -1, .peer = peer};

        if (!gets_note(fabric, cause, peer) || !find_address(fabric, peer, &delivery.address))
            continue;
        while (count == AT_ONCE && tutti_now_ns() < until_ns &&
               wait_for_any(deliveries, count, until_ns))
            count = step_deliveries(fabric, cause, deliveries, count);
        if (count == AT_ONCE)
            break;
        deliveries[count++] = delivery;
        count = step_deliveries(fabric, cause, deliveries, count);
    }
    while (count > 0 && tutti_now_ns() < until_ns && wait_for_any(deliveries, count, until_ns))
        count = step_deliveries(fabric, cause, deliveries, count);
    for (size_t i = 0; i < count; i++)
        if (deliveries[i].fd >= 0)
            close(deliveries[i].fd);
    tutti_message_set_last(message);
}

/* ---- receiving ----------------------------------------------------------------------- */

bool tutti_tcp_note_begins(struct tutti_tcp_caller *caller)
{
    const struct tutti_handshake *shake = &caller->shake;
    size_t size = shake->wire_done;

    /* In phase 1 the handshake waits for the caller's greeting. It has refused the bytes that came
     * instead, and they are still in its buffer. */
    if (shake->phase != 1 || size < DISTINCT_BYTES ||
        memcmp(shake->wire, magic, DISTINCT_BYTES) != 0)
        return false;
    memcpy(&caller->note, shake->wire, size);
    caller->note_bytes = size;
    caller->brings_note = true;
    return true;
}

/* Records the reason in a complete note. The result is always an error, because the caller must be
 * closed. */
static int take_note(struct tutti_fabric *fabric, struct tutti_tcp_note *note)
{
    struct tutti_cause cause = {.code = note->code, .rank = note->rank};
    uint8_t secret[TUTTI_SECRET_BYTES];

    note_secret(fabric, fabric->rank, secret);
    if (!tutti_secret_signed(secret, note, SIGNED_BYTES, note->mac) || note->rank < 0 ||
        note->rank >= fabric->nranks)
        return tutti_note(TUTTI_ERR_REMOTE, "a note with the reason of an abort is not signed by a "
                                            "rank of this communicator");
    for (size_t i = 0; i + 1 < sizeof cause.reason && note->reason[i] != '\0'; i++)
        cause.reason[i] = note->reason[i] >= ' ' && note->reason[i] <= '~' ? note->reason[i] : '?';
    tutti_fabric_record_cause(fabric, &cause);
    return TUTTI_ERR_REMOTE;
}

int tutti_tcp_note_step(struct tutti_fabric *fabric, struct tutti_tcp_caller *caller)
{
    uint8_t *bytes = (uint8_t *)&caller->note;

    while (caller->note_bytes < sizeof caller->note) {
        size_t done;

        TUTTI_TRY(tutti_socket_recv(caller->fd, bytes + caller->note_bytes,
                                    sizeof caller->note - caller->note_bytes, &done));
        if (done == 0)
            return tutti_now_ns() < caller->shake.deadline_ns ? TUTTI_AGAIN : TUTTI_ERR_TIMEOUT;
        caller->note_bytes += done;
    }
    return take_note(fabric, &caller->note);
}
