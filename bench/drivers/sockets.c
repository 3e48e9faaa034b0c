/* SPDX-License-Identifier: Apache-2.0
 * Measures sockets without a library: sockets DIRECTORY RANK NRANKS. Each rank sends and receives
 * the minimal number of bytes of the operation, to and from all peers at once, directly between
 * the buffers. Nothing is added, and no rank waits for data that it must pass on. Variants differ
 * in the number of sockets between two ranks, in their buffers, in the way they wait and in the
 * calls they use. The fastest is the limit. */
#include "driver.h"
#include "lane.h"
#include "uring.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LANES_MAX 4

struct variant {
    const char *name;
    int nlanes;         /* sockets between two ranks */
    int buffer_bytes;   /* of the kernel's buffers, each way; 0: its default */
    size_t write_bytes; /* at most in one call */
    bool yields;        /* with more ranks than CPUs, a waiting rank yields instead of sleeping */
    bool pins;          /* the kernel sends from the buffers themselves (MSG_ZEROCOPY) */
    bool has_ring;      /* uses io_uring; one socket only */
};

static const struct variant variants[] = {
    {"one", 1, 0, 256 << 10, false, false, false},
    {"one-yield", 1, 0, 256 << 10, true, false, false},
    {"one-big", 1, 4 << 20, 1 << 20, false, false, false},
    {"one-zerocopy", 1, 0, 256 << 10, false, true, false},
    {"one-uring", 1, 0, 256 << 10, false, false, true},
    {"two", 2, 0, 256 << 10, false, false, false},
    {"four", 4, 0, 256 << 10, false, false, false},
};

#define VARIANTS (sizeof(variants) / sizeof(*variants))

static struct lane lanes[VARIANTS][BENCH_RANKS_MAX][LANES_MAX]; /* by variant, peer and number */
static const struct variant *variant = variants;
static int rank, nranks;
static bool is_crowded;

static bool open_ring(struct lane (*peers)[LANES_MAX])
{
    struct lane *to_peers[BENCH_RANKS_MAX];
    int nlanes = 0;

    for (int peer = 0; peer < nranks; peer++)
        if (peer != rank)
            to_peers[nlanes++] = &peers[peer][0];
    return uring_open(to_peers, nlanes);
}

static bool select_variant(const char *name)
{
    for (size_t i = 0; i < VARIANTS; i++)
        if (strcmp(name, variants[i].name) == 0) {
            variant = &variants[i];
            return (is_crowded || !variant->yields) && (!variant->has_ring || open_ring(lanes[i]));
        }
    return false;
}

/* ---- an operation ---- */

/* Returns the number of bytes that go from rank `source` to rank `dest`. A broadcast and a
 * reduction are chains of ranks, in which all ranks have the same work. */
static size_t bytes_between(const struct bench_operation *op, int source, int dest)
{
    size_t whole = op->count * sizeof(float), part = whole / (size_t)nranks;

    switch (op->collective) {
    case BENCH_ALLREDUCE: return part >= 4 ? 2 * part : 8;
    case BENCH_ALLGATHER:
    case BENCH_ALLTOALL:
    case BENCH_REDUCE_SCATTER: return part;
    case BENCH_BROADCAST: return dest == source + 1 ? whole : 0;
    case BENCH_REDUCE: return dest == source - 1 ? whole : 0;
    case BENCH_SENDRECV: return dest == (source + 1) % nranks ? whole : 0;
    case BENCH_GATHERV: return dest == 0 ? op->blocks.count[source] * sizeof(float) : 0;
    case BENCH_SCATTERV: return source == 0 ? op->blocks.count[dest] * sizeof(float) : 0;
    default: return 1;
    }
}

/* Returns the part of `size` bytes that one of the lanes to a peer carries. */
static size_t share_of(size_t size, int lane)
{
    size_t share = size / (size_t)variant->nlanes;

    return lane > 0 ? share : size - share * (size_t)(variant->nlanes - 1);
}

/* Sets what each lane has to move in this operation. The bytes for each peer come from, and go to,
 * a place of their own in the rank's buffers, which have room for the whole vector. */
