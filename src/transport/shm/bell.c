/* SPDX-License-Identifier: Apache-2.0
 * Implements bells: datagrams on Unix sockets that wake a member which sleeps on sockets. A futex
 * wake-up would not reach such a member. */
#include "transport/shm/bell.h"

#include "base/result.h"
#include "base/socket.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* The number of secret bytes in a name, which other users cannot guess. */
enum { HIDDEN_BYTES = 16 };

/* Builds the socket address of member `index`, and returns its size. The leading zero byte makes
 * the name abstract, so no file is created. */
static socklen_t name_of(const struct tutti_bell *bell, uint32_t index,
                         struct sockaddr_un *ret_native)
{
    struct sockaddr_un native = {.sun_family = AF_UNIX};
    int length =
        snprintf(native.sun_path + 1, sizeof native.sun_path - 1, "%s-%u", bell->prefix, index);

    *ret_native = native;
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

int tutti_bell_open(struct tutti_bell *bell, const uint8_t secret[TUTTI_SECRET_BYTES],
                    uint32_t index)
{
    uint8_t hidden[TUTTI_SECRET_BYTES];
    struct sockaddr_un native;
    socklen_t size;
    size_t length = 0;
    int rc;

    tutti_secret_derive(secret, "bells", 0, hidden);
    for (int i = 0; i < HIDDEN_BYTES; i++)
        length += (size_t)snprintf(bell->prefix + length, sizeof bell->prefix - length, "%s%02x",
                                   i == 0 ? "tutti-bell-" : "", hidden[i]);
    bell->fd = tutti_socket_open(AF_UNIX, SOCK_DGRAM);
    if (bell->fd < 0)
        return tutti_note(TUTTI_ERR_SYSTEM, "Unix socket: %s", strerror(errno));
    size = name_of(bell, index, &native);
    if (bind(bell->fd, (struct sockaddr *)&native, size) != 0) {
        rc = tutti_note(TUTTI_ERR_SYSTEM, "bind a Unix socket: %s", strerror(errno));
        tutti_bell_close(bell);
        return rc;
    }
    return TUTTI_OK;
}

void tutti_bell_ring(const struct tutti_bell *bell, uint32_t index)
{
    struct sockaddr_un native;
    socklen_t size;
    char byte = 0;

    if (bell->fd < 0)
        return;
    size = name_of(bell, index, &native);
    /* The result does not matter. If the queue is full, an earlier ring still wakes the member. If
     * there is no socket, the member is gone, and tutti_fabric_check detects that. */
    (void)sendto(bell->fd, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&native,
                 size);
}

void tutti_bell_quiet(const struct tutti_bell *bell)
{
    char bytes[8];

    while (bell->fd >= 0 && recv(bell->fd, bytes, sizeof bytes, MSG_DONTWAIT) >= 0)
        ;
}

void tutti_bell_close(struct tutti_bell *bell)
{
    if (bell->fd >= 0)
        close(bell->fd);
    bell->fd = -1;
}
