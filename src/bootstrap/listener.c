/* SPDX-License-Identifier: Apache-2.0
 * Listeners at which roots wait for members.
 *
 * A process may form several communicators at one place at once, by threads or in a group. It then
 * has several roots at one address, which share one listener. Each root accepts connections at the
 * listener. A caller that belongs to another root's communicator is handed over to that root. */
#include "bootstrap/tcp_root.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct tutti_listener {
    int fd;
    pid_t maker; /* a child made by fork has a copy of the list, but must not use its listeners */
    bool is_unix;
    bool is_shared; /* other roots may find and share it by its address */
    struct tutti_address address;
    char name[108]; /* of a Unix socket */
    int users;      /* the listener is closed when the last one gives it up */
    struct tutti_root *roots; /* the roots waiting here, linked by next_at_listener */
    struct tutti_listener *next;
};

/* The listeners of this process. The lock guards the list, the listeners' users and roots, and the
 * roots' lists of callers that were handed over. */
static struct tutti_listener *listeners;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* True if the addresses are equal except for their ports. */
static bool is_same_host(const struct tutti_address *a, const struct tutti_address *b)
{
    return a->family == b->family && memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

/* The caller holds the lock. */
static struct tutti_listener *find_tcp(const struct tutti_address *address, unsigned first_port,
                                       unsigned last_port)
{
    for (struct tutti_listener *listener = listeners; listener != NULL; listener = listener->next) {
        unsigned port = ntohs(listener->address.port_be);

        if (listener->is_shared && !listener->is_unix && listener->maker == getpid() &&
            port >= first_port && port <= last_port && is_same_host(&listener->address, address))
            return listener;
    }
    return NULL;
}

/* The caller holds the lock. */
static struct tutti_listener *find_unix(const char *name)
{
    for (struct tutti_listener *listener = listeners; listener != NULL; listener = listener->next)
        if (listener->is_shared && listener->is_unix && listener->maker == getpid() &&
            strcmp(listener->name, name) == 0)
            return listener;
    return NULL;
}

/* Add a listener to the list; the caller holds the lock. The function takes over made->fd, and
 * closes it on failure. */
static int add(const struct tutti_listener *made, struct tutti_listener **ret_listener)
{
    struct tutti_listener *listener = malloc(sizeof *listener);

    if (listener == NULL) {
        close(made->fd);
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a bootstrap");
    }
    *listener = *made;
    listener->maker = getpid();
    listener->users = 1;
    listener->next = listeners;
    listeners = listener;
    *ret_listener = listener;
    return TUTTI_OK;
}

/* Listens on the first free port; the caller holds the lock. */
static int listen_tcp(const struct tutti_address *address, unsigned first_port, unsigned last_port,
                      struct tutti_listener **ret_listener)
{
    struct tutti_listener made = {.is_shared = true, .address = *address};
    int rc = TUTTI_ERR_SYSTEM;

    for (unsigned port = first_port; rc != TUTTI_OK && port <= last_port; port++) {
        made.address.port_be = htons((uint16_t)port);
        rc = tutti_socket_listen(&made.address, &made.fd, &made.address.port_be);
    }
    return rc == TUTTI_OK ? add(&made, ret_listener) : rc;
}

int tutti_listener_open_tcp(const struct tutti_address *address, unsigned first_port,
                            unsigned last_port, struct tutti_listener **ret_listener)
{
    struct tutti_listener *listener;
    int rc = TUTTI_OK;

    pthread_mutex_lock(&lock);
    listener = find_tcp(address, first_port, last_port);
    if (listener != NULL) {
        listener->users++;
        *ret_listener = listener;
    } else {
        rc = listen_tcp(address, first_port, last_port, ret_listener);
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

int tutti_listener_open_unix(const char *name, struct tutti_listener **ret_listener)
{
    struct tutti_listener made = {.is_shared = true, .is_unix = true};
    struct tutti_listener *listener;
    int rc = TUTTI_OK;

    snprintf(made.name, sizeof made.name, "%s", name);
    pthread_mutex_lock(&lock);
    listener = find_unix(name);
    if (listener != NULL) {
        listener->users++;
        *ret_listener = listener;
    } else {
        rc = tutti_socket_listen_unix(name, &made.fd);
        if (rc == TUTTI_OK)
            rc = add(&made, ret_listener);
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

int tutti_listener_adopt(int listen_fd, struct tutti_listener **ret_listener)
{
    int rc;

    pthread_mutex_lock(&lock);
    rc = add(&(struct tutti_listener){.fd = listen_fd}, ret_listener);
    pthread_mutex_unlock(&lock);
    return rc;
}

void tutti_listener_close(struct tutti_listener *listener)
{
    struct tutti_listener **at = &listeners;

    pthread_mutex_lock(&lock);
    if (--listener->users == 0) {
        while (*at != listener)
            at = &(*at)->next;
        *at = listener->next;
        close(listener->fd);
        free(listener);
    }
    pthread_mutex_unlock(&lock);
}

int tutti_listener_fd(const struct tutti_listener *listener)
{
    return listener->fd;
}

bool tutti_listener_is_unix(const struct tutti_listener *listener)
{
    return listener->is_unix;
}

/* ---- roots at a listener ---------------------------------------------------------------- */

/* The caller holds the lock. */
static struct tutti_root *find_root(const struct tutti_listener *listener, const uint8_t *forming)
{
    struct tutti_root *root = listener->roots;

    while (root != NULL && memcmp(root->forming, forming, TUTTI_FORMING_BYTES) != 0)
        root = root->next_at_listener;
    return root;
}

int tutti_listener_enter(struct tutti_listener *listener, struct tutti_root *root)
{
    bool is_free;

    pthread_mutex_lock(&lock);
    is_free = find_root(listener, root->forming) == NULL;
    if (is_free) {
        root->next_at_listener = listener->roots;
        listener->roots = root;
        root->is_at_listener = true;
    }
    pthread_mutex_unlock(&lock);
    if (is_free)
        return TUTTI_OK;
    return tutti_fail(TUTTI_ERR_USAGE,
                      "this process forms a communicator named '%s' at %s already; give each of "
                      "those that are formed at once a name of its own (commName)",
                      root->name, root->where);
}

struct tutti_root_seat *tutti_listener_leave(struct tutti_listener *listener,
                                             struct tutti_root *root)
{
    struct tutti_root **at = &listener->roots;
    struct tutti_root_seat *left = NULL;

    pthread_mutex_lock(&lock);
    if (root->is_at_listener) {
        while (*at != root)
            at = &(*at)->next_at_listener;
        *at = root->next_at_listener;
        root->is_at_listener = false;
        left = root->handed_over;
        root->handed_over = NULL;
    }
    pthread_mutex_unlock(&lock);
    return left;
}

bool tutti_listener_hand_over(struct tutti_listener *listener, const uint8_t *forming,
                              struct tutti_root_seat *seat)
{
    struct tutti_root *root;

    pthread_mutex_lock(&lock);
    root = find_root(listener, forming);
    if (root != NULL) {
        seat->newer = root->handed_over;
        root->handed_over = seat;
        tutti_watch_alarm(&root->watch, 1); /* a time in the past, to wake the root at once */
    }
    pthread_mutex_unlock(&lock);
    return root != NULL;
}

struct tutti_root_seat *tutti_listener_take(struct tutti_listener *listener,
                                            struct tutti_root *root)
{
    struct tutti_root_seat *seat;

    (void)listener;
    pthread_mutex_lock(&lock);
    seat = root->handed_over;
    if (seat != NULL)
        root->handed_over = seat->newer;
    pthread_mutex_unlock(&lock);
    return seat;
}
