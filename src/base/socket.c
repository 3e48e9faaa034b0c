/* SPDX-License-Identifier: Apache-2.0
 * Makes and uses TCP sockets that never block and never raise SIGPIPE. */
#include "base/socket.h"

#include "base/address_native.h"
#include "base/fork.h"
#include "base/limits.h"
#include "base/param.h"
#include "base/result.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* The backlog is long because all ranks may connect at once. The kernel reduces it to
 * net.core.somaxconn. */
#define BACKLOG 4096

int tutti_socket_open(int family, int type)
{
    tutti_fork_hold();
    return tutti_fork_release(socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

/* ---- listening -------------------------------------------------------------- */

static int fail_listen(const struct tutti_address *address, int error)
{
    char text[TUTTI_ADDRESS_TEXT_BYTES];

    tutti_address_format(address, text);
    if (error == EADDRINUSE)
        return tutti_fail(TUTTI_ERR_SYSTEM,
                          "cannot listen on %s: the port is in use; choose another port or end "
                          "the process that holds it",
                          text);
    if (error == EADDRNOTAVAIL)
        return tutti_fail(TUTTI_ERR_SYSTEM,
                          "cannot listen on %s: this host has no such address; start this rank "
                          "on the host that has it, or name an address of this one",
                          text);
    return tutti_fail(TUTTI_ERR_SYSTEM, "listen on %s: %s", text, strerror(error));
}

/* Opens a socket that listens on `address`. With `is_dual`, an IPv6 socket accepts IPv4 connections
 * as well. Returns 0 or an errno value. */
static int listen_on(const struct tutti_address *address, bool is_dual, int *ret_fd,
                     uint16_t *ret_port_be)
{
    struct sockaddr_storage native;
    struct tutti_address bound;
    socklen_t size = tutti_address_to_native(address, &native);
    int on = 1, v6_only = !is_dual;
    int fd, error;

    fd = tutti_socket_open(native.ss_family, SOCK_STREAM);
    if (fd < 0)
        return errno;
    /* SO_REUSEADDR lets a new run listen while connections of the last run linger in TIME_WAIT. On
     * Linux it does not let two processes listen on one port. */
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (native.ss_family == AF_INET6 &&
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof v6_only) != 0 && is_dual)
        goto close_socket;
    if (bind(fd, (struct sockaddr *)&native, size) != 0 || listen(fd, BACKLOG) != 0)
        goto close_socket;
    size = sizeof native;
    if (getsockname(fd, (struct sockaddr *)&native, &size) != 0)
        goto close_socket;

    tutti_address_from_native((struct sockaddr *)&native, &bound);
    *ret_fd = fd;
    *ret_port_be = bound.port_be;
    return 0;

close_socket:
    error = errno;
    close(fd);
    return error;
}

int tutti_socket_listen(const struct tutti_address *address, int *ret_fd, uint16_t *ret_port_be)
{
    struct tutti_address any = *address;
    int error;

    if (address->family != 0) {
        error = listen_on(address, false, ret_fd, ret_port_be);
        return error == 0 ? TUTTI_OK : fail_listen(address, error);
    }

    any.family = 6;
    memset(any.bytes, 0, sizeof any.bytes);
    error = listen_on(&any, true, ret_fd, ret_port_be);
    if (error != 0 && error != EADDRINUSE) { /* this host may lack IPv6 */
        any.family = 4;
        error = listen_on(&any, false, ret_fd, ret_port_be);
    }
    return error == 0 ? TUTTI_OK : fail_listen(address, error);
}

/* Makes one attempt, with the port that the kernel chooses for the first address. If that port is
 * in use at another address, the attempt fails. With `skips_used`, only that address is left out.
 * Returns the number of addresses that it listens on. */
static size_t listen_on_one_port(const struct tutti_address *addresses, size_t count,
                                 bool skips_used, int *ret_fds, uint16_t *ret_port_be)
{
    char text[TUTTI_ADDRESS_TEXT_BYTES], cause[TUTTI_LIMITS_TEXT_BYTES];
    uint16_t port_be = 0;
    size_t found = 0;

    for (size_t i = 0; i < count; i++)
        ret_fds[i] = -1;
    for (size_t i = 0; i < count; i++) {
        struct tutti_address address = addresses[i];
        int error;

        address.port_be = port_be;
        error = listen_on(&address, false, &ret_fds[i], &port_be);
        found += error == 0;
        if (error == 0)
            continue;
        tutti_message_record("listen on %s: %s", tutti_address_format(&address, text),
                             tutti_limits_describe(error, cause));
        if (error != EADDRINUSE || skips_used)
            continue;
        for (size_t k = 0; k < i; k++)
            if (ret_fds[k] >= 0)
                close(ret_fds[k]);
        return 0;
    }
    *ret_port_be = port_be;
    return found;
}

size_t tutti_socket_listen_each(const struct tutti_address *addresses, size_t count, int *ret_fds,
                                uint16_t *ret_port_be)
{
    enum { TRIES = 16 }; /* each with another port that the kernel chooses */
    size_t found = 0;

    for (int i = 0; i < TRIES && found == 0; i++)
        found = listen_on_one_port(addresses, count, i + 1 == TRIES, ret_fds, ret_port_be);
    return found;
}

int tutti_socket_accept(int listen_fd, int *ret_fd)
{
    char text[TUTTI_LIMITS_TEXT_BYTES];
    int fd;

    tutti_fork_hold();
    fd = tutti_fork_release(accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd >= 0) {
        *ret_fd = fd;
        return TUTTI_OK;
    }
    switch (errno) {
    case EBADF: case EINVAL: case ENOTSOCK: case EOPNOTSUPP: case EFAULT:
        return tutti_fail(TUTTI_ERR_INTERNAL, "accept on descriptor %d: %s", listen_fd,
                          strerror(errno));
    case EMFILE: case ENFILE: case ENOBUFS: case ENOMEM: case EPERM:
        return tutti_note(TUTTI_ERR_SYSTEM, "accept: %s",
                          tutti_limits_describe(errno, text));
    default:
        return TUTTI_AGAIN; /* no connection waits, or the peer has closed it (see accept(2)) */
    }
}

/* ---- connecting ------------------------------------------------------------- */

/* A connect to a free port of our own host can connect to itself by TCP's simultaneous open, if the
 * kernel picks that same port for the local end. */
static bool is_connected_to_itself(int fd)
{
    struct sockaddr_storage near_native = {.ss_family = AF_UNSPEC};
    struct sockaddr_storage far_native = {.ss_family = AF_UNSPEC};
    struct tutti_address near_end, far_end;
    socklen_t near_size = sizeof near_native, far_size = sizeof far_native;

    if (getsockname(fd, (struct sockaddr *)&near_native, &near_size) != 0 ||
        getpeername(fd, (struct sockaddr *)&far_native, &far_size) != 0)
        return false;
    tutti_address_from_native((struct sockaddr *)&near_native, &near_end);
    tutti_address_from_native((struct sockaddr *)&far_native, &far_end);
    return near_end.port_be == far_end.port_be && near_end.family == far_end.family &&
           memcmp(near_end.bytes, far_end.bytes, sizeof near_end.bytes) == 0;
}

static int note_refused(const struct tutti_address *address, int *fd, int error)
{
    char text[TUTTI_ADDRESS_TEXT_BYTES];

    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    tutti_message_record("connect to %s: %s", tutti_address_format(address, text), strerror(error));
    errno = error;
    return TUTTI_ERR_REMOTE;
}

/* Records that no socket could be made: either this host lacks the address family, or it is out of
 * descriptors or memory. */
static int note_no_socket(const struct tutti_address *address, int *fd, int error)
{
    char where[TUTTI_ADDRESS_TEXT_BYTES], why[TUTTI_LIMITS_TEXT_BYTES];

    if (!tutti_limits_are_reached(error))
        return note_refused(address, fd, error);
    errno = error;
    return tutti_note(TUTTI_ERR_SYSTEM, "open a socket to connect to %s: %s",
                      tutti_address_format(address, where), tutti_limits_describe(error, why));
}

int tutti_socket_connect(const struct tutti_address *address, int *fd)
{
    int error = 0;
    socklen_t size = sizeof error;

    if (address->family != 4 && address->family != 6)
        return tutti_note(TUTTI_ERR_REMOTE, "connect: the address is empty");

    if (*fd < 0) {
        struct sockaddr_storage native;
        socklen_t native_size = tutti_address_to_native(address, &native);

        *fd = tutti_socket_open(native.ss_family, SOCK_STREAM);
        if (*fd < 0)
            return note_no_socket(address, fd, errno);
        if (connect(*fd, (struct sockaddr *)&native, native_size) != 0)
            return errno == EINPROGRESS || errno == EINTR ? TUTTI_AGAIN
                                                          : note_refused(address, fd, errno);
    } else {
        struct pollfd ready = {.fd = *fd, .events = POLLOUT};

        if (poll(&ready, 1, 0) <= 0)
            return TUTTI_AGAIN;
        if (getsockopt(*fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
            error = errno;
        if (error != 0)
            return note_refused(address, fd, error);
    }
    if (is_connected_to_itself(*fd))
        return note_refused(address, fd, ECONNREFUSED);
    return TUTTI_OK;
}

void tutti_socket_peer(int fd, struct tutti_address *ret_address)
{
    struct sockaddr_storage native = {.ss_family = AF_UNSPEC};
    socklen_t size = sizeof native;

    (void)getpeername(fd, (struct sockaddr *)&native, &size);
    tutti_address_from_native((struct sockaddr *)&native, ret_address);
}

/* Make the kernel probe a silent peer, and end the connection after about `timeout_ms`. The first
 * probe comes after half of that time or a little more. The keepalive interval must be a whole
 * number of seconds. */
static int end_after_silence(int fd, int timeout_ms)
{
    int seconds = (timeout_ms + 999) / 1000, on = 1;
    int interval = seconds >= 16 ? seconds / 8 : 1;
    int count = seconds >= 4 ? seconds / 2 / interval : 1;
    int idle = seconds > count * interval ? seconds - count * interval : 1;

    return setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on) != 0 ||
                   setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle) != 0 ||
                   setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval) != 0 ||
                   setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count) != 0 ||
                   setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms,
                              sizeof timeout_ms) != 0
               ? tutti_fail(TUTTI_ERR_SYSTEM, "set a time limit of %d ms to a connection: %s",
                            timeout_ms, strerror(errno))
               : TUTTI_OK;
}

