/* SPDX-License-Identifier: Apache-2.0
 * A rank that holds the secret sends malformed frames while a communicator forms: to the root, as
 * up to three members, and to a member, as its root. Its frames have right MACs and any contents,
 * or are plain bytes. */
#include "fuzz/fuzz.h"

#include "base/clock.h"
#include "bootstrap/exchange.h"
#include "support/address.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

enum { NRANKS = 4, RECORD_BYTES = 64, MOST_GUESTS = 3, MOST_FRAMES = 24, MOST_STEPS = 400 };

static const struct tutti_meeting_place place = {
    .where = "here", .name = "", .secret = "known to ranks"};

/* The end of a connection that is ours. */
struct guest {
    int fd; /* -1: none */
    bool is_in;
    struct tutti_handshake shake;
    struct tutti_inbox inbox; /* of which only the keys are wanted */
    struct tutti_outbox outbox;
};

static uint64_t soon(void)
{
    return tutti_now_ns() + 20 * TUTTI_NS_PER_MS;
}

/* ---- one side's doing ------------------------------------------------------------------------ */

static void shake_hands(struct guest *guest)
{
    int rc = tutti_handshake_step(&guest->shake);

    if (rc == TUTTI_OK) {
        tutti_exchange_seal(&guest->shake, &guest->inbox, &guest->outbox);
        guest->is_in = true;
    } else if (rc < 0) {
        close(guest->fd);
        guest->fd = -1;
    }
}

/* A frame as anybody might send it who has the key. */
static void send_frame(struct guest *guest, struct fuzz_input *input)
{
    struct tutti_frame frame = {.kind = fuzz_byte(input) % 6, .round = fuzz_byte(input) % 3};
    uint8_t shape = fuzz_byte(input);
    const uint8_t *body;
    size_t size = fuzz_bytes(input, shape < 128 ? shape : RECORD_BYTES, &body);

    frame.size = (uint32_t)size;
    fuzz_overwrite(input, &frame.session, (shape & 1) * sizeof frame.session);
    fuzz_overwrite(input, &frame.code, (shape >> 1 & 1) * sizeof frame.code);
    tutti_frame_digest(&frame, body);
    if ((shape >> 2 & 3) == 3) /* more, or less, is announced than comes */
        fuzz_overwrite(input, &frame.size, sizeof frame.size);
    guest->outbox.size = guest->outbox.done = 0;
    tutti_outbox_load(&guest->outbox, &frame, body);
    guest->outbox.size = TUTTI_FRAME_BYTES + size;
    /* Bytes that do not fit into the socket at once are left out. */
    if (tutti_outbox_step(&guest->outbox, guest->fd) < 0)
        guest->is_in = false;
    guest->outbox.size = 0;
}

static void talk(struct guest *guest, struct fuzz_input *input)
{
    const uint8_t *bytes;
    size_t size;

    if (fuzz_byte(input) % 4 != 0) {
        send_frame(guest, input);
        return;
    }
    size = fuzz_bytes(input, 1 + fuzz_byte(input) % 120, &bytes);
    if (size > 0 && send(guest->fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        guest->is_in = false;
}

static void hang_up(struct guest *guest)
{
    if (guest->fd >= 0)
        close(guest->fd);
}

static int listen_here(struct tutti_address *ret_address)
{
    int fd;

    fuzz_require(address_parse("127.0.0.1:0", ret_address) == TUTTI_OK, "that is an address");
    fuzz_require(tutti_socket_listen(ret_address, &fd, &ret_address->port_be) == TUTTI_OK,
                 "there is a port");
    return fd;
}

/* ---- the root -------------------------------------------------------------------------------- */

static void call_root(struct guest *guest, const struct tutti_address *root, int rank)
{
    uint8_t secret[TUTTI_SECRET_BYTES];
    struct tutti_purpose purpose;

    *guest = (struct guest){.fd = -1};
    while (tutti_socket_connect(root, &guest->fd) == TUTTI_AGAIN)
        continue;
    fuzz_require(guest->fd >= 0, "the root can be called");
    tutti_secret_derive(place.secret, "bootstrap", 0, secret);
    tutti_exchange_purpose(&place, NRANKS, rank, &purpose);
    tutti_handshake_start(&guest->shake, guest->fd, false, secret, &purpose, soon());
}

static void try_root(struct fuzz_input input)
{
    uint8_t mine[RECORD_BYTES] = {1}, all[NRANKS * RECORD_BYTES], how = fuzz_byte(&input);
    int nguests = 1 + how % MOST_GUESTS, rc = TUTTI_AGAIN, frames = 0;
    struct guest guests[MOST_GUESTS];
    struct tutti_bootstrap *boot;
    struct tutti_address address;
    struct tutti_listener *listener;

    fuzz_require(tutti_listener_adopt(listen_here(&address), &listener) == TUTTI_OK,
                 "there is a listener");
    fuzz_require(tutti_exchange_serve(listener, &place, NRANKS, 0, soon(), NULL, NULL, &boot) ==
                     TUTTI_OK, "there is a root");
    for (int i = 0; i < nguests; i++)
        call_root(&guests[i], &address, (how & 64) != 0 ? fuzz_byte(&input) % 6 : i + 1);
    for (int i = 0; i < MOST_STEPS && rc == TUTTI_AGAIN && frames < MOST_FRAMES; i++) {
        struct guest *guest = &guests[i % nguests];

        rc = boot->ops->allgather(boot, mine, sizeof mine, all);
        if (guest->fd >= 0 && !guest->is_in)
            shake_hands(guest);
        else if (guest->fd >= 0 && input.left > 0 && ++frames > 0)
            talk(guest, &input);
        else if (input.left == 0)
            frames++;
    }
    for (int i = 0; i < nguests; i++)
        hang_up(&guests[i]);
    boot->ops->destroy(boot, (how & 128) != 0 ? "the input says so" : NULL);
}

/* ---- a member -------------------------------------------------------------------------------- */

static void answer_member(struct guest *guest, int listen_fd)
{
    uint8_t secret[TUTTI_SECRET_BYTES];

    if (tutti_socket_accept(listen_fd, &guest->fd) != TUTTI_OK) {
        guest->fd = -1;
        return;
    }
    tutti_secret_derive(place.secret, "bootstrap", 0, secret);
    tutti_handshake_start(&guest->shake, guest->fd, true, secret, NULL, soon());
}

static void try_member(struct fuzz_input input)
{
    uint8_t mine[RECORD_BYTES] = {1}, all[NRANKS * RECORD_BYTES];
    struct guest guest = {.fd = -1};
    struct tutti_bootstrap *boot;
    struct tutti_address address;
    int listen_fd = listen_here(&address), rc = TUTTI_AGAIN, frames = 0;

    fuzz_require(tutti_exchange_join(&address, 1, NULL, &place, NRANKS, 2, soon(), &boot) ==
                     TUTTI_OK, "there is a member");
    for (int i = 0; i < MOST_STEPS && rc == TUTTI_AGAIN && frames < MOST_FRAMES; i++) {
        rc = boot->ops->allgather(boot, mine, sizeof mine, all);
        if (guest.fd < 0)
            answer_member(&guest, listen_fd);
        else if (!guest.is_in)
            shake_hands(&guest);
        else if (++frames > 0 && input.left > 0)
            talk(&guest, &input);
    }
    hang_up(&guest);
    close(listen_fd);
    boot->ops->destroy(boot, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct fuzz_input input = {.bytes = bytes, .left = size};

    try_root(input);
    try_member(input);
    return 0;
}