static void load_lanes(const struct bench_operation *op, struct lane (*peers)[LANES_MAX])
{
    static char barrier_bytes[64];
    size_t room = op->count * sizeof(float);

    for (int peer = 0; peer < nranks; peer++) {
        size_t out = peer == rank ? 0 : bytes_between(op, rank, peer), sent = 0;
        size_t in = peer == rank ? 0 : bytes_between(op, peer, rank), received = 0;
        bool is_barrier = op->collective == BENCH_BARRIER;
        char *from = is_barrier ? barrier_bytes : (char *)op->send;
        char *to = is_barrier ? barrier_bytes : (char *)op->recv;

        if (!is_barrier && room > out + in) {
            from += room / (size_t)nranks * (size_t)peer % (room - out + 1);
            to += room / (size_t)nranks * (size_t)peer % (room - in + 1);
        }
        for (int i = 0; i < variant->nlanes; i++) {
            struct lane *lane = &peers[peer][i];

            lane->to_send = share_of(out, i);
            lane->to_receive = share_of(in, i);
            lane->unreturned = 0;
            lane->from = from + sent;
            lane->to = to + received;
            sent += lane->to_send;
            received += lane->to_receive;
        }
    }
}

/* Returns the number of bytes that a system call has moved, which is 0 if it would have blocked.
 * Any other failure ends the process. */
static size_t moved(ssize_t result, const char *call)
{
    if (result > 0)
        return (size_t)result;
    if (result < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    bench_die("%s: %s", call, result == 0 ? "the peer is gone" : strerror(errno));
}

/* Notes the zero-copy sends whose buffers the kernel has returned. It reports them as ranges of the
 * numbers of sends. */
static void take_back(struct lane *lane)
{
    struct sock_extended_err error;
    char control[128];
    struct msghdr message = {.msg_control = control, .msg_controllen = sizeof(control)};

    if (recvmsg(lane->fd, &message, MSG_ERRQUEUE) < 0 || CMSG_FIRSTHDR(&message) == NULL)
        return;
    memcpy(&error, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(error));
    if (error.ee_origin == SO_EE_ORIGIN_ZEROCOPY)
        lane->unreturned -= error.ee_data - error.ee_info + 1;
}

static bool is_done(const struct lane *lane)
{
    return lane->to_send + lane->to_receive == 0 && lane->unreturned == 0;
}

static bool progress(struct lane *lane)
{
    size_t sent = 0, received = 0;
    int flags = MSG_NOSIGNAL | (variant->pins ? MSG_ZEROCOPY : 0);

    if (lane->unreturned > 0)
        take_back(lane);

    if (lane->to_send > 0) {
        size_t size = lane->to_send < variant->write_bytes ? lane->to_send : variant->write_bytes;

        sent = moved(send(lane->fd, lane->from, size, flags), "send");
        lane->unreturned += variant->pins && sent > 0;
        lane->from += sent;
        lane->to_send -= sent;
    }
    if (lane->to_receive > 0) {
        received = moved(recv(lane->fd, lane->to, lane->to_receive, 0), "recv");
        lane->to += received;
        lane->to_receive -= received;
    }
    return sent + received > 0;
}

/* Sleeps until any lane can proceed. For more ranks than CPUs. */
static void sleep_until_ready(struct lane (*peers)[LANES_MAX])
{
    struct pollfd waits[BENCH_RANKS_MAX * LANES_MAX];
    nfds_t nwaits = 0;

    for (int peer = 0; peer < nranks; peer++)
        for (int i = 0; i < variant->nlanes; i++) {
            const struct lane *lane = &peers[peer][i];

            if (!is_done(lane))
                waits[nwaits++] = (struct pollfd){
                    .fd = lane->fd, .events = (short)((lane->to_send > 0 ? POLLOUT : 0) |
                                                      (lane->to_receive > 0 ? POLLIN : 0))};
        }
    if (nwaits > 0 && poll(waits, nwaits, -1) < 0 && errno != EINTR)
        bench_die("poll: %s", strerror(errno));
}

static void run(const struct bench_operation *op)
{
    struct lane (*peers)[LANES_MAX] = lanes[variant - variants];
    bool is_over = false;

    load_lanes(op, peers);
    if (variant->has_ring) {
        uring_exchange(variant->write_bytes, is_crowded);
        return;
    }
    while (!is_over) {
        bool has_moved = false;

        is_over = true;
        for (int peer = 0; peer < nranks; peer++)
            for (int i = 0; i < variant->nlanes; i++) {
                struct lane *lane = &peers[peer][i];

                if (is_done(lane))
                    continue;
                has_moved |= progress(lane);
                is_over = is_over && is_done(lane);
            }
        if (!is_crowded || is_over || has_moved)
            continue;
        if (variant->yields)
            sched_yield();
        else
            sleep_until_ready(peers);
    }
}

static bool has(enum bench_collective collective)
{
    return !bench_is_scan(collective);
}

/* ---- joining ---- */

static void tune(int fd, const struct variant *one)
{
    int yes = 1, size = one->buffer_bytes;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    if (one->pins && setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &yes, sizeof(yes)) != 0)
        bench_die("SO_ZEROCOPY: %s", strerror(errno));
    if (size > 0) {
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
    }
}

