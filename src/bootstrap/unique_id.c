/* SPDX-License-Identifier: Apache-2.0
 * Unique ids. An id tells where the root of a communicator listens, and contains the secret of its
 * ranks. This is its layout, with offsets in bytes:
 *
 *   0   magic "TUid"        8   4 candidates of 17 bytes: family (0, 4, 6), address
 *   4   version            76   secret, 32 bytes
 *   5   candidates        108   zero, 12 bytes
 *   6   port              120   checksum of all before, 8 bytes
 *
 * The checksum guards against damaged bytes. It does not prove knowledge of the secret. The
 * handshake does that.
 *
 * The listener is open before the id is returned, so that no rank can connect too early. A table of
 * the process keeps the listener until the first rank of this process starts with the id, and that
 * rank becomes the root. The table also keeps used ids, so that a second use in this process gets a
 * clear error. In other processes, the connection of a second use is refused.
 */
#include "base/param.h"
#include "base/system.h"
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

/* The most addresses of this host that are considered. */
#define ADDRESSES_MAX 64

/* The most used ids that a process remembers. */
#define USED_MAX 1024

enum stage {
    IS_OPEN,   /* no rank of this process has started with the id */
    IS_SERVED, /* the root waits for ranks */
    IS_USED,   /* all ranks have joined, or the root has given up */
};

/* An id that this process has made, and its listening socket. */
struct listener {
    uint8_t id[TUTTI_UNIQUE_ID_SIZE]; /* once used, its secret is erased */
    enum stage stage;
    int fd;      /* valid while IS_OPEN */
    pid_t maker; /* a child made by fork has a copy of this table, but must not become a root */
    struct listener *next;
};

static struct listener *listeners; /* newest first; guarded by `lock`, as are all fields */
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
    return address->family == 6 && tutti_address_is_link_local(address);
}

/* Choose which of this host's addresses go into an id: two IPv4, one IPv6 and loopback. With this
 * mix, many interfaces of one family cannot crowd out the address that works. Free places are
 * filled with any other addresses. Link-local IPv6 is left out: it needs the interface index of the
 * connecting host, which an id cannot know. */
static size_t choose(const struct tutti_address *all, size_t count,
                     struct tutti_address ret_chosen[CANDIDATES])
{
    enum { IPV4, IPV6, LOOPBACK };
    size_t places[] = {[IPV4] = 2, [IPV6] = 1, [LOOPBACK] = 1};
    bool is_taken[ADDRESSES_MAX] = {false};
    size_t taken = 0, chosen = 0;

