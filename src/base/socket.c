/* SPDX-License-Identifier: Apache-2.0
 * TCP sockets that never block and never raise SIGPIPE. */
#include "base/socket.h"

#include "base/address_native.h"
#include "base/result.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* The kernel cuts this to net.core.somaxconn. All ranks may come at once. */
#define BACKLOG 4096

/* ---- listening -------------------------------------------------------------- */

static int fail_listen(const char *what, const struct tutti_address *address, int error)
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
    return tutti_fail(TUTTI_ERR_SYSTEM, "%s %s: %s", what, text, strerror(error));
}

/* `is_dual`: an IPv6 socket that takes IPv4 callers as well. */
static int listen_on(const struct tutti_address *address, bool is_dual, int *ret_fd,
                     uint16_t *ret_port_be)
{
    struct sockaddr_storage native;
    struct tutti_address bound;
    socklen_t size = tutti_address_to_native(address, &native);
    int on = 1, v6_only = !is_dual;
    int fd, error;

    fd = socket(native.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    /* Lets a new run listen while connections of the last one linger in TIME_WAIT;
     * on Linux it does not let two processes listen on one port. */
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
        return error == 0 ? TUTTI_OK : fail_listen("listen on", address, error);
    }

    any.family = 6;
    memset(any.bytes, 0, sizeof any.bytes);
    error = listen_on(&any, true, ret_fd, ret_port_be);
    if (error != 0 && error != EADDRINUSE) { /* a host without IPv6 */
        any.family = 4;
        error = listen_on(&any, false, ret_fd, ret_port_be);
    }
    return error == 0 ? TUTTI_OK : fail_listen("listen on", address, error);
}

int tutti_socket_accept(int listen_fd, int *ret_fd)
{
    int fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd >= 0) {
        *ret_fd = fd;
        return TUTTI_OK;
    }
    switch (errno) {
    case EBADF: case EINVAL: case ENOTSOCK: case EOPNOTSUPP: case EFAULT:
        return tutti_fail(TUTTI_ERR_INTERNAL, "accept on descriptor %d: %s", listen_fd,
                          strerror(errno));
    case EMFILE: case ENFILE: case ENOBUFS: case ENOMEM: case EPERM:
        return tutti_fail(TUTTI_ERR_SYSTEM, "accept a connection: %s; raise the limit (ulimit -n)",
                          strerror(errno));
    default:
        return TUTTI_AGAIN; /* none waits, or the caller has left again (see accept(2)) */
    }
}

/* ---- connecting ------------------------------------------------------------- */

/* A connect to a free port of our own host may, by TCP's simultaneous open, meet
 * itself when the kernel picks that very port for the near end. */
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
    tutti_record_message("connect to %s: %s", tutti_address_format(address, text), strerror(error));
    errno = error;
    return TUTTI_ERR_REMOTE;
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

        *fd = socket(native.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (*fd < 0)
            return note_refused(address, fd, errno);
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

int tutti_socket_tune(int fd, size_t buffer_bytes)
{
    int on = 1;
    int size = (int)buffer_bytes;

    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0)
        return tutti_fail(TUTTI_ERR_SYSTEM, "set TCP_NODELAY: %s", strerror(errno));
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
    static const char without_pacing[] = "reno"; /* every kernel has it, every user may choose it */

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
    if (size == 0) /* asking for nothing would read like the end of the stream */
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
