/* SPDX-License-Identifier: Apache-2.0
 * A connected rank sends any bytes where its peer expects headers, counts and data of operations.
 * The call ends with an error or with bytes of the right length, and nothing is written elsewhere.
 * Such a peer may also repeat the bytes that it receives, with changes, so that its headers are
 * right for a while. */
#include "fuzz/fuzz.h"

#include "fuzz/stream_conns.h"

#include "comm/comm.h"

enum { RANKS = 2, OWN = 0, PEER = 1, GUARD_BYTES = 64, ECHO_BYTES = 4096, PEEK_BYTES = 512 };
enum { MOST_CALLS = 3, TIMEOUT_MS = 50 };

/* A peer that repeats has nothing to say before this rank has. */
enum { MOST_EMPTY_LOOKS = 30 };

/* ---- a connection whose peer is the input ---------------------------------------------- */

struct fuzz_conn {
    struct tutti_conn base;
    struct fuzz_input *input;
    bool repeats;
    uint8_t most; /* bytes that a call moves at once, with 1 more */
    uint8_t *echo; /* [ECHO_BYTES]: what was sent to the peer, as far as there is room */
    size_t echoed, repeated;
    int empty_looks;
    uint8_t *peeked; /* [PEEK_BYTES], aligned */
};

static size_t part(const struct fuzz_conn *conn, size_t size)
{
    size_t most = (size_t)conn->most * conn->most + 1;

    return size < most ? size : most;
}

static int swallow(struct tutti_conn *base, const void *data, size_t size, size_t *ret_taken)
{
    struct fuzz_conn *conn = (struct fuzz_conn *)base;
    size_t taken = part(conn, size), kept = ECHO_BYTES - conn->echoed;

    kept = taken < kept ? taken : kept;
    if (kept > 0)
        memcpy(conn->echo + conn->echoed, data, kept);
    conn->echoed += kept;
    *ret_taken = taken;
    return TUTTI_OK;
}

/* The next byte of the peer's stream. False: there is none. */
static bool next_byte(const struct fuzz_conn *conn, size_t at, uint8_t *ret_byte)
{
    size_t repeats = conn->repeats ? conn->echoed - conn->repeated : 0;
    size_t fresh = at < repeats ? at : at - repeats;
    uint8_t given = fresh < conn->input->left ? conn->input->bytes[fresh] : 0;

    *ret_byte = at < repeats ? conn->echo[conn->repeated + at] ^ given : given;
    return at < repeats || fresh < conn->input->left;
}

static void advance(struct fuzz_conn *conn, size_t size)
{
    size_t repeats = conn->repeats ? conn->echoed - conn->repeated : 0;
    size_t used = size < conn->input->left ? size : conn->input->left;

    conn->repeated += size < repeats ? size : repeats;
    conn->input->bytes += used;
    conn->input->left -= used;
}

static size_t look(const struct fuzz_conn *conn, uint8_t *to, size_t size)
{
    size_t count = 0;
    uint8_t byte;

    while (count < size && next_byte(conn, count, &byte))
        to[count++] = byte;
    return count;
}

/* The result of a look that found `count` bytes. */
static int result_of(struct fuzz_conn *conn, size_t count)
{
    if (count > 0)
        conn->empty_looks = 0;
    if (count > 0 || (conn->repeats && conn->empty_looks++ < MOST_EMPTY_LOOKS))
        return TUTTI_OK;
    return tutti_fail(TUTTI_ERR_REMOTE, "rank %d closed its connection", PEER);
}

static int feed(struct tutti_conn *base, void *data, size_t size, size_t *ret_got)
{
    struct fuzz_conn *conn = (struct fuzz_conn *)base;

    *ret_got = look(conn, data, part(conn, size));
    advance(conn, *ret_got);
    return size == 0 ? TUTTI_OK : result_of(conn, *ret_got);
}

static int feed_two(struct tutti_conn *base, void *head, size_t head_size, void *data, size_t size,
                    size_t *ret_got)
{
    size_t more = 0;

    TUTTI_TRY(feed(base, head, head_size, ret_got));
    if (*ret_got == head_size && data != NULL && feed(base, data, size, &more) == TUTTI_OK)
        *ret_got += more;
    return TUTTI_OK;
}

static int peek(struct tutti_conn *base, size_t least, size_t most, const void **ret_data,
                size_t *ret_size)
{
    struct fuzz_conn *conn = (struct fuzz_conn *)base;

    most = most < PEEK_BYTES ? most : PEEK_BYTES;
    *ret_data = conn->peeked;
    *ret_size = look(conn, conn->peeked, most) / least * least;
    return result_of(conn, *ret_size);
}

static void consume(struct tutti_conn *base, size_t size)
{
    advance((struct fuzz_conn *)base, size);
}

static const struct tutti_conn_ops ops = {.send = swallow, .recv = feed,
                                               .peek = peek, .consume = consume};
static const struct tutti_conn_ops ops_of_two = {.send = swallow, .recv = feed,
                                                      .recv_two = feed_two, .peek = peek,
                                                      .consume = consume};

/* ---- the calls --------------------------------------------------------------------------- */

struct buffers {
    int32_t *in, *out;
    size_t count; /* of `out` */
};

static struct buffers make_buffers(size_t count)
{
    size_t bytes = count * sizeof(int32_t);
    struct buffers made = {.in = calloc(count + 1, sizeof(int32_t)),
                           .out = malloc(bytes + GUARD_BYTES), .count = count};

    fuzz_require(made.in != NULL && made.out != NULL, "there is memory for buffers");
    memset(made.out, 0x5a, bytes + GUARD_BYTES);
    return made;
}

