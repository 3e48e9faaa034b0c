/* SPDX-License-Identifier: Apache-2.0
 * Implements the connections of the transports "shm" and "cma". Each direction of a connection is a
 * FIFO of records (fifo.h) in the host's segment. Data is copied twice and without a system call,
 * except to wake a rank that sleeps at the other end.
 *
 * Between ranks that can read each other's memory, "cma" offers large data as an address instead.
 * The receiver copies from there directly into its destination by one system call. In one process,
 * and in lent memory (lend.h), it uses plain loads. The receiver counts the bytes that it has
 * copied, and the sender reports these as taken. "shm" never offers addresses.
 *
 *   | DATA bytes ... | EXPOSED size address | DATA ... */
#include "transport/shm/shm.h"

#include "transport/carry.h"
#include "transport/shm/fifo.h"

#include "base/param.h"

#include <stdlib.h>
#include <string.h>

/* A long message is published in parts, so that the reader copies while the writer does. A part
 * occupies as much of the ring as the reader gives back at a time, but at most PIECE_BYTES. */
#define PIECE_BYTES 16384
/* From this size on, memory that the receiver can load directly is exposed. Such a copy costs no
 * system call, but the sender has to wait for it. */
#define LOADS_THRESHOLD 16384
#define CROWDED_LOADS_THRESHOLD 65536
/* Through the FIFO both ends copy at the same time, which is best if one end would otherwise be
 * idle. If messages go both ways at once, one copy is better than two from this size on. */
#define MUTUAL_THRESHOLD (256 * 1024)
/* If ranks share cores, the two ends do not copy at the same time, and one copy is better from this
 * size on. */
#define CROWDED_THRESHOLD (256 * 1024)
/* After this many bytes, the receiver updates the count from which the sender learns which bytes it
 * may reuse. */
#define COPY_BYTES (512 * 1024)
#define BOUNCE_BYTES 65536

/* The content of an EXPOSED record. */
struct loan {
    uint64_t size;
    uint64_t address;
    uint32_t number; /* number of the lent memory that contains it, if the peer has mapped that;
                        else 0 */
    uint32_t last;   /* the last number on the sender's list */
};

struct shm_conn {
    struct tutti_conn base;
    struct tutti_domain *domain;
    struct tutti_lend *lend;
    uint32_t peer_index;
    bool is_one_process;
    /* Sizes from which bytes are exposed: in ordinary memory, in ordinary memory while messages go
     * both ways, and in lent memory. */
    size_t threshold, mutual_threshold, lent_threshold;
    size_t piece;

    /* Sending: the exposed offer. The peer has copied up to `seen`. */
    struct tutti_fifo_writer out;
    size_t exposed;
    uint64_t seen;
    uint32_t told; /* the last number of lent memory that the peer knows */

    /* Receiving: the rest of the peer's exposed offer comes before the record at the front. */
    struct tutti_fifo_reader in;
    struct loan loan;
    uint64_t copied;
    struct tutti_carry carry;
    bool is_carry_shown;
    uint8_t *bounce; /* copies of exposed memory, for peek */
};

/* The operations of a connection of either transport. */
static const struct tutti_conn_ops stream_ops;

/* Sets the sizes from which a connection of "cma" exposes its bytes. */
static void set_thresholds(struct shm_conn *shm)
{
    size_t threshold = (size_t)tutti_param_int(TUTTI_PARAM_CMA_THRESHOLD);

    if (shm->is_one_process && threshold > LOADS_THRESHOLD)
        threshold = LOADS_THRESHOLD;
    if (shm->base.fabric->is_crowded && threshold > CROWDED_THRESHOLD)
        threshold = CROWDED_THRESHOLD;
    shm->threshold = threshold;
    shm->mutual_threshold = threshold < MUTUAL_THRESHOLD ? threshold : MUTUAL_THRESHOLD;
    if (!shm->is_one_process)
        shm->lent_threshold =
            shm->base.fabric->is_crowded ? CROWDED_LOADS_THRESHOLD : LOADS_THRESHOLD;
}

