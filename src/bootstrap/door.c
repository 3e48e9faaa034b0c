/* SPDX-License-Identifier: Apache-2.0
 * Doors: the listeners at which roots wait for members.
 *
 * A process may form several communicators at one place at once, by threads or in a group. It then
 * has several roots at one address, which share one listener. Each of them accepts connections
 * there. A caller that belongs to another root's communicator is handed over to that root. */
#include "bootstrap/tcp_root.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct tutti_door {
    int fd;
    pid_t maker; /* a child made by fork has a copy of the list, but must not use its doors */
    bool is_unix;
    bool is_shared; /* other roots may find and share it by its address */
    struct tutti_address address;
    char name[108]; /* of a Unix socket */
    int users;
    struct root *roots; /* the roots waiting here, linked by next_at_door */
    struct tutti_door *next;
};

/* The doors of this process. The lock guards the list, the doors' users and roots, and the roots'
 * lists of callers that were handed over. */
static struct tutti_door *doors;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_same_host(const struct tutti_address *a, const struct tutti_address *b)
{
    return a->family == b->family && memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

/* Needs the lock. */
static struct tutti_door *find_tcp(const struct tutti_address *address, unsigned first_port,
                                   unsigned last_port)
{
    for (struct tutti_door *door = doors; door != NULL; door = door->next) {
        unsigned port = ntohs(door->address.port_be);

        if (door->is_shared && !door->is_unix && door->maker == getpid() && port >= first_port &&
            port <= last_port && is_same_host(&door->address, address))
            return door;
    }
    return NULL;
}

static struct tutti_door *find_unix(const char *name)
{
    for (struct tutti_door *door = doors; door != NULL; door = door->next)
        if (door->is_shared && door->is_unix && door->maker == getpid() &&
            strcmp(door->name, name) == 0)
            return door;
    return NULL;
}

/* Needs the lock. Owns the listener, and closes it on failure. */
static int add(const struct tutti_door *made, struct tutti_door **ret_door)
{
    struct tutti_door *door = malloc(sizeof *door);

    if (door == NULL) {
        close(made->fd);
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a bootstrap");
    }
    *door = *made;
    door->maker = getpid();
    door->users = 1;
    door->next = doors;
    doors = door;
    *ret_door = door;
    return TUTTI_OK;
}

static int listen_tcp(const struct tutti_address *address, unsigned first_port, unsigned last_port,
                      struct tutti_door **ret_door)
{
    struct tutti_door made = {.is_shared = true, .address = *address};
    int rc = TUTTI_ERR_SYSTEM;

    for (unsigned port = first_port; rc != TUTTI_OK && port <= last_port; port++) {
        made.address.port_be = htons((uint16_t)port);
        rc = tutti_socket_listen(&made.address, &made.fd, &made.address.port_be);
    }
    return rc == TUTTI_OK ? add(&made, ret_door) : rc;
}

int tutti_door_open_tcp(const struct tutti_address *address, unsigned first_port,
                        unsigned last_port, struct tutti_door **ret_door)
{
    struct tutti_door *door;
    int rc = TUTTI_OK;

    pthread_mutex_lock(&lock);
    door = find_tcp(address, first_port, last_port);
    if (door != NULL) {
        door->users++;
        *ret_door = door;
    } else {
        rc = listen_tcp(address, first_port, last_port, ret_door);
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

int tutti_door_open_unix(const char *name, struct tutti_door **ret_door)
{
    struct tutti_door made = {.is_shared = true, .is_unix = true};
    struct tutti_door *door;
    int rc = TUTTI_OK;

    snprintf(made.name, sizeof made.name, "%s", name);
    pthread_mutex_lock(&lock);
    door = find_unix(name);
    if (door != NULL) {
        door->users++;
        *ret_door = door;
    } else {
        rc = tutti_socket_listen_unix(name, &made.fd);
        if (rc == TUTTI_OK)
            rc = add(&made, ret_door);
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

int tutti_door_adopt(int listen_fd, struct tutti_door **ret_door)
{
    int rc;

    pthread_mutex_lock(&lock);
    rc = add(&(struct tutti_door){.fd = listen_fd}, ret_door);
    pthread_mutex_unlock(&lock);
    return rc;
}

void tutti_door_close(struct tutti_door *door)
{
    struct tutti_door **at = &doors;

    pthread_mutex_lock(&lock);
    if (--door->users == 0) {
        while (*at != door)
            at = &(*at)->next;
        *at = door->next;
        close(door->fd);
        free(door);
    }
    pthread_mutex_unlock(&lock);
}

int tutti_door_fd(const struct tutti_door *door)
{
    return door->fd;
}

bool tutti_door_is_unix(const struct tutti_door *door)
{
    return door->is_unix;
}

/* ---- roots at a door ---------------------------------------------------------------- */

/* Needs the lock. */
static struct root *find_root(const struct tutti_door *door, const uint8_t *forming)
{
    struct root *root = door->roots;

    while (root != NULL && memcmp(root->forming, forming, TUTTI_FORMING_BYTES) != 0)
        root = root->next_at_door;
    return root;
}

int tutti_door_enter(struct tutti_door *door, struct root *root)
{
    bool is_free;

    pthread_mutex_lock(&lock);
    is_free = find_root(door, root->forming) == NULL;
    if (is_free) {
        root->next_at_door = door->roots;
        door->roots = root;
        root->is_at_door = true;
    }
    pthread_mutex_unlock(&lock);
    if (is_free)
        return TUTTI_OK;
    return tutti_fail(TUTTI_ERR_USAGE,
                      "this process forms a communicator named '%s' at %s already; give each of "
                      "those that are formed at once a name of its own (commName)",
                      root->name, root->where);
}

struct seat *tutti_door_leave(struct tutti_door *door, struct root *root)
{
    struct root **at = &door->roots;
    struct seat *left = NULL;

    pthread_mutex_lock(&lock);
    if (root->is_at_door) {
        while (*at != root)
            at = &(*at)->next_at_door;
        *at = root->next_at_door;
        root->is_at_door = false;
        left = root->handed_over;
        root->handed_over = NULL;
    }
    pthread_mutex_unlock(&lock);
    return left;
}

bool tutti_door_hand_over(struct tutti_door *door, const uint8_t *forming, struct seat *seat)
{
    struct root *root;

    pthread_mutex_lock(&lock);
    root = find_root(door, forming);
    if (root != NULL) {
        seat->newer = root->handed_over;
        root->handed_over = seat;
        tutti_watch_alarm(&root->watch, 1); /* a time in the past, to wake the root at once */
    }
    pthread_mutex_unlock(&lock);
    return root != NULL;
}

struct seat *tutti_door_take(struct tutti_door *door, struct root *root)
{
    struct seat *seat;

    (void)door;
    pthread_mutex_lock(&lock);
    seat = root->handed_over;
    if (seat != NULL)
        root->handed_over = seat->newer;
    pthread_mutex_unlock(&lock);
    return seat;
}
