/* SPDX-License-Identifier: Apache-2.0
 * Transports "shm" and "cma": a FIFO of records (fifo.h) in the host's segment per
 * direction. Two copies, no system call; an end of a FIFO that sleeps is roused.
 *
 * Between ranks that can read each other's memory, "cma" offers what is large as an
 * address instead, which the receiver reads from, straight into its destination, by
 * one system call or, in one process, by plain loads. The receiver counts what it
 * has copied; the sender reports that as taken. "shm" is the same without that.
 *
 *   | DATA bytes ... | EXPOSED size address | DATA ...
 */
#include "transport/carry.h"
#include "transport/fabric_private.h"
#include "transport/fifo.h"

#include "base/param.h"

#include <stdlib.h>
#include <string.h>

/* A long message is published piece by piece, so that the reader copies while the writer does: as
 * much as the reader gives back at a time, at most this, and always a multiple of 64 bytes. */
#define PIECE_BYTES 16384
/* In one process a copy costs no system call. */
#define ONE_PROCESS_THRESHOLD 16384
/* Through the FIFO both ends copy at the same time, which is best when one would have nothing else
 * to do. When messages go both ways at once, one copy is better than two from here on. */
#define MUTUAL_THRESHOLD (256 * 1024)
/* Two copies at a time are no faster than one after the other where their ranks share cores. */
#define CROWDED_THRESHOLD (256 * 1024)
/* Copied between two looks of the sender at what it may reuse. */
#define COPY_BYTES (512 * 1024)
#define BOUNCE_BYTES 65536

/* The content of an EXPOSED record. */
struct loan {
    uint64_t size;
    uint64_t address;
};

struct cma_conn {
    struct tutti_conn base;
    struct tutti_domain *domain;
    uint32_t peer_index;
    bool is_one_process;
    size_t threshold, mutual_threshold; /* bytes from which on they are exposed */
    size_t piece;

    /* Sending: the exposed offer, of which the peer has copied up to `seen`. */
    struct tutti_fifo_writer out;
    size_t exposed;
    uint64_t seen;

    /* Receiving: what is left of the peer's exposed offer comes before the record at the front. */
    struct tutti_fifo_reader in;
    struct loan loan;
    uint64_t copied;
    struct tutti_carry carry;
    bool is_carry_shown;
    uint8_t *bounce; /* copies of exposed memory, for peek */
};

static bool shm_reach(const struct tutti_fabric *fabric, int peer)
{
    return (fabric->mine.uses & TUTTI_USE_SHM) != 0 && tutti_route_shm(fabric, fabric->rank, peer);
}

static bool cma_reach(const struct tutti_fabric *fabric, int peer)
{
    return tutti_route_cma(fabric, fabric->rank, peer);
}

static struct cma_conn *create(struct tutti_fabric *fabric, int peer, int channel,
                               const struct tutti_transport_ops *ops)
{
    struct tutti_segment *segment = fabric->segment;
    size_t fifo_bytes = segment->header->fifo_bytes;
    uint32_t me = fabric->my_index, other = tutti_member_index(fabric, peer);
    struct cma_conn *cma = tutti_conn_create(fabric, ops, peer, channel, sizeof *cma);

    if (cma == NULL)
        return NULL;
    cma->domain = &segment->domain;
    cma->peer_index = other;
    cma->is_one_process = segment->access[other] == TUTTI_ACCESS_STORE;
    cma->threshold = cma->mutual_threshold = SIZE_MAX;
    cma->piece = (fifo_bytes / 4 < PIECE_BYTES ? fifo_bytes / 4 : PIECE_BYTES) - TUTTI_CACHE_LINE;
    tutti_fifo_writer_init(&cma->out, tutti_segment_fifo(segment, channel, me, other), fifo_bytes);
    tutti_fifo_reader_init(&cma->in, tutti_segment_fifo(segment, channel, other, me), fifo_bytes);
    return cma;
}

static int shm_connect(struct tutti_fabric *fabric, int peer, int channel,
                       struct tutti_conn **conn)
{
    struct cma_conn *cma = create(fabric, peer, channel, &tutti_shm_ops);

    if (cma == NULL)
        return TUTTI_ERR_SYSTEM;
    *conn = &cma->base;
    return TUTTI_OK;
}

static int cma_connect(struct tutti_fabric *fabric, int peer, int channel,
                       struct tutti_conn **conn)
{
    struct cma_conn *cma = create(fabric, peer, channel, &tutti_cma_ops);