static int connect_by(const struct tutti_transport_ops *ops, struct tutti_fabric *fabric, int peer,
                      int channel, struct tutti_conn **conn)
{
    const struct tutti_shm *host = tutti_shm_of(fabric);
    struct tutti_shm_segment *segment = host->segment;
    size_t fifo_bytes = segment->header->fifo_bytes;
    uint32_t me = host->my_index, other = tutti_shm_index(host, peer);
    struct shm_conn *shm = tutti_conn_create(fabric, &stream_ops, peer, channel, sizeof *shm);

    if (shm == NULL)
        return TUTTI_ERR_SYSTEM;
    shm->domain = &segment->domain;
    shm->lend = host->lend;
    shm->peer_index = other;
    shm->is_one_process = segment->access[other] == TUTTI_DOMAIN_ACCESS_STORE;
    shm->threshold = shm->mutual_threshold = shm->lent_threshold = SIZE_MAX;
    if (ops == &tutti_cma_ops)
        set_thresholds(shm);
    shm->piece = (fifo_bytes / 4 < PIECE_BYTES ? fifo_bytes / 4 : PIECE_BYTES) - TUTTI_CACHE_LINE;
    tutti_fifo_writer_init(&shm->out, tutti_shm_segment_fifo(segment, channel, me, other),
                           fifo_bytes);
    tutti_fifo_reader_init(&shm->in, tutti_shm_segment_fifo(segment, channel, other, me),
                           fifo_bytes);
    *conn = &shm->base;
    return TUTTI_OK;
}

int tutti_shm_connect(struct tutti_fabric *fabric, int peer, int channel, struct tutti_conn **conn)
{
    return connect_by(&tutti_shm_ops, fabric, peer, channel, conn);
}

int tutti_cma_connect(struct tutti_fabric *fabric, int peer, int channel, struct tutti_conn **conn)
{
    return connect_by(&tutti_cma_ops, fabric, peer, channel, conn);
}

/* Wakes the peer if it sleeps. This is the ringer's half of the sleeping protocol of
 * fabric_wait.c. */
static inline void rouse(struct shm_conn *shm)
{
    tutti_fence_before_look(shm->domain->has_joint_fences);
    if (tutti_load_relaxed(&shm->domain->waiters[shm->peer_index].is_sleeping) != 0)
        tutti_domain_ring(shm->domain, shm->peer_index);
}

static int fail_gone(struct shm_conn *shm)
{
    return tutti_fabric_blame(shm->base.fabric, shm->base.peer, "closed its connection");
}

/* ---- sending ------------------------------------------------------------------------- */

/* Writes a record with as much of `head` and then `data` as fits one part and the ring. Only the
 * last record of an offer may end at an odd address, so elements are aligned in the ring. */
static size_t put_data(struct shm_conn *shm, const void *head, size_t head_size, const void *data,
                       size_t size)
{
    size_t wanted = head_size + size < shm->piece ? head_size + size : shm->piece;
    size_t room = tutti_fifo_room(&shm->out, wanted) & ~(size_t)7;

    if (room < head_size + 8 && room < wanted)
        return 0;
    if (wanted > room)
        wanted = room;
    /* The header of a collective with one count per rank may be longer than a record. */
    if (head_size > wanted)
        head_size = wanted;
    if (head_size > 0)
        tutti_fifo_put(&shm->out, head, head_size);
    if (wanted > head_size)
        tutti_fifo_put(&shm->out, data, wanted - head_size);
    tutti_fifo_publish(&shm->out, TUTTI_RECORD_DATA);
    return wanted;
}

/* Returns the number of the lent memory from which the peer can load these bytes, or 0 if it
 * cannot. *ret_is_new is true if the peer has not yet been told of that number. */
static uint32_t lent_number(const struct shm_conn *shm, const void *data, size_t size,
                            bool *ret_is_new)
{
    struct tutti_lend *lend = shm->lend;
    uint32_t number = tutti_lend_number(lend, data, size);

    *ret_is_new = number > shm->told;
    return tutti_lend_is_mapped(lend, shm->peer_index, number) ? number : 0;
}

/* True if one copy by the peer from exposed memory is better than two copies. Memory of which the
 * peer has not been told is exposed, too, because the record tells it. */
static bool is_exposed(const struct shm_conn *shm, const void *data, size_t size)
{
    bool is_new;

    if (size >= (shm->base.is_mutual ? shm->mutual_threshold : shm->threshold))
        return true;
    return size >= shm->lent_threshold && (lent_number(shm, data, size, &is_new) != 0 || is_new);
}

