/* SPDX-License-Identifier: Apache-2.0
 * Measures sockets without a library: sockets DIRECTORY RANK NRANKS. Each rank sends and receives
 * the minimal number of bytes of the operation, to and from all peers at once, directly between
 * the buffers. Nothing is added, and no rank waits for data that it must pass on. So the bytes in
 * the receive buffers are not the results of the operation.
 *
 * Variants differ in the number of sockets between two ranks, in the buffers of the sockets, in the
 * way a rank waits, and in the system calls. The fastest is the limit. A lane is one of the sockets
 * between two ranks. Every variant has lanes of its own. All are connected at the start, and the
 * driver then selects one variant after the other. */
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
#define PATH_BYTES 512

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

/* Members that a variant does not set are 0 or false. */
struct variant {
    const char *name;
    int nlanes;          /* sockets between two ranks, at most LANES_MAX */
    size_t buffer_bytes; /* size of each socket's two buffers in the kernel; 0: the default */
    size_t write_bytes;  /* most bytes of one call of send */
    bool yields;         /* with more ranks than CPUs, a waiting rank yields instead of sleeping */
    bool is_zerocopy;    /* the kernel sends from the buffers themselves (MSG_ZEROCOPY) */
    bool has_ring;       /* uses io_uring; for one lane only */
};

static const struct variant variants[] = {
    {.name = "one", .nlanes = 1, .write_bytes = 256 * KIB},
    {.name = "one-yield", .nlanes = 1, .write_bytes = 256 * KIB, .yields = true},
    {.name = "one-big", .nlanes = 1, .write_bytes = 1 * MIB, .buffer_bytes = 4 * MIB},
    {.name = "one-zerocopy", .nlanes = 1, .write_bytes = 256 * KIB, .is_zerocopy = true},
    {.name = "one-uring", .nlanes = 1, .write_bytes = 256 * KIB, .has_ring = true},
    {.name = "two", .nlanes = 2, .write_bytes = 256 * KIB},
    {.name = "four", .nlanes = 4, .write_bytes = 256 * KIB},
};

#define VARIANTS (sizeof(variants) / sizeof(*variants))

/* By variant, peer and number of the lane. The entries of this rank as a peer are not used. */
static struct lane lanes[VARIANTS][BENCH_RANKS_MAX][LANES_MAX];
static const struct variant *variant = variants; /* the selected one */
static int rank, nranks;
static bool is_crowded; /* there are more ranks than CPUs */

/* Makes the ring for the lanes of a variant, `peers[peer][0]`. Returns false if that is not
 * possible. */
static bool open_ring(struct lane (*peers)[LANES_MAX])
{
    struct lane *ring_lanes[BENCH_RANKS_MAX];
    int nlanes = 0;

    for (int peer = 0; peer < nranks; peer++)
        if (peer != rank)
            ring_lanes[nlanes++] = &peers[peer][0];
    return uring_open(ring_lanes, nlanes);
}

/* Returns false if there is no variant of that name, if it yields although each rank has a CPU, or
 * if it needs a ring and there can be none. */
static bool select_variant(const char *name)
{
    for (size_t v = 0; v < VARIANTS; v++)
        if (strcmp(name, variants[v].name) == 0) {
            variant = &variants[v];
            if (variant->yields && !is_crowded)
                return false;
            return !variant->has_ring || open_ring(lanes[v]);
        }
    return false;
}

/* ---- an operation ---- */

/* Returns the number of bytes that go from rank `source` to another rank `dest`:
 *
 *  - In an all-reduce each rank sends one part of its input to every peer, and the sum of its own
 *    part to every peer: two parts. If a part is smaller than an element, it is counted as one.
 *  - A broadcast and a reduction are chains of ranks, so that all ranks have the same work. The
 *    reduction goes from the last rank to rank 0.
 *  - A barrier is one byte. */
