/* SPDX-License-Identifier: Apache-2.0
 * Opens a fabric, connects it to peers, reports its use of resources, and destroys it. */
#include "transport/fabric_private.h"

#include "base/log.h"
#include "base/round.h"
#include "base/system.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The bytes "TUTTIFR1". A rank with the other byte order reads another number. */
#define RECORD_MAGIC UINT64_C(0x3152464954545554)
#define RECORD_VERSION 8

/* ---- opening ------------------------------------------------------------------------- */

/* Releases the descriptors that are used for sleeping, if no open transport needs them. A transport
 * may have failed to open because descriptors are scarce, and then other parts need these. */
static void release_descriptors(struct tutti_fabric *fabric)
{
    for (uint32_t i = 0; i < fabric->nparts; i++)
        if (fabric->parts[i].is_open && fabric->parts[i].ops->waits_on_descriptors)
            return;
    tutti_wait_release(fabric);
}

/* Opens one transport. A failure is only logged, because the rank may work with other transports.
 * If a pair of ranks has no transport left, tutti_fabric_settle reports an error. */
static void open_part(struct tutti_fabric *fabric, uint32_t index)
{
    struct tutti_part *part = &fabric->parts[index];
    uint32_t bit = (uint32_t)1 << index;
    int rc = TUTTI_OK;

    if ((fabric->mine.uses & bit) == 0 || fabric->nranks == 1)
        return;
    if (part->ops->open != NULL)
        rc = part->ops->open(fabric);
    part->is_open = rc == TUTTI_OK;
    if (part->is_open)
        return;
    fabric->mine.uses &= ~bit;
    if (rc == TUTTI_ERR_SYSTEM)
        fabric->mine.lacks |= bit;
    tutti_log(TUTTI_LOG_INFO, "no %s: %s", part->ops->name, tutti_message_last());
    release_descriptors(fabric);
}

/* Makes this rank's record, and opens the transports that may be used. */
static int describe(struct tutti_fabric *fabric, const struct tutti_fabric_args *args)
{
    union tutti_record *mine = &fabric->mine;

    TUTTI_TRY(tutti_parts_init(fabric));
    TUTTI_TRY(tutti_parts_allowed(fabric, &mine->uses));
    for (uint32_t i = 0; i < fabric->nparts; i++)
        if (fabric->parts[i].ops->describe != NULL)
            TUTTI_TRY(fabric->parts[i].ops->describe(fabric));
    mine->magic = RECORD_MAGIC;
    mine->version = RECORD_VERSION;
    mine->nranks = fabric->nranks;
    mine->rank = fabric->rank;
    memcpy(mine->cells, args->cells, sizeof mine->cells);
    tutti_random_bytes(&mine->nonce, sizeof mine->nonce);
    tutti_identity_describe(&mine->identity);
    tutti_identity_host_name(mine->host_name);
    for (uint32_t i = 0; i < fabric->nparts; i++)
        open_part(fabric, i);
    return TUTTI_OK;
}

static bool alloc_tables(struct tutti_fabric *fabric)
{
    size_t n = (size_t)fabric->nranks;

    fabric->records = calloc(n, sizeof *fabric->records);
    fabric->verdicts = calloc(n, sizeof *fabric->verdicts);
    fabric->routes = calloc(n, sizeof *fabric->routes);
    fabric->conns = calloc(n * TUTTI_CHANNEL_COUNT, sizeof *fabric->conns);
    fabric->is_ready = calloc(n * TUTTI_CHANNEL_COUNT, sizeof *fabric->is_ready);
    return fabric->records && fabric->verdicts && fabric->routes && fabric->conns &&
           fabric->is_ready;
}

