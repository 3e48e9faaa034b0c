/* SPDX-License-Identifier: Apache-2.0
 * Passes a descriptor from the first member to the other members. They connect to the first member.
 * Each connection to the first member is called a guest. */
#include "transport/shm/pass.h"

#include "base/clock.h"
#include "base/result.h"
#include "base/socket.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The number of guests that the first member serves at a time. */
#define GUESTS 16
/* The longest time that passing may take (tutti_pass_deadline). */
#define PATIENCE_NS (30 * TUTTI_NS_PER_S)
/* A guest that has not proved itself within this time gives its place to another that waits. */
#define GUEST_PATIENCE_NS (2 * TUTTI_NS_PER_S)
/* The number of secret bytes in the socket's name, which other users cannot guess. */
#define HIDDEN_BYTES 16
/* The number of connections accepted per step, so that a flood of them does not occupy a rank. */
#define ACCEPTS_PER_STEP 64

/* A connection to the first member. The first member has one for each member that connects. Any
 * other member uses only guests[0], which is its own connection. */
struct guest {
    int fd;            /* -1: a free place */
    bool is_proved;    /* the handshake is complete */
    uint64_t since_ns; /* on the first member: the time at which the guest was accepted */
    struct tutti_handshake shake;
};

struct tutti_pass {
    struct tutti_pass_args args;
    char name[64];                   /* of the socket, without the leading zero byte */
    uint8_t key[TUTTI_SECRET_BYTES]; /* the secret of the handshakes */
    int fd; /* the descriptor that is passed. On the first member, -1 means that it refuses all
               guests: it closes their connections after the handshake. */
    char refusal[TUTTI_MESSAGE_BYTES]; /* on the first member: the reason why it refuses */
    int listen_fd;                     /* on the first member; else -1 */
    uint32_t nserved;                  /* members that were served or refused */
    bool *is_served;                   /* [nmembers], on the first member */
    struct guest guests[GUESTS];
};

static void derive_name(struct tutti_pass *pass)
{
    uint8_t hidden[TUTTI_SECRET_BYTES];
    size_t length = (size_t)snprintf(pass->name, sizeof pass->name, "tutti-");

    tutti_secret_derive(pass->args.secret, "segment name", 0, hidden);
    tutti_secret_derive(pass->args.secret, "segment proof", 0, pass->key);
    for (int i = 0; i < HIDDEN_BYTES; i++)
        length += (size_t)snprintf(pass->name + length, sizeof pass->name - length, "%02x",
                                   hidden[i]);
}

uint64_t tutti_pass_deadline(uint64_t forming_deadline_ns)
{
    uint64_t now = tutti_now_ns();
    uint64_t left = forming_deadline_ns > now ? forming_deadline_ns - now : 0;

    return now + (left / 2 < PATIENCE_NS ? left / 2 : PATIENCE_NS);
}

int tutti_pass_create(const struct tutti_pass_args *args, struct tutti_pass **ret_pass)
{
    struct tutti_pass *pass = calloc(1, sizeof *pass);
    int rc;

    if (pass == NULL) {
        if (args->me == 0 && args->fd >= 0)
            close(args->fd);
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to pass a descriptor");
    }
    pass->args = *args;
    pass->fd = args->me == 0 ? args->fd : -1;
    if (args->me == 0 && args->fd < 0)
        snprintf(pass->refusal, sizeof pass->refusal, "%s", tutti_message_last());
    pass->listen_fd = -1;
    for (int i = 0; i < GUESTS; i++)
        pass->guests[i].fd = -1;
    derive_name(pass);

    if (args->me == 0) {
        pass->is_served = calloc(args->nmembers, sizeof *pass->is_served);
        if (pass->is_served == NULL) {
            rc = tutti_fail(TUTTI_ERR_SYSTEM, "no memory to pass a descriptor");
            goto destroy;
        }
        TUTTI_TRY_OR(destroy, rc, tutti_socket_listen_unix(pass->name, &pass->listen_fd));
    }
    *ret_pass = pass;
    return TUTTI_OK;

destroy:
    tutti_pass_destroy(pass);
    return rc;
}

static void close_guest(struct guest *guest)
{
    if (guest->fd >= 0)
        close(guest->fd);
    guest->fd = -1;
    guest->is_proved = false;
}

/* ---- the first member ---------------------------------------------------------------- */

/* Returns the index of the member that has made this handshake. */
static uint32_t index_of(const struct tutti_handshake *shake)
{
    uint32_t index;

    memcpy(&index, shake->purpose.bytes, sizeof index);
    return index;
}

/* Makes progress with a guest. Sends the descriptor, or refuses, once the guest has proved
 * itself. */
