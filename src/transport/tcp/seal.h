/* SPDX-License-Identifier: Apache-2.0
 * Sealed records: bytes that an attacker on the path cannot change unnoticed, nor
 * read if they are encrypted.
 *
 *     | size, 2 bytes | its complement, 2 bytes | payload, 1 .. 32704 bytes | tag, 16 bytes |
 *
 * The tag covers the rest of the record, the key, and the number of records before this one. So a
 * record that was changed, cut, repeated, left out or moved fails its check. The complement lets
 * the receiver refuse a damaged size at once; otherwise it would wait for bytes that nobody sends.
 *
 * A seal is one direction of one socket, with a key of its own. One thread uses it at a time.
 */
#ifndef TUTTI_TRANSPORT_TCP_SEAL_H
#define TUTTI_TRANSPORT_TCP_SEAL_H

#include "base/handshake.h"

#include <sodium.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The values of TUTTI_ENCRYPT; they travel in the fabric's records. */
enum tutti_seal_mode {
    TUTTI_SEAL_OFF,  /* no records: the bytes travel as they are */
    TUTTI_SEAL_AUTH, /* readable payload with a tag */
    TUTTI_SEAL_ON,   /* encrypted payload with a tag */
    TUTTI_SEAL_MODES
};

enum {
    TUTTI_SEAL_HEAD_BYTES = 4,
    TUTTI_SEAL_TAG_BYTES = 16,
    TUTTI_SEAL_FRAME_BYTES = TUTTI_SEAL_HEAD_BYTES + TUTTI_SEAL_TAG_BYTES,
    /* A multiple of 64, so that elements rarely lie in two records. */
    TUTTI_SEAL_MOST_BYTES = 32768 - 64,
};

/* A key seals this many records (128 GiB) and is then replaced by one derived from it: AES-GCM
 * loses strength with the amount of data under one key. A power of two. */
#define TUTTI_SEAL_RECORDS_PER_KEY (UINT64_C(1) << 22)

struct tutti_seal_cipher;

struct tutti_seal {
    crypto_aead_aes256gcm_state aes; /* the key, expanded; of AES only */
    uint8_t key[TUTTI_SECRET_BYTES];
    uint64_t count;                  /* records so far; number `count` is the next one's nonce */
    const struct tutti_seal_cipher *cipher;
    enum tutti_seal_mode mode;
};

/* Reads TUTTI_ENCRYPT as a mode. TUTTI_ERR_USAGE names a value that is not a mode, because a
 * mistyped value must not turn the protection off. */
int tutti_seal_read_mode(enum tutti_seal_mode *ret_mode);
const char *tutti_seal_mode_name(enum tutti_seal_mode mode);

/* True if this processor has the instructions for AES-256-GCM. Without them on either side of a
 * connection its cipher is ChaCha20-Poly1305. */
bool tutti_seal_has_aes(void);

/* Begin with record 0. Both ends pass the same mode, cipher and key. `mode` is not OFF. */
void tutti_seal_init(struct tutti_seal *seal, enum tutti_seal_mode mode, bool uses_aes,
                     const uint8_t key[TUTTI_SECRET_BYTES]);

/* Erase the keys. */
void tutti_seal_fini(struct tutti_seal *seal);

/* Write the next record: `size` (1 .. TUTTI_SEAL_MOST_BYTES) bytes of payload, and
 * TUTTI_SEAL_FRAME_BYTES more. `data` and the record do not overlap. Returns the record's size. */
size_t tutti_seal_close(struct tutti_seal *seal, const void *data, size_t size,
                        uint8_t *ret_record);

/* The size of the payload, from the first TUTTI_SEAL_HEAD_BYTES of a record; 0: they are
 * damaged. */
size_t tutti_seal_measure(const uint8_t *record);

/* Check the next record, which is whole and has `size` bytes of payload; then write the payload to
 * `to`. False if the record is not the one that was sealed: `to` then holds no byte of it. */
bool tutti_seal_open(struct tutti_seal *seal, const uint8_t *record, size_t size, void *to);

#endif
