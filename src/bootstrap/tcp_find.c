/* SPDX-License-Identifier: Apache-2.0
 * The search of a member for the root, in an exchange over sockets.
 *
 * The root may start later than this rank, and some of its addresses may not work from this host.
 * They may refuse, be silent, drop packets, or belong to another program. So all addresses are
 * tried, each repeatedly until the deadline. If earlier ones take long, later ones are tried at the
 * same time. The first address that sends the greeting of our handshake is chosen. The others are
 * dropped before this rank sends its proof. So the root never sees one rank twice, and no byte is
 * sent to strangers. A chosen address that then stays silent is given up after a while.
 *
 * The root may be busy with another communicator that is formed at the same place. For example, it
 * may still serve other ranks of the previous communicator. The root then says so, and this rank
 * connects again later.
 */
#include "bootstrap/tcp_member.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

/* If an attempt is not connected, or not greeted, after this time, the next address is tried as
 * well. */
#define CONNECT_PATIENCE_NS (150 * TUTTI_NS_PER_MS)
#define GREETING_PATIENCE_NS (300 * TUTTI_NS_PER_MS)
/* If the chosen root is silent for this long after its greeting, the attempt has failed. */
#define ANSWER_PATIENCE_NS (5 * TUTTI_NS_PER_S)
/* The pause before a failed attempt is repeated: at first, and at most. */
#define RETRY_FIRST_NS (5 * TUTTI_NS_PER_MS)
#define RETRY_MOST_NS (200 * TUTTI_NS_PER_MS)
/* The number of the refusal by a chosen root that is logged. Earlier refusals are normal, because a
 * root that is about to end closes our connection, too, and the next root takes its place. */
#define TOLD_REFUSAL 3
/* The root of a unique id listens before the id exists. If all its addresses have refused for this
 * long, the root is gone. */
#define GONE_AFTER_NS (2 * TUTTI_NS_PER_S)

uint64_t tutti_member_elapsed_ms(const struct tutti_member_boot *member)
{
    return (tutti_now_ns() - member->begun_ns) / TUTTI_NS_PER_MS;
}

/* Closes the connection of an attempt, which may be tried again from `retry_ns` on. */
static void drop(struct tutti_member_boot *member, struct tutti_member_attempt *attempt,
                 uint64_t retry_ns)
{
    tutti_watch_close(&member->watch, &attempt->fd);
    attempt->is_connected = false;
    attempt->greeted_ns = 0;
    attempt->retry_ns = retry_ns;
}

static void drop_others(struct tutti_member_boot *member, const struct tutti_member_attempt *kept)
{
    for (size_t i = 0; i < member->attempt_count; i++)
        if (&member->attempts[i] != kept)
            drop(member, &member->attempts[i], 0);
}

static const char *name_attempt(const struct tutti_member_boot *member,
                                const struct tutti_member_attempt *attempt,
                                char text[TUTTI_ADDRESS_TEXT_BYTES])
{
    return member->unix_name[0] != '\0' ? member->where
                                        : tutti_address_format(&attempt->address, text);
}

/* Ends an attempt that has failed, and sets the time of its next try. The reason is the thread's
 * last message. */
static void end_attempt(struct tutti_member_boot *member, struct tutti_member_attempt *attempt)
{
    char text[TUTTI_ADDRESS_TEXT_BYTES];
    bool was_chosen = member->chosen == attempt;

    snprintf(member->last_refusal, sizeof member->last_refusal, "%s", tutti_message_last());
    if (was_chosen && ++member->refusals == TOLD_REFUSAL)
        tutti_log(TUTTI_LOG_WARN, "%s: %s; trying again until the deadline",
                  name_attempt(member, attempt, text), member->last_refusal);
    if (was_chosen)
        member->chosen = NULL;

    attempt->pause_ns = attempt->pause_ns == 0 ? RETRY_FIRST_NS : attempt->pause_ns * 2;
    if (attempt->pause_ns > RETRY_MOST_NS || was_chosen)
        attempt->pause_ns = RETRY_MOST_NS;
    drop(member, attempt, tutti_now_ns() + attempt->pause_ns);
}