    if (cma == NULL)
        return TUTTI_ERR_SYSTEM;
    cma->threshold = (size_t)tutti_param_int(TUTTI_PARAM_CMA_THRESHOLD);
    if (cma->is_one_process && cma->threshold > ONE_PROCESS_THRESHOLD)
        cma->threshold = ONE_PROCESS_THRESHOLD;
    if (fabric->is_crowded && cma->threshold > CROWDED_THRESHOLD)
        cma->threshold = CROWDED_THRESHOLD;
    cma->mutual_threshold =
        cma->threshold < MUTUAL_THRESHOLD ? cma->threshold : MUTUAL_THRESHOLD;
    *conn = &cma->base;
    return TUTTI_OK;
}

/* The ringer's half of the sleeping protocol (fabric_wait.c), for one peer. */
static inline void rouse(struct cma_conn *cma)
{
    tutti_fence_before_look(cma->domain->has_joint_fences);
    if (tutti_load_relaxed(&cma->domain->doors[cma->peer_index].is_sleeping) != 0)
        tutti_domain_ring(cma->domain, cma->peer_index);
}

static int fail_gone(struct cma_conn *cma)
{
    return tutti_fabric_blame(cma->base.fabric, cma->base.peer, "closed its connection");
}

/* ---- sending ------------------------------------------------------------------------- */

/* A record of what of `head` and then `data` goes into one piece, and into the ring. Only the last
 * record of an offer ends at an odd place, so elements lie aligned in the ring. */
static size_t put_data(struct cma_conn *cma, const void *head, size_t head_size, const void *data,
                       size_t size)
{
    size_t wanted = head_size + size < cma->piece ? head_size + size : cma->piece;
    size_t room = tutti_fifo_room(&cma->out, wanted) & ~(size_t)7;

    if (room < head_size + 8 && room < wanted)
        return 0;
    if (wanted > room)
        wanted = room;
    if (head_size > 0)
        tutti_fifo_put(&cma->out, head, head_size);
    if (wanted > head_size)
        tutti_fifo_put(&cma->out, data, wanted - head_size);
    tutti_fifo_publish(&cma->out, TUTTI_RECORD_DATA);
    return wanted;
}

/* From which size on are bytes exposed? */
static size_t threshold_of(const struct cma_conn *cma)
{
    return cma->base.is_mutual ? cma->mutual_threshold : cma->threshold;
}

static bool expose(struct cma_conn *cma, const uint8_t *data, size_t size)
{
    struct loan loan = {.size = size, .address = (uint64_t)(uintptr_t)data};

    if (tutti_fifo_room(&cma->out, sizeof loan) < sizeof loan)
        return false;
    tutti_fifo_put(&cma->out, &loan, sizeof loan);
    tutti_fifo_publish(&cma->out, TUTTI_RECORD_EXPOSED);
    cma->exposed = size;
    return true;
}

/* How much more of the exposed offer has the peer copied? */
static size_t collect(struct cma_conn *cma)
{
    /* acquire: pairs with the release in note_copied; the peer is done with these bytes */
    uint64_t copied = tutti_load_acquire(&cma->out.fifo->copied);
    size_t taken = (size_t)(copied - cma->seen);

    if (taken > cma->exposed) /* only if the peer is out of its mind */
        taken = cma->exposed;
    cma->seen = copied;
    cma->exposed -= taken;
    return taken;
}

/* `head`, if any, and data of up to the threshold, as far as the ring has room. */
static size_t put_all(struct cma_conn *cma, const void *head, size_t head_size, const uint8_t *data,
                      size_t size)
{
    size_t taken = put_data(cma, head, head_size, data, size), piece = taken;

    while (piece > 0 && taken < head_size + size) {
        piece = put_data(cma, NULL, 0, data + (taken - head_size), head_size + size - taken);
        taken += piece;
    }
    return taken;
}

/* Has the peer gone without having copied what is exposed to it? Who closes has copied before. */
static bool is_refused(const struct cma_conn *cma)
{
    return tutti_fifo_is_refused(&cma->out) &&
           tutti_load_acquire(&cma->out.fifo->copied) == cma->seen;
}

/* The end of a send. Nothing taken of something: is the peer still there? */
static int conclude(struct cma_conn *cma, bool has_news, bool is_stuck)
{
    if (has_news)
        rouse(cma);
    else if (is_stuck && is_refused(cma))
        return fail_gone(cma);
    return TUTTI_OK;
}

static int cma_send(struct tutti_conn *conn, const void *data, size_t size, size_t *ret_taken)
{
    struct cma_conn *cma = (struct cma_conn *)conn;
    const uint8_t *from = data;
    size_t taken = 0, put = 0;
    bool has_news = false;

    if (cma->exposed > 0)
        taken = collect(cma);
    if (cma->exposed == 0 && taken < size) {
        if (size - taken >= threshold_of(cma)) {
            has_news = expose(cma, from + taken, size - taken);
        } else {
            put = put_all(cma, NULL, 0, from + taken, size - taken);
            has_news = put > 0;
        }
    }
    *ret_taken = taken + put;
    return conclude(cma, has_news, *ret_taken == 0 && size > 0);
}

