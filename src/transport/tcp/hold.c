/* SPDX-License-Identifier: Apache-2.0
 * Keeps a list of the sockets of this rank, and resets them when it gives up, so that the peers
 * notice at once. */
#include "transport/tcp/tcp.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Ends a connection by a reset, while a rank that leaves in good order closes it normally. Peers
 * can distinguish the two even while they wait for another rank. On a listener this ends listening.
 * The descriptor must still be closed. */
static void reset(int fd)
{
    struct sockaddr nobody = {.sa_family = AF_UNSPEC};

    /* The system call is made by number. TSan takes connect() for the creation of the descriptor,
     * which would race with its use by the thread that waits on it. The kernel serializes these. */
    if (syscall(SYS_connect, fd, &nobody, sizeof nobody) != 0)
        shutdown(fd, SHUT_RDWR);
}

int tutti_tcp_hold(struct tutti_fabric *fabric, int fd, int peer)
{
    struct tutti_tcp *tcp = tutti_tcp_of(fabric);
    int rc = TUTTI_OK;

    pthread_mutex_lock(&fabric->lock);
    if (tcp->nheld == tcp->held_capacity) {
        size_t capacity = tcp->held_capacity == 0 ? 8 : 2 * tcp->held_capacity;
        struct tutti_tcp_held *held = realloc(tcp->held, capacity * sizeof *held);

        if (held != NULL) {
            tcp->held = held;
            tcp->held_capacity = capacity;
        } else {
            rc = tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %zu sockets", capacity);
        }
    }
    if (rc == TUTTI_OK) {
        tcp->held[tcp->nheld++] = (struct tutti_tcp_held){.fd = fd, .peer = peer};
        if (tutti_load_relaxed(&fabric->is_aborted) != 0)
            reset(fd); /* the abort has already reset the others */
    }
    pthread_mutex_unlock(&fabric->lock);
    return rc;
}

void tutti_tcp_release(struct tutti_fabric *fabric, int fd)
{
    struct tutti_tcp *tcp = tutti_tcp_of(fabric);

    pthread_mutex_lock(&fabric->lock);
    for (size_t i = 0; i < tcp->nheld; i++) {
        if (tcp->held[i].fd == fd) {
            tcp->held[i] = tcp->held[--tcp->nheld];
            break;
        }
    }
    pthread_mutex_unlock(&fabric->lock);
}

void tutti_tcp_abort(struct tutti_fabric *fabric, struct tutti_cause *cause)
{
    struct tutti_tcp *tcp = tutti_tcp_of(fabric);

    if (tcp == NULL)
        return;
    /* Send the reason before the resets, so that peers report the reason and not the loss. */
    tutti_tcp_note_send(fabric, cause);
    for (size_t i = 0; i < tcp->nheld; i++)
        reset(tcp->held[i].fd);
}