static void serve(struct tutti_pass *pass, struct guest *guest)
{
    uint32_t index;
    int rc;

    if (!guest->is_proved) {
        rc = tutti_handshake_step(&guest->shake);
        if (rc == TUTTI_AGAIN)
            return;
        index = index_of(&guest->shake);
        if (rc != TUTTI_OK || index == 0 || index >= pass->args.nmembers) {
            close_guest(guest);
            return;
        }
        guest->is_proved = true;
    }
    rc = TUTTI_OK;
    if (pass->fd >= 0)
        rc = tutti_socket_send_fd(guest->fd, pass->fd);
    if (rc == TUTTI_AGAIN)
        return;
    index = index_of(&guest->shake);
    if (rc == TUTTI_OK && !pass->is_served[index]) {
        pass->is_served[index] = true;
        pass->nserved++;
    }
    close_guest(guest);
}

/* Returns a free place, or the place of a guest that has not proved itself for long. NULL: all
 * places are in use. */
static struct guest *find_place(struct tutti_pass *pass)
{
    struct guest *oldest = NULL;

    for (int i = 0; i < GUESTS; i++) {
        struct guest *guest = &pass->guests[i];

        if (guest->fd < 0)
            return guest;
        if (!guest->is_proved && (oldest == NULL || guest->since_ns < oldest->since_ns))
            oldest = guest;
    }
    if (oldest == NULL || tutti_now_ns() - oldest->since_ns < GUEST_PATIENCE_NS)
        return NULL;
    close_guest(oldest);
    return oldest;
}

/* Every process on the host can read the socket's name in /proc/net/unix. Only processes of this
 * rank's user get a place. */
static int take_guests(struct tutti_pass *pass)
{
    struct guest *place = find_place(pass);

    for (int i = 0; i < ACCEPTS_PER_STEP && place != NULL; i++) {
        int fd, rc = tutti_socket_accept(pass->listen_fd, &fd);

        if (rc == TUTTI_AGAIN)
            return TUTTI_OK;
        TUTTI_TRY(rc);
        if (!tutti_socket_is_own_user(fd)) {
            close(fd);
            continue;
        }
        place->fd = fd;
        place->since_ns = tutti_now_ns();
        tutti_handshake_start(&place->shake, fd, true, pass->key, NULL, pass->args.deadline_ns);
        serve(pass, place);
        place = find_place(pass);
    }
    return TUTTI_OK;
}

static int step_first(struct tutti_pass *pass)
{
    for (int i = 0; i < GUESTS; i++)
        if (pass->guests[i].fd >= 0)
            serve(pass, &pass->guests[i]);
    TUTTI_TRY(take_guests(pass));
    if (pass->nserved + 1 < pass->args.nmembers)
        return TUTTI_AGAIN;
    if (pass->fd < 0)
        return tutti_note(TUTTI_ERR_SYSTEM, "%s", pass->refusal);
    return TUTTI_OK;
}

/* ---- the others ---------------------------------------------------------------------- */

static int step_other(struct tutti_pass *pass)
{
    struct guest *own = &pass->guests[0];
    int rc;

    if (own->fd < 0) {
        struct tutti_purpose purpose = {.bytes = {0}};

        TUTTI_TRY(tutti_socket_connect_unix(pass->name, &own->fd));
        memcpy(purpose.bytes, &pass->args.me, sizeof pass->args.me);
        tutti_handshake_start(&own->shake, own->fd, false, pass->key, &purpose,
                              pass->args.deadline_ns);
    }
    if (!own->is_proved) {
        rc = tutti_handshake_step(&own->shake);
        if (rc == TUTTI_ERR_REMOTE) { /* the first member closed the connection because this rank
                                         was slow, so connect again */
            close_guest(own);
            return TUTTI_AGAIN;
        }
        TUTTI_TRY(rc);
        own->is_proved = true;
    }
    return tutti_socket_recv_fd(own->fd, &pass->fd);
}

int tutti_pass_step(struct tutti_pass *pass, int *ret_fd)
{
    int rc = pass->args.me == 0 ? step_first(pass) : step_other(pass);

    if (rc == TUTTI_AGAIN && tutti_now_ns() >= pass->args.deadline_ns)
        return tutti_note(TUTTI_ERR_TIMEOUT,
                          "not all ranks of the host came for a shared descriptor");
    TUTTI_TRY(rc);
    *ret_fd = pass->fd;
    pass->fd = -1;
    return TUTTI_OK;
}

void tutti_pass_destroy(struct tutti_pass *pass)
{
    if (pass == NULL)
        return;
    for (int i = 0; i < GUESTS; i++)
        close_guest(&pass->guests[i]);
    if (pass->listen_fd >= 0)
        close(pass->listen_fd);
    if (pass->fd >= 0)
        close(pass->fd);
    free(pass->is_served);
    free(pass);
}