    /* The first turn gives each kind its places, and the second one gives away the rest. */
    for (int turn = 0; turn < 2; turn++)
        for (size_t i = 0; i < count && taken < CANDIDATES; i++) {
            int kind = all[i].is_loopback ? LOOPBACK : all[i].family == 4 ? IPV4 : IPV6;

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

/* If all addresses are loopback, or the user's filter leaves a single other one, keep only that
 * address. The root then listens only there. Returns false if several addresses are kept. */
static bool keep_only_private(struct tutti_address chosen[CANDIDATES], size_t *count)
{
    size_t others = 0, last = 0;

    for (size_t i = 0; i < *count; i++) {
        if (chosen[i].is_loopback)
            continue;
        others++;
        last = i;
    }
    if (others > 1 || (others == 1 && *tutti_param_text(TUTTI_PARAM_SOCKET_IFNAME) == '\0'))
        return false;
    chosen[0] = chosen[last];
    *count = 1;
    return true;
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
    struct tutti_address all[ADDRESSES_MAX], chosen[CANDIDATES];
    struct tutti_address anywhere = {.family = 0};
    struct listener *listener;
    size_t count = 0;
    uint16_t port_be;
    int rc;

    TUTTI_TRY(tutti_address_list(all, ADDRESSES_MAX, &count));
    count = choose(all, count, chosen);
    if (count == 0)
        return tutti_fail(TUTTI_ERR_SYSTEM, "this host has only link-local IPv6 addresses, which "
                                            "an id cannot carry; configure another");
    if (keep_only_private(chosen, &count))
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

/* Comparing the checksums is enough, because they cover the random secret. */
static bool is_id(const struct listener *listener, const uint8_t id[TUTTI_UNIQUE_ID_SIZE])
{
    return listener->maker == getpid() &&
           memcmp(listener->id + AT_CHECKSUM, id + AT_CHECKSUM,
                  TUTTI_UNIQUE_ID_SIZE - AT_CHECKSUM) == 0;
}

/* Become the root if this process made the id and none of its ranks has started with it. *ret_fd is
 * then the listening socket; otherwise it is -1. TUTTI_ERR_USAGE: the id has been used. */
static int claim(const uint8_t id[TUTTI_UNIQUE_ID_SIZE], int *ret_fd, struct listener **ret_claimed)
{
    enum stage stage = IS_SERVED;

    *ret_fd = -1;
    pthread_mutex_lock(&lock);
    for (struct listener *at = listeners; at != NULL; at = at->next)
        if (is_id(at, id)) {
            stage = at->stage;
            if (stage == IS_OPEN) {
                at->stage = IS_SERVED;
                *ret_fd = at->fd;
                *ret_claimed = at;
            }
            break;
        }
    pthread_mutex_unlock(&lock);
    if (stage != IS_USED)
        return TUTTI_OK;
    return tutti_fail(TUTTI_ERR_USAGE, "this unique id has been used, or the rank that served it "
                                       "has given up: an id serves one communicator; call "
                                       "tuttiGetUniqueId for each");
}

/* Keep the newest USED_MAX used ids. Ids that a child inherited by fork count, too. */
static void forget_oldest(void)
{
    int count = 0;

    for (struct listener **at = &listeners; *at != NULL;) {
        struct listener *listener = *at;

        count += listener->stage == IS_USED;
        if (listener->stage == IS_USED && count > USED_MAX) {
            *at = listener->next;
            free(listener);
        } else {
            at = &listener->next;
        }
    }
}

/* Mark an id as used, because its root needs no more callers. */
static void retire(void *context)
{
    struct listener *listener = context;

    pthread_mutex_lock(&lock);
    listener->stage = IS_USED;
    sodium_memzero(listener->id + AT_SECRET, TUTTI_SECRET_BYTES);
    forget_oldest();
    pthread_mutex_unlock(&lock);
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

static int serve(int listen_fd, struct listener *claimed, const struct tutti_meeting_place *place,
                 int nranks, int rank, uint64_t deadline_ns, struct tutti_bootstrap **ret_boot)
{
    struct tutti_listener *listener;
    int rc = tutti_listener_adopt(listen_fd, &listener);

    if (rc == TUTTI_OK)
        rc = tutti_exchange_serve(listener, place, nranks, rank, deadline_ns, retire, claimed,
                                  ret_boot);
    if (rc != TUTTI_OK)
        retire(claimed);
    return rc;
}

int tutti_bootstrap_from_id(const uint8_t id[TUTTI_UNIQUE_ID_SIZE], int nranks, int rank,
                            uint64_t deadline_ns, struct tutti_bootstrap **ret_boot)
{
    struct tutti_address candidates[CANDIDATES];
    char where[TUTTI_ADDRESS_TEXT_BYTES];
    struct tutti_meeting_place place = {.where = where, .name = "", .is_of_id = true};
    struct listener *claimed;
    size_t count = 0;
    int listen_fd, rc;

    TUTTI_TRY(tutti_exchange_check(nranks, rank));
    TUTTI_TRY(decode(id, candidates, &count));
    TUTTI_TRY(claim(id, &listen_fd, &claimed));
    tutti_address_format(&candidates[0], where);
    memcpy(place.secret, id + AT_SECRET, sizeof place.secret);
    rc = listen_fd >= 0
             ? serve(listen_fd, claimed, &place, nranks, rank, deadline_ns, ret_boot)
             : tutti_exchange_join(candidates, count, NULL, &place, nranks, rank, deadline_ns,
                                   ret_boot);
    sodium_memzero(&place, sizeof place);
    return rc;
}
