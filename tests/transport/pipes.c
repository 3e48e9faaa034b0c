/* SPDX-License-Identifier: Apache-2.0
 * Implements a transport for tests: pipes between ranks of one host. It shows all that a transport
 * needs, and that no other file of the library has to know it.
 *
 * Each rank makes a pipe for every peer and channel. It keeps the end to read from, and publishes
 * the number of each pipe. A peer opens the other end through /proc:
 *
 *     rank a: in[b] <-------- /proc/<pid of a>/fd/<number> opened by rank b
 *
 * The peer writes a byte first, the greeting, because a pipe that is not yet open at the other end
 * looks like a closed one. */
#include "transport/carry.h"
#include "transport/fabric_private.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

extern const struct tutti_transport_ops tutti_pipes_ops;

enum { MOST_RANKS = 10, BUFFER_BYTES = 16384, GREETING = 'p' };

/* The slice of a rank's record: the pipe from each rank, on each channel. */
struct pipes_record {
    uint32_t inode[MOST_RANKS][TUTTI_CHANNEL_COUNT];
    uint16_t fd[MOST_RANKS][TUTTI_CHANNEL_COUNT];
};

/* The slice of a rank's verdict. */
struct pipes_verdict {
    uint8_t opens_all; /* 1: the rank can open the pipes of all ranks of its host */
};

struct pipes_conn {
    struct tutti_conn base;
    struct pipes_conn *next;
    int in, out; /* -1: not yet open, or closed */
    bool is_greeted;
    size_t begin, have; /* bytes read from the pipe, and not yet received */
    alignas(8) uint8_t buffer[BUFFER_BYTES];
};

struct pipes {
    int in[MOST_RANKS][TUTTI_CHANNEL_COUNT]; /* not yet taken by a connection; else -1 */
    int nowhere;                             /* replaces the pipes at abort */
    struct pipes_conn *conns;                /* under fabric->lock */
};

