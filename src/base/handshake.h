/* SPDX-License-Identifier: Apache-2.0
 * The keyed handshake: both sides prove that they hold the communicator's secret before either
 * parses anything else.
 *
 *   acceptor -> connector   magic, version, nonce A
 *   connector -> acceptor   magic, version, nonce C, purpose, MAC(key, "C", A, C, purpose)
 *   acceptor -> connector   MAC(key, "A", A, C, purpose)
 *
 * The acceptor speaks first, so a connector that has reached a stranger's port sends nothing. MACs
 * are keyed BLAKE2b (libsodium crypto_generichash), and the key is derived from the secret. A
 * stranger fails the handshake at its first wrong byte, or at the deadline.
 *
 * Afterwards both sides hold the same session key, which is derived from the secret, both nonces
 * and the purpose. No two connections have the same one. tutti_handshake_key derives from it the
 * keys that protect what is sent next.
 */
#ifndef TUTTI_BASE_HANDSHAKE_H
#define TUTTI_BASE_HANDSHAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TUTTI_SECRET_BYTES 32
#define TUTTI_NONCE_BYTES 16
#define TUTTI_MAC_BYTES 16
#define TUTTI_PURPOSE_BYTES 32

/* The connector's statement of which member it is and what the connection is for. Zero-padded. The
 * acceptor gets it only after the MAC has been verified. */
struct tutti_purpose {
    uint8_t bytes[TUTTI_PURPOSE_BYTES];
};

struct tutti_handshake {
    int fd;               /* borrowed: the caller closes it */
    bool is_acceptor;
    int phase;            /* number of messages that are complete: 0 to 3 */
    uint64_t deadline_ns; /* on the clock of tutti_now_ns */
    uint8_t key[TUTTI_SECRET_BYTES];     /* zero once the handshake is complete */
    uint8_t session[TUTTI_SECRET_BYTES]; /* valid once the handshake is complete */
    uint8_t nonce_acceptor[TUTTI_NONCE_BYTES];
    uint8_t nonce_connector[TUTTI_NONCE_BYTES];
    struct tutti_purpose purpose;
    uint8_t wire[128];    /* the current message; larger than each of the three */
    size_t wire_done;     /* bytes of that message that were sent or received */
};

/* Begin a handshake on the connected non-blocking socket `fd`. `purpose` is the connector's; the
 * acceptor passes NULL. `deadline_ns` is on the clock of tutti_now_ns. Sends nothing yet. */
void tutti_handshake_start(struct tutti_handshake *shake, int fd, bool is_acceptor,
                           const uint8_t secret[TUTTI_SECRET_BYTES],
                           const struct tutti_purpose *purpose, uint64_t deadline_ns);

/* Continue the handshake without blocking; TUTTI_AGAIN: not finished yet. TUTTI_OK: both sides have
 * proved that they hold the secret, and `shake->purpose` is valid. TUTTI_ERR_REMOTE: the other side
 * does not hold the secret, speaks another protocol or version, or is gone. TUTTI_ERR_TIMEOUT: the
 * deadline passed. Failures are recorded, but not logged. */
int tutti_handshake_step(struct tutti_handshake *shake);

/* Derive a key of this connection for the use that `label` names; it is the same on both sides. The
 * handshake must be complete. Each direction needs a label of its own, or the bytes that one side
 * sent could be replayed to it. */
void tutti_handshake_key(const struct tutti_handshake *shake, const char *label,
                         uint8_t ret_key[TUTTI_SECRET_BYTES]);

/* Erase the keys. Call it when all needed keys have been derived, or the connection is given up. */
void tutti_handshake_forget(struct tutti_handshake *shake);

/* For a connector: true once the acceptor's greeting has arrived. The other side then speaks this
 * handshake, but has proved nothing. Until then the connector has sent nothing. */
static inline bool tutti_handshake_is_greeted(const struct tutti_handshake *shake)
{
    return shake->phase > 0;
}

/* Derive another secret from `secret`, so that one secret serves many purposes. The result is the
 * BLAKE2b hash, keyed with `secret`, of `number` and `label`. */
void tutti_secret_derive(const uint8_t secret[TUTTI_SECRET_BYTES], const char *label,
                         uint64_t number, uint8_t ret_secret[TUTTI_SECRET_BYTES]);

/* tutti_secret_sign computes the MAC that proves that the sender of these bytes holds the secret.
 * tutti_secret_signed returns true if `mac` is that MAC. It compares in constant time. */
void tutti_secret_sign(const uint8_t secret[TUTTI_SECRET_BYTES], const void *bytes, size_t size,
                       uint8_t ret_mac[TUTTI_MAC_BYTES]);
bool tutti_secret_signed(const uint8_t secret[TUTTI_SECRET_BYTES], const void *bytes, size_t size,
                         const uint8_t mac[TUTTI_MAC_BYTES]);

/* Derive a secret from text that all members know. */
void tutti_secret_from_text(const char *text, uint8_t ret_secret[TUTTI_SECRET_BYTES]);

#endif
