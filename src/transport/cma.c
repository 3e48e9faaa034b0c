/* SPDX-License-Identifier: Apache-2.0
 * Transport "cma": single copy between ranks that can read each other's memory.
 *
 * The stream goes as records through a FIFO as of shm: small data inside it,
 * large offers as an address, which the receiver reads from, straight into
 * its destination, by one system call or, in one process, by plain loads.
 * The receiver counts what it has copied; the sender reports that as taken.
 *
 *   | DATA size | bytes, padded to 8 | EXPOSED size address | DATA ...
 */
#include "transport/carry.h"
#include "transport/fabric_private.h"
#include "transport/fifo.h"

#include "base/param.h"

#include <stdlib.h>
#include <string.h>

#define PIECE_BYTES 16384
/* In one process a copy costs no system call. */
#define ONE_PROCESS_THRESHOLD 16384
/* Copied between two looks of the sender at what it may reuse. */
#define COPY_BYTES (512 * 1024)
#define BOUNCE_BYTES 65536

struct record {
    uint32_t kind, zero;
    uint64_t size;
    uint64_t address; /* EXPOSED */
};
enum { RECORD_NONE, RECORD_DATA, RECORD_EXPOSED };

struct cma_conn {
    struct tutti_conn base;
    struct tutti_domain *domain;
    uint32_t peer_index;
    bool is_one_process;
    size_t threshold;

    /* Sending: the exposed offer, of which the peer has copied up to `seen`. */
    struct tutti_fifo_writer out;
    size_t exposed;
    uint64_t seen;

    /* Receiving: the record at the front, and what is left of it. */
    struct tutti_fifo_reader in;
    struct record front;
    size_t padding;  /* after the front record's bytes */
    uint64_t copied;
    struct tutti_carry carry;
    bool is_carry_shown;
    uint8_t *bounce; /* copies of exposed memory, for peek */
};

static bool cma_reach(const struct tutti_fabric *fabric, int peer)
{
    return tutti_route_cma(fabric, fabric->rank, peer);
}

static int cma_connect(struct tutti_fabric *fabric, int peer, int channel,
                       struct tutti_conn **conn)
{
    struct tutti_segment *segment = fabric->segment;
    uint32_t me = fabric->my_index, other = tutti_member_index(fabric, peer);
    struct cma_conn *cma =
        tutti_conn_create(fabric, &tutti_cma_ops, peer, channel, sizeof *cma);

    if (cma == NULL)
        return TUTTI_ERR_SYSTEM;
    cma->domain = &segment->domain;
    cma->peer_index = other;
    cma->is_one_process = segment->access[other] == TUTTI_ACCESS_STORE;
    cma->threshold = (size_t)tutti_param_int(TUTTI_PARAM_CMA_THRESHOLD);
    if (cma->is_one_process && cma->threshold > ONE_PROCESS_THRESHOLD)
        cma->threshold = ONE_PROCESS_THRESHOLD;
    tutti_fifo_writer_init(&cma->out, tutti_segment_fifo(segment, channel, me, other),
                           segment->header->fifo_bytes);
    tutti_fifo_reader_init(&cma->in, tutti_segment_fifo(segment, channel, other, me),
                           segment->header->fifo_bytes);
    *conn = &cma->base;
    return TUTTI_OK;
}

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

static inline size_t padding_of(size_t size)
{
    return -size & 7;
}

/* Small data, in as many records as the ring has room for. Only the last one of an offer ends at
 * an odd place, so elements lie aligned in the ring. */
static size_t put_data(struct cma_conn *cma, const uint8_t *data, size_t size)
{
    static const uint8_t zeros[8];
    struct record record = {.kind = RECORD_DATA};
    size_t wanted = size < PIECE_BYTES ? size : PIECE_BYTES;
    size_t room = tutti_fifo_room(&cma->out, sizeof record + wanted + padding_of(wanted));

    if (room < sizeof record + 8)
        return 0;
    room = (room - sizeof record) & ~(size_t)7;
    if (wanted > room)
        wanted = room;
    record.size = wanted;
    tutti_fifo_put(&cma->out, &record, sizeof record);
    tutti_fifo_put(&cma->out, data, wanted);
    tutti_fifo_put(&cma->out, zeros, padding_of(wanted));
    tutti_fifo_publish(&cma->out);
    return wanted;
}