static struct pipes *pipes_of(const struct tutti_fabric *fabric)
{
    return tutti_part_state(fabric, &tutti_pipes_ops);
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* ---- forming ------------------------------------------------------------------------- */

static void pipes_destroy(struct tutti_fabric *fabric)
{
    struct pipes *pipes = pipes_of(fabric);

    tutti_part_set_state(fabric, &tutti_pipes_ops, NULL);
    for (int rank = 0; rank < MOST_RANKS; rank++)
        for (int channel = 0; channel < TUTTI_CHANNEL_COUNT; channel++)
            close_fd(&pipes->in[rank][channel]);
    close_fd(&pipes->nowhere);
    free(pipes);
}

/* Makes the pipe from that rank, and publishes it. */
static int make_pipe(struct tutti_fabric *fabric, int rank, int channel)
{
    struct pipes_record *mine = tutti_record_own_slice(fabric, &tutti_pipes_ops);
    struct stat status;
    int ends[2];

    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
        return tutti_fail(TUTTI_ERR_SYSTEM, "pipe: %s", strerror(errno));
    close(ends[1]);
    pipes_of(fabric)->in[rank][channel] = ends[0];
    if (fstat(ends[0], &status) != 0 || ends[0] > UINT16_MAX)
        return tutti_fail(TUTTI_ERR_SYSTEM, "a pipe that cannot be published");
    mine->inode[rank][channel] = (uint32_t)status.st_ino;
    mine->fd[rank][channel] = (uint16_t)ends[0];
    return TUTTI_OK;
}

static int pipes_open(struct tutti_fabric *fabric)
{
    struct pipes *pipes;
    int rc = TUTTI_OK;

    if (fabric->nranks > MOST_RANKS)
        return tutti_fail(TUTTI_ERR_USAGE, "pipes serve up to %d ranks", MOST_RANKS);
    TUTTI_TRY(tutti_wait_reserve(fabric));
    pipes = calloc(1, sizeof *pipes);
    if (pipes == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for pipes");
    memset(pipes->in, -1, sizeof pipes->in);
    pipes->nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    tutti_part_set_state(fabric, &tutti_pipes_ops, pipes);
    signal(SIGPIPE, SIG_IGN);
    for (int rank = 0; rank < fabric->nranks && rc == TUTTI_OK; rank++)
        for (int channel = 0; channel < TUTTI_CHANNEL_COUNT && rc == TUTTI_OK; channel++)
            if (rank != fabric->rank)
                rc = make_pipe(fabric, rank, channel);
    if (rc != TUTTI_OK)
        pipes_destroy(fabric);
    return rc;
}

/* Returns the write end of the pipe from this rank to `peer`, or -1 if there is none. */
static int open_out(const struct tutti_fabric *fabric, int peer, int channel)
{
    const struct pipes_record *theirs = tutti_record_slice(fabric, &tutti_pipes_ops, peer);
    char path[64];
    struct stat status;
    int fd;

    snprintf(path, sizeof path, "/proc/%d/fd/%u", tutti_fabric_pid(fabric, peer),
             theirs->fd[fabric->rank][channel]);
    /* The pipe is checked before it is opened: its number may now belong to another file. */
    if (stat(path, &status) != 0 || !S_ISFIFO(status.st_mode) ||
        (uint32_t)status.st_ino != theirs->inode[fabric->rank][channel])
        return -1;
    fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    return fd;
}

static int pipes_join(struct tutti_fabric *fabric)
{
    struct pipes_verdict *mine = tutti_verdict_own_slice(fabric, &tutti_pipes_ops);

    mine->opens_all = 1;
    for (int rank = 0; rank < fabric->nranks; rank++) {
        int fd;

        if (rank == fabric->rank || !tutti_fabric_same_host(fabric, rank, fabric->rank) ||
            !tutti_part_is_used_by(fabric, &tutti_pipes_ops, rank))
            continue;
        fd = open_out(fabric, rank, 0);
        if (fd < 0)
            mine->opens_all = 0;
        close_fd(&fd);
    }
    return TUTTI_OK;
}

static bool opens_all(const struct tutti_fabric *fabric, int rank)
{
    const struct pipes_verdict *verdict = tutti_verdict_slice(fabric, &tutti_pipes_ops, rank);

    return verdict->opens_all != 0;
}

static bool pipes_reach(const struct tutti_fabric *fabric, int a, int b)
{
    return a != b && tutti_fabric_same_host(fabric, a, b) && opens_all(fabric, a) &&
           opens_all(fabric, b);
}

/* ---- connecting ---------------------------------------------------------------------- */

static void pipes_close(struct tutti_conn *base)
{
    struct pipes_conn *conn = (struct pipes_conn *)base;
    struct pipes_conn **link;

    if (conn == NULL)
        return;
    pthread_mutex_lock(&base->fabric->lock);
    link = &pipes_of(base->fabric)->conns;
    while (*link != conn)
        link = &(*link)->next;
    *link = conn->next;
    pthread_mutex_unlock(&base->fabric->lock);
    close_fd(&conn->in);
    close_fd(&conn->out);
    free(conn);
}

static int fail_gone(struct pipes_conn *conn)
{
    return tutti_fabric_peer_failed(conn->base.fabric, conn->base.peer, "closed its connection");
}

static int begin_conn(struct tutti_fabric *fabric, int peer, int channel,
                      const struct tutti_conn_ops *ops, struct tutti_conn **ret_conn)
{
    struct pipes *pipes = pipes_of(fabric);
    struct pipes_conn *conn = tutti_conn_create(fabric, ops, peer, channel, sizeof *conn);

    if (conn == NULL)
        return TUTTI_ERR_SYSTEM;
    conn->in = pipes->in[peer][channel];
    conn->out = -1;
    pipes->in[peer][channel] = -1;
    pthread_mutex_lock(&fabric->lock);
    conn->next = pipes->conns;
    pipes->conns = conn;
    pthread_mutex_unlock(&fabric->lock);
    *ret_conn = &conn->base;
    return tutti_wait_watch(fabric, conn->in);
}

/* Returns TUTTI_AGAIN if the peer has not opened its end yet. */
static int hear_greeting(struct pipes_conn *conn)
{
    struct pollfd polled = {.fd = conn->out};
    /* This is checked first, so that nothing can follow the bytes that are read below. */
    bool is_gone = poll(&polled, 1, 0) == 1 && (polled.revents & POLLERR) != 0;
    uint8_t byte;

    conn->is_greeted = read(conn->in, &byte, 1) == 1;
    if (conn->is_greeted)
        return TUTTI_OK;
    return is_gone ? fail_gone(conn) : TUTTI_AGAIN;
}

static int greet(struct pipes_conn *conn)
{
    uint8_t byte = GREETING;
    int fd = open_out(conn->base.fabric, conn->base.peer, conn->base.channel);

    if (fd < 0 || write(fd, &byte, 1) != 1) {
        close_fd(&fd);
        /* The peer has come and gone. The bytes that it has sent are still received. */
        return hear_greeting(conn) == TUTTI_OK ? TUTTI_OK : fail_gone(conn);
    }
    pthread_mutex_lock(&conn->base.fabric->lock);
    conn->out = fd;
    pthread_mutex_unlock(&conn->base.fabric->lock);
    return tutti_wait_watch(conn->base.fabric, fd);
}

static const struct tutti_conn_ops pipes_conn_ops;

static int pipes_connect(struct tutti_fabric *fabric, int peer, int channel,
                         struct tutti_conn **conn)
{
    struct pipes_conn *pipe;
    int rc = TUTTI_OK;

    if (*conn == NULL)
        rc = begin_conn(fabric, peer, channel, &pipes_conn_ops, conn);
    pipe = (struct pipes_conn *)*conn;
    if (rc == TUTTI_OK && pipe->out < 0)
        rc = greet(pipe);
    if (rc == TUTTI_OK)
        return TUTTI_OK;
    pipes_close(*conn);
    *conn = NULL;
    return rc;
}

static bool pipes_is_busy(const struct tutti_fabric *fabric)
{
    return pipes_of(fabric)->conns != NULL;
}

/* ---- the stream ---------------------------------------------------------------------- */

static int pipes_send(struct tutti_conn *base, const void *data, size_t size, size_t *ret_taken)
{
    struct pipes_conn *conn = (struct pipes_conn *)base;
    ssize_t put = size > 0 ? write(conn->out, data, size) : 0;

    *ret_taken = put > 0 ? (size_t)put : 0;
    return put >= 0 || errno == EAGAIN ? TUTTI_OK : fail_gone(conn);
}

static int pull(struct pipes_conn *conn, void *to, size_t size, size_t *ret_got)
{
    ssize_t got;

    *ret_got = 0;
    if (!conn->is_greeted) {
        int rc = hear_greeting(conn);

        if (rc != TUTTI_OK)
            return rc == TUTTI_AGAIN ? TUTTI_OK : rc;
    }
    got = size > 0 ? read(conn->in, to, size) : 0;
    *ret_got = got > 0 ? (size_t)got : 0;
    return got > 0 || size == 0 || (got < 0 && errno == EAGAIN) ? TUTTI_OK : fail_gone(conn);
}

static int pipes_recv(struct tutti_conn *base, void *data, size_t size, size_t *ret_got)
{
    struct pipes_conn *conn = (struct pipes_conn *)base;

    if (conn->have == 0)
        return pull(conn, data, size, ret_got);
    *ret_got = size < conn->have ? size : conn->have;
    memcpy(data, conn->buffer + conn->begin, *ret_got);
    conn->begin += *ret_got;
    conn->have -= *ret_got;
    return TUTTI_OK;
}

static int pipes_peek(struct tutti_conn *base, size_t least, size_t most, const void **ret_data,
                      size_t *ret_size)
{
    struct pipes_conn *conn = (struct pipes_conn *)base;
    size_t wanted = (most < BUFFER_BYTES ? most : BUFFER_BYTES) / least * least, got = 0;

    *ret_size = 0;
    if (conn->have < least || conn->begin % tutti_peek_alignment(least) != 0) {
        memmove(conn->buffer, conn->buffer + conn->begin, conn->have);
        conn->begin = 0;
        if (conn->have < wanted)
            TUTTI_TRY(pull(conn, conn->buffer + conn->have, wanted - conn->have, &got));
        conn->have += got;
    }
    *ret_data = conn->buffer + conn->begin;
    *ret_size = (conn->have < wanted ? conn->have : wanted) / least * least;
    return TUTTI_OK;
}

static void pipes_consume(struct tutti_conn *base, size_t size)
{
    struct pipes_conn *conn = (struct pipes_conn *)base;

    conn->begin += size;
    conn->have -= size;
}

static int pipes_count(const struct tutti_conn *base)
{
    (void)base;
    return 2;
}

static const struct tutti_conn_ops pipes_conn_ops = {
    .send = pipes_send,
    .recv = pipes_recv,
    .peek = pipes_peek,
    .consume = pipes_consume,
    .count_sockets = pipes_count,
    .close = pipes_close,
};

/* ---- ending -------------------------------------------------------------------------- */

/* Makes the peers see the ends of their pipes. The descriptors keep their numbers, because a
 * waiting thread may be writing to them. */
static void pipes_abort(struct tutti_fabric *fabric, struct tutti_cause *cause)
{
    struct pipes *pipes = pipes_of(fabric);

    (void)cause;
    for (struct pipes_conn *conn = pipes->conns; conn != NULL; conn = conn->next)
        if (conn->out >= 0)
            (void)syscall(SYS_dup3, pipes->nowhere, conn->out, O_CLOEXEC);
}

const struct tutti_transport_ops tutti_pipes_ops = {
    .name = "pipes",
    .record_bytes = sizeof(struct pipes_record),
    .verdict_bytes = sizeof(struct pipes_verdict),
    .waits_on_descriptors = true,
    .open = pipes_open,
    .join = pipes_join,
    .reach = pipes_reach,
    .connect = pipes_connect,
    .is_busy = pipes_is_busy,
    .abort = pipes_abort,
    .destroy = pipes_destroy,
};
