/* SPDX-License-Identifier: Apache-2.0
 * Implements the operations of the transport "tcp" that form and end a fabric: the record of a
 * rank, and its listener. */
#include "transport/tcp/tcp.h"

#include "base/limits.h"
#include "base/param.h"
#include "transport/tcp/seal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* ---- what a rank publishes ------------------------------------------------------------ */

/* All ranks must have one mode of TUTTI_ENCRYPT. A mistyped mode is an error even if no bytes
 * travel by TCP. */
static int tcp_describe(struct tutti_fabric *fabric)
{
    struct tutti_tcp_record *mine = tutti_tcp_own_record(fabric);
    enum tutti_seal_mode mode = TUTTI_SEAL_OFF;

    TUTTI_TRY(tutti_seal_read_mode(&mode));
    mine->seal_mode = (uint8_t)mode;
    mine->has_aes = tutti_seal_has_aes();
    mine->nsockets = 1;
    return TUTTI_OK;
}

/* Removes the addresses at which this rank does not listen from its record, and keeps the order of
 * the others. */
static void list_candidates(struct tutti_fabric *fabric, struct tutti_tcp *tcp, size_t count,
                            const uint32_t *mbits)
{
    struct tutti_tcp_record *mine = tutti_tcp_own_record(fabric);

    for (size_t i = 0; i < count; i++) {
        if (tcp->listen_fds[i] < 0)
            continue;
        if (tcp->nlisten == 0)
            fabric->mine.mbits = mbits[i];
        mine->candidates[tcp->nlisten] = mine->candidates[i];
        tcp->listen_fds[tcp->nlisten++] = tcp->listen_fds[i];
    }
    mine->ncandidates = (uint8_t)tcp->nlisten;
}

/* Gets the other descriptors that this rank needs, so that a rank that has none left can report
 * this while the ranks meet. */
static int reserve(struct tutti_fabric *fabric, struct tutti_tcp *tcp)
{
    char cause[TUTTI_LIMITS_TEXT_BYTES];

    TUTTI_TRY(tutti_wait_reserve(fabric));
    tcp->spare_fd = eventfd(0, EFD_CLOEXEC);
    if (tcp->spare_fd >= 0)
        return TUTTI_OK;
    tutti_limits_describe(errno, cause);
    return tutti_note(TUTTI_ERR_SYSTEM, "a spare descriptor: %s", cause);
}

/* Opens listeners at the addresses of this host, and puts the addresses into the record. */
static int listen_everywhere(struct tutti_fabric *fabric, struct tutti_tcp *tcp)
{
    struct tutti_tcp_record *mine = tutti_tcp_own_record(fabric);
    uint32_t mbits[TUTTI_MAX_CANDIDATES];
    size_t count;
    int rc;

    TUTTI_TRY(tutti_address_list_rated(fabric->nearest, mine->candidates, mbits,
                                       TUTTI_MAX_CANDIDATES, &count));
    /* Listen only at addresses that the others learn. */
    if (tutti_socket_listen_each(mine->candidates, count, tcp->listen_fds, &mine->port_be) == 0)
        return tutti_fail(TUTTI_ERR_SYSTEM, "%s", tutti_message_last());
    TUTTI_TRY_OR(stop_listening, rc, reserve(fabric, tcp));
    list_candidates(fabric, tcp, count, mbits);
    mine->nsockets = (uint8_t)tutti_param_int(TUTTI_PARAM_SOCKETS_PER_PEER);
    return TUTTI_OK;

stop_listening:
    for (size_t i = 0; i < count; i++)
        if (tcp->listen_fds[i] >= 0)
            close(tcp->listen_fds[i]);
    mine->port_be = 0;
    return rc;
}

