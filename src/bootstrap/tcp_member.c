/* SPDX-License-Identifier: Apache-2.0
 * A member of the TCP exchange: finds the root, joins, gives a record and gets the table.
 *
 * The root may start later than we do, and of its addresses some may be wrong
 * from here: refused, silent, black holes, or another program's. So all are
 * tried, each over and over until the deadline, and later ones alongside earlier
 * ones when those take long. The first to greet us with our handshake is chosen
 * and the others are dropped before we prove ourselves; so the root never sees
 * one rank twice, and strangers never see a byte.
 */
#include "base/clock.h"
#include "base/log.h"
#include "bootstrap/exchange.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define CONNECT_PATIENCE_NS (150 * TUTTI_NS_PER_MS) /* before the next address is tried as well */
#define GREETING_PATIENCE_NS (300 * TUTTI_NS_PER_MS)
#define RETRY_FIRST_NS (5 * TUTTI_NS_PER_MS)
#define RETRY_MOST_NS (200 * TUTTI_NS_PER_MS)

struct attempt {
    struct tutti_address address;
    int fd;
    bool is_connected;
    uint64_t begun_ns;
    uint64_t retry_ns;
    uint64_t pause_ns;
    struct tutti_handshake shake;
};

struct member {
    struct tutti_bootstrap base;
    struct tutti_watch watch;
    char where[128];
    uint8_t meeting_secret[TUTTI_SECRET_BYTES];
    uint8_t store_secret[TUTTI_SECRET_BYTES];
    bool is_fresh;
    uint64_t begun_ns;

    /* Until joined. */
    struct attempt attempts[TUTTI_CANDIDATES_MAX];
    size_t attempt_count;
    struct attempt *chosen;
    bool has_warned;
    char last_refusal[256];

    /* From then on. */
    int fd;
    uint32_t round;
    bool is_given;        /* this round's record is in the outbox, or sent */
    bool is_over;         /* nothing more to say to the root */
    uint64_t conclude_ns; /* deadline passed: until when the root may say who is missing */
    struct tutti_inbox inbox;
    struct tutti_outbox outbox;
    uint8_t record[TUTTI_BOOTSTRAP_RECORD_MAX];
};

static struct member *member_of(struct tutti_bootstrap *boot)
{
    return (struct member *)boot;
}

static uint64_t elapsed_ms(const struct member *member)
{
    return (tutti_now_ns() - member->begun_ns) / TUTTI_NS_PER_MS;
}

/* ---- finding the root ------------------------------------------------------------ */

static void drop(struct member *member, struct attempt *attempt, uint64_t retry_ns)
{
    tutti_watch_close(&member->watch, &attempt->fd);
    attempt->is_connected = false;
    attempt->retry_ns = retry_ns;
}

static void drop_others(struct member *member, const struct attempt *kept)
{
    for (size_t i = 0; i < member->attempt_count; i++)
        if (&member->attempts[i] != kept)
            drop(member, &member->attempts[i], 0);
}

/* The reason is the thread's last message. */
static void refused(struct member *member, struct attempt *attempt)
{
    char text[TUTTI_ADDRESS_TEXT_BYTES];
    bool was_chosen = member->chosen == attempt;

    snprintf(member->last_refusal, sizeof member->last_refusal, "%s", tutti_last_message());
    if (was_chosen && !member->has_warned) {
        member->has_warned = true;
        tutti_log(TUTTI_LOG_WARN, "rank %d: %s: %s; trying again until the deadline",
                  member->base.rank, tutti_address_format(&attempt->address, text),
                  member->last_refusal);
    }
    if (was_chosen)
        member->chosen = NULL;

    attempt->pause_ns = attempt->pause_ns == 0 ? RETRY_FIRST_NS : attempt->pause_ns * 2;
    if (attempt->pause_ns > RETRY_MOST_NS || was_chosen)
        attempt->pause_ns = RETRY_MOST_NS;
    drop(member, attempt, tutti_now_ns() + attempt->pause_ns);
}

