/* SPDX-License-Identifier: Apache-2.0
 * The owner of a name is the thread that forms the communicators of that name at a store.
 *
 * Ranks find each other by store and name. Communicators of one name are distinguished only by
 * their order, so all ranks must form them in the same order. Two threads cannot guarantee the same
 * order on all ranks. A thread could then form its communicator with the wrong thread of another
 * rank, without any error. So a name belongs to the first thread that uses it, until that thread
 * has ended. */
#include "base/result.h"
#include "bootstrap/exchange.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The owner of one combination of store, nranks, rank and name. The rank is part of it because
 * threads of a process may be different ranks of one communicator. */
struct owner {
    uint8_t key[TUTTI_SECRET_BYTES];
    pid_t process, thread; /* 0: no thread has used the name */
    struct owner *next;
};

/* The process keeps one owner for each name that it uses, and never frees it. Guarded by `lock`. */
static struct owner *owners;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static pid_t this_thread(void)
{
    return (pid_t)syscall(SYS_gettid);
}

/* Also true for an owner inherited by fork, which is a thread of the parent. */
static bool has_ended(const struct owner *owner)
{
    return owner->process != getpid() ||
           (syscall(SYS_tgkill, owner->process, owner->thread, 0) != 0 && errno == ESRCH);
}

/* The caller holds the lock. NULL: there is no memory. */
static struct owner *find_or_add(const uint8_t key[TUTTI_SECRET_BYTES])
{
    struct owner *owner = owners;

    while (owner != NULL && memcmp(owner->key, key, TUTTI_SECRET_BYTES) != 0)
        owner = owner->next;
    if (owner != NULL)
        return owner;
    owner = calloc(1, sizeof *owner);
    if (owner == NULL)
        return NULL;
    memcpy(owner->key, key, TUTTI_SECRET_BYTES);
    owner->next = owners;
    owners = owner;
    return owner;
}

int tutti_meeting_own(const struct tutti_meeting *meeting, int nranks, int rank)
{
    const char *name = tutti_meeting_text(meeting->name);
    uint8_t key[TUTTI_SECRET_BYTES];
    struct owner *owner;
    pid_t other = 0;
    char *text;

    if (asprintf(&text, "%s\n%d\n%d\n%s", meeting->store, nranks, rank, name) < 0)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a bootstrap");
    tutti_secret_from_text(text, key);
    free(text);

    pthread_mutex_lock(&lock);
    owner = find_or_add(key);
    if (owner != NULL && owner->thread != 0 && owner->thread != this_thread() &&
        !has_ended(owner)) {
        other = owner->thread;
    } else if (owner != NULL) {
        owner->process = getpid();
        owner->thread = this_thread();
    }
    pthread_mutex_unlock(&lock);
    if (owner == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a bootstrap");
    if (other == 0)
        return TUTTI_OK;
    return tutti_fail(TUTTI_ERR_USAGE,
                      "rank %d of %d: thread %ld of this process forms communicators %s%s%s at %s; "
                      "give each thread's communicator a name (commName), the same on all ranks, "
                      "so that the ranks can tell which one is meant",
                      rank, nranks, (long)other, *name ? "named '" : "without a name", name,
                      *name ? "'" : "", meeting->store);
}
