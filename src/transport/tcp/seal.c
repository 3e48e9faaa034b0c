/* SPDX-License-Identifier: Apache-2.0
 * Seals and opens records by the AEAD ciphers of libsodium. The modes of TUTTI_ENCRYPT use the
 * inputs of a cipher in different ways:
 *
 *   on    additional data: the size        message: the payload
 *   auth  additional data: size, payload   message: nothing
 */
#include "transport/tcp/seal.h"

#include "base/param.h"
#include "base/result.h"

#include <string.h>

/* A cipher. `close` writes the encrypted message, and the tag after it. `open` returns false if the
 * tag is wrong, and then writes nothing of the message. */
struct tutti_seal_cipher {
    const char *name;
    void (*expand)(struct tutti_seal *seal); /* computes what the cipher needs from seal->key */
    void (*close)(const struct tutti_seal *seal, const uint8_t *nonce, const uint8_t *extra,
                  size_t extra_bytes, const void *data, size_t size, uint8_t *to);
    bool (*open)(const struct tutti_seal *seal, const uint8_t *nonce, const uint8_t *extra,
                 size_t extra_bytes, const uint8_t *sealed, size_t size, void *to);
};

/* The nonce is the same for both ciphers: 32 zero bits and the record's number. */
enum { NONCE_BYTES = 12, NUMBER_AT = 4 };
_Static_assert(NONCE_BYTES == crypto_aead_aes256gcm_NPUBBYTES, "AES-GCM's nonce");
_Static_assert(NONCE_BYTES == crypto_aead_chacha20poly1305_ietf_NPUBBYTES, "ChaCha20's nonce");
_Static_assert(TUTTI_SECRET_BYTES == crypto_aead_aes256gcm_KEYBYTES, "AES-GCM's key");
_Static_assert(TUTTI_SECRET_BYTES == crypto_aead_chacha20poly1305_ietf_KEYBYTES, "ChaCha20's key");
_Static_assert(TUTTI_SEAL_TAG_BYTES == crypto_aead_aes256gcm_ABYTES, "AES-GCM's tag");
_Static_assert(TUTTI_SEAL_TAG_BYTES == crypto_aead_chacha20poly1305_ietf_ABYTES, "Poly1305's tag");

/* ---- the ciphers --------------------------------------------------------------------- */

static void expand_aes(struct tutti_seal *seal)
{
    crypto_aead_aes256gcm_beforenm(&seal->aes, seal->key);
}

static void close_aes(const struct tutti_seal *seal, const uint8_t *nonce, const uint8_t *extra,
                      size_t extra_bytes, const void *data, size_t size, uint8_t *to)
{
    crypto_aead_aes256gcm_encrypt_afternm(to, NULL, data, size, extra, extra_bytes, NULL, nonce,
                                          &seal->aes);
}

static bool open_aes(const struct tutti_seal *seal, const uint8_t *nonce, const uint8_t *extra,
                     size_t extra_bytes, const uint8_t *sealed, size_t size, void *to)
{
    return crypto_aead_aes256gcm_decrypt_afternm(to, NULL, NULL, sealed,
                                                 size + TUTTI_SEAL_TAG_BYTES, extra, extra_bytes,
                                                 nonce, &seal->aes) == 0;
}

static void expand_nothing(struct tutti_seal *seal)
{
    (void)seal;
}

static void close_chacha(const struct tutti_seal *seal, const uint8_t *nonce, const uint8_t *extra,
                         size_t extra_bytes, const void *data, size_t size, uint8_t *to)
{
    crypto_aead_chacha20poly1305_ietf_encrypt(to, NULL, data, size, extra, extra_bytes, NULL,
                                              nonce, seal->key);
}

static bool open_chacha(const struct tutti_seal *seal, const uint8_t *nonce, const uint8_t *extra,
                        size_t extra_bytes, const uint8_t *sealed, size_t size, void *to)
{
    return crypto_aead_chacha20poly1305_ietf_decrypt(to, NULL, NULL, sealed,
                                                     size + TUTTI_SEAL_TAG_BYTES, extra,
                                                     extra_bytes, nonce, seal->key) == 0;
}

static const struct tutti_seal_cipher aes = {"AES-256-GCM", expand_aes, close_aes, open_aes};
static const struct tutti_seal_cipher chacha = {"ChaCha20-Poly1305", expand_nothing, close_chacha,
                                                open_chacha};

static const struct tutti_seal_cipher *choose(bool uses_aes)
{
    return uses_aes ? &aes : &chacha;
}

