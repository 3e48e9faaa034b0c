/* SPDX-License-Identifier: Apache-2.0
 * What sockets give without a library: bare_tcp DIRECTORY RANK NRANKS. The same operations as plain
 * loops over one socket per pair of ranks, from and to the user's memory, with the settings that
 * were found to be the best, and nothing that a library must have: no headers, arguments to check,
 * errors, deadlines, sleeping or choice. Every rank sends to every other at once. */
#include "driver.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define RANKS_MAX 64
/* Vectors of up to this size are exchanged whole and summed by all; longer ones in shares. */
#define WHOLE_BYTES 65536
#define STAGE_BYTES 65536
/* Offered to the kernel in one go: as many whole segments as fit. */
#define CALL_BYTES (512 * 1024)

/* What one peer is to be sent, and where goes what it sends. */
struct flow {
    int fd;
    const char *from;
    char *to;
    size_t to_send, to_receive;
    bool adds;  /* what comes is added to what is at `to` */
    char *stage; /* [STAGE_BYTES] for that */
    size_t staged;
};

static struct flow flows[RANKS_MAX];
static int rank, nranks;
static size_t call_bytes = CALL_BYTES;
static bool is_crowded;

static void fail(const char *what)
{
    bench_die("rank %d: %s: %s", rank, what, strerror(errno));
}

/* ---- moving ---- */

static size_t send_some(struct flow *flow)
{
    size_t size = flow->to_send < call_bytes ? flow->to_send : call_bytes;
    ssize_t done = send(flow->fd, flow->from, size, MSG_DONTWAIT | MSG_NOSIGNAL);

    if (done < 0 && errno != EAGAIN)
        fail("send");
    if (done <= 0)
        return 0;
    flow->from += done;
    flow->to_send -= (size_t)done;
    return (size_t)done;
}

/* Whole elements of the stage, wherever the stream was cut. */
static void add_staged(struct flow *flow)
{
    size_t count = flow->staged / sizeof(float), bytes = count * sizeof(float);
    const float *restrict incoming = (const float *)(const void *)flow->stage;
    float *restrict sum = (float *)(void *)flow->to;

    for (size_t i = 0; i < count; i++)
        sum[i] += incoming[i];
    flow->to += bytes;
    flow->staged -= bytes;
    memcpy(flow->stage, flow->stage + bytes, flow->staged);
}

static size_t receive_some(struct flow *flow)
{
    size_t room = STAGE_BYTES - flow->staged;
    size_t size = flow->adds && flow->to_receive > room ? room : flow->to_receive;
    ssize_t done = recv(flow->fd, flow->adds ? flow->stage + flow->staged : flow->to, size,
                        MSG_DONTWAIT);

    if (done == 0 || (done < 0 && errno != EAGAIN))
        fail("receive");
    if (done < 0)
        return 0;
    flow->to_receive -= (size_t)done;
    if (flow->adds) {
        flow->staged += (size_t)done;
        add_staged(flow);
    } else {
        flow->to += done;
    }
    return (size_t)done;
}

static void plan(int peer, const float *from, size_t to_send, float *to, size_t to_receive,
                 bool adds)
{
    struct flow *flow = &flows[peer];

    flow->from = (const char *)from;
    flow->to = (char *)to;
    flow->to_send = to_send * sizeof(float);
    flow->to_receive = to_receive * sizeof(float);
    flow->adds = adds;
}

/* All that is planned. Nobody begins with the same peer. */
static void move(void)
{
    bool is_done;

    do {
        size_t moved = 0;

        is_done = true;
        for (int i = 1; i < nranks; i++) {
            struct flow *flow = &flows[(rank + i) % nranks];

            if (flow->to_send > 0)
                moved += send_some(flow);
            is_done = is_done && flow->to_send == 0;
        }
        for (int i = 1; i < nranks; i++) {
            struct flow *flow = &flows[(rank + nranks - i) % nranks];

            while (flow->to_receive > 0) {
                size_t got = receive_some(flow);

                moved += got;
                if (got == 0)
                    break;
            }
            is_done = is_done && flow->to_receive == 0;
        }
        if (moved == 0 && is_crowded)
            sched_yield();
    } while (!is_done);
}

/* ---- operations ---- */

static size_t share_start(size_t count, int index)
{
    return (count / (size_t)nranks & ~(size_t)15) * (size_t)index;
}

static size_t share_size(size_t count, int index)
{
    return index == nranks - 1 ? count - share_start(count, index)
                               : share_start(count, index + 1) - share_start(count, index);
}

static void allreduce(const struct bench_operation *op)
{
    size_t count = op->count, start = share_start(count, rank), size = share_size(count, rank);
    bool is_whole = count * sizeof(float) <= WHOLE_BYTES;

    if (is_whole)
        memcpy(op->recv, op->send, count * sizeof(float));
    else
        memcpy(op->recv + start, op->send + start, size * sizeof(float));
    for (int peer = 0; peer < nranks; peer++)
        if (peer != rank && is_whole)
            plan(peer, op->send, count, op->recv, count, true);
        else if (peer != rank)
            plan(peer, op->send + share_start(count, peer), share_size(count, peer),
                 op->recv + start, size, true);
    move();
    if (is_whole)
        return;
    for (int peer = 0; peer < nranks; peer++)
        if (peer != rank)
            plan(peer, op->recv + start, size, op->recv + share_start(count, peer),
                 share_size(count, peer), false);
    move();
}

