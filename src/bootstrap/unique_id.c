/* SPDX-License-Identifier: Apache-2.0
 * Unique ids: where the root of a communicator listens, and the secret of its ranks.
 *
 *   0   magic "TUid"        8   4 candidates of 17 bytes: family (0, 4, 6), address
 *   4   version            76   secret, 32 bytes
 *   5   candidates        108   zero, 12 bytes
 *   6   port              120   checksum of all before, 8 bytes
 *
 * The checksum guards against bytes lost on the way; it proves nothing, the
 * handshake does.
 *
 * The listener is open before the id leaves this function, so that no rank can
 * come too early. It waits in a table of the process until the first rank of
 * this process starts with the id; that rank becomes the root.
 */
#include "bootstrap/exchange.h"

#include <pthread.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const uint8_t magic[4] = {'T', 'U', 'i', 'd'};

enum {
    VERSION = 1,
    CANDIDATES = 4,
    AT_VERSION = 4,
    AT_COUNT = 5,
    AT_PORT = 6,
    AT_CANDIDATES = 8,
    CANDIDATE_BYTES = 17,
    AT_SECRET = 76,
    AT_CHECKSUM = 120,
};

/* Listeners of ids made in this process and not yet claimed by a rank. */
struct listener {
    uint8_t id[TUTTI_UNIQUE_ID_SIZE];
    int fd;
    pid_t maker; /* a child made by fork has a copy of this table, but must not serve as well */
    struct listener *next;
};

static struct listener *listeners; /* guarded by `lock` */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void checksum(const uint8_t id[TUTTI_UNIQUE_ID_SIZE], uint8_t ret_sum[8])
{
    uint8_t hash[crypto_generichash_BYTES_MIN];

    crypto_generichash(hash, sizeof hash, id, AT_CHECKSUM, NULL, 0);
    memcpy(ret_sum, hash, 8);
}

/* ---- candidates ----------------------------------------------------------------- */

static bool is_link_local_ipv6(const struct tutti_address *address)
{
    return address->family == 6 && address->bytes[0] == 0xfe && (address->bytes[1] & 0xc0) == 0x80;
}

/* Which of this host's addresses go into an id: two IPv4, one IPv6 and loopback,
 * so that neither many interfaces of one family nor their order hide the way that
 * works; free places go to whatever is left. Link-local IPv6 needs an interface of
 * the other side's, which an id cannot name. */
static size_t choose(const struct tutti_address *all, size_t count,
                     struct tutti_address ret_chosen[CANDIDATES])
{
    size_t places[] = {0, 2, 1, 1}; /* by kind: none, IPv4, IPv6, loopback */
    bool is_taken[64] = {false};
    size_t taken = 0, chosen = 0;

    for (int turn = 0; turn < 2; turn++)
        for (size_t i = 0; i < count && taken < CANDIDATES; i++) {
            int kind = all[i].is_loopback ? 3 : all[i].family == 4 ? 1 : 2;

            if (is_taken[i] || is_link_local_ipv6(&all[i]) || (turn == 0 && places[kind] == 0))
                continue;
            places[kind] -= turn == 0;
            is_taken[i] = true;
            taken++;
        }
    for (size_t i = 0; i < count; i++)
        if (is_taken[i])
            ret_chosen[chosen++] = all[i];
    return chosen;
}

/* ---- making ids ------------------------------------------------------------------- */

static void encode(const struct tutti_address *chosen, size_t count, uint16_t port_be,
                   uint8_t ret_id[TUTTI_UNIQUE_ID_SIZE])
{
    memset(ret_id, 0, TUTTI_UNIQUE_ID_SIZE);
    memcpy(ret_id, magic, sizeof magic);
    ret_id[AT_VERSION] = VERSION;
    ret_id[AT_COUNT] = (uint8_t)count;
    memcpy(ret_id + AT_PORT, &port_be, sizeof port_be);
    for (size_t i = 0; i < count; i++) {
        uint8_t *at = ret_id + AT_CANDIDATES + i * CANDIDATE_BYTES;

        at[0] = chosen[i].family;
        memcpy(at + 1, chosen[i].bytes, sizeof chosen[i].bytes);
    }
    tutti_random_bytes(ret_id + AT_SECRET, TUTTI_SECRET_BYTES);
    checksum(ret_id, ret_id + AT_CHECKSUM);
}

