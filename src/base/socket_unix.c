/* SPDX-License-Identifier: Apache-2.0
 * Makes Unix sockets in the abstract namespace, and passes descriptors over them. An abstract name
 * vanishes with its last descriptor, so nothing is left on any file system. */
#include "base/fork.h"
#include "base/result.h"
#include "base/socket.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { NAME_MOST_BYTES = sizeof ((struct sockaddr_un *)NULL)->sun_path - 1 };

static int fail_name(const char *name)
{
    return tutti_fail(TUTTI_ERR_ARGUMENT, "Unix socket name '%s' has %zu bytes, not 1 to %d", name,
                      strlen(name), (int)NAME_MOST_BYTES);
}

/* A leading zero byte makes the name abstract. Such a name has no terminating zero, so *ret_size
 * must be exact. False: the name is empty or too long. */
static bool name_to_native(const char *name, struct sockaddr_un *ret_native, socklen_t *ret_size)
{
    struct sockaddr_un native = {.sun_family = AF_UNIX};
    size_t length = strlen(name);

    if (length == 0 || length > NAME_MOST_BYTES)
        return false;
    memcpy(native.sun_path + 1, name, length);
    *ret_native = native;
    *ret_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
    return true;
}

int tutti_socket_try_listen_unix(const char *name, int *ret_fd)
{
    struct sockaddr_un native;
    socklen_t size = 0;
    int fd, error;

    if (!name_to_native(name, &native, &size))
        return ENAMETOOLONG;
    fd = tutti_socket_open(AF_UNIX, SOCK_STREAM);
    if (fd < 0)
        return errno;
    if (bind(fd, (struct sockaddr *)&native, size) != 0 || listen(fd, SOMAXCONN) != 0) {
        error = errno;
        close(fd);
        return error;
    }
    *ret_fd = fd;
    return 0;
}

int tutti_socket_listen_unix(const char *name, int *ret_fd)
{
    int error = tutti_socket_try_listen_unix(name, ret_fd);

    if (error == 0)
        return TUTTI_OK;
    if (error == ENAMETOOLONG)
        return fail_name(name);
    return tutti_fail(TUTTI_ERR_SYSTEM, "listen on Unix socket '%s': %s%s", name, strerror(error),
                      error == EADDRINUSE ? "; another process of this host holds it: end that, or "
                                            "choose another name"
                                          : "");
}

int tutti_socket_connect_unix(const char *name, int *ret_fd)
{
    struct sockaddr_un native;
    socklen_t size = 0;
    int fd, error;

    if (!name_to_native(name, &native, &size))
        return fail_name(name);
    fd = tutti_socket_open(AF_UNIX, SOCK_STREAM);
    if (fd < 0)
        return tutti_fail(TUTTI_ERR_SYSTEM, "Unix socket: %s", strerror(errno));
    if (connect(fd, (struct sockaddr *)&native, size) == 0) {
        *ret_fd = fd;
        return TUTTI_OK;
    }
    error = errno;
    close(fd);
    /* ECONNREFUSED: no process listens yet. EAGAIN: the listener's queue is full. A Unix
     * connect is never in progress, so starting over loses nothing. */
    if (error == ECONNREFUSED || error == EAGAIN || error == EINTR)
        return TUTTI_AGAIN;
    return tutti_fail(TUTTI_ERR_SYSTEM, "connect to Unix socket '%s': %s", name, strerror(error));
}

bool tutti_socket_is_own_user(int fd)
{
    struct ucred peer = {.uid = (uid_t)-1};
    socklen_t size = sizeof peer;

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           (peer.uid == geteuid() || peer.uid == 0);
}

/* There is room for more than one descriptor, so that surplus ones are seen and closed. */
#define PASSED_MAX 8

union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(PASSED_MAX * sizeof(int))];
};

int tutti_socket_send_fd(int fd, int passed_fd)
{
    union control control = {.bytes = {0}};
    char byte = 0;
    struct iovec iov = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes,
                             .msg_controllen = CMSG_SPACE(sizeof(int))};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);

    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &passed_fd, sizeof passed_fd);

    if (sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == 1)
        return TUTTI_OK;
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
        return TUTTI_AGAIN;
    return tutti_note(TUTTI_ERR_REMOTE, "pass a descriptor: %s", strerror(errno));
}

/* Takes the descriptors out of a message, and closes them all unless there is one. Returns their
 * number. */
static size_t take_only_fd(struct msghdr *message, int *ret_passed_fd)
{
    int passed[PASSED_MAX];
    size_t count = 0;

    for (struct cmsghdr *at = CMSG_FIRSTHDR(message); at; at = CMSG_NXTHDR(message, at)) {
        size_t inside = (at->cmsg_len - CMSG_LEN(0)) / sizeof(int);

        if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS)
            continue;
        if (inside > PASSED_MAX - count)
            inside = PASSED_MAX - count;
        memcpy(passed + count, CMSG_DATA(at), inside * sizeof(int));
        count += inside;
    }
    if (count == 1)
        *ret_passed_fd = passed[0];
    for (size_t i = 0; count != 1 && i < count; i++)
        close(passed[i]);
    return count;
}

int tutti_socket_recv_fd(int fd, int *ret_passed_fd)
{
    union control control = {.bytes = {0}};
    char byte;
    struct iovec iov = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    int passed_fd = -1;
    size_t count = 0;
    ssize_t size;

    tutti_fork_hold();
    size = recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (size > 0)
        count = take_only_fd(&message, &passed_fd);
    passed_fd = tutti_fork_release(passed_fd);
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return TUTTI_AGAIN;
    if (size <= 0)
        return tutti_note(TUTTI_ERR_REMOTE, "take a descriptor: %s",
                          size < 0 ? strerror(errno) : "the peer closed the connection");
    if (count != 1)
        return tutti_note(TUTTI_ERR_REMOTE, "take a descriptor: the peer passed %zu, not 1",
                          count);
    if (passed_fd < 0)
        return tutti_note(TUTTI_ERR_SYSTEM, "take a descriptor: %s", strerror(errno));
    *ret_passed_fd = passed_fd;
    return TUTTI_OK;
}
