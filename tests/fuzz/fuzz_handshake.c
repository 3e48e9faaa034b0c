/* SPDX-License-Identifier: Apache-2.0
 * Sends any bytes to both sides of the handshake, in parts of any length. No caller passes without
 * the secret. */
#include "fuzz/fuzz.h"

#include "base/clock.h"
#include "base/handshake.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST_PIECE_BYTES = 90, MOST_STEPS = 16 };

static void open_pair(int fds[2])
{
    fuzz_require(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0, "there is a pair of sockets");
    for (int i = 0; i < 2; i++)
        fcntl(fds[i], F_SETFL, O_NONBLOCK);
}

static void try_side(bool is_acceptor, struct fuzz_input input)
{
    static const uint8_t secret[TUTTI_SECRET_BYTES] = "a secret";
    static const struct tutti_purpose purpose = {.bytes = {1}};
    struct tutti_handshake shake;
    int fds[2], rc = TUTTI_AGAIN;

    open_pair(fds);
    tutti_handshake_start(&shake, fds[0], is_acceptor, secret, is_acceptor ? NULL : &purpose,
                          TUTTI_NEVER);
    for (int i = 0; i < MOST_STEPS && rc == TUTTI_AGAIN; i++) {
        const uint8_t *piece;
        size_t size = fuzz_bytes(&input, fuzz_byte(&input) % MOST_PIECE_BYTES, &piece);

        if (size > 0 && send(fds[1], piece, size, MSG_NOSIGNAL) < 0)
            break;
        if (input.left == 0)
            shutdown(fds[1], SHUT_WR);
        rc = tutti_handshake_step(&shake);
        fuzz_require(rc != TUTTI_OK, "made-up bytes prove nothing");
    }
    close(fds[0]);
    close(fds[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct fuzz_input input = {.bytes = bytes, .left = size};

    try_side(true, input);
    try_side(false, input);
    return 0;
}