static int connect_unix(struct tutti_member_boot *member, struct tutti_member_attempt *attempt)
{
    int rc = tutti_socket_connect_unix(member->unix_name, &attempt->fd);

    if (rc != TUTTI_OK)
        return rc == TUTTI_AGAIN ? tutti_note(TUTTI_ERR_REMOTE, "no process listens yet") : rc;
    if (!member->place.is_same_user || tutti_socket_is_own_user(attempt->fd))
        return TUTTI_OK;
    tutti_watch_close(&member->watch, &attempt->fd);
    return tutti_note(TUTTI_ERR_REMOTE, "another user's process listens there");
}

/* True if any attempt has a connection, or is making one. */
static bool is_under_way(const struct tutti_member_boot *member)
{
    for (size_t i = 0; i < member->attempt_count; i++)
        if (member->attempts[i].fd >= 0)
            return true;
    return false;
}

/* Makes a connection for the attempt; the results are those of tutti_socket_connect. */
static int call_root(struct tutti_member_boot *member, struct tutti_member_attempt *attempt)
{
    int rc;

    for (;;) {
        rc = member->unix_name[0] != '\0' ? connect_unix(member, attempt)
                                          : tutti_socket_connect(&attempt->address, &attempt->fd);
        if (rc != TUTTI_ERR_SYSTEM || member->spare_fd < 0)
            return rc;
        /* No descriptor is left, so use the spare one. This rank must join even if it fails soon
         * after, because only a rank that has joined can tell the root the reason. */
        close(member->spare_fd);
        member->spare_fd = -1;
    }
}

/* TUTTI_OK: connected, and the handshake has begun. */
static int attempt_connect(struct tutti_member_boot *member, struct tutti_member_attempt *attempt)
{
    bool is_unix = member->unix_name[0] != '\0';
    bool is_new = attempt->fd < 0;
    struct tutti_purpose purpose;
    int rc;

    if (is_new)
        attempt->begun_ns = tutti_now_ns();
    rc = call_root(member, attempt);
    if (rc == TUTTI_OK)
        attempt->is_refused = attempt->is_out_of_reach = false;
    if (rc == TUTTI_ERR_SYSTEM && !is_under_way(member))
        return tutti_fail(rc, "rank %d: %s", member->base.rank, tutti_message_last());
    if (rc < 0) {
        attempt->is_refused = errno == ECONNREFUSED;
        attempt->is_out_of_reach = !attempt->is_refused && errno != ETIMEDOUT;
        end_attempt(member, attempt);
        return TUTTI_AGAIN;
    }
    if (is_new)
        TUTTI_TRY(tutti_watch_add(&member->watch, attempt->fd, rc == TUTTI_OK ? EPOLLIN : EPOLLOUT,
                                  attempt));
    if (rc == TUTTI_AGAIN)
        return rc;
    if (!is_unix)
        TUTTI_TRY(tutti_socket_tune(attempt->fd, 0));
    tutti_exchange_purpose(&member->place, member->base.nranks, member->base.rank, &purpose);
    tutti_handshake_start(&attempt->shake, attempt->fd, false, member->meeting_secret, &purpose,
                          member->base.deadline_ns);
    tutti_watch_change(&member->watch, attempt->fd, EPOLLIN, attempt);
    attempt->is_connected = true;
    return TUTTI_OK;
}

/* TUTTI_OK: the attempt has reached the root, and this rank has joined. TUTTI_AGAIN: the attempt is
 * under way, or was refused. */
static int attempt_step(struct tutti_member_boot *member, struct tutti_member_attempt *attempt)
{
    int rc;

    if (!attempt->is_connected)
        TUTTI_TRY(attempt_connect(member, attempt));
    rc = tutti_handshake_step(&attempt->shake);
    if (member->chosen == NULL && tutti_handshake_is_greeted(&attempt->shake)) {
        member->chosen = attempt;
        attempt->greeted_ns = tutti_now_ns();
        drop_others(member, attempt);
    }
    if (rc == TUTTI_AGAIN && attempt->greeted_ns != 0 &&
        tutti_now_ns() >= attempt->greeted_ns + ANSWER_PATIENCE_NS)
        rc = tutti_note(TUTTI_ERR_TIMEOUT, "the root has been silent since its greeting");
    if (rc < 0) {
        end_attempt(member, attempt);
        return TUTTI_AGAIN;
    }
    return rc;
}

