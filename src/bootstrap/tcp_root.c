/* SPDX-License-Identifier: Apache-2.0
 * The root of an exchange over sockets. The root admits members, collects their records and answers
 * with the table of all records.
 *
 * The root is one of the ranks and makes progress only in its own allgather() calls. A round of the
 * root therefore returns TUTTI_OK only when the table has been sent to all members.
 *
 * After a failure the root tells the reason to all members. For a short time it also tells those
 * that still join. So every rank fails with the same message.
 */
#include "bootstrap/tcp_root.h"

#include "base/clock.h"
#include "bootstrap/claim.h"

#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* A root that is out of descriptors checks at this interval whether one has become free. */
#define FULL_PAUSE_NS (10 * TUTTI_NS_PER_MS)

static struct tutti_root *root_of(struct tutti_bootstrap *boot)
{
    return (struct tutti_root *)boot;
}

/* ---- failing ----------------------------------------------------------------------- */

void tutti_root_fail(struct tutti_root *root, int code, const char *format, ...)
{
    va_list args;

    if (root->failure != TUTTI_OK)
        return;
    va_start(args, format);
    vsnprintf(root->reason, sizeof root->reason, format, args);
    va_end(args);
    root->failure = code;
    root->linger_ns = tutti_now_ns() + TUTTI_EXCHANGE_LINGER_NS;
    for (struct tutti_root_seat *seat = root->members.oldest; seat != NULL; seat = seat->newer)
        tutti_root_flush(root, seat);
}

static bool is_joining(const struct tutti_root *root)
{
    return root->round == 0 && !root->is_sending;
}

/* Write the ranks that the current round waits for: "rank 2 of 3 has". */
static void name_missing(const struct tutti_root *root, char *ret_text, size_t size)
{
    bool *is_here = calloc((size_t)root->base.nranks, sizeof *is_here);

    snprintf(ret_text, size, "some ranks have");
    if (is_here == NULL)
        return;
    for (int rank = 0; rank < root->base.nranks; rank++) {
        const struct tutti_root_seat *seat = root->seat_of_rank[rank];

        is_here[rank] =
            rank == root->base.rank ||
            (seat != NULL && (root->is_sending ? seat->outbox.size == 0 : seat->has_record));
    }
    tutti_exchange_name_missing(is_here, root->base.nranks, ret_text, size);
    free(is_here);
}

/* The most common mistake with unique ids is that each rank makes its own id. Each rank then
 * becomes a root that no other rank joins. */
static const char *hint_at_id(const struct tutti_root *root)
{
    if (!root->is_of_id || !tutti_root_is_alone(root))
        return "";
    return ". None has come with this unique id: do all ranks have the id of one rank? Only one "
           "calls tuttiGetUniqueId";
}

void tutti_root_fail_missing(struct tutti_root *root)
{
    char missing[256];

    name_missing(root, missing, sizeof missing);
    tutti_root_fail(root, TUTTI_ERR_TIMEOUT,
                    "%s not %s within %llu ms; check that they %s and can reach %s%s", missing,
                    is_joining(root) ? "joined" : "gone on",
                    (unsigned long long)((tutti_now_ns() - root->begun_ns) / TUTTI_NS_PER_MS),
                    is_joining(root) ? "were started" : "still run", root->where,
                    hint_at_id(root));
}

static bool root_describe_missing(struct tutti_bootstrap *boot, char *ret_text, size_t size)
{
    const struct tutti_root *root = root_of(boot);
    char missing[256];

    name_missing(root, missing, sizeof missing);
    snprintf(ret_text, size, "%s not %s at %s%s", missing,
             is_joining(root) ? "joined" : "gone on", root->where, hint_at_id(root));
    return true;
}

bool tutti_root_is_alone(const struct tutti_root *root)
{
    return root->joined == 0;
}

/* ---- a round --------------------------------------------------------------------------- */

static bool reserve_table(struct tutti_root *root, size_t size_bytes)
{
    uint8_t *table;

    if (size_bytes <= root->table_capacity)
        return true;
    table = size_bytes <= UINT32_MAX ? realloc(root->table, size_bytes) : NULL;
    if (table == NULL) {
        tutti_root_fail(root, TUTTI_ERR_SYSTEM, "no memory for a table of %zu bytes", size_bytes);
        return false;
    }
    root->table = table;
    root->table_capacity = size_bytes;
    return true;
}