static void reduce_scatter(const struct bench_operation *op)
{
    memcpy(op->recv, op->send + (size_t)rank * op->part, op->part * sizeof(float));
    for (int peer = 0; peer < nranks; peer++)
        if (peer != rank)
            plan(peer, op->send + (size_t)peer * op->part, op->part, op->recv, op->part, true);
    move();
}

/* Everyone's block goes to everyone: its only one, or one each. */
static void gather(const struct bench_operation *op, bool has_one)
{
    size_t part = op->part;

    for (int peer = 0; peer < nranks; peer++)
        if (peer != rank)
            plan(peer, op->send + (has_one ? 0 : (size_t)peer * part), part,
                 op->recv + (size_t)peer * part, part, false);
    memcpy(op->recv + (size_t)rank * part, op->send + (has_one ? 0 : (size_t)rank * part),
           part * sizeof(float));
    move();
}

static void run(const struct bench_operation *op)
{
    static float token[2];
    int next = (rank + 1) % nranks, previous = (rank + nranks - 1) % nranks;

    switch (op->collective) {
    case BENCH_ALLREDUCE: allreduce(op); break;
    case BENCH_REDUCE_SCATTER: reduce_scatter(op); break;
    case BENCH_ALLGATHER: gather(op, true); break;
    case BENCH_ALLTOALL: gather(op, false); break;
    case BENCH_BROADCAST:
        for (int peer = 1; peer < nranks && rank == 0; peer++)
            plan(peer, op->recv, op->count, NULL, 0, false);
        if (rank != 0)
            plan(0, NULL, 0, op->recv, op->count, false);
        move();
        break;
    case BENCH_SENDRECV:
        plan(previous, NULL, 0, op->recv, op->count, false);
        flows[next].from = (const char *)op->send;
        flows[next].to_send = op->count * sizeof(float);
        move();
        break;
    default:
        for (int peer = 0; peer < nranks; peer++)
            if (peer != rank)
                plan(peer, &token[0], 1, &token[1], 1, false);
        move();
        break;
    }
}

static bool has(enum bench_collective collective)
{
    (void)collective;
    return true;
}

/* ---- joining ---- */

static void take(int peer, int fd)
{
    static const char without_pacing[] = "reno";
    int on = 1, segment = 0;
    socklen_t size = sizeof(segment);

    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0)
        fail("TCP_NODELAY");
    (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, without_pacing, sizeof(without_pacing) - 1);
    if (getsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &segment, &size) == 0 && segment > 0)
        call_bytes = CALL_BYTES / (size_t)segment * (size_t)segment;
    flows[peer].fd = fd;
    flows[peer].stage = malloc(STAGE_BYTES);
    if (flows[peer].stage == NULL)
        bench_die("no memory");
}

static void say_port(const char *directory, in_port_t port)
{
    char draft[512], path[512];
    FILE *file;

    snprintf(draft, sizeof(draft), "%s/draft.%d", directory, rank);
    snprintf(path, sizeof(path), "%s/port.%d", directory, rank);
    file = fopen(draft, "w");
    if (file == NULL || fprintf(file, "%u", (unsigned)port) < 0 || fclose(file) != 0 ||
        rename(draft, path) != 0)
        fail(path);
}

static in_port_t hear_port(const char *directory, int peer)
{
    char path[512];
    unsigned port;
    FILE *file;

    snprintf(path, sizeof(path), "%s/port.%d", directory, peer);
    while ((file = fopen(path, "r")) == NULL)
        usleep(1000);
    if (fscanf(file, "%u", &port) != 1)
        bench_die("no port in %s", path);
    fclose(file);
    return (in_port_t)port;
}

/* The higher of two ranks calls and says who it is. */
static void join(const char *directory)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM, 0);

    if (listener < 0 || bind(listener, (struct sockaddr *)&address, size) != 0 ||
        listen(listener, RANKS_MAX) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) != 0)
        fail("listen");
    say_port(directory, address.sin_port);
    for (int peer = 0; peer < rank; peer++) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);

        address.sin_port = hear_port(directory, peer);
        if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
            send(fd, &rank, sizeof(rank), MSG_NOSIGNAL) != sizeof(rank))
            fail("connect");
        take(peer, fd);
    }
    for (int count = rank + 1; count < nranks; count++) {
        int fd = accept(listener, NULL, NULL), peer;

        if (fd < 0 || recv(fd, &peer, sizeof(peer), MSG_WAITALL) != sizeof(peer) || peer <= rank ||
            peer >= nranks)
            fail("accept");
        take(peer, fd);
    }
    close(listener);
}

int main(int argc, char **argv)
{
    struct bench_library library = {.version = "", .has = has, .run = run};

    if (argc != 4)
        bench_die("usage: bare_tcp DIRECTORY RANK NRANKS");
    rank = library.rank = atoi(argv[2]);
    nranks = library.nranks = atoi(argv[3]);
    if (nranks < 2 || nranks > RANKS_MAX)
        bench_die("there must be 2 to %d ranks, not %d", RANKS_MAX, nranks);
    is_crowded = nranks > sysconf(_SC_NPROCESSORS_ONLN);
    bench_pin(rank);
    join(argv[1]);
    bench_serve(&library, argv[1]);
    return EXIT_SUCCESS;
}