static bool expose(struct shm_conn *shm, const uint8_t *data, size_t size)
{
    struct loan loan = {.size = size, .address = (uint64_t)(uintptr_t)data};
    bool is_new;

    if (tutti_fifo_room(&shm->out, sizeof loan) < sizeof loan)
        return false;
    if (!shm->is_one_process) {
        loan.number = lent_number(shm, data, size, &is_new);
        loan.last = shm->told = tutti_lend_last(shm->lend);
    }
    tutti_fifo_put(&shm->out, &loan, sizeof loan);
    tutti_fifo_publish(&shm->out, TUTTI_RECORD_EXPOSED);
    shm->exposed = size;
    return true;
}

/* Returns how many more bytes of the exposed offer the peer has copied. */
static size_t collect(struct shm_conn *shm)
{
    /* acquire: pairs with the release in advance; the peer has finished with these bytes */
    uint64_t copied = tutti_load_acquire(&shm->out.fifo->copied);
    size_t taken = (size_t)(copied - shm->seen);

    if (taken > shm->exposed) /* only a corrupted peer counts more than was exposed */
        taken = shm->exposed;
    shm->seen = copied;
    shm->exposed -= taken;
    return taken;
}

/* Puts `head`, if any, and `data` into the ring as far as there is room. Returns how many bytes. */
static size_t put_all(struct shm_conn *shm, const void *head, size_t head_size, const uint8_t *data,
                      size_t size)
{
    size_t taken = put_data(shm, head, head_size, data, size), piece = taken;

    while (piece > 0 && taken < head_size) {
        piece = put_data(shm, (const uint8_t *)head + taken, head_size - taken, data, size);
        taken += piece;
    }
    while (piece > 0 && taken < head_size + size) {
        piece = put_data(shm, NULL, 0, data + (taken - head_size), head_size + size - taken);
        taken += piece;
    }
    return taken;
}

/* True if the peer has closed and will copy no more of the exposed offer. The flag is read first,
 * because a peer counts what it has copied before it closes. */
static bool is_refused(const struct shm_conn *shm)
{
    /* acquire: pairs with the release in advance */
    return tutti_fifo_is_refused(&shm->out) &&
           tutti_load_acquire(&shm->out.fifo->copied) == shm->seen;
}

/* Ends a send: wakes the peer after progress. If nothing was taken of a non-empty offer, it checks
 * whether the peer is still there. */
static int conclude(struct shm_conn *shm, bool has_progress, bool is_stuck)
{
    if (has_progress)
        rouse(shm);
    else if (is_stuck && is_refused(shm))
        return fail_gone(shm);
    return TUTTI_OK;
}

static int shm_send(struct tutti_conn *conn, const void *data, size_t size, size_t *ret_taken)
{
    struct shm_conn *shm = (struct shm_conn *)conn;
    const uint8_t *from = data;
    size_t taken = 0, put = 0;
    bool has_progress = false;

    if (shm->exposed > 0)
        taken = collect(shm);
    if (shm->exposed == 0 && taken < size) {
        if (is_exposed(shm, from + taken, size - taken)) {
            has_progress = expose(shm, from + taken, size - taken);
        } else {
            put = put_all(shm, NULL, 0, from + taken, size - taken);
            has_progress = put > 0;
        }
    }
    *ret_taken = taken + put;
    return conclude(shm, has_progress, *ret_taken == 0 && size > 0);
}

static int shm_send_two(struct tutti_conn *conn, const void *head, size_t head_size,
                        const void *data, size_t size, size_t *ret_taken)
{
    struct shm_conn *shm = (struct shm_conn *)conn;

    if (shm->exposed > 0) { /* an earlier call of shm_send has exposed bytes */
        *ret_taken = collect(shm);
        return conclude(shm, false, *ret_taken == 0);
    }
    /* Bytes that are to be exposed follow in a separate call. */
    *ret_taken = put_all(shm, head, head_size, data, is_exposed(shm, data, size) ? 0 : size);
    return conclude(shm, *ret_taken > 0, *ret_taken == 0);
}

/* ---- receiving ----------------------------------------------------------------------- */

