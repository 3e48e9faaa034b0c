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

/* A long message is published in several records, so that the reader copies while the writer does.
 * A record occupies as much of the ring as the reader gives back at a time, but at most this
 * much. */
#define MOST_RECORD_BYTES 16384
/* To expose bytes means to offer their address. From this size on, memory that the receiver can
 * load directly is exposed. Such a copy costs no system call, but the sender has to wait for it.
 * The second value is for lent memory on hosts where ranks outnumber cores. */
#define LOADS_THRESHOLD 16384
#define CROWDED_LOADS_THRESHOLD 65536
/* These are the highest thresholds for ordinary memory in two cases. TUTTI_CMA_THRESHOLD may be
 * lower. Through the FIFO both ends copy at the same time, which is best if one end would otherwise
 * be idle. If messages go both ways at once, neither end is idle, and one copy is better than two.
 * If ranks outnumber cores, the two ends may not copy at the same time, and one copy is better,
 * too. */
#define MUTUAL_THRESHOLD (256 * 1024)
#define CROWDED_THRESHOLD (256 * 1024)
/* The receiver copies exposed bytes in parts of this size. After each part it updates the count
 * from which the sender learns which bytes it may reuse. */
#define COPY_BYTES (512 * 1024)
/* The size of the buffer in which exposed bytes are shown if they cannot be shown in place. */
#define BOUNCE_BYTES 65536

/* The content of an EXPOSED record. */
struct exposed_bytes {
    uint64_t size;
    uint64_t address; /* in the sender's process */
    uint32_t number;  /* number of the lent memory that contains the bytes, if the peer has mapped
                         it; else 0 */
    uint32_t last;    /* the last number on the sender's list (lend.h) */
};

struct shm_conn {
    struct tutti_conn base; /* must be the first member */
    struct tutti_domain *domain;
    struct tutti_lend *lend; /* NULL: no other process can read this rank's memory */
    uint32_t peer_index;     /* the peer's index among the members of the domain */
    bool is_one_process;     /* the peer is in this process */
    /* Sizes from which bytes are exposed: in ordinary memory, in ordinary memory while messages go
     * both ways, and in lent memory. SIZE_MAX: never. */
    size_t threshold, mutual_threshold, lent_threshold;
    size_t record_bytes; /* the most bytes of a DATA record */

    /* Sending. */
    struct tutti_fifo_writer out;
    size_t exposed_left;  /* exposed bytes that the peer has not copied yet */
    uint64_t copied_seen; /* the peer's count of copied bytes at the last look */
    uint32_t announced;   /* the last number of this rank's list that the peer was told */

