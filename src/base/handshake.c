/* SPDX-License-Identifier: Apache-2.0
 * Implements the keyed handshake, and derives the secrets that it is keyed with. */
#include "base/handshake.h"

#include "base/clock.h"
#include "base/result.h"
#include "base/socket.h"

#include <sodium.h>
#include <string.h>

/* Both greetings begin with a magic number and a version, so that a stranger is recognized at its
 * first wrong byte. */
static const uint8_t greeting[8] = {'T', 'U', 'T', 'i', 0, 0, 0, 2};
enum { MAGIC_BYTES = 4, VERSION_AT = 7 };

#define HELLO_BYTES (sizeof greeting + TUTTI_NONCE_BYTES)
#define PROOF_BYTES (HELLO_BYTES + TUTTI_PURPOSE_BYTES + TUTTI_MAC_BYTES)
#define ANSWER_BYTES TUTTI_MAC_BYTES

/* Both sides go through the same three messages, with alternating senders. */
enum { PHASE_HELLO, PHASE_PROOF, PHASE_ANSWER, PHASE_DONE };

static void hash_number(crypto_generichash_state *state, uint64_t number)
{
    uint8_t bytes[8];

    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(number >> (8 * i));
    crypto_generichash_update(state, bytes, sizeof bytes);
}

void tutti_secret_derive(const uint8_t secret[TUTTI_SECRET_BYTES], const char *label,
                         uint64_t number, uint8_t ret_secret[TUTTI_SECRET_BYTES])
{
    crypto_generichash_state state;

    tutti_sodium_init();
    crypto_generichash_init(&state, secret, TUTTI_SECRET_BYTES, TUTTI_SECRET_BYTES);
    hash_number(&state, number);
    crypto_generichash_update(&state, (const uint8_t *)label, strlen(label));
    crypto_generichash_final(&state, ret_secret, TUTTI_SECRET_BYTES);
    sodium_memzero(&state, sizeof state);
}

void tutti_secret_sign(const uint8_t secret[TUTTI_SECRET_BYTES], const void *bytes, size_t size,
                       uint8_t ret_mac[TUTTI_MAC_BYTES])
{
    tutti_sodium_init();
    crypto_generichash(ret_mac, TUTTI_MAC_BYTES, bytes, size, secret, TUTTI_SECRET_BYTES);
}

bool tutti_secret_signed(const uint8_t secret[TUTTI_SECRET_BYTES], const void *bytes, size_t size,
                         const uint8_t mac[TUTTI_MAC_BYTES])
{
    uint8_t expected[TUTTI_MAC_BYTES];

    tutti_secret_sign(secret, bytes, size, expected);
    return sodium_memcmp(expected, mac, TUTTI_MAC_BYTES) == 0;
}

void tutti_secret_from_text(const char *text, uint8_t ret_secret[TUTTI_SECRET_BYTES])
{
    static const uint8_t use[TUTTI_SECRET_BYTES] = "tutti: a secret made of text";

    tutti_sodium_init();
    crypto_generichash(ret_secret, TUTTI_SECRET_BYTES, (const uint8_t *)text, strlen(text), use,
                       sizeof use);
}

/* Derive bytes from the key, both nonces and the purpose: the MAC of the connector ('C') or of the
 * acceptor ('A'), or the session key ('S'). All parts have fixed sizes, so that two different
 * inputs cannot concatenate to the same bytes. */
static void prove(const struct tutti_handshake *shake, uint8_t role, uint8_t *ret_bytes,
                  size_t size)
{
    crypto_generichash_state state;

    crypto_generichash_init(&state, shake->key, sizeof shake->key, size);
    crypto_generichash_update(&state, greeting, sizeof greeting);
    crypto_generichash_update(&state, &role, 1);
    crypto_generichash_update(&state, shake->nonce_acceptor, TUTTI_NONCE_BYTES);
    crypto_generichash_update(&state, shake->nonce_connector, TUTTI_NONCE_BYTES);
    crypto_generichash_update(&state, shake->purpose.bytes, TUTTI_PURPOSE_BYTES);
    crypto_generichash_final(&state, ret_bytes, size);
    sodium_memzero(&state, sizeof state);
}

/* ---- one message at a time ------------------------------------------------------ */

_Static_assert(PROOF_BYTES <= sizeof((struct tutti_handshake *)NULL)->wire,
               "the longest message fits");

static size_t message_bytes(int phase)
{
    static const size_t sizes[] = {HELLO_BYTES, PROOF_BYTES, ANSWER_BYTES};

    return sizes[phase];
}

static bool is_ours_to_send(const struct tutti_handshake *shake)
{
    return shake->is_acceptor == (shake->phase != PHASE_PROOF);
}

/* Write the phase's message to the wire buffer. */
static void compose(struct tutti_handshake *shake)
{
    uint8_t *at = shake->wire;

    if (shake->phase == PHASE_ANSWER) {
        prove(shake, 'A', at, TUTTI_MAC_BYTES);
        return;
    }
    memcpy(at, greeting, sizeof greeting);
    at += sizeof greeting;
    if (shake->phase == PHASE_HELLO) {
        memcpy(at, shake->nonce_acceptor, TUTTI_NONCE_BYTES);
        return;
    }
    memcpy(at, shake->nonce_connector, TUTTI_NONCE_BYTES);
    memcpy(at + TUTTI_NONCE_BYTES, shake->purpose.bytes, TUTTI_PURPOSE_BYTES);
    prove(shake, 'C', at + TUTTI_NONCE_BYTES + TUTTI_PURPOSE_BYTES, TUTTI_MAC_BYTES);
}

