/* SPDX-License-Identifier: Apache-2.0
 * A fabric's life: open, connect, report, destroy. */
#include "transport/fabric_private.h"

#include "base/log.h"
#include "base/param.h"
#include "transport/shm/pass.h"
#include "transport/tcp/seal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RECORD_MAGIC UINT64_C(0x3152464954545554) /* "TUTTIFR1"; its bytes tell the byte order */
#define RECORD_VERSION 7

/* ---- opening ------------------------------------------------------------------------- */

static int parse_uses(uint32_t *ret_uses)
{
    static const struct {
        const char *name;
        uint32_t use;
    } known[] = {{"self", 0}, {"shm", TUTTI_USE_SHM}, {"cma", TUTTI_USE_CMA},
                 {"tcp", TUTTI_USE_TCP}};
    const char *text = tutti_param_text(TUTTI_PARAM_TRANSPORTS);
    uint32_t uses = 0;

    if (*text == '\0') {
        *ret_uses = TUTTI_USE_SHM | TUTTI_USE_CMA | TUTTI_USE_TCP;
        return TUTTI_OK;
    }
    for (const char *at = text; at != NULL;) {
        const char *comma = strchr(at, ',');
        size_t length = comma ? (size_t)(comma - at) : strlen(at);
        size_t i;

        for (i = 0; i < sizeof known / sizeof known[0]; i++)
            if (strlen(known[i].name) == length && strncmp(known[i].name, at, length) == 0)
                break;
        if (i == sizeof known / sizeof known[0])
            return tutti_fail(TUTTI_ERR_USAGE,
                              "TUTTI_TRANSPORTS=%s: '%.*s' is none of self, shm, cma, tcp", text,
                              (int)length, at);
        uses |= known[i].use;
        at = comma ? comma + 1 : NULL;
    }
    *ret_uses = uses;
    return TUTTI_OK;
}

static int describe(struct tutti_fabric *fabric, const struct tutti_fabric_args *args)
{
    union tutti_record *mine = &fabric->mine;
    enum tutti_seal_mode seal_mode = TUTTI_SEAL_OFF;
    uint32_t uses = 0;
    int rc = TUTTI_OK;

    TUTTI_TRY(parse_uses(&uses));
    TUTTI_TRY(tutti_seal_read_mode(&seal_mode));
    mine->magic = RECORD_MAGIC;
    mine->version = RECORD_VERSION;
    mine->nranks = fabric->nranks;
    mine->rank = fabric->rank;
    mine->nsockets = 1;
    mine->seal_mode = (uint8_t)seal_mode;
    mine->has_aes = tutti_seal_has_aes();
    memcpy(mine->cells, args->cells, sizeof mine->cells);
    tutti_random_bytes(&mine->nonce, sizeof mine->nonce);
    tutti_identity_describe(&mine->identity);
    tutti_identity_host_name(mine->host_name);

    /* Without network a rank may still do: settle says so if not. */
    if ((uses & TUTTI_USE_TCP) != 0 && fabric->nranks > 1)
        rc = tutti_tcp_open(fabric);
    if (rc != TUTTI_OK) {
        uses &= ~(uint32_t)TUTTI_USE_TCP;
        mine->is_short = rc == TUTTI_ERR_SYSTEM;
        memset(mine->why_no_tcp, 0, sizeof mine->why_no_tcp);
        tutti_message_copy(mine->why_no_tcp, sizeof mine->why_no_tcp, tutti_last_message());
        tutti_log(TUTTI_LOG_INFO, "no TCP: %s", mine->why_no_tcp);
    }
    mine->uses = uses;
    return TUTTI_OK;
}

static bool alloc_tables(struct tutti_fabric *fabric)
{
    size_t n = (size_t)fabric->nranks;

    fabric->records = calloc(n, sizeof *fabric->records);
    fabric->verdicts = calloc(n, sizeof *fabric->verdicts);
    fabric->members = calloc(n, sizeof *fabric->members);
    fabric->routes = calloc(n, sizeof *fabric->routes);
    fabric->conns = calloc(n * TUTTI_CHANNEL_COUNT, sizeof *fabric->conns);
    fabric->is_ready = calloc(n * TUTTI_CHANNEL_COUNT, sizeof *fabric->is_ready);
    return fabric->records && fabric->verdicts && fabric->members && fabric->routes &&
           fabric->conns && fabric->is_ready;
}