int tutti_fabric_open(const struct tutti_fabric_args *args, struct tutti_fabric **ret_fabric)
{
    struct tutti_fabric *fabric = aligned_alloc(TUTTI_CACHE_LINE, sizeof *fabric);
    int rc;

    if (fabric == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a fabric of %d ranks", args->nranks);
    *fabric = (struct tutti_fabric){.nranks = args->nranks, .rank = args->rank,
                                    .deadline_ns = args->deadline_ns,
                                    .is_between_hosts = args->is_between_hosts, .epoll_fd = -1,
                                    .event_fd = -1, .phase = TUTTI_FORM_OPEN};
    memcpy(fabric->secret, args->secret, sizeof fabric->secret);
    snprintf(fabric->nearest, sizeof fabric->nearest, "%s",
             args->nearest != NULL ? args->nearest : "");
    pthread_mutex_init(&fabric->lock, NULL);
    fabric->waiter = &fabric->local_waiter;
    tutti_wait_init(fabric);

    if (!alloc_tables(fabric)) {
        rc = tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a fabric of %d ranks", args->nranks);
        goto destroy;
    }
    TUTTI_TRY_OR(destroy, rc, describe(fabric, args));
    *ret_fabric = fabric;
    return TUTTI_OK;

destroy:
    tutti_fabric_destroy(fabric);
    return rc;
}

void tutti_fabric_set_secret(struct tutti_fabric *fabric, const uint8_t secret[TUTTI_SECRET_BYTES])
{
    memcpy(fabric->secret, secret, sizeof fabric->secret);
}

void tutti_fabric_decline(int nranks, int rank, int rc, const char *reason,
                          uint8_t ret_record[TUTTI_FABRIC_RECORD_BYTES])
{
    union tutti_record record;

    memset(&record, 0, sizeof record);
    record.magic = RECORD_MAGIC;
    record.version = RECORD_VERSION;
    record.nranks = nranks;
    record.rank = rank;
    record.declines = rc;
    tutti_message_copy(record.why_declines, sizeof record.why_declines, reason);
    memcpy(ret_record, record.bytes, sizeof record.bytes);
}

void tutti_fabric_disconnect(struct tutti_fabric *fabric, int peer, int channel)
{
    size_t index = tutti_conn_index(peer, channel);

    if (fabric->conns[index] != NULL)
        fabric->conns[index]->ops->close(fabric->conns[index]);
    fabric->conns[index] = NULL;
    fabric->is_ready[index] = false;
}

bool tutti_fabric_reaches_hosts(const struct tutti_fabric *fabric)
{
    for (uint32_t i = 0; i < fabric->nparts; i++)
        if (fabric->parts[i].is_open && fabric->parts[i].ops->reaches_hosts)
            return true;
    return false;
}

void tutti_fabric_progress(struct tutti_fabric *fabric)
{
    tutti_parts_progress(fabric);
}

const void *tutti_fabric_record(const struct tutti_fabric *fabric)
{
    return &fabric->mine;
}

const void *tutti_fabric_verdict(const struct tutti_fabric *fabric)
{
    return &fabric->verdict;
}

const char *tutti_fabric_route(const struct tutti_fabric *fabric, int peer)
{
    return fabric->routes[peer] != NULL ? fabric->routes[peer]->name : "none";
}

/* ---- connecting ---------------------------------------------------------------------- */

void *tutti_conn_create(struct tutti_fabric *fabric, const struct tutti_conn_ops *ops, int peer,
                        int channel, size_t size)
{
    size_t whole = tutti_round_up(size, TUTTI_CACHE_LINE);
    struct tutti_conn *conn = aligned_alloc(TUTTI_CACHE_LINE, whole);

    if (conn == NULL) {
        (void)tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a connection to rank %d", peer);
        return NULL;
    }
    memset(conn, 0, whole);
    *conn = (struct tutti_conn){.ops = ops, .fabric = fabric, .peer = peer, .channel = channel,
                                .private_bytes = whole};
    return conn;
}

/* Makes the connection, or continues to make it. This function is not inlined, so that the code
 * that finds an existing connection stays short. */
static int __attribute__((noinline, cold))
go_on_connecting(struct tutti_fabric *fabric, int peer, int channel)
{
    size_t index = tutti_conn_index(peer, channel);

    /* acquire: pairs with the release in tutti_fabric_abort; abort_code and abort_reason are set */
    if (tutti_load_acquire(&fabric->is_aborted) != 0)
        return tutti_fabric_peer_failed(fabric, peer, "is not connected");
    tutti_parts_progress(fabric);
    TUTTI_TRY(fabric->routes[peer]->connect(fabric, peer, channel, &fabric->conns[index]));
    fabric->is_ready[index] = true;
    tutti_log(TUTTI_LOG_DEBUG, "connected to rank %d, channel %d, by %s", peer, channel,
              fabric->routes[peer]->name);
    return TUTTI_OK;
}

int tutti_fabric_connect(struct tutti_fabric *fabric, int peer, int channel,
                         struct tutti_conn **ret_conn)
{
    size_t index = tutti_conn_index(peer, channel);

    if (!fabric->is_ready[index])
        TUTTI_TRY(go_on_connecting(fabric, peer, channel));
    *ret_conn = fabric->conns[index];
    return TUTTI_OK;
}

/* ---- report and end ------------------------------------------------------------------ */

void tutti_fabric_usage(const struct tutti_fabric *fabric, struct tutti_fabric_usage *ret_usage)
{
    size_t n = (size_t)fabric->nranks;
    struct tutti_fabric_usage usage = {.private_bytes = sizeof *fabric};

    usage.private_bytes +=
        n * (sizeof *fabric->records + sizeof *fabric->verdicts + sizeof *fabric->routes);
    usage.private_bytes +=
        n * TUTTI_CHANNEL_COUNT * (sizeof *fabric->conns + sizeof *fabric->is_ready);
    for (size_t i = 0; i < n * TUTTI_CHANNEL_COUNT; i++) {
        const struct tutti_conn *conn = fabric->conns[i];

        if (conn == NULL)
            continue;
        usage.connections++;
        usage.private_bytes += conn->private_bytes;
        if (conn->ops->count_sockets != NULL)
            usage.sockets += conn->ops->count_sockets(conn);
    }
    for (uint32_t i = 0; i < fabric->nparts; i++)
        if (fabric->parts[i].is_open && fabric->parts[i].ops->usage != NULL)
            fabric->parts[i].ops->usage(fabric, &usage);
    *ret_usage = usage;
}

/* Announces that this rank is gone, if it has not left in good order. Other ranks might wait for
 * this rank, and peers in the same process cannot detect its death. */
static void drop_out(struct tutti_fabric *fabric)
{
    for (uint32_t i = 0; i < fabric->nparts && !fabric->has_left; i++)
        if (fabric->parts[i].is_open && fabric->parts[i].ops->leave != NULL)
            fabric->parts[i].ops->leave(fabric, false);
}

void tutti_fabric_destroy(struct tutti_fabric *fabric)
{
    if (fabric == NULL)
        return;
    drop_out(fabric);
    for (size_t i = 0; fabric->conns && i < (size_t)fabric->nranks * TUTTI_CHANNEL_COUNT; i++)
        if (fabric->conns[i] != NULL)
            fabric->conns[i]->ops->close(fabric->conns[i]);
    for (uint32_t i = fabric->nparts; i-- > 0;)
        if (fabric->parts[i].is_open && fabric->parts[i].ops->destroy != NULL)
            fabric->parts[i].ops->destroy(fabric);
    tutti_wait_release(fabric);
    free(fabric->records);
    free(fabric->verdicts);
    free(fabric->routes);
    free(fabric->conns);
    free(fabric->is_ready);
    pthread_mutex_destroy(&fabric->lock);
    free(fabric);
}