void tutti_socket_allow_pauses(int fd)
{
    int never = 0;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &never, sizeof never);
}

int tutti_socket_tune(int fd, size_t buffer_bytes)
{
    int timeout_ms = (int)tutti_param_int(TUTTI_PARAM_NETWORK_TIMEOUT);
    int on = 1;
    int size = (int)buffer_bytes;

    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0)
        return tutti_fail(TUTTI_ERR_SYSTEM, "set TCP_NODELAY: %s", strerror(errno));
    if (timeout_ms > 0)
        TUTTI_TRY(end_after_silence(fd, timeout_ms));
    if (buffer_bytes == 0)
        return TUTTI_OK;
    if (setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size) != 0)
        return tutti_fail(TUTTI_ERR_SYSTEM, "set socket buffers of %zu bytes: %s", buffer_bytes,
                          strerror(errno));
    return TUTTI_OK;
}

void tutti_socket_unpace(int fd)
{
    static const char without_pacing[] = "reno"; /* in every kernel, and allowed to every user */

    (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, without_pacing, sizeof without_pacing - 1);
}

size_t tutti_socket_segment_bytes(int fd)
{
    int segment = 0;
    socklen_t size = sizeof segment;

    if (getsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &segment, &size) != 0 || segment < 0)
        return 0;
    return (size_t)segment;
}

