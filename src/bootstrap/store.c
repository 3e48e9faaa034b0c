/* SPDX-License-Identifier: Apache-2.0
 * Stores: this file makes a bootstrap from the URL of the place where ranks meet. Rank 0 listens at
 * "tcp:HOST:PORT", or for ranks of its own host at "unix:NAME". "file:DIRECTORY" is a directory
 * that all ranks can access (exchange_file.c).
 *
 * "tcp:HOST:FIRST-LAST" is a range of ports. Rank 0 takes the first free port, and the other ranks
 * search the range for it. Such a range is meant for launchers that give a host, but no reserved
 * port.
 */
#include "base/atomic.h"
#include "base/log.h"
#include "bootstrap/claim.h"
#include "bootstrap/exchange.h"

#include <arpa/inet.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNIX_NAME_MAX = 90 };

/* The most addresses of a host that members try. Candidates are limited, so a range of ports leaves
 * room for fewer addresses. */
enum { ADDRESSES_MAX = 4, ADDRESSES_WITH_RANGE_MAX = 2 };

/* The parts of "tcp:HOST:FIRST-LAST". */
struct tcp_store {
    char host[256];
    unsigned first_port, last_port;
};

/* ---- the URL ------------------------------------------------------------------------ */

static int fail_url(const char *url)
{
    return tutti_fail(TUTTI_ERR_ARGUMENT,
                      "store '%s' is neither tcp:HOST:PORT (port 1 to 65535), tcp:HOST:FIRST-LAST, "
                      "unix:NAME (1 to %d letters, digits and -._) nor file:DIRECTORY",
                      url, UNIX_NAME_MAX);
}

static bool parse_port(const char **text, unsigned *ret_port)
{
    char *end;
    unsigned long port;

    if (**text < '0' || **text > '9')
        return false;
    port = strtoul(*text, &end, 10);
    if (port < 1 || port > UINT16_MAX)
        return false;
    *text = end;
    *ret_port = (unsigned)port;
    return true;
}

static bool parse_tcp(const char *text, struct tcp_store *ret_store)
{
    const char *colon = strrchr(text, ':');
    const char *at;

    if (colon == NULL || colon == text || (size_t)(colon - text) >= sizeof ret_store->host)
        return false;
    at = colon + 1;
    memcpy(ret_store->host, text, (size_t)(colon - text));
    ret_store->host[colon - text] = '\0';
    if (!parse_port(&at, &ret_store->first_port))
        return false;
    ret_store->last_port = ret_store->first_port;
    if (*at == '-') {
        at++;
        if (!parse_port(&at, &ret_store->last_port) ||
            ret_store->last_port < ret_store->first_port ||
            ret_store->last_port - ret_store->first_port >= TUTTI_CANDIDATES_MAX)
            return false;
    }
    return *at == '\0';
}

/* ---- the place ---------------------------------------------------------------------- */

static bool is_empty(const char *text)
{
    return *tutti_meeting_text(text) == '\0';
}

/* Make the meeting place. Root and members must get the same one. `detail` is the part of the store
 * URL that is the same on all ranks, such as its ports. The secret of the place depends on
 * `detail`. So ranks of jobs at different ports cannot join each other even if they use the same
 * secret. */
static int make_place(const struct tutti_meeting *meeting, const char *detail,
                      struct tutti_meeting_place *ret_place)
{
    const char *name = tutti_meeting_text(meeting->name);
    uint8_t hash[TUTTI_SECRET_BYTES];
    char *text;

    if (asprintf(&text, "%s\n%s\n%s", tutti_meeting_text(meeting->secret),
                 tutti_meeting_text(meeting->job), detail) < 0)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a bootstrap");
    *ret_place =
        (struct tutti_meeting_place){.where = strchr(meeting->store, ':') + 1, .name = name};
    tutti_secret_from_text(text, ret_place->secret);
    sodium_memzero(text, strlen(text));
    free(text);
    tutti_secret_from_text(name, hash);
    /* `forming` is the start of a hash of the name. */
    memcpy(ret_place->forming, hash, sizeof ret_place->forming);
    return TUTTI_OK;
}

/* ---- tcp ---------------------------------------------------------------------------- */

/* If the host is given as loopback, rank 0 listens only there, to stay private. Any other name or
 * address may resolve differently on other hosts, so rank 0 listens on all interfaces. */
static struct tutti_address listening_address(const struct tutti_address *resolved,
                                              const char *host)
{
    struct tutti_address anywhere = {.family = 0};
    bool is_private = resolved->is_loopback &&
                      (strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 ||
                       strcmp(host, "[::1]") == 0);

    return is_private ? *resolved : anywhere;
}

/* List every port of every address. All addresses with the first port come first, because it is the
 * most likely one. */
static size_t list_candidates(const struct tcp_store *store, const struct tutti_address *resolved,
                              size_t resolved_count, struct tutti_address *candidates)
{
    size_t count = 0;

    for (unsigned port = store->first_port; port <= store->last_port; port++)
        for (size_t i = 0; i < resolved_count && count < TUTTI_CANDIDATES_MAX; i++) {
            candidates[count] = resolved[i];
            candidates[count++].port_be = htons((uint16_t)port);
        }
    return count;
}

/* A place is vague (exchange.h) without a secret and an identity of the job. The port then serves
 * one job of this host at a time. */
static int claim_port(const struct tutti_meeting *meeting, bool is_vague,
                      const struct tutti_address *address, const struct tcp_store *store,
                      struct tutti_claim **ret_claim)
{
    static uint32_t has_warned; /* communicators can be formed by several threads */
    char key[64];

