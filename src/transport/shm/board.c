/* SPDX-License-Identifier: Apache-2.0
 * Implements boards by MSG_PEEK, which copies the descriptors of a message and leaves the message
 * where it is. */
#include "transport/shm/board.h"

#include "base/fork.h"
#include "base/limits.h"
#include "base/result.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Room for the descriptors of a message. */
union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(TUTTI_BOARD_ENTRIES * sizeof(int))];
};

int tutti_board_open(struct tutti_board *ret_board)
{
    char text[TUTTI_LIMITS_TEXT_BYTES];
    int ends[2] = {-1, -1}, error = 0;

    tutti_fork_hold();
    if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0)
        error = errno;
    ret_board->far_fd = tutti_fork_release(ends[1]);
    /* A child that is forked here has a copy of the near end, which keeps nothing in the pair. */
    tutti_fork_hold();
    ret_board->near_fd = tutti_fork_release(ends[0]);
    if (ret_board->near_fd >= 0 && ret_board->far_fd >= 0)
        return TUTTI_OK;
    tutti_board_close(ret_board);
    return tutti_note(TUTTI_ERR_SYSTEM, "a pair of Unix sockets: %s",
                      tutti_limits_describe(error != 0 ? error : ENOMEM, text));
}

/* ---- the owner ------------------------------------------------------------------------------- */

/* Without room for descriptors, the kernel closes those of the message. */
static void remove_notice(const struct tutti_board *board)
{
    char byte;

    while (recv(board->far_fd, &byte, sizeof byte, MSG_DONTWAIT) >= 0)
        ;
}

int tutti_board_show(const struct tutti_board *board, const struct tutti_board_notice *notice)
{
    size_t fds_bytes = notice->count * sizeof notice->fds[0];
    union control control = {.bytes = {0}};
    struct iovec iov = {.iov_base = (void *)(uintptr_t)notice->numbers,
                        .iov_len = notice->count * sizeof notice->numbers[0]};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes,
                             .msg_controllen = CMSG_SPACE(fds_bytes)};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);

    tutti_assert(notice->count <= TUTTI_BOARD_ENTRIES);
    remove_notice(board);
    if (notice->count == 0)
        return TUTTI_OK;
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds_bytes);
    memcpy(CMSG_DATA(header), notice->fds, fds_bytes);
    if (sendmsg(board->near_fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
        return TUTTI_OK;
    /* The usual reason is ETOOMANYREFS: the kernel limits the descriptors that are in the messages
     * of all processes of a user. */
    return tutti_note(TUTTI_AGAIN, "show %u descriptors: %s", notice->count, strerror(errno));
}

/* ---- readers --------------------------------------------------------------------------------- */

/* Takes the descriptors out of a message. Returns their number. The kernel gives no more than there
 * is room for. */
static uint32_t take_copies(struct msghdr *message, int fds[TUTTI_BOARD_ENTRIES])
{
    size_t count = 0;

    for (struct cmsghdr *at = CMSG_FIRSTHDR(message); at; at = CMSG_NXTHDR(message, at)) {
        size_t inside = (at->cmsg_len - CMSG_LEN(0)) / sizeof(int);

        if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS)
            continue;
        tutti_assert(inside <= TUTTI_BOARD_ENTRIES - count);
        memcpy(fds + count, CMSG_DATA(at), inside * sizeof(int));
        count += inside;
    }
    return (uint32_t)count;
}

int tutti_board_read(int far_fd, struct tutti_board_notice *ret_notice)
{
    union control control = {.bytes = {0}};
    struct iovec iov = {.iov_base = ret_notice->numbers, .iov_len = sizeof ret_notice->numbers};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    ssize_t size;

    *ret_notice = (struct tutti_board_notice){.count = 0};
    size = recvmsg(far_fd, &message, MSG_PEEK | MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return TUTTI_OK;
    if (size < 0)
        return tutti_note(TUTTI_ERR_REMOTE, "read descriptors: %s", strerror(errno));
    ret_notice->count = take_copies(&message, ret_notice->fds);
    ret_notice->is_cut = (message.msg_flags & MSG_CTRUNC) != 0;
    if ((message.msg_flags & MSG_TRUNC) != 0 || (size_t)size % sizeof(uint32_t) != 0 ||
        ret_notice->count > (size_t)size / sizeof(uint32_t) ||
        (ret_notice->count < (size_t)size / sizeof(uint32_t) && !ret_notice->is_cut))
        return tutti_note(TUTTI_ERR_REMOTE, "read descriptors: %u of them with %zd bytes",
                          ret_notice->count, size);
    return TUTTI_OK;
}

int tutti_board_find(const struct tutti_board_notice *notice, uint32_t number)
{
    for (uint32_t i = 0; i < notice->count; i++)
        if (notice->numbers[i] == number)
            return notice->fds[i];
    return -1;
}

void tutti_board_close_copies(struct tutti_board_notice *notice)
{
    for (uint32_t i = 0; i < notice->count; i++)
        close(notice->fds[i]);
    notice->count = 0;
}

void tutti_board_close(struct tutti_board *board)
{
    if (board->near_fd >= 0)
        close(board->near_fd);
    if (board->far_fd >= 0)
        close(board->far_fd);
    *board = (struct tutti_board){.near_fd = -1, .far_fd = -1};
}
