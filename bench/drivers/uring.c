/* SPDX-License-Identifier: Apache-2.0
 * The exchange of sockets.c through io_uring. Each lane has at most one send and one receive in
 * flight. One system call submits new requests, waits, and returns completed ones:
 *
 *     lanes with something to do --> requests --> io_uring_submit_and_wait --> completions
 *               ^                                                                   |
 *               +------------------------- partly completed requests <--------------+ */
#include "uring.h"

#include "driver.h"

#if __has_include(<liburing.h>)

#include <errno.h>
#include <liburing.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

/* A message of this size fits a socket's buffers of default size. */
#define SMALL_BYTES (64u << 10)

enum direction { SEND, RECEIVE, DIRECTIONS };

static struct io_uring ring;
static struct lane *lanes[URING_LANES_MAX];
static int nlanes;

/* With DEFER_TASKRUN completed requests do not interrupt the process. It gets them when it
 * waits. */
static bool make_ring(void)
{
    struct io_uring_params params = {.flags = IORING_SETUP_SINGLE_ISSUER |
                                              IORING_SETUP_DEFER_TASKRUN};
    int fds[URING_LANES_MAX];

    for (int i = 0; i < nlanes; i++)
        fds[i] = lanes[i]->fd;
    if (io_uring_queue_init_params(URING_LANES_MAX * DIRECTIONS, &ring, &params) != 0)
        return false;
    if (io_uring_register_files(&ring, fds, (unsigned)nlanes) == 0 &&
        io_uring_register_ring_fd(&ring) >= 0)
        return true;
    io_uring_queue_exit(&ring);
    return false;
}

bool uring_open(struct lane *const *own, int count)
{
    static bool is_made, was_tried;

    if (!was_tried && count <= URING_LANES_MAX) {
        was_tried = true;
        memcpy(lanes, own, (size_t)count * sizeof(struct lane *));
        nlanes = count;
        is_made = make_ring();
    }
    return is_made;
}

/* Fills in the lane's next request; returns false if it has nothing to do in this direction. A rank
 * that does not sleep requests again and again, which is less work for the kernel than watching the
 * socket. */
static bool request(int index, enum direction direction, size_t send_bytes, bool sleeps)
{
    const struct lane *lane = lanes[index];
    int flags = MSG_NOSIGNAL | (sleeps ? 0 : MSG_DONTWAIT);
    struct io_uring_sqe *sqe;

    if ((direction == SEND ? lane->to_send : lane->to_receive) == 0)
        return false;
    sqe = io_uring_get_sqe(&ring); /* there is one for every lane and direction */
    if (direction == SEND)
        io_uring_prep_send(sqe, index, lane->from,
                           lane->to_send < send_bytes ? lane->to_send : send_bytes, flags);
    else
        io_uring_prep_recv(sqe, index, lane->to,
                           lane->to_receive < INT32_MAX ? lane->to_receive : INT32_MAX, flags);
    sqe->flags |= IOSQE_FIXED_FILE;
    sqe->user_data = (uint64_t)index * DIRECTIONS + direction;
    return true;
}

/* Takes the result of a request into account. A request that would have blocked has moved 0 bytes.
 * Any other failure ends the process. */
static void account(struct lane *lane, enum direction direction, int result)
{
    size_t size = result > 0 ? (size_t)result : 0;

    if (result == 0 || (result < 0 && result != -EAGAIN && result != -EINTR))
        bench_die("%s by io_uring: %s", direction == SEND ? "send" : "receive",
                  result == 0 ? "the peer is gone" : strerror(-result));
    if (direction == SEND) {
        lane->from += size;
        lane->to_send -= size;
    } else {
        lane->to += size;
        lane->to_receive -= size;
    }
}

/* Returns the number of completed requests for which a sleeping process waits. Each small message
 * comes in one piece and never waits for the other side to receive, so one wake-up serves all
 * requests. With a large message the process wakes for each request, so that the next piece follows
 * at once. */
static unsigned wake_after(unsigned nflying)
{
    for (int i = 0; i < nlanes; i++)
        if (lanes[i]->to_send > SMALL_BYTES || lanes[i]->to_receive > SMALL_BYTES)
            return 1;
    return nflying;
}

void uring_exchange(size_t send_bytes, bool sleeps)
{
    unsigned nflying = 0; /* requests that were submitted and have not been completed */

    for (int i = 0; i < nlanes; i++) {
        nflying += request(i, SEND, send_bytes, sleeps);
        nflying += request(i, RECEIVE, send_bytes, sleeps);
    }
    while (nflying > 0) {
        /* Without sleep, every request has ended when the call returns, even if no byte moved. */
        int rc = io_uring_submit_and_wait(&ring, wake_after(nflying));
        struct io_uring_cqe *cqe;
        unsigned head, nseen = 0;

        if (rc < 0 && rc != -EINTR)
            bench_die("io_uring_enter: %s", strerror(-rc));
        io_uring_for_each_cqe(&ring, head, cqe) {
            int index = (int)(cqe->user_data / DIRECTIONS);
            enum direction direction = (enum direction)(cqe->user_data % DIRECTIONS);

            account(lanes[index], direction, cqe->res);
            if (!request(index, direction, send_bytes, sleeps))
                nflying--;
            nseen++;
        }
        io_uring_cq_advance(&ring, nseen);
    }
}

#else

bool uring_open(struct lane *const *lanes, int nlanes)
{
    (void)lanes;
    (void)nlanes;
    return false;
}

void uring_exchange(size_t send_bytes, bool sleeps)
{
    (void)send_bytes;
    (void)sleeps;
    bench_die("io_uring: this driver was built without liburing; install liburing-dev");
}

#endif