static int cma_send_two(struct tutti_conn *conn, const void *head, size_t head_size,
                        const void *data, size_t size, size_t *ret_taken)
{
    struct cma_conn *cma = (struct cma_conn *)conn;

    if (cma->exposed > 0) { /* by a call before, for which all was in one place */
        *ret_taken = collect(cma);
        return conclude(cma, false, *ret_taken == 0);
    }
    /* What is to be exposed follows in a call of its own. */
    *ret_taken = put_all(cma, head, head_size, data, size < threshold_of(cma) ? size : 0);
    return conclude(cma, *ret_taken > 0, *ret_taken == 0);
}

/* ---- receiving ----------------------------------------------------------------------- */

/* Have bytes at the front. False: nothing has arrived. */
static bool have_front(struct cma_conn *cma)
{
    if (cma->loan.size > 0)
        return true;
    if (tutti_fifo_ready(&cma->in) == 0)
        return false;
    if (cma->in.kind == TUTTI_RECORD_DATA)
        return true;
    tutti_fifo_look(&cma->in, &cma->loan, sizeof cma->loan);
    if (tutti_fifo_drop(&cma->in, cma->in.size))
        rouse(cma);
    return cma->loan.size > 0;
}

static size_t left_at_front(const struct cma_conn *cma)
{
    return cma->loan.size > 0 ? (size_t)cma->loan.size : cma->in.size - cma->in.taken;
}

/* `size` bytes at the front have been used. */
static void advance(struct cma_conn *cma, size_t size)
{
    if (cma->loan.size == 0) {
        if (tutti_fifo_drop(&cma->in, size))
            rouse(cma);
        return;
    }
    cma->loan.size -= size;
    cma->loan.address += size;
    cma->copied += size;
    /* release: pairs with the acquire in collect; we have read these bytes */
    tutti_store_release(&cma->in.fifo->copied, cma->copied);
    rouse(cma);
}

/* Copy from the front without advancing. TUTTI_AGAIN: somebody has given up, and memory that is
 * lent may be touched no more; the caller's next look at the peers will say so. */
static int copy_front(struct cma_conn *cma, void *data, size_t size)
{
    struct tutti_fabric *fabric = cma->base.fabric;
    int rc;

    if (cma->loan.size == 0) {
        tutti_fifo_look(&cma->in, data, size);
        return TUTTI_OK;
    }
    if (!tutti_fabric_enter(fabric))
        return TUTTI_AGAIN;
    rc = tutti_domain_read(cma->domain, cma->peer_index, data, cma->loan.address, size);
    if (!tutti_fabric_exit(fabric) && rc == TUTTI_OK)
        return TUTTI_AGAIN;
    if (rc == TUTTI_OK)
        return TUTTI_OK;
    return tutti_fabric_blame(fabric, cma->base.peer, "has memory that cannot be read any more");
}

static size_t front_piece(const struct cma_conn *cma, size_t size)
{
    size_t left = left_at_front(cma);

    left = left < COPY_BYTES ? left : COPY_BYTES;
    return size < left ? size : left;
}

static int pull(struct cma_conn *cma, uint8_t *to, size_t size, size_t *ret_got)
{
    size_t got = 0;

    while (got < size && have_front(cma)) {
        size_t piece = front_piece(cma, size - got);
        int rc = copy_front(cma, to + got, piece);

        if (rc == TUTTI_AGAIN)
            break;
        TUTTI_TRY(rc);
        advance(cma, piece);
        got += piece;
    }
    *ret_got = got;
    return TUTTI_OK;
}

/* What was carried comes before what has arrived since. */
static int take(struct cma_conn *cma, void *data, size_t size, size_t *ret_got)
{
    size_t carried = 0, got;

    if (cma->carry.have > 0)
        carried = tutti_carry_take(&cma->carry, data, size);
    TUTTI_TRY(pull(cma, (uint8_t *)data + carried, size - carried, &got));
    *ret_got = carried + got;
    return TUTTI_OK;
}

static int cma_recv(struct tutti_conn *conn, void *data, size_t size, size_t *ret_got)
{
    struct cma_conn *cma = (struct cma_conn *)conn;

    TUTTI_TRY(take(cma, data, size, ret_got));
    if (*ret_got == 0 && size > 0 && tutti_fifo_is_ended(&cma->in))
        return fail_gone(cma);
    return TUTTI_OK;
}

