/* SPDX-License-Identifier: Apache-2.0
 * The keyed handshake: both sides prove that they hold the communicator's
 * secret before either parses anything else.
 *
 *   acceptor -> connector   magic, version, nonce A
 *   connector -> acceptor   magic, version, nonce C, purpose, MAC(key, "C", A, C, purpose)
 *   acceptor -> connector   MAC(key, "A", A, C, purpose)
 *
 * The acceptor speaks first, so a connector that has reached a stranger's port
 * sends nothing. MACs are keyed BLAKE2b (libsodium crypto_generichash); key is
 * derived from the secret. A stranger is dropped at the deadline or at the first wrong byte, and
 * logged once.
 *
 * Afterwards both sides hold the same session key, which follows from the secret, both nonces and
 * the purpose. No two connections have the same one. tutti_handshake_key derives from it the keys
 * that protect what is sent next.
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

/* What the connection is for: who calls, and for what. Zero-padded; the acceptor
 * gets it only after the MAC has been verified. */
struct tutti_purpose {
    uint8_t bytes[TUTTI_PURPOSE_BYTES];
};

struct tutti_handshake {
    int fd;               /* borrowed: the caller closes it */
    bool is_acceptor;
    int phase;
    uint64_t deadline_ns;
    uint8_t key[TUTTI_SECRET_BYTES];     /* zero once the handshake is complete */
    uint8_t session[TUTTI_SECRET_BYTES]; /* valid once the handshake is complete */
    uint8_t nonce_acceptor[TUTTI_NONCE_BYTES];
    uint8_t nonce_connector[TUTTI_NONCE_BYTES];
    struct tutti_purpose purpose;
    uint8_t wire[128];    /* the message in flight */
    size_t wire_done;
};

/* Begin on a connected non-blocking socket. `purpose` is given by the connector, NULL for the
 * acceptor. */
void tutti_handshake_start(struct tutti_handshake *shake, int fd, bool is_acceptor,
                           const uint8_t secret[TUTTI_SECRET_BYTES],
                           const struct tutti_purpose *purpose, uint64_t deadline_ns);

/* Go on. TUTTI_OK: both sides have proved themselves; `shake->purpose` is valid.
 * TUTTI_ERR_REMOTE: the other side is no member, or gone; TUTTI_ERR_TIMEOUT: too slow. */
int tutti_handshake_step(struct tutti_handshake *shake);

/* A key of this connection for one use, the same on both sides. The handshake must be complete.
 * Each direction needs a label of its own, or the bytes of one side could be played back to it. */
void tutti_handshake_key(const struct tutti_handshake *shake, const char *label,
                         uint8_t ret_key[TUTTI_SECRET_BYTES]);

/* Erase the keys, when all that are needed have been derived or the connection is given up. */
void tutti_handshake_forget(struct tutti_handshake *shake);

/* True once the other side has greeted: it speaks this handshake, whoever it is. Until then a
 * connector has sent nothing. */
static inline bool tutti_handshake_is_greeted(const struct tutti_handshake *shake)
{
    return shake->phase > 0;
}

/* Fill with unpredictable bytes. */
void tutti_random_bytes(void *bytes, size_t size);

/* secret' = BLAKE2b(secret, label): one secret serves many purposes. */
void tutti_secret_derive(const uint8_t secret[TUTTI_SECRET_BYTES], const char *label,
                         uint64_t number, uint8_t ret_secret[TUTTI_SECRET_BYTES]);

/* Proof that whoever sent these bytes holds the secret; and whether it is one, in a time that does
 * not tell where they differ. */
void tutti_secret_sign(const uint8_t secret[TUTTI_SECRET_BYTES], const void *bytes, size_t size,
                       uint8_t ret_mac[TUTTI_MAC_BYTES]);
bool tutti_secret_signed(const uint8_t secret[TUTTI_SECRET_BYTES], const void *bytes, size_t size,
                         const uint8_t mac[TUTTI_MAC_BYTES]);

/* A secret from text that all members know. */
void tutti_secret_from_text(const char *text, uint8_t ret_secret[TUTTI_SECRET_BYTES]);

#endif