/* All records have arrived: make the table and begin to send it. */
static void answer(struct tutti_root *root, const void *mine, size_t size)
{
    size_t table_bytes = size * (size_t)root->base.nranks;
    struct tutti_frame frame = {.kind = TUTTI_FRAME_TABLE,
                                .round = root->round,
                                .size = (uint32_t)table_bytes,
                                .session = root->session};

    tutti_assert(root->members.count == root->joined);
    for (struct tutti_root_seat *seat = root->members.oldest; seat != NULL; seat = seat->newer)
        if (seat->record_size != size) {
            tutti_root_fail(
                root, TUTTI_ERR_USAGE,
                "ranks disagree on the record of round %u: rank %d gives %zu bytes, rank %d %u; "
                "use one version and one configuration on all ranks",
                root->round, root->base.rank, size, seat->rank, seat->record_size);
            return;
        }
    if (!reserve_table(root, table_bytes))
        return;

    if (size > 0)
        memcpy(root->table + (size_t)root->base.rank * size, mine, size);
    root->records = 0;
    root->unsent = root->members.count;
    root->is_sending = true;
    for (struct tutti_root_seat *seat = root->members.oldest; seat != NULL; seat = seat->newer) {
        if (size > 0)
            memcpy(root->table + (size_t)seat->rank * size, seat->inbox.body, size);
        seat->has_record = false;
    }
    tutti_frame_digest(&frame, root->table);
    for (struct tutti_root_seat *seat = root->members.oldest; seat != NULL; seat = seat->newer)
        tutti_outbox_load(&seat->outbox, &frame, root->table);
    for (struct tutti_root_seat *seat = root->members.oldest; seat != NULL; seat = seat->newer)
        tutti_root_flush(root, seat);
}

/* True if some rank does not look akin to the root, so that it may belong to another job. */
static bool is_mixed(const struct tutti_root *root)
{
    if (!root->is_vague || root->round > 0)
        return false;
    for (const struct tutti_root_seat *seat = root->members.oldest; seat != NULL;
         seat = seat->newer)
        if (seat->kin != root->kin)
            return true;
    return false;
}

static uint64_t doubt_end_ns(const struct tutti_root *root)
{
    return is_mixed(root) ? root->complete_ns + TUTTI_EXCHANGE_DOUBT_NS : 0;
}

bool tutti_root_is_in_doubt(const struct tutti_root *root)
{
    return root->complete_ns == 0 || tutti_now_ns() < doubt_end_ns(root);
}

static void fail_gone(struct tutti_root *root)
{
    for (struct tutti_root_seat *seat = root->members.oldest; seat != NULL; seat = seat->newer)
        if (seat->fd < 0)
            tutti_root_fail(root, TUTTI_ERR_REMOTE,
                            "rank %d of %d left before round %u of the bootstrap", seat->rank,
                            root->base.nranks, root->round);
}

/* After a failure: true if all ranks have been told, or the time for that is over. */
static bool is_concluded(const struct tutti_root *root)
{
    if (tutti_now_ns() >= root->linger_ns)
        return true;
    /* Ranks that have yet to join must be told, too, or they would wait until their deadline. */
    if (root->members.count < root->base.nranks - 1)
        return false;
    for (struct tutti_root_seat *seat = root->members.oldest; seat != NULL; seat = seat->newer)
        if (seat->fd >= 0 && (!seat->is_told || seat->outbox.size > 0))
            return false;
    return true;
}

static void set_alarm(struct tutti_root *root)
{
    uint64_t wake_ns = root->failure != TUTTI_OK ? root->linger_ns : root->base.deadline_ns;

    if (root->failure == TUTTI_OK && root->complete_ns != 0 && !root->is_sending &&
        tutti_root_is_in_doubt(root) && doubt_end_ns(root) < wake_ns)
        wake_ns = doubt_end_ns(root);
    if (root->callers.oldest != NULL && root->callers.oldest->shake.deadline_ns < wake_ns)
        wake_ns = root->callers.oldest->shake.deadline_ns;
    if (root->is_full && tutti_now_ns() + FULL_PAUSE_NS < wake_ns)
        wake_ns = tutti_now_ns() + FULL_PAUSE_NS;
    tutti_watch_alarm(&root->watch, wake_ns);
}

/* Answer if all records of the round are here, and no other process may still claim their ranks. */
static void answer_if_complete(struct tutti_root *root, const void *mine, size_t size)
{
    if (root->records < root->base.nranks - 1 ||
        (root->base.nranks > 1 && tutti_root_is_in_doubt(root)))
        return;
    if (is_mixed(root) && tutti_claim_has_rival(root->base.claim, root->begun_ns))
        tutti_root_fail(root, TUTTI_ERR_USAGE, TUTTI_EXCHANGE_RIVAL, root->where);
    else
        answer(root, mine, size);
}