static void free_buffers(struct buffers *buffers)
{
    const uint8_t *guard = (const uint8_t *)(buffers->out + buffers->count);

    for (size_t i = 0; i < GUARD_BYTES; i++)
        fuzz_require(guard[i] == 0x5a, "nothing is written behind the buffer");
    free(buffers->in);
    free(buffers->out);
}

static tuttiResult_t call(tuttiComm_t comm, uint8_t what, size_t count)
{
    const size_t gives[RANKS] = {1, count}, takes[RANKS] = {1, what % 16 < 8 ? count : count / 2};
    struct buffers b = make_buffers(2 * count + 1);
    tuttiResult_t result;

    /* The last values were added later, so that older inputs still make the same calls. */
    switch (what < 240 ? what % 8 : what < 252 ? 8 + what % 4 : 12 + what % 2) {
    case 0: result = tuttiRecv(b.out, count, tuttiInt32, PEER, comm, NULL); break;
    case 1: result = tuttiAllReduce(b.in, b.out, count, tuttiInt32, tuttiSum, comm, NULL); break;
    case 2: result = tuttiAllGatherV(b.in, b.out, takes, NULL, tuttiInt32, comm, NULL); break;
    case 3:
        result = tuttiAlltoAllV(b.in, gives, NULL, b.out, takes, NULL, tuttiInt32, comm, NULL);
        break;
    case 4: result = tuttiBroadcast(b.in, b.out, count, tuttiInt32, PEER, comm, NULL); break;
    case 5:
        result = tuttiReduceScatterV(b.in, b.out, takes, NULL, tuttiInt32, tuttiMax, comm, NULL);
        break;
    case 6: result = tuttiBarrier(comm, NULL); break;
    case 8:
        result = tuttiGatherV(b.in, 1, b.out, takes, NULL, tuttiInt32, OWN, comm, NULL);
        break;
    case 9:
        result = tuttiGatherV(b.in, count, NULL, NULL, NULL, tuttiInt32, PEER, comm, NULL);
        break;
    case 10:
        result = tuttiScatterV(b.in, gives, NULL, b.out, 1, tuttiInt32, OWN, comm, NULL);
        break;
    case 11:
        result = tuttiScatterV(NULL, NULL, NULL, b.out, count, tuttiInt32, PEER, comm, NULL);
        break;
    case 12: result = tuttiScan(b.in, b.out, count, tuttiInt32, tuttiSum, comm, NULL); break;
    case 13:
        result = tuttiExclusiveScan(b.in, b.out, count, tuttiInt32, tuttiMax, comm, NULL);
        break;
    default:
        tuttiGroupStart();
        tuttiSend(b.in, count, tuttiInt32, PEER, comm, NULL);
        tuttiRecv(b.out, count, tuttiInt32, PEER, comm, NULL);
        tuttiAllGather(b.in, b.out + count, 1, tuttiInt32, comm, NULL);
        result = tuttiGroupEnd();
    }
    free_buffers(&b);
    return result;
}

/* ---- communicators ------------------------------------------------------------------------ */

static void put_conns(struct tutti_fabric *fabric, struct fuzz_conn *conns)
{
    for (int channel = 0; channel < TUTTI_CHANNEL_COUNT; channel++)
        stream_put_conn(fabric, PEER, channel, conns != NULL ? &conns[channel].base : NULL);
}

static void play(tuttiComm_t handle, struct fuzz_input *input)
{
    static const size_t counts[] = {1, 3, 40, 3000, 50000};
    static uint8_t peeked[PEEK_BYTES] __attribute__((aligned(TUTTI_CACHE_LINE)));
    struct fuzz_conn conns[TUTTI_CHANNEL_COUNT];
    uint8_t manner = fuzz_byte(input), most = fuzz_byte(input), whats[MOST_CALLS];
    uint8_t sizes[MOST_CALLS];
    struct tutti_comm *comm;

    for (int i = 0; i < MOST_CALLS; i++) {
        whats[i] = fuzz_byte(input);
        sizes[i] = fuzz_byte(input);
    }
    fuzz_require(tutti_handle_visit(handle, "fuzz", &comm) == TUTTI_OK, "it is a communicator");
    tutti_handle_unvisit(handle);
    for (int i = 0; i < TUTTI_CHANNEL_COUNT; i++) {
        conns[i] = (struct fuzz_conn){
            .base = {.ops = manner % 2 ? &ops_of_two : &ops, .fabric = comm->fabric, .peer = PEER,
                     .channel = i},
            .input = input, .repeats = manner / 2 % 2 != 0, .most = most,
            .echo = malloc(ECHO_BYTES), .peeked = peeked};
        fuzz_require(conns[i].echo != NULL, "there is memory for an echo");
    }
    put_conns(comm->fabric, conns);
    for (int i = 0; i < MOST_CALLS; i++)
        if (call(handle, whats[i], counts[sizes[i] % 5]) != tuttiSuccess)
            break;
    put_conns(comm->fabric, NULL);
    for (int i = 0; i < TUTTI_CHANNEL_COUNT; i++)
        free(conns[i].echo);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct fuzz_input input = {.bytes = bytes, .left = size};
    tuttiComm_t comms[RANKS];

    setenv("TUTTI_TRANSPORTS", "tcp", 1);
    if (tuttiCommInitAll(comms, RANKS, NULL) != tuttiSuccess)
        return 0;
    (void)tuttiCommSetTimeout(comms[0], TIMEOUT_MS);
    play(comms[0], &input);
    for (int rank = 0; rank < RANKS; rank++)
        fuzz_require(tuttiCommDestroy(comms[rank]) == tuttiSuccess, "a communicator can be freed");
    return 0;
}