static bool expose(struct cma_conn *cma, const uint8_t *data, size_t size)
{
    struct record record = {.kind = RECORD_EXPOSED, .size = size,
                            .address = (uint64_t)(uintptr_t)data};

    if (tutti_fifo_room(&cma->out, sizeof record) < sizeof record)
        return false;
    tutti_fifo_put(&cma->out, &record, sizeof record);
    tutti_fifo_publish(&cma->out);
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

static int cma_send(struct tutti_conn *conn, const void *data, size_t size, size_t *ret_taken)
{
    struct cma_conn *cma = (struct cma_conn *)conn;
    const uint8_t *from = data;
    size_t taken = 0, piece;
    bool has_news = false;

    if (cma->exposed > 0)
        taken = collect(cma);
    if (cma->exposed == 0) {
        while (taken < size && size - taken < cma->threshold) {
            piece = put_data(cma, from + taken, size - taken);
            if (piece == 0)
                break;
            has_news = true;
            taken += piece;
        }
        if (size - taken >= cma->threshold)
            has_news = expose(cma, from + taken, size - taken);
    }
    *ret_taken = taken;
    if (has_news)
        rouse(cma);
    else if (taken == 0 && size > 0 && tutti_fifo_is_refused(&cma->out))
        return fail_gone(cma);
    return TUTTI_OK;
}

/* ---- receiving ----------------------------------------------------------------------- */

static void skip_in_ring(struct cma_conn *cma, size_t size)
{
    cma->in.head += size;
    if (tutti_fifo_release(&cma->in))
        rouse(cma);
}

/* Have a front record with bytes left. False: nothing has arrived. */
static bool have_front(struct cma_conn *cma)
{
    if (cma->front.size > 0)
        return true;
    if (tutti_fifo_ready(&cma->in, sizeof cma->front) < sizeof cma->front)
        return false;
    tutti_fifo_get(&cma->in, &cma->front, sizeof cma->front);
    if (tutti_fifo_release(&cma->in))
        rouse(cma);
    cma->padding = cma->front.kind == RECORD_DATA ? padding_of((size_t)cma->front.size) : 0;
    return cma->front.size > 0;
}

/* `size` bytes of the front record have been used. */
static void advance(struct cma_conn *cma, size_t size)
{
    cma->front.size -= size;
    if (cma->front.kind == RECORD_DATA) {
        skip_in_ring(cma, cma->front.size == 0 ? size + cma->padding : size);
        return;
    }
    cma->front.address += size;
    cma->copied += size;
    /* release: pairs with the acquire in collect; we have read these bytes */
    tutti_store_release(&cma->in.fifo->copied, cma->copied);
    rouse(cma);
}

/* Copy from the front record without advancing. */
static int copy_front(struct cma_conn *cma, void *data, size_t size)
{
    uint64_t head = cma->in.head;

    if (cma->front.kind == RECORD_DATA) {
        tutti_fifo_get(&cma->in, data, size);
        cma->in.head = head;
        return TUTTI_OK;
    }
    if (tutti_domain_read(cma->domain, cma->peer_index, data, cma->front.address, size) ==
        TUTTI_OK)
        return TUTTI_OK;
    return tutti_fabric_blame(cma->base.fabric, cma->base.peer,
                              "has memory that cannot be read any more");
}

static size_t front_piece(const struct cma_conn *cma, size_t size)
{
    size_t most = cma->front.kind == RECORD_DATA ? PIECE_BYTES : COPY_BYTES;

    if (size > cma->front.size)
        size = (size_t)cma->front.size;
    return size < most ? size : most;
}

static int pull(struct cma_conn *cma, uint8_t *to, size_t size, size_t *ret_got)
{
    size_t got = 0;

    while (got < size && have_front(cma)) {
        size_t piece = front_piece(cma, size - got);

        TUTTI_TRY(copy_front(cma, to + got, piece));
        advance(cma, piece);
        got += piece;
    }
    *ret_got = got;
    return TUTTI_OK;
}

static int cma_recv(struct tutti_conn *conn, void *data, size_t size, size_t *ret_got)
{
    struct cma_conn *cma = (struct cma_conn *)conn;
    size_t carried = 0, got;

    if (cma->carry.have > 0)
        carried = tutti_carry_take(&cma->carry, data, size);
    TUTTI_TRY(pull(cma, (uint8_t *)data + carried, size - carried, &got));
    *ret_got = carried + got;
    if (carried + got == 0 && size > 0 && tutti_fifo_is_ended(&cma->in))
        return fail_gone(cma);
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
    if (cma->is_one_process && cma->front.address % tutti_peek_alignment(least) == 0) {
        *ret_data = (const void *)(uintptr_t)cma->front.address;
        *ret_size = usable;
        return TUTTI_OK;
    }
    if (usable > BOUNCE_BYTES)
        usable = BOUNCE_BYTES / least * least;
    TUTTI_TRY(need_bounce(cma));
    TUTTI_TRY(copy_front(cma, cma->bounce, usable));
    *ret_data = cma->bounce;
    *ret_size = usable;
    return TUTTI_OK;
}

static int cma_peek(struct tutti_conn *conn, size_t least, size_t most, const void **ret_data,
                    size_t *ret_size)
{
    struct cma_conn *cma = (struct cma_conn *)conn;
    size_t usable;

    *ret_size = 0;
    if (most < least)
        return TUTTI_OK;
    if (cma->carry.have > 0)
        return show_carry(cma, least, ret_data, ret_size);
    if (!have_front(cma))
        return tutti_fifo_is_ended(&cma->in) ? fail_gone(cma) : TUTTI_OK;
    if (cma->front.size < least)
        return show_carry(cma, least, ret_data, ret_size);

    cma->is_carry_shown = false;
    usable = (cma->front.size < most ? (size_t)cma->front.size : most) / least * least;
    if (cma->front.kind == RECORD_EXPOSED)
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

const struct tutti_transport_ops tutti_cma_ops = {
    .name = "cma",
    .reach = cma_reach,
    .connect = cma_connect,
    .send = cma_send,
    .recv = cma_recv,
    .peek = cma_peek,
    .consume = cma_consume,
    .close = cma_close,
};