static int root_allgather(struct tutti_bootstrap *boot, const void *mine, size_t size, void *all)
{
    struct tutti_root *root = root_of(boot);

    TUTTI_TRY(tutti_exchange_check_size(size));
    tutti_root_handle_events(root);
    if (root->failure == TUTTI_OK && !root->is_sending) {
        if (root->gone > 0)
            fail_gone(root);
        if (root->failure == TUTTI_OK)
            answer_if_complete(root, mine, size);
    }
    if (root->failure == TUTTI_OK && root->is_sending && root->unsent == 0) {
        if (size > 0)
            memcpy(all, root->table, size * (size_t)root->base.nranks);
        root->is_sending = false;
        root->round++;
        return TUTTI_OK;
    }
    if (root->failure == TUTTI_OK && tutti_now_ns() >= root->base.deadline_ns)
        tutti_root_fail_missing(root);
    if (root->failure != TUTTI_OK && is_concluded(root))
        return tutti_fail(root->failure, "%s", root->reason);
    set_alarm(root);
    return TUTTI_AGAIN;
}

static int root_wait_fd(struct tutti_bootstrap *boot)
{
    return root_of(boot)->watch.epoll_fd;
}

static void root_destroy(struct tutti_bootstrap *boot, const char *reason)
{
    struct tutti_root *root = root_of(boot);

    if (root == NULL)
        return;
    if (reason != NULL)
        tutti_root_fail(root, TUTTI_ERR_REMOTE, "rank %d of %d gave up: %.*s", root->base.rank,
                        root->base.nranks, TUTTI_MESSAGE_BYTES / 2, reason);
    if (root->is_listening && !root->is_full)
        tutti_watch_remove(&root->watch, tutti_listener_fd(root->listener));
    tutti_root_free_seats(root);
    if (root->spare_fd >= 0)
        close(root->spare_fd);
    tutti_listener_close(root->listener);
    tutti_claim_release(root->base.claim);
    tutti_watch_fini(&root->watch);
    if (root->on_spent != NULL)
        root->on_spent(root->context);
    free(root->seat_of_rank);
    free(root->table);
    sodium_memzero(root, sizeof *root);
    free(root);
}

static const struct tutti_bootstrap_ops root_ops = {
    .name = "root",
    .allgather = root_allgather,
    .wait_fd = root_wait_fd,
    .describe_missing = root_describe_missing,
    .destroy = root_destroy,
};

int tutti_exchange_serve(struct tutti_listener *listener, const struct tutti_meeting_place *place,
                         int nranks, int rank, uint64_t deadline_ns,
                         void (*on_spent)(void *context), void *context,
                         struct tutti_bootstrap **ret_boot)
{
    struct tutti_root *root = calloc(1, sizeof *root);
    int rc;

    if (root == NULL) {
        tutti_listener_close(listener);
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a bootstrap");
    }
    *root = (struct tutti_root){
        .base = {.ops = &root_ops, .nranks = nranks, .rank = rank, .deadline_ns = deadline_ns},
        .watch = {.epoll_fd = -1, .timer_fd = -1},
        .spare_fd = -1,
        .listener = listener,
        .is_of_id = place->is_of_id,
        .is_same_user = place->is_same_user,
        .is_vague = place->is_vague,
        .kin = place->is_vague ? tutti_exchange_kin() : 0,
        .begun_ns = tutti_now_ns()};
    snprintf(root->where, sizeof root->where, "%s", place->where);
    snprintf(root->name, sizeof root->name, "%s", place->name);
    memcpy(root->forming, place->forming, sizeof root->forming);
    tutti_random_bytes(&root->session, sizeof root->session);
    tutti_secret_derive(place->secret, "bootstrap", 0, root->meeting_secret);
    if (place->is_of_id)
        memcpy(root->base.secret, place->secret, TUTTI_SECRET_BYTES);
    else
        tutti_secret_derive(place->secret, "communicator", root->session, root->base.secret);

    root->seat_of_rank = calloc((size_t)nranks, sizeof *root->seat_of_rank);
    if (root->seat_of_rank == NULL) {
        rc = tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %d ranks", nranks);
        goto destroy;
    }
    TUTTI_TRY_OR(destroy, rc, tutti_watch_init(&root->watch));
    root->spare_fd = eventfd(0, EFD_CLOEXEC);
    TUTTI_TRY_OR(destroy, rc, tutti_listener_enter(listener, root));
    TUTTI_TRY_OR(destroy, rc,
                 tutti_watch_add(&root->watch, tutti_listener_fd(listener), EPOLLIN, root));
    root->is_listening = true;
    root->on_spent = on_spent;
    root->context = context;
    *ret_boot = &root->base;
    return TUTTI_OK;

destroy:
    root_destroy(&root->base, NULL);
    return rc;
}