static int open_listener(struct tutti_fabric *fabric)
{
    struct tutti_tcp *tcp = calloc(1, sizeof *tcp);
    int rc;

    if (tcp == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for TCP");
    tcp->callers_end = &tcp->callers;
    tcp->spare_fd = -1;
    tcp->has_met = calloc((size_t)fabric->nranks, sizeof *tcp->has_met);
    if (tcp->has_met == NULL) {
        rc = tutti_fail(TUTTI_ERR_SYSTEM, "no memory for TCP");
        goto free_tcp;
    }
    TUTTI_TRY_OR(free_tcp, rc, listen_everywhere(fabric, tcp));
    tutti_part_set_state(fabric, &tutti_tcp_ops, tcp);
    return TUTTI_OK;

free_tcp:
    free(tcp->has_met);
    free(tcp);
    return rc;
}

static int tcp_open(struct tutti_fabric *fabric)
{
    struct tutti_tcp_record *mine = tutti_tcp_own_record(fabric);
    int rc = open_listener(fabric);

    if (rc == TUTTI_OK)
        return TUTTI_OK;
    memset(mine->why_none, 0, sizeof mine->why_none);
    tutti_message_copy(mine->why_none, sizeof mine->why_none, tutti_message_last());
    return rc;
}

/* ---- what ranks learn of each other --------------------------------------------------- */

static int tcp_check(struct tutti_fabric *fabric, int rank)
{
    struct tutti_tcp_record *record = tutti_tcp_record(fabric, rank);
    uint8_t own_mode = tutti_tcp_own_record(fabric)->seal_mode;

    if (!tutti_part_is_used_by(fabric, &tutti_tcp_ops, rank)) {
        record->ncandidates = 0;
        record->why_none[sizeof record->why_none - 1] = '\0';
        tutti_message_clean(record->why_none, strlen(record->why_none));
    }
    if (record->ncandidates > TUTTI_MAX_CANDIDATES || record->nsockets > TUTTI_TCP_MAX_SOCKETS ||
        record->seal_mode >= TUTTI_SEAL_MODES)
        return tutti_fail(TUTTI_ERR_USAGE, "the record of rank %d is malformed", rank);
    /* This is compared with the value that this rank itself has read, so that an attacker who
     * changes records in transit cannot turn the protection off. */
    if (record->seal_mode != own_mode)
        return tutti_fail(TUTTI_ERR_USAGE,
                          "ranks disagree on TUTTI_ENCRYPT: rank %d has %s, rank %d has %s; set it "
                          "to one value on all ranks",
                          fabric->rank, tutti_seal_mode_name(own_mode), rank,
                          tutti_seal_mode_name(record->seal_mode));
    return TUTTI_OK;
}

static void stop_listening(struct tutti_fabric *fabric, size_t index)
{
    struct tutti_tcp *tcp = tutti_tcp_of(fabric);

    if (tcp->listen_fds[index] < 0)
        return;
    tutti_tcp_release(fabric, tcp->listen_fds[index]);
    close(tcp->listen_fds[index]);
    tcp->listen_fds[index] = -1;
}

static bool has_loopback(const struct tutti_tcp_record *record, uint8_t family)
{
    for (int i = 0; i < record->ncandidates; i++)
        if (record->candidates[i].is_loopback && record->candidates[i].family == family)
            return true;
    return false;
}

/* If all ranks can connect by the loopback interface, they do. This rank then stops listening at
 * its other addresses, where only strangers would connect. */
static int tcp_withdraw(struct tutti_fabric *fabric)
{
    const struct tutti_tcp_record *mine = tutti_tcp_own_record(fabric);
    struct tutti_tcp *tcp = tutti_tcp_of(fabric);

    for (int rank = 0; rank < fabric->nranks; rank++)
        if (!tutti_tcp_is_near(fabric, rank))
            return TUTTI_OK;
    for (size_t i = 0; i < tcp->nlisten; i++)
        if (!mine->candidates[i].is_loopback && has_loopback(mine, mine->candidates[i].family))
            stop_listening(fabric, i);
    return TUTTI_OK;
}

static bool tcp_reach(const struct tutti_fabric *fabric, int a, int b)
{
    struct tutti_address addresses[TUTTI_MAX_CANDIDATES];

    /* The lower rank connects to the higher one. */
    return a != b && tutti_tcp_candidates(fabric, a < b ? a : b, a < b ? b : a, addresses) > 0;
}

static void tcp_explain(const struct tutti_fabric *fabric, int a, int b, char *ret_text,
                        size_t size)
{
    const int ranks[] = {a, b};
    bool is_excluded = false;

    for (size_t i = 2; i-- > 0;) {
        const char *why = tutti_tcp_record(fabric, ranks[i])->why_none;

        if (tutti_part_is_used_by(fabric, &tutti_tcp_ops, ranks[i]))
            continue;
        is_excluded = true;
        if (why[0] != '\0')
            snprintf(ret_text, size, "rank %d has none: %s", ranks[i], why);
    }
    if (!is_excluded)
        snprintf(ret_text, size,
                 "no address of one that the other can reach "
                 "(TUTTI_SOCKET_IFNAME, TUTTI_SOCKET_FAMILY)");
}

/* ---- from the choice of routes on ------------------------------------------------------ */

static void tcp_destroy(struct tutti_fabric *fabric)
{
    struct tutti_tcp *tcp = tutti_tcp_of(fabric);

    if (tcp == NULL)
        return;
    tutti_tcp_drop_callers(fabric);
    tutti_tcp_state_stop(tcp);
    for (size_t i = 0; i < tcp->nlisten; i++)
        stop_listening(fabric, i);
    tutti_part_set_state(fabric, &tutti_tcp_ops, NULL);
    if (tcp->spare_fd >= 0)
        close(tcp->spare_fd);
    free(tcp->held);
    free(tcp->has_met);
    free(tcp);
}

static int tcp_start(struct tutti_fabric *fabric, bool is_used)
{
    struct tutti_tcp *tcp = tutti_tcp_of(fabric);

    if (!is_used) {
        tcp_destroy(fabric);
        return TUTTI_OK;
    }
    for (size_t i = 0; i < tcp->nlisten; i++) {
        if (tcp->listen_fds[i] < 0)
            continue;
        TUTTI_TRY(tutti_wait_watch(fabric, tcp->listen_fds[i]));
        TUTTI_TRY(tutti_tcp_hold(fabric, tcp->listen_fds[i], -1));
    }
    for (int peer = 0; peer < fabric->rank; peer++)
        if (fabric->routes[peer] == &tutti_tcp_ops)
            tcp->nmissing += TUTTI_CHANNEL_COUNT * tutti_tcp_count_sockets(fabric, peer);
    pthread_mutex_lock(&fabric->lock); /* an abort by another thread may read this */
    tcp->takes_calls = true;
    pthread_mutex_unlock(&fabric->lock);
    return TUTTI_OK;
}

static bool tcp_is_busy(const struct tutti_fabric *fabric)
{
    const struct tutti_tcp *tcp = tutti_tcp_of(fabric);

    return tcp->nmissing > 0 || tcp->nsockets_open > 0 || tcp->dialing != NULL;
}

const struct tutti_transport_ops tutti_tcp_ops = {
    .name = "tcp",
    .record_bytes = sizeof(struct tutti_tcp_record),
    .reaches_hosts = true,
    .waits_on_descriptors = true,
    .describe = tcp_describe,
    .open = tcp_open,
    .check = tcp_check,
    .join = tcp_withdraw,
    .reach = tcp_reach,
    .explain = tcp_explain,
    .start = tcp_start,
    .connect = tutti_tcp_connect,
    .progress = tutti_tcp_progress,
    .is_busy = tcp_is_busy,
    .find_lost = tutti_tcp_find_lost,
    .send_state = tutti_tcp_send_state,
    .recv_state = tutti_tcp_recv_state,
    .abort = tutti_tcp_abort,
    .destroy = tcp_destroy,
    .report = tutti_tcp_report,
};