int tutti_unique_id_create(uint8_t ret_id[TUTTI_UNIQUE_ID_SIZE])
{
    struct tutti_address all[64], chosen[CANDIDATES];
    struct tutti_address anywhere = {.family = 0};
    struct listener *listener;
    size_t count = 0;
    uint16_t port_be;
    int rc;

    TUTTI_TRY(tutti_address_list(all, 64, &count));
    count = choose(all, count, chosen);
    if (count == 0)
        return tutti_fail(TUTTI_ERR_SYSTEM, "this host has only link-local IPv6 addresses, which "
                                            "an id cannot carry; configure another");
    /* Nobody else's business when all candidates are loopback. */
    if (count == 1 && chosen[0].is_loopback)
        anywhere = chosen[0];
    listener = calloc(1, sizeof *listener);
    if (listener == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a unique id");
    rc = tutti_socket_listen(&anywhere, &listener->fd, &port_be);
    if (rc != TUTTI_OK) {
        free(listener);
        return rc;
    }
    encode(chosen, count, port_be, listener->id);
    memcpy(ret_id, listener->id, TUTTI_UNIQUE_ID_SIZE);
    listener->maker = getpid();

    pthread_mutex_lock(&lock);
    listener->next = listeners;
    listeners = listener;
    pthread_mutex_unlock(&lock);
    return TUTTI_OK;
}

/* ---- using them ---------------------------------------------------------------------- */

/* Take the listener of this id out of the table; -1 when it is not, or no longer, here. */
static int claim(const uint8_t id[TUTTI_UNIQUE_ID_SIZE])
{
    struct listener *found = NULL;
    int fd = -1;

    pthread_mutex_lock(&lock);
    for (struct listener **at = &listeners; *at != NULL; at = &(*at)->next)
        if ((*at)->maker == getpid() && sodium_memcmp((*at)->id, id, TUTTI_UNIQUE_ID_SIZE) == 0) {
            found = *at;
            *at = found->next;
            break;
        }
    pthread_mutex_unlock(&lock);
    if (found != NULL) {
        fd = found->fd;
        sodium_memzero(found, sizeof *found);
        free(found);
    }
    return fd;
}

static int decode(const uint8_t id[TUTTI_UNIQUE_ID_SIZE],
                  struct tutti_address ret_candidates[CANDIDATES], size_t *ret_count)
{
    uint8_t sum[8];
    size_t count = id[AT_COUNT];

    if (memcmp(id, magic, sizeof magic) != 0)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "these %d bytes are no unique id; pass those that "
                                              "tuttiGetUniqueId gave, unchanged",
                          TUTTI_UNIQUE_ID_SIZE);
    if (id[AT_VERSION] != VERSION)
        return tutti_fail(TUTTI_ERR_ARGUMENT,
                          "the unique id has version %u, this library %d; use one version on all "
                          "ranks",
                          id[AT_VERSION], VERSION);
    checksum(id, sum);
    if (memcmp(sum, id + AT_CHECKSUM, sizeof sum) != 0 || count == 0 || count > CANDIDATES)
        return tutti_fail(TUTTI_ERR_ARGUMENT,
                          "the unique id was damaged on its way (its checksum is wrong); move all "
                          "%d bytes unchanged",
                          TUTTI_UNIQUE_ID_SIZE);

    for (size_t i = 0; i < count; i++) {
        const uint8_t *at = id + AT_CANDIDATES + i * CANDIDATE_BYTES;

        ret_candidates[i] = (struct tutti_address){.family = at[0]};
        memcpy(&ret_candidates[i].port_be, id + AT_PORT, sizeof ret_candidates[i].port_be);
        memcpy(ret_candidates[i].bytes, at + 1, sizeof ret_candidates[i].bytes);
    }
    *ret_count = count;
    return TUTTI_OK;
}

int tutti_bootstrap_from_id(const uint8_t id[TUTTI_UNIQUE_ID_SIZE], int nranks, int rank,
                            uint64_t deadline_ns, struct tutti_bootstrap **ret_boot)
{
    struct tutti_address candidates[CANDIDATES];
    char where[TUTTI_ADDRESS_TEXT_BYTES];
    size_t count = 0;
    int listen_fd;

    TUTTI_TRY(tutti_exchange_check(nranks, rank));
    TUTTI_TRY(decode(id, candidates, &count));
    tutti_address_format(&candidates[0], where);
    listen_fd = claim(id);
    if (listen_fd >= 0)
        return tutti_exchange_serve(listen_fd, where, id + AT_SECRET, true, nranks, rank,
                                    deadline_ns, ret_boot);
    return tutti_exchange_join(candidates, count, where, id + AT_SECRET, true, nranks, rank,
                               deadline_ns, ret_boot);
}
