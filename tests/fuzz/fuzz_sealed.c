/* SPDX-License-Identifier: Apache-2.0
 * A process without the keys inserts bytes into a sealed stream. The first byte of an input
 * chooses the protection. The commands after it send true bytes, insert generated ones between
 * them, and receive. Only bytes that were sent before the first inserted one may arrive. */
#include "fuzz/fuzz.h"

#include "base/clock.h"
#include "transport/tcp/seal.h"
#include "transport/tcp/tcp.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { STREAM_BYTES = 100000, MOST_STEPS = 64, MOST_RAW_BYTES = 4096, MOST_HEAD_BYTES = 200 };

enum command { SEND, SEND_TWO, RECEIVE, PEEK, PUT, COMMANDS };

struct pair {
    struct tutti_fabric *fabrics;    /* [2]: the sender's, the receiver's */
    struct tutti_tcp_conn *conns[2];
    size_t sent, got;                /* true bytes of the stream */
    size_t limit;                    /* what may arrive at most; SIZE_MAX until bytes are put in */
};

static uint8_t stream_byte(size_t position)
{
    return (uint8_t)(position * 2654435761u >> 11);
}

static void shake_hands(const int fds[2], struct tutti_handshake shakes[2])
{
    static const uint8_t secret[TUTTI_SECRET_BYTES] = "a secret";
    static const struct tutti_purpose purpose = {.bytes = {1}};
    int rc[2] = {TUTTI_AGAIN, TUTTI_AGAIN};

    for (int i = 0; i < 2; i++)
        tutti_handshake_start(&shakes[i], fds[i], i == 1, secret, i == 1 ? NULL : &purpose,
                              TUTTI_NEVER);
    while (rc[0] == TUTTI_AGAIN || rc[1] == TUTTI_AGAIN)
        for (int i = 0; i < 2; i++)
            if (rc[i] == TUTTI_AGAIN)
                rc[i] = tutti_handshake_step(&shakes[i]);
    fuzz_require(rc[0] == TUTTI_OK && rc[1] == TUTTI_OK, "both sides hold the secret");
}

static void join(struct pair *pair, uint8_t protection)
{
    struct tutti_handshake shakes[2];
    int fds[2];

    fuzz_require(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0, "there is a pair of sockets");
    for (int i = 0; i < 2; i++)
        fcntl(fds[i], F_SETFL, O_NONBLOCK);
    shake_hands(fds, shakes);
    for (int i = 0; i < 2; i++) {
        struct tutti_fabric *fabric = &pair->fabrics[i];
        struct tutti_tcp_conn *conn;

        fuzz_require(tutti_parts_init(fabric) == TUTTI_OK, "records have room");
        tutti_tcp_own_record(fabric)->seal_mode =
            protection % 2 == 0 ? TUTTI_SEAL_AUTH : TUTTI_SEAL_ON;
        tutti_tcp_own_record(fabric)->has_aes = protection % 4 < 2 && tutti_seal_has_aes();
        fabric->records = &fabric->mine; /* the peer, number 0, is like us */
        pthread_mutex_init(&fabric->lock, NULL);
        conn = tutti_conn_create(fabric, &tutti_tcp_sealed_ops, 0, 0, sizeof *conn);
        fuzz_require(conn != NULL, "there is memory for a connection");
        conn->buffer = aligned_alloc(TUTTI_CACHE_LINE, TUTTI_TCP_BUFFER_BYTES);
        fuzz_require(conn->buffer != NULL, "there is memory for its buffer");
        conn->nsockets = 1;
        conn->out.left = conn->in.left = SIZE_MAX;
        conn->most_per_call = STREAM_BYTES;
        conn->fds[0] = fds[i];
        fuzz_require(tutti_tcp_sealing_create(conn) == TUTTI_OK, "there is memory for records");
        tutti_tcp_sealing_start(conn, 0, &shakes[i]);
        pair->conns[i] = conn;
    }
}

