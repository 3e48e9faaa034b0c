/* SPDX-License-Identifier: Apache-2.0
 * A member of an exchange over sockets. It joins the root, sends its records and receives the
 * tables of all records. */
#include "bootstrap/tcp_member.h"

#include "base/clock.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

static struct tutti_member_boot *member_of(struct tutti_bootstrap *boot)
{
    return (struct tutti_member_boot *)boot;
}

/* ---- a round ----------------------------------------------------------------------- */

static void give_record(struct tutti_member_boot *member, const void *mine, size_t size)
{
    struct tutti_frame frame = {
        .kind = TUTTI_FRAME_RECORD, .round = member->round, .size = (uint32_t)size};

    if (member->place.is_vague && member->round == 0)
        frame.session = tutti_exchange_kin();
    if (size > 0)
        memcpy(member->record, mine, size);
    tutti_frame_digest(&frame, member->record);
    tutti_outbox_load(&member->outbox, &frame, member->record);
    member->is_given = true;
}

/* Makes room in the inbox for the table, or for a reason if the root fails. */
static int make_room(struct tutti_member_boot *member, size_t table_bytes)
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
    char reason[TUTTI_MESSAGE_BYTES];

    snprintf(reason, sizeof reason, "%s", tutti_message_last());
    return tutti_fail(TUTTI_ERR_REMOTE, "the root at %s left while the communicator was formed: %s",
                      where, reason);
}

/* The root cannot admit this rank now: keep its reason, and connect again after a pause. */
static int call_again(struct tutti_member_boot *member)
{
    char text[128];

    (void)tutti_inbox_error(&member->inbox, text, sizeof text);
    tutti_note(TUTTI_ERR_REMOTE, "%s", text);
    tutti_member_call_again(member);
    member->inbox.done = 0;
    member->outbox.size = member->outbox.done = 0;
    member->is_given = false;
    return TUTTI_AGAIN;
}

/* Receives what the root sends. TUTTI_OK: the table of this round is in the inbox. */
static int take_table(struct tutti_member_boot *member, size_t table_bytes)
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
    if (frame->kind == TUTTI_FRAME_LATER && member->round == 0)
        return call_again(member);
    if (frame->kind != TUTTI_FRAME_TABLE || frame->round != member->round ||
        frame->size != table_bytes)
        return tutti_fail(TUTTI_ERR_REMOTE,
                          "the root at %s sent a frame of kind %u, round %u, %u bytes; due is the "
                          "table of round %u, %zu bytes",
                          member->where, frame->kind, frame->round, frame->size, member->round,
                          table_bytes);
    return TUTTI_OK;
}

/* When this rank's deadline has passed, tell the root to conclude and wait for its answer for a
 * short time, because the root knows which ranks are missing. */
static int conclude(struct tutti_member_boot *member)
{
    static const char reason[] = "its deadline has passed";
    struct tutti_frame frame = {.kind = TUTTI_FRAME_ERROR, .round = member->round,
                                .size = sizeof reason - 1, .code = TUTTI_ERR_TIMEOUT};
    uint64_t now_ns = tutti_now_ns();

    if (now_ns < member->base.deadline_ns)
        return TUTTI_AGAIN;
    if (member->conclude_ns == 0) {
        member->conclude_ns = now_ns + TUTTI_EXCHANGE_LINGER_NS;
        if (member->outbox.size == 0) {
            tutti_frame_digest(&frame, reason);
            tutti_outbox_load(&member->outbox, &frame, reason);
        }
        tutti_outbox_step(&member->outbox, member->fd);
        member->is_over = true;
    }
    if (now_ns < member->conclude_ns)
        return TUTTI_AGAIN;
    return tutti_fail(TUTTI_ERR_TIMEOUT,
                      "the root at %s has not answered rank %d of %d within %llu ms; it waits for "
                      "other ranks, or it hangs",
                      member->where, member->base.rank, member->base.nranks,
                      (unsigned long long)tutti_member_elapsed_ms(member));
}

