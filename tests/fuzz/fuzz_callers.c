/* SPDX-License-Identifier: Apache-2.0
 * Fuzzes the callers of a rank that accepts connections. They send any bytes, or hold the secret
 * and state any purpose in the handshake, or sign a note with any contents. The rank accepts or
 * closes each connection, and continues. */
#include "fuzz/fuzz.h"

#include "base/clock.h"
#include "transport/fabric_private.h"
#include "transport/tcp/tcp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { NRANKS = 3, CALLED = 2, MOST_CALLERS = 6, PASSES = 200, MOST_RAW_BYTES = 600 };

static const uint8_t secret[TUTTI_SECRET_BYTES] = "a secret";

/* ---- ranks that have met ------------------------------------------------------------------ */

static bool meet(struct tutti_fabric *fabrics[NRANKS])
{
    union tutti_record records[NRANKS];
    union tutti_verdict verdicts[NRANKS];

    for (int i = 0; i < NRANKS; i++)
        memcpy(&records[i], tutti_fabric_record(fabrics[i]), sizeof records[i]);
    for (int i = 0; i < NRANKS; i++) {
        int rc;

        while ((rc = tutti_fabric_join(fabrics[i], records)) == TUTTI_AGAIN)
            nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
        if (rc != TUTTI_OK)
            return false;
    }
    for (int i = 0; i < NRANKS; i++)
        memcpy(&verdicts[i], tutti_fabric_verdict(fabrics[i]), sizeof verdicts[i]);
    for (int i = 0; i < NRANKS; i++)
        if (tutti_fabric_settle(fabrics[i], verdicts) != TUTTI_OK)
            return false;
    return true;
}

static bool open_all(struct tutti_fabric *fabrics[NRANKS])
{
    for (int i = 0; i < NRANKS; i++) {
        struct tutti_fabric_args args = {.nranks = NRANKS, .rank = i, .cells = {0, 0, 0},
                                         .deadline_ns = tutti_now_ns() + 10 * TUTTI_NS_PER_S};

        if (tutti_fabric_open(&args, &fabrics[i]) != TUTTI_OK)
            return false;
        tutti_fabric_set_secret(fabrics[i], secret);
    }
    return meet(fabrics);
}

/* ---- callers ------------------------------------------------------------------------------ */

/* -1: the system has no port left for a call. Calls that are reset when they are closed leave their
 * ports at once. */
static int call(struct tutti_fabric *fabric)
{
    static const struct linger none = {.l_onoff = 1, .l_linger = 0};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = tutti_tcp_own_record(fabric)->port_be,
                             .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    fuzz_require(fd >= 0, "there is a socket");
    if (connect(fd, (struct sockaddr *)&to, sizeof to) != 0) {
        fuzz_require(errno == EADDRNOTAVAIL, "the rank listens");
        close(fd);
        return -1;
    }
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

static void go_on(struct tutti_fabric *fabric)
{
    for (int i = 0; i < 3; i++)
        tutti_tcp_progress(fabric);
}

static void say_anything(struct tutti_fabric *fabric, int fd, struct fuzz_input *input)
{
    const uint8_t *bytes;
    size_t size = fuzz_bytes(input, (size_t)fuzz_byte(input) * 3 % MOST_RAW_BYTES, &bytes);

    (void)!send(fd, bytes, size, MSG_NOSIGNAL);
    go_on(fabric);
}

/* A member of the communicator, whose purpose is made up. */
static void come_for_anything(struct tutti_fabric *fabric, int fd, struct fuzz_input *input)
{
    struct tutti_tcp_purpose purpose = {.rank = fuzz_byte(input) % (NRANKS + 1),
                                        .channel = fuzz_byte(input) % (TUTTI_CHANNEL_COUNT + 2),
                                        .socket = fuzz_byte(input) % 3};
    struct tutti_purpose sealed = {.bytes = {0}};
    uint8_t called[TUTTI_SECRET_BYTES], confirmation;
    struct tutti_handshake shake;
    int rc = TUTTI_AGAIN;

    if (fuzz_byte(input) % 4 == 0)
        fuzz_overwrite(input, &purpose, sizeof purpose);
    memcpy(sealed.bytes, &purpose, sizeof purpose);
    tutti_tcp_secret(fabric, CALLED, called);
    tutti_handshake_start(&shake, fd, false, called, &sealed,
                          tutti_now_ns() + 10 * TUTTI_NS_PER_S);
    for (int i = 0; i < PASSES && rc == TUTTI_AGAIN; i++) {
        tutti_tcp_progress(fabric);
        rc = tutti_handshake_step(&shake);
    }
    confirmation = fuzz_byte(input) % 4 == 0 ? 0 : TUTTI_TCP_CONFIRMATION;
    if (rc == TUTTI_OK)
        (void)!send(fd, &confirmation, 1, MSG_NOSIGNAL);
    tutti_handshake_forget(&shake);
    go_on(fabric);
}

static void sign_anything(struct tutti_fabric *fabric, int fd, struct fuzz_input *input)
{
    static const uint8_t magic[] = {'T', 'U', 'T', 'n', 0, 0, 0, 1};
    uint8_t called[TUTTI_SECRET_BYTES], key[TUTTI_SECRET_BYTES], what = fuzz_byte(input);
    struct tutti_tcp_note note = {.code = TUTTI_ERR_REMOTE, .rank = what % (NRANKS + 1)};
    size_t size = what % 8 == 7 ? fuzz_byte(input) : sizeof note;

    memcpy(note.magic, magic, sizeof magic);
    fuzz_overwrite(input, note.reason, what);
    if (what % 4 == 3)
        fuzz_overwrite(input, &note.code, 2 * sizeof note.code);
    tutti_tcp_secret(fabric, CALLED, called);
    tutti_secret_derive(called, "note", 0, key);
    tutti_secret_sign(key, &note, offsetof(struct tutti_tcp_note, mac), note.mac);
    if (what % 16 == 5)
        note.mac[0] ^= 1;
    (void)!send(fd, &note, size, MSG_NOSIGNAL);
    go_on(fabric);
}

static void play(struct tutti_fabric *fabric, struct fuzz_input *input)
{
    int fds[MOST_CALLERS], count = 0;

    while (input->left > 0 && count < MOST_CALLERS) {
        uint8_t manner = fuzz_byte(input);
        int fd = call(fabric);

        if (fd < 0)
            break;
        go_on(fabric);
        switch (manner % 3) {
        case 0: say_anything(fabric, fd, input); break;
        case 1: come_for_anything(fabric, fd, input); break;
        default: sign_anything(fabric, fd, input); break;
        }
        fds[count++] = fd;
        if (manner >= 128) {
            shutdown(fd, SHUT_WR);
            go_on(fabric);
            close(fds[--count]);
        }
    }
    go_on(fabric);
    (void)tutti_fabric_check(fabric);
    while (count > 0)
        close(fds[--count]);
    go_on(fabric);
    (void)tutti_fabric_check(fabric);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct fuzz_input input = {.bytes = bytes, .left = size};
    struct tutti_fabric *fabrics[NRANKS] = {NULL};

    setenv("TUTTI_TRANSPORTS", "self,tcp", 1);
    if (open_all(fabrics))
        play(fabrics[CALLED], &input);
    for (int i = 0; i < NRANKS; i++)
        tutti_fabric_destroy(fabrics[i]);
    return 0;
}