static void part(struct pair *pair)
{
    for (int i = 0; i < 2; i++) {
        close(pair->conns[i]->fds[0]);
        tutti_tcp_sealing_destroy(pair->conns[i]);
        free(pair->conns[i]->buffer);
        free(pair->conns[i]);
        pthread_mutex_destroy(&pair->fabrics[i].lock);
    }
}

/* All that is left of the stream is offered, so that the offer never shrinks. */
static void send_some(struct pair *pair, size_t head_bytes)
{
    static uint8_t stream[STREAM_BYTES];
    struct tutti_conn *conn = &pair->conns[0]->base;
    size_t left = STREAM_BYTES - pair->sent, taken = 0;

    if (stream[1] == 0)
        for (size_t i = 0; i < STREAM_BYTES; i++)
            stream[i] = stream_byte(i);
    if (left == 0)
        return;
    if (head_bytes == 0 || head_bytes >= left)
        conn->ops->send(conn, stream + pair->sent, left, &taken);
    else
        conn->ops->send_two(conn, stream + pair->sent, head_bytes,
                            stream + pair->sent + head_bytes, left - head_bytes, &taken);
    pair->sent += taken;
}

static void put(struct pair *pair, struct fuzz_input *input)
{
    const uint8_t *bytes;
    size_t size = fuzz_byte(input);

    size = fuzz_bytes(input, (size << 8 | fuzz_byte(input)) % MOST_RAW_BYTES, &bytes);
    if (size == 0 || send(pair->conns[0]->fds[0], bytes, size, MSG_NOSIGNAL) <= 0)
        return;
    if (pair->limit == SIZE_MAX)
        pair->limit = pair->sent;
}

static void compare(struct pair *pair, const uint8_t *bytes, size_t size)
{
    fuzz_require(pair->got + size <= pair->limit, "nothing arrives after made-up bytes");
    for (size_t i = 0; i < size; i++)
        fuzz_require(bytes[i] == stream_byte(pair->got + i), "what arrives was sent");
    pair->got += size;
}

static void receive(struct pair *pair, size_t most)
{
    static uint8_t bytes[UINT16_MAX + 1];
    struct tutti_conn *conn = &pair->conns[1]->base;
    size_t got = 0;

    if (conn->ops->recv(conn, bytes, most, &got) == TUTTI_OK)
        compare(pair, bytes, got);
}

static void peek(struct pair *pair, size_t least, size_t most)
{
    struct tutti_conn *conn = &pair->conns[1]->base;
    const void *bytes;
    size_t size = 0;

    if (conn->ops->peek(conn, least, most > least ? most : least, &bytes, &size) != TUTTI_OK)
        return;
    compare(pair, bytes, size);
    conn->ops->consume(conn, size);
}

static void obey(struct pair *pair, struct fuzz_input *input)
{
    enum command command = fuzz_byte(input) % COMMANDS;
    size_t number;

    if (command == PUT) {
        put(pair, input);
        return;
    }
    number = fuzz_byte(input);
    number = number << 8 | fuzz_byte(input);
    switch (command) {
    case SEND: send_some(pair, 0); break;
    case SEND_TWO: send_some(pair, number % MOST_HEAD_BYTES + 1); break;
    case RECEIVE: receive(pair, number); break;
    default: peek(pair, number % 64 + 1, number); break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct fuzz_input input = {.bytes = bytes, .left = size};
    struct pair pair = {.fabrics = aligned_alloc(TUTTI_CACHE_LINE, 2 * sizeof *pair.fabrics),
                        .limit = SIZE_MAX};

    fuzz_require(pair.fabrics != NULL, "there is memory for two fabrics");
    memset(pair.fabrics, 0, 2 * sizeof *pair.fabrics);
    join(&pair, fuzz_byte(&input));
    for (int i = 0; i < MOST_STEPS && input.left > 0; i++)
        obey(&pair, &input);
    part(&pair);
    free(pair.fabrics);
    return 0;
}