static size_t bytes_between(const struct bench_operation *op, int source, int dest)
{
    size_t whole = op->count * sizeof(float), part = whole / (size_t)nranks;

    switch (op->collective) {
    case BENCH_ALLREDUCE: return 2 * (part >= sizeof(float) ? part : sizeof(float));
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

/* Returns how many of `size` bytes the lane of this number carries. Lane 0 also carries what an
 * equal division leaves. */
static size_t share_of(size_t size, int lane)
{
    size_t share = size / (size_t)variant->nlanes;

    return lane > 0 ? share : size - share * (size_t)(variant->nlanes - 1);
}

/* Divides the bytes for one peer, which start at `from`, and those from the peer, which go to `to`,
 * among the lanes to that peer. */
static void load_peer(struct lane *peer_lanes, char *from, size_t out_bytes, char *to,
                      size_t in_bytes)
{
    for (int i = 0; i < variant->nlanes; i++) {
        struct lane *lane = &peer_lanes[i];

        *lane = (struct lane){.fd = lane->fd,
                              .from = from,
                              .to = to,
                              .to_send = share_of(out_bytes, i),
                              .to_receive = share_of(in_bytes, i)};
        from += lane->to_send;
        to += lane->to_receive;
    }
}

/* Sets what each lane has to move in this operation. If the buffers have room, the bytes for each
 * peer come from, and go to, different places, as in a real exchange. */
static void load_lanes(const struct bench_operation *op, struct lane (*peers)[LANES_MAX])
{
    static char barrier_bytes[64]; /* a barrier has no buffers */
    bool is_barrier = op->collective == BENCH_BARRIER;
    size_t room = op->count * sizeof(float);

    for (int peer = 0; peer < nranks; peer++) {
        size_t out_bytes = peer == rank ? 0 : bytes_between(op, rank, peer);
        size_t in_bytes = peer == rank ? 0 : bytes_between(op, peer, rank);
        char *from = is_barrier ? barrier_bytes : (char *)op->send;
        char *to = is_barrier ? barrier_bytes : (char *)op->recv;

        if (!is_barrier && room > out_bytes + in_bytes) {
            size_t start = room / (size_t)nranks * (size_t)peer;

            /* The remainder keeps the bytes from reaching past the end of the buffer. */
            from += start % (room - out_bytes + 1);
            to += start % (room - in_bytes + 1);
        }
        load_peer(peers[peer], from, out_bytes, to, in_bytes);
    }
}

/* Returns the number of bytes that a call of send or recv has moved, which is 0 if the call would
 * have blocked. Any other failure ends the process. */
static size_t moved_bytes(ssize_t result, const char *call)
{
    if (result > 0)
        return (size_t)result;
    if (result < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    bench_die("rank %d: %s: %s", rank, call, result == 0 ? "the peer is gone" : strerror(errno));
}

/* Takes one report of the kernel that zero-copy sends no longer use their buffers, if there is one.
 * The kernel numbers the sends of a socket. A report names the first send (ee_info) and the last
 * send (ee_data) of a range. */
static void take_back(struct lane *lane)
{
    struct sock_extended_err error;
    char control[128]; /* room for one report */
    struct msghdr message = {.msg_control = control, .msg_controllen = sizeof(control)};

    if (recvmsg(lane->fd, &message, MSG_ERRQUEUE) < 0 || CMSG_FIRSTHDR(&message) == NULL)
        return;
    memcpy(&error, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(error));
    if (error.ee_origin == SO_EE_ORIGIN_ZEROCOPY)
        lane->unreturned -= error.ee_data - error.ee_info + 1;
}

/* True if the lane has moved all its bytes, and its buffers may be changed. */
static bool is_done(const struct lane *lane)
{
    return lane->to_send + lane->to_receive == 0 && lane->unreturned == 0;
}

/* Sends and receives what the socket takes and has now. Returns true if any byte moved. */
static bool progress(struct lane *lane)
{
    size_t sent = 0, received = 0;
    int flags = MSG_NOSIGNAL | (variant->is_zerocopy ? MSG_ZEROCOPY : 0);

    if (lane->unreturned > 0)
        take_back(lane);

    if (lane->to_send > 0) {
        size_t size = lane->to_send < variant->write_bytes ? lane->to_send : variant->write_bytes;

        sent = moved_bytes(send(lane->fd, lane->from, size, flags), "send");
        if (variant->is_zerocopy && sent > 0)
            lane->unreturned++;
        lane->from += sent;
        lane->to_send -= sent;
    }
    if (lane->to_receive > 0) {
        received = moved_bytes(recv(lane->fd, lane->to, lane->to_receive, 0), "recv");
        lane->to += received;
        lane->to_receive -= received;
    }
    return sent + received > 0;
}

/* Sleeps until any lane can proceed, so that another rank can use the CPU. A lane that only waits
 * for reports of zero-copy sends wakes too, because poll always returns POLLERR. */
static void sleep_until_ready(struct lane (*peers)[LANES_MAX])
{
    struct pollfd waits[BENCH_RANKS_MAX * LANES_MAX]; /* one for each lane that is not done */
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

/* Lets each lane that is not done make progress once. Returns true if all lanes are done then.
 * *ret_has_moved is set to whether any byte moved. */
static bool progress_all(struct lane (*peers)[LANES_MAX], bool *ret_has_moved)
{
    bool is_over = true, has_moved = false;

    for (int peer = 0; peer < nranks; peer++)
        for (int i = 0; i < variant->nlanes; i++) {
            struct lane *lane = &peers[peer][i];

            if (is_done(lane))
                continue;
            has_moved |= progress(lane);
            is_over = is_over && is_done(lane);
        }
    *ret_has_moved = has_moved;
    return is_over;
}

/* Runs the exchange of one operation. If each rank has a CPU, it polls without sleeping. */
static void run(const struct bench_operation *op)
{
    struct lane (*peers)[LANES_MAX] = lanes[variant - variants];
    bool has_moved;

    load_lanes(op, peers);
    if (variant->has_ring) {
        uring_exchange(variant->write_bytes, is_crowded);
        return;
    }
    while (!progress_all(peers, &has_moved)) {
        if (!is_crowded || has_moved)
            continue;
        if (variant->yields)
            sched_yield();
        else
            sleep_until_ready(peers);
    }
}

/* A scan has no exchange here. */
static bool has(enum bench_collective collective)
{
    return !bench_is_scan(collective);
}

/* ---- joining ---- */

/* What a rank sends first on each connection that it makes. */
struct hello {
    int rank;    /* the rank that connects */
    int variant; /* index of the variant that the connection is for */
    int lane;    /* number of the lane */
};

/* Sets the options of a socket for the variant `owner`. */
static void tune(int fd, const struct variant *owner)
{
    int yes = 1, size = (int)owner->buffer_bytes;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    if (owner->is_zerocopy && setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &yes, sizeof(yes)) != 0)
        bench_die("rank %d: the kernel refuses SO_ZEROCOPY: %s", rank, strerror(errno));
    if (size > 0) {
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
    }
    /* On non-blocking sockets the requests of a ring would end at once, even for a rank that wants
     * to sleep. */
    if (!owner->has_ring)
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

static struct sockaddr_in loopback(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

/* Writes the path of the file with the port of `peer`. */
static void name_port_file(const char *directory, int peer, char ret_path[PATH_BYTES])
{
    snprintf(ret_path, PATH_BYTES, "%s/port.%d", directory, peer);
}

/* Opens a listening socket, and writes its port to a file for the other ranks. The file is renamed
 * when it is complete, so that no rank reads a part of it. */
static int open_listener(const char *directory)
{
    struct sockaddr_in address = loopback(0);
    socklen_t length = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char path[PATH_BYTES], new_path[PATH_BYTES];
    FILE *file;

    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(fd, BENCH_RANKS_MAX * LANES_MAX) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &length) != 0)
        bench_die("rank %d cannot listen on the loopback: %s", rank, strerror(errno));
    name_port_file(directory, rank, path);
    snprintf(new_path, sizeof(new_path), "%s/port.%d.new", directory, rank);
    file = fopen(new_path, "w");
    if (file == NULL || fprintf(file, "%d\n", ntohs(address.sin_port)) < 0 || fclose(file) != 0 ||
        rename(new_path, path) != 0)
        bench_die("cannot write %s: %s", path, strerror(errno));
    return fd;
}

/* Waits until `peer` has written its port, and returns the port. */
static int port_of(const char *directory, int peer)
{
    char path[PATH_BYTES];
    FILE *file;
    int port = 0;

    name_port_file(directory, peer, path);
    while ((file = fopen(path, "r")) == NULL)
        usleep(1000);
    if (fscanf(file, "%d", &port) != 1)
        bench_die("%s holds no port", path);
    fclose(file);
    return port;
}

/* Connects all lanes to a lower rank. */
static void connect_to(const char *directory, int peer)
{
    struct sockaddr_in address = loopback(port_of(directory, peer));

    for (size_t v = 0; v < VARIANTS; v++)
        for (int i = 0; i < variants[v].nlanes; i++) {
            struct hello hello = {.rank = rank, .variant = (int)v, .lane = i};
            int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

            if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
                write(fd, &hello, sizeof(hello)) != (ssize_t)sizeof(hello))
                bench_die("rank %d cannot connect to rank %d: %s", rank, peer, strerror(errno));
            lanes[v][peer][i].fd = fd;
        }
}

static bool is_valid(const struct hello *hello)
{
    return hello->rank > rank && hello->rank < nranks && hello->variant >= 0 &&
           hello->variant < (int)VARIANTS && hello->lane >= 0 && hello->lane < LANES_MAX;
}

/* Accepts one connection of a higher rank. Connections arrive in any order. */
static void accept_lane(int listener)
{
    int fd = accept(listener, NULL, NULL);
    struct hello hello;

    if (fd < 0 || recv(fd, &hello, sizeof(hello), MSG_WAITALL) != (ssize_t)sizeof(hello) ||
        !is_valid(&hello))
        bench_die("rank %d has accepted a connection that is not from a rank of this driver", rank);
    lanes[hello.variant][hello.rank][hello.lane].fd = fd;
}

/* Connects this rank to all others: connects to the lower ranks, and accepts the higher ones. */
static void join(const char *directory)
{
    int listener = open_listener(directory);
    int lanes_per_peer = 0;

    for (size_t v = 0; v < VARIANTS; v++)
        lanes_per_peer += variants[v].nlanes;
    for (int peer = 0; peer < rank; peer++)
        connect_to(directory, peer);
    for (int i = 0; i < (nranks - 1 - rank) * lanes_per_peer; i++)
        accept_lane(listener);
    close(listener);
    for (int peer = 0; peer < nranks; peer++)
        for (size_t v = 0; v < VARIANTS && peer != rank; v++)
            for (int i = 0; i < variants[v].nlanes; i++)
                tune(lanes[v][peer][i].fd, &variants[v]);
}

static void *allocate(size_t size_bytes)
{
    void *memory = NULL;

    if (posix_memalign(&memory, 4096, size_bytes) != 0)
        bench_die("rank %d has no memory for a buffer of %zu bytes", rank, size_bytes);
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
