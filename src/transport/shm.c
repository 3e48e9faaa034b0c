/* SPDX-License-Identifier: Apache-2.0
 * Transport "shm": a FIFO in the host's segment per direction. Two copies, no
 * system call; ends of a FIFO that sleep are roused. */
#include "transport/fabric_private.h"
#include "transport/fifo.h"

#include <stdlib.h>

/* A long message is published piece by piece, so that the reader copies while the writer does. */
#define PIECE_BYTES 16384

struct shm_conn {
    struct tutti_conn base;
    struct tutti_domain *domain;
    uint32_t peer_index;
    struct tutti_fifo_writer out;
    struct tutti_fifo_reader in;
};

static bool shm_reach(const struct tutti_fabric *fabric, int peer)
{
    return (fabric->mine.uses & TUTTI_USE_SHM) != 0 && tutti_route_shm(fabric, fabric->rank, peer);
}

static int shm_connect(struct tutti_fabric *fabric, int peer, int channel,
                       struct tutti_conn **conn)
{
    struct tutti_segment *segment = fabric->segment;
    uint32_t me = fabric->my_index, other = tutti_member_index(fabric, peer);
    struct shm_conn *shm =
        tutti_conn_create(fabric, &tutti_shm_ops, peer, channel, sizeof *shm);

    if (shm == NULL)
        return TUTTI_ERR_SYSTEM;
    shm->domain = &segment->domain;
    shm->peer_index = other;
    tutti_fifo_writer_init(&shm->out, tutti_segment_fifo(segment, channel, me, other),
                           segment->header->fifo_bytes);
    tutti_fifo_reader_init(&shm->in, tutti_segment_fifo(segment, channel, other, me),
                           segment->header->fifo_bytes);
    *conn = &shm->base;
    return TUTTI_OK;
}

/* The ringer's half of the sleeping protocol (fabric_wait.c), for one peer. */
static inline void rouse(struct shm_conn *shm)
{
    tutti_fence_before_look(shm->domain->has_joint_fences);
    if (tutti_load_relaxed(&shm->domain->doors[shm->peer_index].is_sleeping) != 0)
        tutti_domain_ring(shm->domain, shm->peer_index);
}

static int fail_gone(struct shm_conn *shm)
{
    return tutti_fabric_blame(shm->base.fabric, shm->base.peer, "closed its connection");
}

static int shm_send(struct tutti_conn *conn, const void *data, size_t size, size_t *ret_taken)
{
    struct shm_conn *shm = (struct shm_conn *)conn;
    const uint8_t *from = data;
    size_t taken = 0;

    while (taken < size) {
        size_t piece = size - taken < PIECE_BYTES ? size - taken : PIECE_BYTES;
        size_t room = tutti_fifo_room(&shm->out, piece);

        if (room == 0)
            break;
        if (piece > room)
            piece = room;
        tutti_fifo_put(&shm->out, from + taken, piece);
        tutti_fifo_publish(&shm->out);
        taken += piece;
    }
    *ret_taken = taken;
    if (taken > 0)
        rouse(shm);
    else if (size > 0 && tutti_fifo_is_refused(&shm->out))
        return fail_gone(shm);
    return TUTTI_OK;
}

static int shm_recv(struct tutti_conn *conn, void *data, size_t size, size_t *ret_got)
{
    struct shm_conn *shm = (struct shm_conn *)conn;
    uint8_t *to = data;
    size_t got = 0;
    bool has_released = false;

    while (got < size) {
        size_t piece = size - got < PIECE_BYTES ? size - got : PIECE_BYTES;
        size_t ready = tutti_fifo_ready(&shm->in, piece);

        if (ready == 0)
            break;
        if (piece > ready)
            piece = ready;
        tutti_fifo_get(&shm->in, to + got, piece);
        has_released |= tutti_fifo_release(&shm->in);
        got += piece;
    }
    *ret_got = got;
    if (has_released)
        rouse(shm);
    if (got == 0 && size > 0 && tutti_fifo_is_ended(&shm->in))
        return fail_gone(shm);
    return TUTTI_OK;
}

static int shm_peek(struct tutti_conn *conn, size_t least, size_t most, const void **ret_data,
                    size_t *ret_size)
{
    struct shm_conn *shm = (struct shm_conn *)conn;

    *ret_size = tutti_fifo_view(&shm->in, least, most, ret_data);
    if (*ret_size == 0 && most >= least && tutti_fifo_is_ended(&shm->in))
        return fail_gone(shm);
    return TUTTI_OK;
}

static void shm_consume(struct tutti_conn *conn, size_t size)
{
    struct shm_conn *shm = (struct shm_conn *)conn;

    shm->in.head += size;
    if (tutti_fifo_release(&shm->in))
        rouse(shm);
}

static void shm_close(struct tutti_conn *conn)
{
    struct shm_conn *shm = (struct shm_conn *)conn;

    if (shm == NULL)
        return;
    tutti_fifo_close_writer(&shm->out);
    tutti_fifo_close_reader(&shm->in);
    rouse(shm);
    free(shm);
}

const struct tutti_transport_ops tutti_shm_ops = {
    .name = "shm",
    .takes_by_copy = true,
    .reach = shm_reach,
    .connect = shm_connect,
    .send = shm_send,
    .recv = shm_recv,
    .peek = shm_peek,
    .consume = shm_consume,
    .close = shm_close,
};