static int exchange_round(struct tutti_member_boot *member, const void *mine, size_t size,
                          void *all)
{
    size_t table_bytes = size * (size_t)member->base.nranks;
    int rc;

    TUTTI_TRY(make_room(member, table_bytes));
    if (!member->is_given)
        give_record(member, mine, size);

    /* Receive before sending: if the root has given up, its reason is more useful than the error
     * of a send on a closed connection. */
    rc = take_table(member, table_bytes);
    if (rc == TUTTI_AGAIN && member->fd >= 0 &&
        tutti_outbox_step(&member->outbox, member->fd) < 0)
        rc = take_table(member, table_bytes);
    if (rc == TUTTI_AGAIN && member->fd < 0)
        return rc; /* either table was a request to connect again later */
    if (rc == TUTTI_AGAIN)
        rc = conclude(member);
    if (rc == TUTTI_AGAIN) {
        tutti_watch_change(&member->watch, member->fd,
                           EPOLLIN | (member->outbox.size > 0 ? EPOLLOUT : 0), member);
        tutti_watch_alarm(&member->watch, member->conclude_ns != 0 ? member->conclude_ns
                                                                   : member->base.deadline_ns);
    }
    TUTTI_TRY(rc);

    if (member->round == 0 && !member->place.is_of_id)
        tutti_secret_derive(member->place.secret, "communicator", member->inbox.frame.session,
                            member->base.secret);
    if (table_bytes > 0)
        memcpy(all, member->inbox.body, table_bytes);
    member->round++;
    member->is_given = false;
    return TUTTI_OK;
}

static int member_allgather(struct tutti_bootstrap *boot, const void *mine, size_t size, void *all)
{
    struct tutti_member_boot *member = member_of(boot);
    int rc;

    TUTTI_TRY(tutti_exchange_check_size(size));
    do {
        if (member->fd < 0)
            TUTTI_TRY(tutti_member_find_root(member));
        rc = exchange_round(member, mine, size, all);
    } while (rc == TUTTI_AGAIN && member->fd < 0); /* the root has asked us to call again */
    return rc;
}

static int member_wait_fd(struct tutti_bootstrap *boot)
{
    return member_of(boot)->watch.epoll_fd;
}

static bool member_describe_missing(struct tutti_bootstrap *boot, char *ret_text, size_t size)
{
    const struct tutti_member_boot *member = member_of(boot);

    if (member->fd >= 0)
        snprintf(ret_text, size, "the root at %s has this rank's record and waits for other ranks",
                 member->where);
    else
        snprintf(ret_text, size, "the root at %s has not been reached%s%s", member->where,
                 member->last_refusal[0] ? "; last answer: " : "", member->last_refusal);
    return member->fd < 0;
}

static void member_destroy(struct tutti_bootstrap *boot, const char *reason)
{
    struct tutti_member_boot *member = member_of(boot);

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

            tutti_frame_digest(&frame, reason);
            tutti_outbox_load(&member->outbox, &frame, reason);
            tutti_outbox_step(&member->outbox, member->fd);
        }
        tutti_exchange_hang_up(member->fd);
        tutti_watch_close(&member->watch, &member->fd);
    }
    tutti_watch_fini(&member->watch);
    if (member->spare_fd >= 0)
        close(member->spare_fd);
    free(member->inbox.body);
    sodium_memzero(member, sizeof *member);
    free(member);
}

static const struct tutti_bootstrap_ops member_ops = {
    .name = "member",
    .allgather = member_allgather,
    .wait_fd = member_wait_fd,
    .describe_missing = member_describe_missing,
    .destroy = member_destroy,
};

int tutti_exchange_join(const struct tutti_address *candidates, size_t count, const char *unix_name,
                        const struct tutti_meeting_place *place, int nranks, int rank,
                        uint64_t deadline_ns, struct tutti_bootstrap **ret_boot)
{
    struct tutti_member_boot *member = calloc(1, sizeof *member);
    int rc;

    if (member == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a bootstrap");
    member->base = (struct tutti_bootstrap){
        .ops = &member_ops, .nranks = nranks, .rank = rank, .deadline_ns = deadline_ns};
    memcpy(member->base.secret, place->secret, TUTTI_SECRET_BYTES);
    member->place = *place;
    member->place.where = member->place.name = NULL; /* the texts belong to the caller */
    tutti_secret_derive(place->secret, "bootstrap", 0, member->meeting_secret);
    member->begun_ns = tutti_now_ns();
    member->fd = -1;
    snprintf(member->where, sizeof member->where, "%s", place->where);
    if (unix_name != NULL) {
        snprintf(member->unix_name, sizeof member->unix_name, "%s", unix_name);
        count = 1;
    }
    member->attempt_count = count < TUTTI_CANDIDATES_MAX ? count : TUTTI_CANDIDATES_MAX;
    for (size_t i = 0; i < member->attempt_count; i++) {
        if (unix_name == NULL)
            member->attempts[i].address = candidates[i];
        member->attempts[i].fd = -1;
    }
    rc = tutti_watch_init(&member->watch);
    if (rc != TUTTI_OK) {
        sodium_memzero(member, sizeof *member);
        free(member);
        return rc;
    }
    member->spare_fd = eventfd(0, EFD_CLOEXEC); /* any descriptor would do */
    *ret_boot = &member->base;
    return TUTTI_OK;
}
