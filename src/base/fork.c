/* SPDX-License-Identifier: Apache-2.0
 * Keeps the table of this library's sockets in the process, and installs the fork handlers that
 * close their copies in a child. */
#include "base/fork.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FIRST_CAPACITY = 64 };

/* The forking thread holds the lock while it forks, so that the child's table is consistent. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static ino_t *sockets; /* [capacity], indexed by descriptor: the socket's inode; 0: no socket */
static size_t capacity;

static ino_t inode_of_socket(int fd)
{
    struct stat status;

    return fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode) ? status.st_ino : 0;
}

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&lock);
}

/* Runs in the child. Uses only async-signal-safe calls, because other threads of the parent may
 * have held any lock at the fork. */
static void close_copies(void)
{
    for (size_t fd = 0; fd < capacity; fd++) {
        if (sockets[fd] != 0 && inode_of_socket((int)fd) == sockets[fd])
            close((int)fd);
        sockets[fd] = 0;
    }
    pthread_mutex_unlock(&lock);
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork, close_copies);
}

void tutti_fork_hold(void)
{
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&lock);
}

static int make_room(size_t fd)
{
    size_t wanted = capacity == 0 ? FIRST_CAPACITY : capacity;
    ino_t *grown;

    while (wanted <= fd)
        wanted *= 2;
    if (wanted == capacity)
        return 0;
    grown = realloc(sockets, wanted * sizeof *grown);
    if (grown == NULL)
        return -1;
    memset(grown + capacity, 0, (wanted - capacity) * sizeof *grown);
    sockets = grown;
    capacity = wanted;
    return 0;
}

int tutti_fork_release(int fd)
{
    int error = errno;

    if (fd >= 0 && make_room((size_t)fd) == 0) {
        sockets[fd] = inode_of_socket(fd);
    } else if (fd >= 0) {
        close(fd);
        fd = -1;
        error = ENOMEM;
    }
    pthread_mutex_unlock(&lock);
    errno = error;
    return fd;
}