bool tutti_seal_has_aes(void)
{
    return sodium_init() >= 0 && crypto_aead_aes256gcm_is_available() != 0;
}

/* ---- modes --------------------------------------------------------------------------- */

static const char *const mode_names[TUTTI_SEAL_MODES] = {"off", "auth", "on"};

const char *tutti_seal_mode_name(enum tutti_seal_mode mode)
{
    return mode_names[mode];
}

int tutti_seal_read_mode(enum tutti_seal_mode *ret_mode)
{
    const char *text = tutti_param_text(TUTTI_PARAM_ENCRYPT);

    for (int mode = 0; mode < TUTTI_SEAL_MODES; mode++) {
        if (strcmp(text, mode_names[mode]) == 0) {
            *ret_mode = mode;
            return TUTTI_OK;
        }
    }
    return tutti_fail(TUTTI_ERR_USAGE, "TUTTI_ENCRYPT=%s is none of off, auth, on", text);
}

/* ---- records ------------------------------------------------------------------------- */

void tutti_seal_init(struct tutti_seal *seal, enum tutti_seal_mode mode, bool uses_aes,
                     const uint8_t key[TUTTI_SECRET_BYTES])
{
    *seal = (struct tutti_seal){.cipher = choose(uses_aes), .mode = mode};
    /* Ends with a different cipher or mode have different keys, and refuse each other's records. */
    tutti_secret_derive(key, seal->cipher->name, (uint64_t)mode, seal->key);
    seal->cipher->expand(seal);
}

void tutti_seal_fini(struct tutti_seal *seal)
{
    sodium_memzero(seal, sizeof *seal);
}

static void __attribute__((noinline, cold)) renew_key(struct tutti_seal *seal)
{
    tutti_secret_derive(seal->key, "next key", seal->count, seal->key);
    seal->cipher->expand(seal);
}

static void count_record(struct tutti_seal *seal)
{
    seal->count++;
    if (seal->count % TUTTI_SEAL_RECORDS_PER_KEY == 0)
        renew_key(seal);
}

static void write_nonce(const struct tutti_seal *seal, uint8_t ret_nonce[NONCE_BYTES])
{
    memset(ret_nonce, 0, NUMBER_AT);
    for (int i = 0; i < 8; i++)
        ret_nonce[NUMBER_AT + i] = (uint8_t)(seal->count >> (8 * i));
}

size_t tutti_seal_close(struct tutti_seal *seal, const void *data, size_t size,
                        uint8_t *ret_record)
{
    uint8_t nonce[NONCE_BYTES];
    uint8_t *payload = ret_record + TUTTI_SEAL_HEAD_BYTES;

    ret_record[0] = (uint8_t)size;
    ret_record[1] = (uint8_t)(size >> 8);
    ret_record[2] = (uint8_t)~ret_record[0];
    ret_record[3] = (uint8_t)~ret_record[1];
    write_nonce(seal, nonce);
    if (seal->mode == TUTTI_SEAL_ON) {
        seal->cipher->close(seal, nonce, ret_record, TUTTI_SEAL_HEAD_BYTES, data, size, payload);
    } else {
        memcpy(payload, data, size);
        seal->cipher->close(seal, nonce, ret_record, TUTTI_SEAL_HEAD_BYTES + size, NULL, 0,
                            payload + size);
    }
    count_record(seal);
    return TUTTI_SEAL_FRAME_BYTES + size;
}

size_t tutti_seal_measure(const uint8_t *record)
{
    size_t size = record[0] | (size_t)record[1] << 8;

    if ((record[0] ^ record[2]) != 0xff || (record[1] ^ record[3]) != 0xff ||
        size > TUTTI_SEAL_MOST_BYTES)
        return 0;
    return size;
}

bool tutti_seal_open(struct tutti_seal *seal, const uint8_t *record, size_t size, void *to)
{
    const uint8_t *payload = record + TUTTI_SEAL_HEAD_BYTES;
    uint8_t nonce[NONCE_BYTES];

    write_nonce(seal, nonce);
    if (seal->mode == TUTTI_SEAL_ON) {
        if (!seal->cipher->open(seal, nonce, record, TUTTI_SEAL_HEAD_BYTES, payload, size, to))
            return false;
    } else {
        if (!seal->cipher->open(seal, nonce, record, TUTTI_SEAL_HEAD_BYTES + size, payload + size,
                                0, NULL))
            return false;
        memcpy(to, payload, size);
    }
    count_record(seal);
    return true;
}