/* Makes bytes available at the front. Returns false if nothing has arrived. */
static bool have_front(struct shm_conn *shm)
{
    if (shm->loan.size > 0)
        return true;
    if (tutti_fifo_ready(&shm->in) == 0)
        return false;
    if (shm->in.kind == TUTTI_RECORD_DATA)
        return true;
    tutti_fifo_look(&shm->in, &shm->loan, sizeof shm->loan);
    if (tutti_fifo_drop(&shm->in, shm->in.size))
        rouse(shm);
    if (!shm->is_one_process)
        tutti_lend_learn(shm->lend, shm->peer_index, shm->loan.last);
    return shm->loan.size > 0;
}

static size_t left_at_front(const struct shm_conn *shm)
{
    return shm->loan.size > 0 ? (size_t)shm->loan.size : shm->in.size - shm->in.taken;
}

/* Removes `size` bytes from the front, which have been used. */
static void advance(struct shm_conn *shm, size_t size)
{
    if (shm->loan.size == 0) {
        if (tutti_fifo_drop(&shm->in, size))
            rouse(shm);
        return;
    }
    shm->loan.size -= size;
    shm->loan.address += size;
    shm->copied += size;
    /* release: pairs with the acquire in collect; this rank has read these bytes */
    tutti_store_release(&shm->in.fifo->copied, shm->copied);
    rouse(shm);
}

/* Returns the address from which exposed bytes at the front can be loaded, or NULL if there is
 * none. The address is found anew each time, because the peer's lent memory may change
 * meanwhile. */
static const uint8_t *find_lent(const struct shm_conn *shm)
{
    if (shm->is_one_process)
        return (const uint8_t *)(uintptr_t)shm->loan.address;
    return tutti_lend_at(shm->lend, shm->peer_index, shm->loan.number,
                         shm->loan.address, shm->loan.size);
}

/* Copies from the front without removing the bytes. TUTTI_AGAIN: some rank has given up, so lent
 * memory must not be accessed any more. The next tutti_fabric_check reports the error. */
static int copy_front(struct shm_conn *shm, void *data, size_t size)
{
    struct tutti_fabric *fabric = shm->base.fabric;
    const uint8_t *lent;
    int rc = TUTTI_OK;

    if (shm->loan.size == 0) {
        tutti_fifo_look(&shm->in, data, size);
        return TUTTI_OK;
    }
    if (!tutti_fabric_enter(fabric))
        return TUTTI_AGAIN;
    lent = find_lent(shm);
    if (lent != NULL && shm->base.copy != NULL)
        shm->base.copy(data, lent, size);
    else if (lent != NULL)
        memcpy(data, lent, size);
    else
        rc = tutti_domain_read(shm->domain, shm->peer_index, data, shm->loan.address, size);
    if (!tutti_fabric_exit(fabric) && rc == TUTTI_OK)
        return TUTTI_AGAIN;
    if (rc == TUTTI_OK)
        return TUTTI_OK;
    return tutti_fabric_blame(fabric, shm->base.peer, "has memory that cannot be read any more");
}

static size_t front_piece(const struct shm_conn *shm, size_t size)
{
    size_t left = left_at_front(shm);

    left = left < COPY_BYTES ? left : COPY_BYTES;
    return size < left ? size : left;
}

static int pull(struct shm_conn *shm, uint8_t *to, size_t size, size_t *ret_got)
{
    size_t got = 0;

    while (got < size && have_front(shm)) {
        size_t piece = front_piece(shm, size - got);
        int rc = copy_front(shm, to + got, piece);

        if (rc == TUTTI_AGAIN)
            break;
        TUTTI_TRY(rc);
        advance(shm, piece);
        got += piece;
    }
    *ret_got = got;
    return TUTTI_OK;
}

/* Receives first the bytes in the carry, which are older, and then those that have arrived
 * since. */
static int take(struct shm_conn *shm, void *data, size_t size, size_t *ret_got)
{
    size_t carried = 0, got;

    if (shm->carry.have > 0)
        carried = tutti_carry_take(&shm->carry, data, size);
    TUTTI_TRY(pull(shm, (uint8_t *)data + carried, size - carried, &got));
    *ret_got = carried + got;
    return TUTTI_OK;
}

static int shm_recv(struct tutti_conn *conn, void *data, size_t size, size_t *ret_got)
{
    struct shm_conn *shm = (struct shm_conn *)conn;

    TUTTI_TRY(take(shm, data, size, ret_got));
    if (*ret_got == 0 && size > 0 && tutti_fifo_is_ended(&shm->in))
        return fail_gone(shm);
    return TUTTI_OK;
}