    /* Receiving. Bytes come first from the carry, then from `incoming`, then from the front record
     * of the FIFO. */
    struct tutti_fifo_reader in;
    struct exposed_bytes incoming; /* the part of an exposed offer that is left; size 0: none */
    uint64_t copied;               /* exposed bytes that this rank has ever copied */
    struct tutti_carry carry;
    bool is_carry_shown; /* the last peek has shown the carry */
    uint8_t *bounce;     /* BOUNCE_BYTES; NULL until it is needed */
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
    size_t fifo_bytes = segment->header->fifo_bytes, quarter = fifo_bytes / 4;
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
    shm->record_bytes = (quarter < MOST_RECORD_BYTES ? quarter : MOST_RECORD_BYTES) -
                        TUTTI_CACHE_LINE;
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
static inline void wake_peer(struct shm_conn *shm)
{
    tutti_fence_before_look(shm->domain->has_joint_fences);
    if (tutti_load_relaxed(&shm->domain->waiters[shm->peer_index].sleep_kind) != 0)
        tutti_domain_ring(shm->domain, shm->peer_index);
}

static int fail_gone(struct shm_conn *shm)
{
    return tutti_fabric_peer_failed(shm->base.fabric, shm->base.peer, "closed its connection");
}

/* ---- sending ------------------------------------------------------------------------- */

/* Writes a record with as much of `head` and then `data` as fits a record and the ring. Returns the
 * number of bytes. All records of an offer but the last have a multiple of 8 bytes, so that
 * elements are aligned in the ring. */
static size_t put_data(struct shm_conn *shm, const void *head, size_t head_size, const void *data,
                       size_t size)
{
    size_t wanted = head_size + size < shm->record_bytes ? head_size + size : shm->record_bytes;
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

    *ret_is_new = number > shm->announced;
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

/* Writes an EXPOSED record for the bytes. Returns false if the ring has no room for the record. */
static bool expose(struct shm_conn *shm, const uint8_t *data, size_t size)
{
    struct exposed_bytes record = {.size = size, .address = (uint64_t)(uintptr_t)data};
    bool is_new;

    if (tutti_fifo_room(&shm->out, sizeof record) < sizeof record)
        return false;
    if (!shm->is_one_process) {
        record.number = lent_number(shm, data, size, &is_new);
        record.last = shm->announced = tutti_lend_last(shm->lend);
    }
    tutti_fifo_put(&shm->out, &record, sizeof record);
    tutti_fifo_publish(&shm->out, TUTTI_RECORD_EXPOSED);
    shm->exposed_left = size;
    return true;
}

/* Returns the number of exposed bytes that the peer has copied since the last call. */
static size_t take_copied(struct shm_conn *shm)
{
    /* acquire: pairs with the release in advance; the peer has finished with these bytes */
    uint64_t copied = tutti_load_acquire(&shm->out.fifo->copied);
    size_t taken = (size_t)(copied - shm->copied_seen);

    if (taken > shm->exposed_left) /* only a corrupted peer counts more than was exposed */
        taken = shm->exposed_left;
    shm->copied_seen = copied;
    shm->exposed_left -= taken;
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
           tutti_load_acquire(&shm->out.fifo->copied) == shm->copied_seen;
}

/* Ends a send: wakes the peer after progress. If nothing was taken of a non-empty offer, it checks
 * whether the peer is still there. */
static int conclude(struct shm_conn *shm, bool has_progress, bool is_stuck)
{
    if (has_progress)
        wake_peer(shm);
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

    if (shm->exposed_left > 0)
        taken = take_copied(shm);
    if (shm->exposed_left == 0 && taken < size) {
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

    if (shm->exposed_left > 0) { /* an earlier call of shm_send has exposed bytes */
        *ret_taken = take_copied(shm);
        return conclude(shm, false, *ret_taken == 0);
    }
    /* Bytes that are to be exposed follow in a separate call. */
    *ret_taken = put_all(shm, head, head_size, data, is_exposed(shm, data, size) ? 0 : size);
    return conclude(shm, *ret_taken > 0, *ret_taken == 0);
}

/* ---- receiving ----------------------------------------------------------------------- */

/* Makes the next bytes of the stream available at the front, which is `incoming` or the front
 * record. Returns false if nothing has arrived. */
static bool fetch_front(struct shm_conn *shm)
{
    if (shm->incoming.size > 0)
        return true;
    if (tutti_fifo_ready(&shm->in) == 0)
        return false;
    if (shm->in.kind == TUTTI_RECORD_DATA)
        return true;
    tutti_fifo_look(&shm->in, &shm->incoming, sizeof shm->incoming);
    if (tutti_fifo_drop(&shm->in, shm->in.size))
        wake_peer(shm);
    if (!shm->is_one_process)
        tutti_lend_learn(shm->lend, shm->peer_index, shm->incoming.last);
    return shm->incoming.size > 0;
}

static size_t left_at_front(const struct shm_conn *shm)
{
    return shm->incoming.size > 0 ? (size_t)shm->incoming.size : shm->in.size - shm->in.taken;
}

/* Removes `size` bytes from the front, which have been used. */
static void advance(struct shm_conn *shm, size_t size)
{
    if (shm->incoming.size == 0) {
        if (tutti_fifo_drop(&shm->in, size))
            wake_peer(shm);
        return;
    }
    shm->incoming.size -= size;
    shm->incoming.address += size;
    shm->copied += size;
    /* release: pairs with the acquire in take_copied; this rank has read these bytes */
    tutti_store_release(&shm->in.fifo->copied, shm->copied);
    wake_peer(shm);
}

/* Returns the address from which exposed bytes at the front can be loaded, or NULL if there is
 * none. The address is found anew each time, because the peer's lent memory may change
 * meanwhile. */
static const uint8_t *find_lent(const struct shm_conn *shm)
{
    if (shm->is_one_process)
        return (const uint8_t *)(uintptr_t)shm->incoming.address;
    return tutti_lend_at(shm->lend, shm->peer_index, shm->incoming.number, shm->incoming.address,
                         shm->incoming.size);
}

/* Copies from the front without removing the bytes. TUTTI_AGAIN: some rank has given up, so lent
 * memory must not be accessed any more. The next tutti_fabric_check reports the error. */
static int copy_front(struct shm_conn *shm, void *data, size_t size)
{
    struct tutti_fabric *fabric = shm->base.fabric;
    const uint8_t *lent;
    int rc = TUTTI_OK;

    if (shm->incoming.size == 0) {
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
        rc = tutti_domain_read(shm->domain, shm->peer_index, data, shm->incoming.address, size);
    if (!tutti_fabric_exit(fabric) && rc == TUTTI_OK)
        return TUTTI_AGAIN;
    if (rc == TUTTI_OK)
        return TUTTI_OK;
    return tutti_fabric_peer_failed(fabric, shm->base.peer,
                                    "has memory that cannot be read any more");
}

/* Returns how many of `size` bytes can be copied from the front at once. */
static size_t front_piece(const struct shm_conn *shm, size_t size)
{
    size_t left = left_at_front(shm);

    left = left < COPY_BYTES ? left : COPY_BYTES;
    return size < left ? size : left;
}

/* Receives up to `size` bytes that have arrived, and does not use the carry. */
static int pull(struct shm_conn *shm, uint8_t *to, size_t size, size_t *ret_got)
{
    size_t got = 0;

    while (got < size && fetch_front(shm)) {
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

/* Shows exposed bytes at the front, in place if this rank can load them there, else as a copy. */
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
    if (!fetch_front(shm))
        return tutti_fifo_is_ended(&shm->in) ? fail_gone(shm) : TUTTI_OK;
    left = left_at_front(shm);
    if (left < least)
        return show_carry(shm, least, ret_data, ret_size);

    shm->is_carry_shown = false;
    usable = (left < most ? left : most) / least * least;
    if (shm->incoming.size > 0)
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
    wake_peer(shm);
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
