/* SPDX-License-Identifier: Apache-2.0
 * Stores by URL: "tcp:HOST:PORT", where rank 0 listens, and "file:DIRECTORY".
 *
 * "tcp:HOST:FIRST-LAST" is a range: rank 0 takes the first port that is free and
 * the others look for it. It serves launchers that promise a host but no port.
 */
#include "bootstrap/exchange.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tcp_store {
    char host[256];
    unsigned first_port, last_port;
};

static int fail_url(const char *url)
{
    return tutti_fail(TUTTI_ERR_ARGUMENT,
                      "store '%s' is neither tcp:HOST:PORT (port 1 to 65535) nor file:DIRECTORY",
                      url);
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
    const char *at = colon + 1;

    if (colon == NULL || colon == text || (size_t)(colon - text) >= sizeof ret_store->host)
        return false;
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

/* ---- rank 0 ------------------------------------------------------------------------- */

/* A host given as loopback is meant to stay private; any other name or address
 * may resolve differently here and elsewhere, so we listen on all interfaces. */
static struct tutti_address listening_address(const struct tutti_address *resolved,
                                              const char *host)
{
    struct tutti_address anywhere = {.family = 0};
    bool is_private = resolved->is_loopback &&
                      (strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 ||
                       strcmp(host, "[::1]") == 0);

    return is_private ? *resolved : anywhere;
}

static int listen_in_range(const struct tcp_store *store, const struct tutti_address *resolved,
                           int *ret_fd)
{
    struct tutti_address address = listening_address(resolved, store->host);
    uint16_t port_be;
    int rc = TUTTI_ERR_SYSTEM;

    for (unsigned port = store->first_port; rc != TUTTI_OK && port <= store->last_port; port++) {
        address.port_be = htons((uint16_t)port);
        rc = tutti_socket_listen(&address, ret_fd, &port_be);
    }
    return rc;
}

/* ---- all ---------------------------------------------------------------------------- */

/* Every port of every address, port by port: the first port is the likeliest. */
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

static int from_tcp(const char *url, const char *secret_text, int nranks, int rank,
                    uint64_t deadline_ns, struct tutti_bootstrap **ret_boot)
{
    struct tutti_address resolved[4], candidates[TUTTI_CANDIDATES_MAX];
    uint8_t secret[TUTTI_SECRET_BYTES];
    struct tcp_store store;
    char text[sizeof store.host + 8];
    size_t count;
    int listen_fd;

    if (!parse_tcp(url + strlen("tcp:"), &store))
        return fail_url(url);
    snprintf(text, sizeof text, "%s:%u", store.host, store.first_port);
    /* With a range of ports there is no room for many addresses. */
    TUTTI_TRY(tutti_address_resolve(text, resolved, store.last_port > store.first_port ? 2 : 4,
                                    &count));
    tutti_secret_from_text(secret_text ? secret_text : "", secret);
    if (rank == 0) {
        TUTTI_TRY(listen_in_range(&store, &resolved[0], &listen_fd));
        return tutti_exchange_serve(listen_fd, url + strlen("tcp:"), secret, false, nranks, rank,
                                    deadline_ns, ret_boot);
    }
    count = list_candidates(&store, resolved, count, candidates);
    return tutti_exchange_join(candidates, count, url + strlen("tcp:"), secret, false, nranks, rank,
                               deadline_ns, ret_boot);
}

int tutti_bootstrap_from_store(const char *url, const char *secret_text, int nranks, int rank,
                               uint64_t deadline_ns, struct tutti_bootstrap **ret_boot)
{
    TUTTI_TRY(tutti_exchange_check(nranks, rank));
    if (strncmp(url, "tcp:", 4) == 0)
        return from_tcp(url, secret_text, nranks, rank, deadline_ns, ret_boot);
    if (strncmp(url, "file:", 5) == 0 && url[5] != '\0')
        return tutti_exchange_file(url + 5, secret_text, nranks, rank, deadline_ns, ret_boot);
    return fail_url(url);
}