static struct sockaddr_in loopback(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

/* Opens a listening socket, and writes its port to a file for the others. */
static int open_listener(const char *directory)
{
    struct sockaddr_in address = loopback(0);
    socklen_t length = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char path[512], final[512];
    FILE *file;

    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(fd, BENCH_RANKS_MAX * LANES_MAX) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &length) != 0)
        bench_die("cannot listen on the loopback: %s", strerror(errno));
    snprintf(path, sizeof(path), "%s/port.%d.new", directory, rank);
    snprintf(final, sizeof(final), "%s/port.%d", directory, rank);
    file = fopen(path, "w");
    if (file == NULL || fprintf(file, "%d\n", ntohs(address.sin_port)) < 0 || fclose(file) != 0 ||
        rename(path, final) != 0)
        bench_die("cannot write %s: %s", final, strerror(errno));
    return fd;
}

static int port_of(const char *directory, int peer)
{
    char path[512];
    FILE *file;
    int port = 0;

    snprintf(path, sizeof(path), "%s/port.%d", directory, peer);
    while ((file = fopen(path, "r")) == NULL)
        usleep(1000);
    if (fscanf(file, "%d", &port) != 1)
        bench_die("%s holds no port", path);
    fclose(file);
    return port;
}

/* Connects to every lower rank, and accepts the higher ones. The first bytes of a connection say
 * which rank connects, for which variant and lane. */
static void join(const char *directory)
{
    int listener = open_listener(directory), head[3];

    for (int peer = 0; peer < rank; peer++) {
        struct sockaddr_in address = loopback(port_of(directory, peer));

        for (size_t v = 0; v < VARIANTS; v++)
            for (int i = 0; i < variants[v].nlanes; i++) {
                int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

                head[0] = rank, head[1] = (int)v, head[2] = i;
                if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
                    write(fd, head, sizeof(head)) != (ssize_t)sizeof(head))
                    bench_die("cannot connect to rank %d: %s", peer, strerror(errno));
                lanes[v][peer][i].fd = fd;
            }
    }
    for (int peer = rank + 1; peer < nranks; peer++)
        for (size_t v = 0; v < VARIANTS; v++)
            for (int i = 0; i < variants[v].nlanes; i++) {
                int fd = accept(listener, NULL, NULL);

                if (fd < 0 || recv(fd, head, sizeof(head), MSG_WAITALL) != (ssize_t)sizeof(head) ||
                    head[0] <= rank || head[0] >= nranks || head[1] < 0 ||
                    head[1] >= (int)VARIANTS || head[2] < 0 || head[2] >= LANES_MAX)
                    bench_die("rank %d has accepted a connection that is not from a rank of this "
                              "driver", rank);
                lanes[head[1]][head[0]][head[2]].fd = fd;
            }
    close(listener);
    for (int peer = 0; peer < nranks; peer++)
        for (size_t v = 0; v < VARIANTS; v++)
            for (int i = 0; i < (peer == rank ? 0 : variants[v].nlanes); i++) {
                int fd = lanes[v][peer][i].fd;

                tune(fd, &variants[v]);
                /* On non-blocking sockets the requests of a ring would end at once, even for a rank
                 * that wants to sleep. */
                if (!variants[v].has_ring)
                    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
            }
}

static void *allocate(size_t size_bytes)
{
    void *memory = NULL;

    if (posix_memalign(&memory, 4096, size_bytes) != 0)
        bench_die("no memory for a buffer of %zu bytes", size_bytes);
    return memory;
}

int main(int argc, char **argv)
{
    struct bench_library library = {.has = has, .run = run, .allocate = allocate,
                                    .select = select_variant, .is_unchecked = true};

    if (argc != 4)
        bench_die("usage: sockets DIRECTORY RANK NRANKS");
    rank = library.rank = atoi(argv[2]);
    nranks = library.nranks = atoi(argv[3]);
    if (nranks < 2 || nranks > BENCH_RANKS_MAX)
        bench_die("there must be 2 to %d ranks, not %d", BENCH_RANKS_MAX, nranks);
    is_crowded = bench_is_crowded();
    bench_pin(rank);
    join(argv[1]);
    bench_serve(&library, argv[1]);
    return EXIT_SUCCESS;
}