static int cma_recv_two(struct tutti_conn *conn, void *head, size_t head_size, void *data,
                        size_t size, size_t *ret_got)
{
    size_t got = 0, more = 0;

    TUTTI_TRY(cma_recv(conn, head, head_size, &got));
    if (got == head_size && size > 0 && data != NULL)
        TUTTI_TRY(take((struct cma_conn *)conn, data, size, &more));
    *ret_got = got + more;
    return TUTTI_OK;
}

/* ---- showing in place ---------------------------------------------------------------- */

/* An element across two records, put together. */
static int show_carry(struct cma_conn *cma, size_t least, const void **ret_data, size_t *ret_size)
{
    struct tutti_carry *carry = &cma->carry;
    size_t got = 0;

    if (carry->have < least)
        TUTTI_TRY(pull(cma, carry->bytes + carry->have, least - carry->have, &got));
    carry->have += got;
    cma->is_carry_shown = true;
    *ret_data = carry->bytes;
    *ret_size = carry->have < least ? 0 : least;
    return TUTTI_OK;
}

/* At the first need: most connections never look into exposed memory piece by piece. */
static int need_bounce(struct cma_conn *cma)
{
    if (cma->bounce != NULL)
        return TUTTI_OK;
    cma->bounce = aligned_alloc(TUTTI_CACHE_LINE, BOUNCE_BYTES);
    if (cma->bounce == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to receive from rank %d", cma->base.peer);
    cma->base.private_bytes += BOUNCE_BYTES;
    return TUTTI_OK;
}

static int show_exposed(struct cma_conn *cma, size_t least, size_t usable, const void **ret_data,
                        size_t *ret_size)
{
    int rc;

    if (cma->is_one_process && cma->loan.address % tutti_peek_alignment(least) == 0) {
        *ret_data = (const void *)(uintptr_t)cma->loan.address;
        *ret_size = usable;
        return TUTTI_OK;
    }
    if (usable > BOUNCE_BYTES)
        usable = BOUNCE_BYTES / least * least;
    TUTTI_TRY(need_bounce(cma));
    rc = copy_front(cma, cma->bounce, usable);
    if (rc == TUTTI_AGAIN)
        return TUTTI_OK;
    TUTTI_TRY(rc);
    *ret_data = cma->bounce;
    *ret_size = usable;
    return TUTTI_OK;
}

static int cma_peek(struct tutti_conn *conn, size_t least, size_t most, const void **ret_data,
                    size_t *ret_size)
{
    struct cma_conn *cma = (struct cma_conn *)conn;
    size_t left, usable;

    *ret_size = 0;
    if (most < least)
        return TUTTI_OK;
    if (cma->carry.have > 0)
        return show_carry(cma, least, ret_data, ret_size);
    if (!have_front(cma))
        return tutti_fifo_is_ended(&cma->in) ? fail_gone(cma) : TUTTI_OK;
    left = left_at_front(cma);
    if (left < least)
        return show_carry(cma, least, ret_data, ret_size);

    cma->is_carry_shown = false;
    usable = (left < most ? left : most) / least * least;
    if (cma->loan.size > 0)
        return show_exposed(cma, least, usable, ret_data, ret_size);
    *ret_size = tutti_fifo_view(&cma->in, least, usable, ret_data);
    return TUTTI_OK;
}

static void cma_consume(struct tutti_conn *conn, size_t size)
{
    struct cma_conn *cma = (struct cma_conn *)conn;

    if (cma->is_carry_shown)
        tutti_carry_drop(&cma->carry, size);
    else
        advance(cma, size);
}

static void cma_close(struct tutti_conn *conn)
{
    struct cma_conn *cma = (struct cma_conn *)conn;

    if (cma == NULL)
        return;
    tutti_fifo_close_writer(&cma->out);
    tutti_fifo_close_reader(&cma->in);
    rouse(cma);
    free(cma->bounce);
    free(cma);
}

const struct tutti_transport_ops tutti_shm_ops = {
    .name = "shm",
    .reach = shm_reach,
    .connect = shm_connect,
    .send = cma_send,
    .send_two = cma_send_two,
    .recv = cma_recv,
    .recv_two = cma_recv_two,
    .peek = cma_peek,
    .consume = cma_consume,
    .close = cma_close,
};

const struct tutti_transport_ops tutti_cma_ops = {
    .name = "cma",
    .reach = cma_reach,
    .connect = cma_connect,
    .send = cma_send,
    .send_two = cma_send_two,
    .recv = cma_recv,
    .recv_two = cma_recv_two,
    .peek = cma_peek,
    .consume = cma_consume,
    .close = cma_close,
};
