/* SPDX-License-Identifier: Apache-2.0
 * Claims on meeting places (claim.h). All communicators of a process at one place share one claim,
 * so this file keeps a table of the claims that this process holds. */
#include "bootstrap/claim.h"

#include "base/clock.h"
#include "base/handshake.h"
#include "base/result.h"
#include "base/socket.h"
#include "base/system.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The other ranks of a job whose rank 0 was refused may try for some time to join. */
#define RIVAL_NS (10 * TUTTI_NS_PER_S)

struct tutti_claim {
    char name[64]; /* of the Unix socket, which is made from the key */
    int fd;        /* the listening socket */
    int place_fd; /* open, so that the place's inode number is not reused; -1: none */
    pid_t maker; /* a child made by fork does not use its parent's claims */
    int users;   /* shares of the claim */
    uint64_t rival_ns; /* when this process last saw that another one was refused; 0: never */
    struct tutti_claim *next;
};

static struct tutti_claim *claims; /* of this process; guarded by `lock` */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Find the process that holds a claim. *ret_pid is 0 if no process holds it, or if its socket
 * belongs to another user. It is also 0 if the process that made the socket has ended, and only a
 * child made by fork still has the socket open. TUTTI_AGAIN: the socket is being made or closed, or
 * so many processes have tried to claim the place that its queue is full. */
static int find_holder(const char *name, pid_t *ret_pid)
{
    struct ucred holder = {.pid = 0};
    socklen_t size = sizeof holder;
    int fd, rc = tutti_socket_connect_unix(name, &fd);

    *ret_pid = 0;
    if (rc != TUTTI_OK)
        return rc == TUTTI_AGAIN ? rc : TUTTI_OK;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &holder, &size) == 0 && holder.uid == geteuid() &&
        (kill(holder.pid, 0) == 0 || errno != ESRCH))
        *ret_pid = holder.pid;
    close(fd);
    return TUTTI_OK;
}

/* `holder` is 0 if it is not known. */
static int fail_held(pid_t holder, const char *where)
{
    char text[32] = "";

    if (holder != 0)
        snprintf(text, sizeof text, " %ld", (long)holder);
    return tutti_fail(TUTTI_ERR_USAGE,
                      "process%s of this host is rank 0 of a job at %s, which serves one job at "
                      "a time; give this job a place of its own, or, at a port, TUTTI_SECRET",
                      text, where);
}

/* Make the socket of a claim. TUTTI_OK with *ret_fd -1: it cannot be made, although the place has
 * no living holder. */
static int make_socket(const char *name, const char *where, int *ret_fd)
{
    enum { TRIES = 50 };
    pid_t holder = 0;

    for (int i = 0; i < TRIES; i++) {
        if (tutti_socket_try_listen_unix(name, ret_fd) == 0)
            return TUTTI_OK;
        if (find_holder(name, &holder) == TUTTI_OK) {
            *ret_fd = -1;
            return holder == 0 ? TUTTI_OK : fail_held(holder, where);
        }
        tutti_pause_ns(TUTTI_NS_PER_MS);
    }
    return fail_held(0, where);
}

/* The caller holds the lock. Returns TUTTI_OK and leaves *ret_claim NULL if the place cannot be
 * claimed, although it has no living holder. */
static int make_claim(const char *name, const char *where, struct tutti_claim **ret_claim)
{
    struct tutti_claim *claim = calloc(1, sizeof *claim);
    int rc;

    if (claim == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a bootstrap");
    rc = make_socket(name, where, &claim->fd);
    if (rc != TUTTI_OK || claim->fd < 0) {
        free(claim);
        return rc;
    }
    snprintf(claim->name, sizeof claim->name, "%s", name);
    claim->maker = getpid();
    claim->users = 1;
    claim->next = claims;
    claims = claim;
    *ret_claim = claim;
    return TUTTI_OK;
}

/* Notes whether processes of this user have tried to claim the place; the caller holds the lock.
 * Anybody can connect to the socket, so those of other users do not count. */
static void look_for_rivals(struct tutti_claim *claim)
{
    int fd;

    while (tutti_socket_accept(claim->fd, &fd) == TUTTI_OK) {
        if (tutti_socket_is_own_user(fd))
            claim->rival_ns = tutti_now_ns();
        close(fd);
    }
}

bool tutti_claim_has_rival(struct tutti_claim *claim, uint64_t begun_ns)
{
    bool has_rival;

    if (claim == NULL)
        return false;
    pthread_mutex_lock(&lock);
    look_for_rivals(claim);
    has_rival = claim->rival_ns > 0 && claim->rival_ns + RIVAL_NS > begun_ns;
    pthread_mutex_unlock(&lock);
    return has_rival;
}

int tutti_claim_take(const char *key, const char *where, int fd, struct tutti_claim **ret_claim)
{
    uint8_t hash[TUTTI_SECRET_BYTES];
    struct tutti_claim *claim;
    char name[64];
    int rc = TUTTI_OK, length;

    *ret_claim = NULL;
    tutti_secret_from_text(key, hash);
    length = snprintf(name, sizeof name, "tutti-claim-%u-", (unsigned)geteuid());
    for (int i = 0; i < 8; i++)
        length += snprintf(name + length, sizeof name - (size_t)length, "%02x", hash[i]);

    pthread_mutex_lock(&lock);
    claim = claims;
    while (claim != NULL && (claim->maker != getpid() || strcmp(claim->name, name) != 0))
        claim = claim->next;
    if (claim != NULL) {
        look_for_rivals(claim); /* now, because later they would seem to have come later */
        claim->users++;
        *ret_claim = claim;
    } else {
        rc = make_claim(name, where, ret_claim);
        if (*ret_claim != NULL) {
            (*ret_claim)->place_fd = fd;
            fd = -1;
        }
    }
    pthread_mutex_unlock(&lock);
    if (fd >= 0)
        close(fd);
    return rc;
}

void tutti_claim_release(struct tutti_claim *claim)
{
    struct tutti_claim **at = &claims;

    if (claim == NULL)
        return;
    pthread_mutex_lock(&lock);
    if (--claim->users == 0) {
        while (*at != claim)
            at = &(*at)->next;
        *at = claim->next;
        close(claim->fd);
        if (claim->place_fd >= 0)
            close(claim->place_fd);
        free(claim);
    }
    pthread_mutex_unlock(&lock);
}
