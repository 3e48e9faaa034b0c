/* SPDX-License-Identifier: Apache-2.0
 * Seals the bytes of a stream in records. An attacker on the path cannot change a sealed record
 * unnoticed, and cannot read one that is also encrypted.
 *
 *     | size, 2 bytes | its complement, 2 bytes | payload, 1 .. 32704 bytes | tag, 16 bytes |
 *
 * The tag depends on the rest of the record, the key, and the number of records before this one. So
 * a record that was changed, cut, repeated, left out or moved fails its check. The complement lets
 * the receiver refuse a damaged size at once. Otherwise it would wait for bytes that are never
 * sent.
 *
 * A seal is the state of one direction of one socket, with a key of its own. One thread uses a seal
 * at a time. */
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
    /* The largest payload is a multiple of 64, so that elements rarely lie in two records. */
    TUTTI_SEAL_MOST_BYTES = 32768 - 64,
};

/* A key seals this many records (128 GiB). Then a key that is derived from it takes its place,
 * because AES-GCM loses strength with the amount of data under one key. The number is a power of
 * two. */
#define TUTTI_SEAL_RECORDS_PER_KEY (UINT64_C(1) << 22)

struct tutti_seal_cipher;

struct tutti_seal {
    crypto_aead_aes256gcm_state aes; /* the expanded key, if the cipher is AES */
    uint8_t key[TUTTI_SECRET_BYTES];
    uint64_t count; /* records so far, which is the number of the next one and makes its nonce */
    const struct tutti_seal_cipher *cipher;
    enum tutti_seal_mode mode;
};

/* tutti_seal_read_mode reads TUTTI_ENCRYPT as a mode. TUTTI_ERR_USAGE: the value is not a mode.
 * This is an error because a mistyped value must not turn the protection off. tutti_seal_mode_name
 * returns the name of a mode, a static string. */
int tutti_seal_read_mode(enum tutti_seal_mode *ret_mode);
const char *tutti_seal_mode_name(enum tutti_seal_mode mode);

/* True if this processor has the instructions for AES-256-GCM. If one side of a connection does not
 * have them, the cipher of the connection is ChaCha20-Poly1305. */
bool tutti_seal_has_aes(void);

/* Begin with record 0. Both ends pass the same mode, cipher and key. `mode` must not be
 * TUTTI_SEAL_OFF. */
void tutti_seal_init(struct tutti_seal *seal, enum tutti_seal_mode mode, bool uses_aes,
                     const uint8_t key[TUTTI_SECRET_BYTES]);

/* Erase the keys. */
void tutti_seal_fini(struct tutti_seal *seal);

/* Write the next record, with `size` (1 .. TUTTI_SEAL_MOST_BYTES) bytes of payload. The record has
 * TUTTI_SEAL_FRAME_BYTES more bytes than the payload, and must not overlap `data`. Returns the
 * record's size. */
size_t tutti_seal_close(struct tutti_seal *seal, const void *data, size_t size,
                        uint8_t *ret_record);

/* Returns the size of the payload, from the first TUTTI_SEAL_HEAD_BYTES of a record; 0: these bytes
 * are damaged. */
size_t tutti_seal_measure(const uint8_t *record);

/* Check the next record, which is whole and has `size` bytes of payload; then write the payload to
 * `to`. False if the record is not the one that was sealed: `to` then holds no byte of it. */
bool tutti_seal_open(struct tutti_seal *seal, const uint8_t *record, size_t size, void *to);

#endif