int tutti_fabric_open(const struct tutti_fabric_args *args, struct tutti_fabric **ret_fabric)
{
    struct tutti_fabric *fabric = aligned_alloc(TUTTI_CACHE_LINE, sizeof *fabric);
    int rc;

    if (fabric == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a fabric of %d ranks", args->nranks);
    *fabric = (struct tutti_fabric){.nranks = args->nranks, .rank = args->rank,
                                    .deadline_ns = args->deadline_ns, .epoll_fd = -1,
                                    .event_fd = -1, .phase = TUTTI_FORM_OPEN,
                                    .cma_denied_by = -1};
    memcpy(fabric->secret, args->secret, sizeof fabric->secret);
    pthread_mutex_init(&fabric->lock, NULL);
    fabric->door = &fabric->local_door;
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

void tutti_fabric_trust(struct tutti_fabric *fabric, const uint8_t secret[TUTTI_SECRET_BYTES])
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
    tutti_message_copy(record.why_no_tcp, sizeof record.why_no_tcp, reason);
    memcpy(ret_record, record.bytes, sizeof record.bytes);
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

void *tutti_conn_create(struct tutti_fabric *fabric, const struct tutti_transport_ops *ops,
                        int peer, int channel, size_t size)
{
    size_t whole = (size + TUTTI_CACHE_LINE - 1) / TUTTI_CACHE_LINE * TUTTI_CACHE_LINE;
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

/* Out of line, so that finding a connection that is there stays short. */
static int __attribute__((noinline, cold))
go_on_connecting(struct tutti_fabric *fabric, int peer, int channel)
{
    size_t index = tutti_conn_index(peer, channel);

    if (tutti_load_acquire(&fabric->is_aborted) != 0)
        return tutti_fabric_blame(fabric, peer, "is not connected");
    tutti_tcp_progress(fabric);
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

    usage.private_bytes += n * (sizeof *fabric->records + sizeof *fabric->verdicts +
                                sizeof *fabric->members + sizeof *fabric->routes);
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
    if (fabric->has_domain) {
        usage.shared_bytes = tutti_segment_touched(fabric->segment);
        usage.reserved_bytes = fabric->segment->header->total_bytes;
        usage.private_bytes += sizeof *fabric->segment + tutti_lend_bytes(fabric->lend);
        usage.private_bytes +=
            fabric->nmembers * (2 * sizeof(uint32_t) + sizeof(enum tutti_access));
    }
    *ret_usage = usage;
}

/* Peers in the same process cannot see us die: a member that goes without leaving
 * says so, since it might be waited for. */
static void drop_out(struct tutti_fabric *fabric)
{
    if (!fabric->has_domain || fabric->has_left)
        return;
    tutti_store_release(&fabric->segment->members[fabric->my_index].presence,
                        TUTTI_MEMBER_DROPPED);
    tutti_domain_ring_all(&fabric->segment->domain);
}

void tutti_fabric_destroy(struct tutti_fabric *fabric)
{
    if (fabric == NULL)
        return;
    drop_out(fabric);
    for (size_t i = 0; fabric->conns && i < (size_t)fabric->nranks * TUTTI_CHANNEL_COUNT; i++)
        if (fabric->conns[i] != NULL)
            fabric->conns[i]->ops->close(fabric->conns[i]);
    tutti_tcp_destroy(fabric);
    tutti_pass_destroy(fabric->pass);
    tutti_lend_destroy(fabric->lend);
    tutti_segment_destroy(fabric->segment);
    tutti_wait_release(fabric);
    free(fabric->held_fds);
    free(fabric->records);
    free(fabric->verdicts);
    free(fabric->members);
    free(fabric->routes);
    free(fabric->conns);
    free(fabric->is_ready);
    pthread_mutex_destroy(&fabric->lock);
    free(fabric);
}