static int shm_recv_two(struct tutti_conn *conn, void *head, size_t head_size, void *data,
                        size_t size, size_t *ret_got)
{
    size_t got = 0, more = 0;

    TUTTI_TRY(shm_recv(conn, head, head_size, &got));
    if (got == head_size && size > 0 && data != NULL)
        TUTTI_TRY(take((struct shm_conn *)conn, data, size, &more));
    *ret_got = got + more;
    return TUTTI_OK;
}

/* ---- showing in place ---------------------------------------------------------------- */

/* Puts an element that spans two records together in the carry, and shows it. */
static int show_carry(struct shm_conn *shm, size_t least, const void **ret_data, size_t *ret_size)
{
    struct tutti_carry *carry = &shm->carry;
    size_t got = 0;

    if (carry->have < least)
        TUTTI_TRY(pull(shm, carry->bytes + carry->have, least - carry->have, &got));
    carry->have += got;
    shm->is_carry_shown = true;
    *ret_data = carry->bytes;
    *ret_size = carry->have < least ? 0 : least;
    return TUTTI_OK;
}

/* Allocates the bounce buffer at first need, because most connections never peek at exposed
 * memory. */
static int need_bounce(struct shm_conn *shm)
{
    if (shm->bounce != NULL)
        return TUTTI_OK;
    shm->bounce = aligned_alloc(TUTTI_CACHE_LINE, BOUNCE_BYTES);
    if (shm->bounce == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to receive from rank %d", shm->base.peer);
    shm->base.private_bytes += BOUNCE_BYTES;
    return TUTTI_OK;
}

static int show_exposed(struct shm_conn *shm, size_t least, size_t usable, const void **ret_data,
                        size_t *ret_size)
{
    const uint8_t *lent = find_lent(shm);
    int rc;

    if (lent != NULL && (uintptr_t)lent % tutti_peek_alignment(least) == 0) {
        *ret_data = lent;
        *ret_size = usable;
        return TUTTI_OK;
    }
    if (usable > BOUNCE_BYTES)
        usable = BOUNCE_BYTES / least * least;
    TUTTI_TRY(need_bounce(shm));
    rc = copy_front(shm, shm->bounce, usable);
    if (rc == TUTTI_AGAIN)
        return TUTTI_OK;
    TUTTI_TRY(rc);
    *ret_data = shm->bounce;
    *ret_size = usable;
    return TUTTI_OK;
}

static int shm_peek(struct tutti_conn *conn, size_t least, size_t most, const void **ret_data,
                    size_t *ret_size)
{
    struct shm_conn *shm = (struct shm_conn *)conn;
    size_t left, usable;

    *ret_size = 0;
    if (most < least)
        return TUTTI_OK;
    if (shm->carry.have > 0)
        return show_carry(shm, least, ret_data, ret_size);
    if (!have_front(shm))
        return tutti_fifo_is_ended(&shm->in) ? fail_gone(shm) : TUTTI_OK;
    left = left_at_front(shm);
    if (left < least)
        return show_carry(shm, least, ret_data, ret_size);

    shm->is_carry_shown = false;
    usable = (left < most ? left : most) / least * least;
    if (shm->loan.size > 0)
        return show_exposed(shm, least, usable, ret_data, ret_size);
    *ret_size = tutti_fifo_view(&shm->in, least, usable, ret_data);
    return TUTTI_OK;
}

static void shm_consume(struct tutti_conn *conn, size_t size)
{
    struct shm_conn *shm = (struct shm_conn *)conn;

    if (shm->is_carry_shown)
        tutti_carry_drop(&shm->carry, size);
    else
        advance(shm, size);
}

static void shm_close(struct tutti_conn *conn)
{
    struct shm_conn *shm = (struct shm_conn *)conn;

    if (shm == NULL)
        return;
    tutti_fifo_close_writer(&shm->out);
    tutti_fifo_close_reader(&shm->in);
    rouse(shm);
    free(shm->bounce);
    free(shm);
}

static const struct tutti_conn_ops stream_ops = {
    .send = shm_send,
    .send_two = shm_send_two,
    .recv = shm_recv,
    .recv_two = shm_recv_two,
    .peek = shm_peek,
    .consume = shm_consume,
    .close = shm_close,
};