/* ---- moving bytes ------------------------------------------------------------- */

static bool is_not_now(int error)
{
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

static int finish_send(ssize_t moved, size_t *ret_done)
{
    if (moved < 0) {
        if (!is_not_now(errno))
            return tutti_note(TUTTI_ERR_REMOTE, "send: %s", strerror(errno));
        moved = 0;
    }
    *ret_done = (size_t)moved;
    return TUTTI_OK;
}

static int finish_recv(ssize_t moved, size_t *ret_done)
{
    if (moved == 0)
        return tutti_note(TUTTI_ERR_REMOTE, "receive: the peer closed the connection");
    if (moved < 0) {
        if (!is_not_now(errno))
            return tutti_note(TUTTI_ERR_REMOTE, "receive: %s", strerror(errno));
        moved = 0;
    }
    *ret_done = (size_t)moved;
    return TUTTI_OK;
}

int tutti_socket_send(int fd, const void *data, size_t size, size_t *ret_done)
{
    return finish_send(size > 0 ? send(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT) : 0, ret_done);
}

int tutti_socket_recv(int fd, void *data, size_t size, size_t *ret_done)
{
    *ret_done = 0;
    if (size == 0) /* the result of an empty recv would look like the end of the stream */
        return TUTTI_OK;
    return finish_recv(recv(fd, data, size, MSG_DONTWAIT), ret_done);
}

int tutti_socket_send_parts(int fd, struct iovec *parts, size_t count, size_t *ret_done)
{
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};

    return finish_send(sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT), ret_done);
}

int tutti_socket_recv_parts(int fd, struct iovec *parts, size_t count, size_t *ret_done)
{
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};

    return finish_recv(recvmsg(fd, &message, MSG_DONTWAIT), ret_done);
}