static int check_mac(const struct tutti_handshake *shake, uint8_t role, const uint8_t *mac)
{
    uint8_t expected[TUTTI_MAC_BYTES];

    prove(shake, role, expected, sizeof expected);
    if (sodium_memcmp(expected, mac, TUTTI_MAC_BYTES) != 0)
        return tutti_note(TUTTI_ERR_REMOTE,
                          "the other side does not hold this communicator's secret");
    return TUTTI_OK;
}

/* Take the phase's message from the wire buffer. */
static int accept_message(struct tutti_handshake *shake)
{
    const uint8_t *at = shake->wire;
    int rc;

    if (shake->phase == PHASE_ANSWER)
        return check_mac(shake, 'A', at);
    at += sizeof greeting;
    if (shake->phase == PHASE_HELLO) {
        memcpy(shake->nonce_acceptor, at, TUTTI_NONCE_BYTES);
        return TUTTI_OK;
    }
    memcpy(shake->nonce_connector, at, TUTTI_NONCE_BYTES);
    memcpy(shake->purpose.bytes, at + TUTTI_NONCE_BYTES, TUTTI_PURPOSE_BYTES);
    rc = check_mac(shake, 'C', at + TUTTI_NONCE_BYTES + TUTTI_PURPOSE_BYTES);
    if (rc != TUTTI_OK) /* callers must not see an unproved purpose */
        memset(&shake->purpose, 0, sizeof shake->purpose);
    return rc;
}

/* Compare the bytes of the greeting that have arrived so far. */
static int check_greeting(const struct tutti_handshake *shake)
{
    size_t size = shake->wire_done < sizeof greeting ? shake->wire_done : sizeof greeting;

    if (shake->phase == PHASE_ANSWER || memcmp(shake->wire, greeting, size) == 0)
        return TUTTI_OK;
    if (size == sizeof greeting && memcmp(shake->wire, greeting, MAGIC_BYTES) == 0)
        return tutti_note(TUTTI_ERR_REMOTE,
                          "the other side's handshake has version %u, ours %u; use one version of "
                          "the library on all ranks",
                          shake->wire[VERSION_AT], greeting[VERSION_AT]);
    return tutti_note(TUTTI_ERR_REMOTE, "the other side does not speak this library's handshake");
}

/* Send or receive as much of the phase's message as the socket takes now. */
static int move_message(struct tutti_handshake *shake)
{
    size_t size = message_bytes(shake->phase);
    bool is_sending = is_ours_to_send(shake);
    size_t done;
    int rc;

    if (is_sending && shake->wire_done == 0)
        compose(shake);
    while (shake->wire_done < size) {
        uint8_t *at = shake->wire + shake->wire_done;

        rc = is_sending ? tutti_socket_send(shake->fd, at, size - shake->wire_done, &done)
                        : tutti_socket_recv(shake->fd, at, size - shake->wire_done, &done);
        if (rc != TUTTI_OK && shake->phase == PHASE_ANSWER && !is_sending)
            return tutti_note(rc, "the other side closed the connection instead of accepting the "
                                  "proof of the secret: the secrets differ, or it has ended");
        TUTTI_TRY(rc);
        if (done == 0)
            return TUTTI_AGAIN;
        shake->wire_done += done;
        if (!is_sending)
            TUTTI_TRY(check_greeting(shake));
    }
    return is_sending ? TUTTI_OK : accept_message(shake);
}

void tutti_handshake_start(struct tutti_handshake *shake, int fd, bool is_acceptor,
                           const uint8_t secret[TUTTI_SECRET_BYTES],
                           const struct tutti_purpose *purpose, uint64_t deadline_ns)
{
    *shake = (struct tutti_handshake){
        .fd = fd, .is_acceptor = is_acceptor, .phase = PHASE_HELLO, .deadline_ns = deadline_ns};
    tutti_secret_derive(secret, "handshake", 0, shake->key);
    tutti_random_bytes(is_acceptor ? shake->nonce_acceptor : shake->nonce_connector,
                       TUTTI_NONCE_BYTES);
    if (purpose != NULL)
        shake->purpose = *purpose;
}

int tutti_handshake_step(struct tutti_handshake *shake)
{
    while (shake->phase != PHASE_DONE) {
        int rc = move_message(shake);

        if (rc == TUTTI_AGAIN && tutti_now_ns() >= shake->deadline_ns)
            return tutti_note(TUTTI_ERR_TIMEOUT, "the other side did not finish the handshake");
        TUTTI_TRY(rc);
        shake->phase++;
        shake->wire_done = 0;
        if (shake->phase == PHASE_DONE)
            prove(shake, 'S', shake->session, sizeof shake->session);
    }
    sodium_memzero(shake->key, sizeof shake->key);
    return TUTTI_OK;
}

void tutti_handshake_key(const struct tutti_handshake *shake, const char *label,
                         uint8_t ret_key[TUTTI_SECRET_BYTES])
{
    tutti_assert(shake->phase == PHASE_DONE);
    tutti_secret_derive(shake->session, label, 0, ret_key);
}

void tutti_handshake_forget(struct tutti_handshake *shake)
{
    sodium_memzero(shake->key, sizeof shake->key);
    sodium_memzero(shake->session, sizeof shake->session);
}