    *ret_claim = NULL;
    if (!is_vague)
        return TUTTI_OK;
    if (!address->is_loopback && !tutti_load_relaxed(&has_warned)) {
        /* Two threads that are here at once both warn, which does no harm. */
        tutti_store_relaxed(&has_warned, 1);
        tutti_log(TUTTI_LOG_WARN,
                  "ranks meet at %s without a secret: whoever reaches that port can pose as a "
                  "rank, and ranks of another job that was given the same port can join; set "
                  "TUTTI_SECRET to the same text on all ranks of a job",
                  meeting->store + strlen("tcp:"));
    }
    snprintf(key, sizeof key, "tcp %u-%u", store->first_port, store->last_port);
    return tutti_claim_take(key, meeting->store + strlen("tcp:"), -1, ret_claim);
}

static int serve_tcp(const struct tutti_meeting *meeting, const struct tcp_store *store,
                     const struct tutti_address *resolved, const struct tutti_meeting_place *place,
                     int nranks, uint64_t deadline_ns, struct tutti_bootstrap **ret_boot)
{
    struct tutti_address address = listening_address(resolved, store->host);
    struct tutti_claim *claim;
    struct tutti_listener *listener;
    int rc;

    TUTTI_TRY(claim_port(meeting, place->is_vague, &address, store, &claim));
    rc = tutti_listener_open_tcp(&address, store->first_port, store->last_port, &listener);
    if (rc == TUTTI_OK)
        rc = tutti_exchange_serve(listener, place, nranks, 0, deadline_ns, NULL, NULL, ret_boot);
    if (rc == TUTTI_OK)
        (*ret_boot)->claim = claim;
    else
        tutti_claim_release(claim);
    return rc;
}

static int meet_tcp(const struct tutti_meeting *meeting, int nranks, int rank, uint64_t deadline_ns,
                    struct tutti_bootstrap **ret_boot)
{
    struct tutti_address resolved[ADDRESSES_MAX], candidates[TUTTI_CANDIDATES_MAX];
    struct tutti_meeting_place place;
    struct tcp_store store;
    char text[sizeof store.host + 8], ports[32];
    size_t most, count;
    int rc;

    if (!parse_tcp(meeting->store + strlen("tcp:"), &store))
        return fail_url(meeting->store);
    snprintf(text, sizeof text, "%s:%u", store.host, store.first_port);
    snprintf(ports, sizeof ports, "%u-%u", store.first_port, store.last_port);
    most = store.last_port > store.first_port ? ADDRESSES_WITH_RANGE_MAX : ADDRESSES_MAX;
    TUTTI_TRY(tutti_address_resolve(text, resolved, most, &count));
    TUTTI_TRY(make_place(meeting, ports, &place));
    place.is_vague = is_empty(meeting->secret) && is_empty(meeting->job);
    if (rank == 0) {
        rc = serve_tcp(meeting, &store, &resolved[0], &place, nranks, deadline_ns, ret_boot);
    } else {
        count = list_candidates(&store, resolved, count, candidates);
        rc = tutti_exchange_join(candidates, count, NULL, &place, nranks, rank, deadline_ns,
                                 ret_boot);
    }
    sodium_memzero(&place, sizeof place);
    return rc;
}

/* ---- unix --------------------------------------------------------------------------- */

/* Meet on one host. Without a secret, both sides ask the kernel for the other process's user, so
 * the name need not be hard to guess. */
static int meet_unix(const struct tutti_meeting *meeting, int nranks, int rank,
                     uint64_t deadline_ns, struct tutti_bootstrap **ret_boot)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";
    const char *name = meeting->store + strlen("unix:");
    char socket_name[UNIX_NAME_MAX + 8];
    struct tutti_meeting_place place;
    struct tutti_listener *listener;
    int rc;

    if (*name == '\0' || strlen(name) > UNIX_NAME_MAX || name[strspn(name, allowed)] != '\0')
        return fail_url(meeting->store);
    snprintf(socket_name, sizeof socket_name, "tutti-%s", name);
    TUTTI_TRY(make_place(meeting, name, &place));
    place.is_same_user = is_empty(meeting->secret);
    if (rank == 0) {
        rc = tutti_listener_open_unix(socket_name, &listener);
        if (rc == TUTTI_OK)
            rc = tutti_exchange_serve(listener, &place, nranks, 0, deadline_ns, NULL, NULL,
                                      ret_boot);
    } else {
        rc = tutti_exchange_join(NULL, 0, socket_name, &place, nranks, rank, deadline_ns, ret_boot);
    }
    sodium_memzero(&place, sizeof place);
    return rc;
}

/* ---- all stores --------------------------------------------------------------------- */

int tutti_bootstrap_meet(const struct tutti_meeting *meeting, int nranks, int rank,
                         uint64_t deadline_ns, struct tutti_bootstrap **ret_boot)
{
    const char *url = meeting->store;

    TUTTI_TRY(tutti_exchange_check(nranks, rank));
    if (strncmp(url, "tcp:", 4) == 0)
        return meet_tcp(meeting, nranks, rank, deadline_ns, ret_boot);
    if (strncmp(url, "unix:", 5) == 0)
        return meet_unix(meeting, nranks, rank, deadline_ns, ret_boot);
    if (strncmp(url, "file:", 5) == 0 && url[5] != '\0')
        return tutti_exchange_file(meeting, nranks, rank, deadline_ns, ret_boot);
    return fail_url(url);
}