/* TUTTI_OK: this is the root and we have joined. TUTTI_AGAIN: nothing yet, or refused. */
static int attempt_step(struct member *member, struct attempt *attempt)
{
    bool is_new = attempt->fd < 0;
    int rc;

    if (is_new)
        attempt->begun_ns = tutti_now_ns();
    if (!attempt->is_connected) {
        struct tutti_purpose purpose;

        rc = tutti_socket_connect(&attempt->address, &attempt->fd);
        if (rc < 0) {
            refused(member, attempt);
            return TUTTI_AGAIN;
        }
        if (is_new)
            TUTTI_TRY(tutti_watch_add(&member->watch, attempt->fd,
                                      rc == TUTTI_OK ? EPOLLIN : EPOLLOUT, attempt));
        if (rc == TUTTI_AGAIN)
            return rc;
        TUTTI_TRY(tutti_socket_tune(attempt->fd, 0));
        tutti_exchange_purpose(member->base.nranks, member->base.rank, &purpose);
        tutti_handshake_start(&attempt->shake, attempt->fd, false, member->meeting_secret,
                              &purpose, member->base.deadline_ns);
        tutti_watch_change(&member->watch, attempt->fd, EPOLLIN, attempt);
        attempt->is_connected = true;
    }

    rc = tutti_handshake_step(&attempt->shake);
    if (member->chosen == NULL && tutti_handshake_is_greeted(&attempt->shake)) {
        member->chosen = attempt;
        drop_others(member, attempt);
    }
    if (rc < 0) {
        refused(member, attempt);
        return TUTTI_AGAIN;
    }
    return rc;
}

/* When this attempt lets the next address begin. */
static uint64_t patience_end_ns(const struct attempt *attempt)
{
    return attempt->begun_ns +
           (attempt->is_connected ? GREETING_PATIENCE_NS : CONNECT_PATIENCE_NS);
}

static int fail_unreachable(const struct member *member)
{
    return tutti_fail(TUTTI_ERR_TIMEOUT,
                      "rank %d of %d has not found the root at %s within %llu ms; check that the "
                      "rank that serves there was started and can be reached%s%s",
                      member->base.rank, member->base.nranks, member->where,
                      (unsigned long long)elapsed_ms(member),
                      member->last_refusal[0] ? ". Last answer: " : "", member->last_refusal);
}

static int find_root(struct member *member)
{
    uint64_t wake_ns = member->base.deadline_ns;
    bool may_begin = true;

    for (size_t i = 0; i < member->attempt_count; i++) {
        struct attempt *attempt = &member->attempts[i];
        uint64_t now_ns = tutti_now_ns();
        int rc = TUTTI_AGAIN;

        if (member->chosen != NULL && member->chosen != attempt)
            continue;
        if (attempt->fd >= 0 || (may_begin && now_ns >= attempt->retry_ns))
            rc = attempt_step(member, attempt);
        if (rc == TUTTI_OK) {
            member->fd = attempt->fd;
            attempt->fd = -1;
            return TUTTI_OK;
        }
        if (rc < 0)
            return rc;
        if (attempt->fd >= 0 && patience_end_ns(attempt) > now_ns) {
            may_begin = false;
            if (patience_end_ns(attempt) < wake_ns)
                wake_ns = patience_end_ns(attempt);
        } else if (attempt->fd < 0 && may_begin && attempt->retry_ns < wake_ns) {
            wake_ns = attempt->retry_ns;
        }
    }
    if (tutti_now_ns() >= member->base.deadline_ns)
        return fail_unreachable(member);
    tutti_watch_alarm(&member->watch, wake_ns);
    return TUTTI_AGAIN;
}

/* ---- a round ----------------------------------------------------------------------- */

static void give_record(struct member *member, const void *mine, size_t size)
{
    struct tutti_frame frame = {
        .kind = TUTTI_FRAME_RECORD, .round = member->round, .size = (uint32_t)size};

    if (size > 0)
        memcpy(member->record, mine, size);
    tutti_outbox_load(&member->outbox, &frame, member->record);
    member->is_given = true;
}