/* The time at which the next address is tried as well. If this attempt has been chosen, it is given
 * up at that time. */
static uint64_t patience_end_ns(const struct tutti_member_attempt *attempt)
{
    if (attempt->greeted_ns != 0)
        return attempt->greeted_ns + ANSWER_PATIENCE_NS;
    return attempt->begun_ns +
           (attempt->is_connected ? GREETING_PATIENCE_NS : CONNECT_PATIENCE_NS);
}

static int fail_unreachable(const struct tutti_member_boot *member)
{
    return tutti_fail(TUTTI_ERR_TIMEOUT,
                      "rank %d of %d has not found the root at %s within %llu ms; check that the "
                      "rank that serves there was started and can be reached%s%s",
                      member->base.rank, member->base.nranks, member->where,
                      (unsigned long long)tutti_member_elapsed_ms(member),
                      member->last_refusal[0] ? ". Last answer: " : "", member->last_refusal);
}

/* True if every address of a unique id's root has refused for GONE_AFTER_NS. Addresses that cannot
 * be reached from this host are ignored, but at least one host must have refused. */
static bool is_root_gone(struct tutti_member_boot *member)
{
    bool is_refused = false, is_open = false;
    uint64_t now_ns = tutti_now_ns();

    if (!member->place.is_of_id)
        return false;
    for (size_t i = 0; i < member->attempt_count; i++) {
        is_refused = is_refused || member->attempts[i].is_refused;
        is_open = is_open || !(member->attempts[i].is_refused ||
                               member->attempts[i].is_out_of_reach);
    }
    if (!is_refused || is_open)
        member->refused_ns = 0;
    else if (member->refused_ns == 0)
        member->refused_ns = now_ns;
    return member->refused_ns != 0 && now_ns >= member->refused_ns + GONE_AFTER_NS;
}

static int fail_gone(const struct tutti_member_boot *member)
{
    return tutti_fail(TUTTI_ERR_REMOTE,
                      "rank %d of %d: the process that made this unique id no longer listens at "
                      "%s: the id has been used (an id serves one communicator), or that process "
                      "has failed or ended",
                      member->base.rank, member->base.nranks, member->where);
}

int tutti_member_find_root(struct tutti_member_boot *member)
{
    uint64_t wake_ns = member->base.deadline_ns;
    bool may_begin = true; /* all earlier attempts have failed or take long */

    for (size_t i = 0; i < member->attempt_count; i++) {
        struct tutti_member_attempt *attempt = &member->attempts[i];
        uint64_t now_ns = tutti_now_ns();
        int rc = TUTTI_AGAIN;

        if (member->chosen != NULL && member->chosen != attempt)
            continue;
        if (attempt->fd >= 0 || (may_begin && now_ns >= attempt->retry_ns))
            rc = attempt_step(member, attempt);
        if (rc == TUTTI_OK) {
            tutti_exchange_seal(&attempt->shake, &member->inbox, &member->outbox);
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
    if (is_root_gone(member))
        return fail_gone(member);
    if (tutti_now_ns() >= member->base.deadline_ns)
        return fail_unreachable(member);
    tutti_watch_alarm(&member->watch, wake_ns);
    return TUTTI_AGAIN;
}

void tutti_member_call_again(struct tutti_member_boot *member)
{
    struct tutti_member_attempt *attempt = member->chosen;

    tutti_watch_close(&member->watch, &member->fd);
    attempt->pause_ns = member->later_pause_ns;
    member->chosen = NULL; /* so that end_attempt does not count this as a failure of the root */
    end_attempt(member, attempt);
    member->later_pause_ns = attempt->pause_ns;
}