static int make_room(struct member *member, size_t table_bytes)
{
    size_t capacity = table_bytes > TUTTI_MESSAGE_BYTES ? table_bytes : TUTTI_MESSAGE_BYTES;
    uint8_t *body;

    if (capacity <= member->inbox.capacity)
        return TUTTI_OK;
    body = realloc(member->inbox.body, capacity);
    if (body == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a table of %zu bytes", table_bytes);
    member->inbox.body = body;
    member->inbox.capacity = capacity;
    return TUTTI_OK;
}

static int fail_root_left(const char *where)
{
    char reason[256];

    snprintf(reason, sizeof reason, "%s", tutti_last_message());
    return tutti_fail(TUTTI_ERR_REMOTE, "the root at %s left while the communicator was formed: %s",
                      where, reason);
}

/* TUTTI_OK: the table is in the inbox. */
static int take_table(struct member *member, size_t table_bytes)
{
    const struct tutti_frame *frame = &member->inbox.frame;
    char text[TUTTI_MESSAGE_BYTES];
    int rc = tutti_inbox_step(&member->inbox, member->fd);

    if (rc == TUTTI_AGAIN)
        return rc;
    if (rc < 0) {
        member->is_over = true;
        return fail_root_left(member->where);
    }
    if (frame->kind == TUTTI_FRAME_ERROR) {
        member->is_over = true;
        rc = tutti_inbox_error(&member->inbox, text, sizeof text);
        return tutti_fail(rc, "%s", text);
    }
    if (frame->kind != TUTTI_FRAME_TABLE || frame->round != member->round ||
        frame->size != table_bytes)
        return tutti_fail(TUTTI_ERR_REMOTE,
                          "the root at %s sent a frame of kind %u, round %u, %u bytes; due is the "
                          "table of round %u, %zu bytes",
                          member->where, frame->kind, frame->round, frame->size, member->round,
                          table_bytes);
    return TUTTI_OK;
}

/* Our deadline has passed. The root knows who is missing: tell it to conclude, and
 * give it a moment to answer. */
static int conclude(struct member *member)
{
    static const char reason[] = "its deadline has passed";
    struct tutti_frame frame = {.kind = TUTTI_FRAME_ERROR, .round = member->round,
                                .size = sizeof reason - 1, .code = TUTTI_ERR_TIMEOUT};
    uint64_t now_ns = tutti_now_ns();

    if (now_ns < member->base.deadline_ns)
        return TUTTI_AGAIN;
    if (member->conclude_ns == 0) {
        member->conclude_ns = now_ns + TUTTI_EXCHANGE_LINGER_NS;
        if (member->outbox.size == 0)
            tutti_outbox_load(&member->outbox, &frame, reason);
        tutti_outbox_step(&member->outbox, member->fd);
        member->is_over = true;
    }
    if (now_ns < member->conclude_ns)
        return TUTTI_AGAIN;
    return tutti_fail(TUTTI_ERR_TIMEOUT,
                      "the root at %s has not answered rank %d of %d within %llu ms; it waits for "
                      "other ranks, or it hangs",
                      member->where, member->base.rank, member->base.nranks,
                      (unsigned long long)elapsed_ms(member));
}

static int exchange_round(struct member *member, const void *mine, size_t size, void *all)
{
    size_t table_bytes = size * (size_t)member->base.nranks;
    int rc;

    TUTTI_TRY(make_room(member, table_bytes));
    if (!member->is_given)
        give_record(member, mine, size);

    /* Receive first: if the root has given up, its reason is worth more than our broken pipe. */
    rc = take_table(member, table_bytes);
    if (rc == TUTTI_AGAIN && tutti_outbox_step(&member->outbox, member->fd) < 0)
        rc = take_table(member, table_bytes);
    if (rc == TUTTI_AGAIN)
        rc = conclude(member);
    if (rc == TUTTI_AGAIN) {
        tutti_watch_change(&member->watch, member->fd,
                           EPOLLIN | (member->outbox.size > 0 ? EPOLLOUT : 0), member);
        tutti_watch_alarm(&member->watch, member->conclude_ns != 0 ? member->conclude_ns
                                                                   : member->base.deadline_ns);
    }
    TUTTI_TRY(rc);

    if (member->round == 0 && !member->is_fresh)
        tutti_secret_derive(member->store_secret, "communicator", member->inbox.frame.session,
                            member->base.secret);
    if (table_bytes > 0)
        memcpy(all, member->inbox.body, table_bytes);
    member->round++;
    member->is_given = false;
    return TUTTI_OK;
}

static int member_allgather(struct tutti_bootstrap *boot, const void *mine, size_t size, void *all)
{
    struct member *member = member_of(boot);

    TUTTI_TRY(tutti_exchange_check_size(size));
    if (member->fd < 0)
        TUTTI_TRY(find_root(member));
    return exchange_round(member, mine, size, all);
}

static int member_wait_fd(struct tutti_bootstrap *boot)
{
    return member_of(boot)->watch.epoll_fd;
}

static void member_destroy(struct tutti_bootstrap *boot, const char *reason)
{
    struct member *member = member_of(boot);

    if (member == NULL)
        return;
    for (size_t i = 0; i < member->attempt_count; i++)
        tutti_watch_close(&member->watch, &member->attempts[i].fd);
    if (member->fd >= 0) {
        if (reason != NULL && !member->is_over &&
            tutti_outbox_step(&member->outbox, member->fd) == TUTTI_OK) {
            struct tutti_frame frame = {.kind = TUTTI_FRAME_ERROR, .round = member->round,
                                        .size = (uint32_t)strnlen(reason, TUTTI_MESSAGE_BYTES / 2),
                                        .code = TUTTI_ERR_REMOTE};

            tutti_outbox_load(&member->outbox, &frame, reason);
            tutti_outbox_step(&member->outbox, member->fd);
        }
        tutti_exchange_hang_up(member->fd);
        tutti_watch_close(&member->watch, &member->fd);
    }
    tutti_watch_fini(&member->watch);
    free(member->inbox.body);
    free(member);
}

static const struct tutti_bootstrap_ops member_ops = {
    .name = "tcp member",
    .allgather = member_allgather,
    .wait_fd = member_wait_fd,
    .destroy = member_destroy,
};

int tutti_exchange_join(const struct tutti_address *candidates, size_t count, const char *where,
                        const uint8_t secret[TUTTI_SECRET_BYTES], bool is_fresh, int nranks,
                        int rank, uint64_t deadline_ns, struct tutti_bootstrap **ret_boot)
{
    struct member *member = calloc(1, sizeof *member);
    int rc;

    if (member == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a bootstrap");
    member->base = (struct tutti_bootstrap){
        .ops = &member_ops, .nranks = nranks, .rank = rank, .deadline_ns = deadline_ns};
    memcpy(member->base.secret, secret, TUTTI_SECRET_BYTES);
    memcpy(member->store_secret, secret, TUTTI_SECRET_BYTES);
    tutti_secret_derive(secret, "bootstrap", 0, member->meeting_secret);
    member->is_fresh = is_fresh;
    member->begun_ns = tutti_now_ns();
    member->fd = -1;
    snprintf(member->where, sizeof member->where, "%s", where);
    member->attempt_count = count < TUTTI_CANDIDATES_MAX ? count : TUTTI_CANDIDATES_MAX;
    for (size_t i = 0; i < member->attempt_count; i++) {
        member->attempts[i].address = candidates[i];
        member->attempts[i].fd = -1;
    }
    rc = tutti_watch_init(&member->watch);
    if (rc != TUTTI_OK) {
        free(member);
        return rc;
    }
    *ret_boot = &member->base;
    return TUTTI_OK;
}
