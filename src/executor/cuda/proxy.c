/* SPDX-License-Identifier: Apache-2.0
 * The thread of a rank's proxy. */
#include "executor/cuda/proxy_link.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/result.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

/* While kernels run, the next slot is usually microseconds away, so the thread looks again at once
 * and only lets others have the core. Without anything to carry it takes naps, first short ones and
 * then long ones, so that an idle rank costs no core. tutti_cuda_proxy_wake ends a long nap. The
 * replay of a graph does not, and may wait for the end of one. */
#define EAGER_NS (2 * TUTTI_NS_PER_MS)
#define PATIENT_NS (20 * TUTTI_NS_PER_MS)
#define SHORT_NAP_NS 50000
#define LONG_NAP_NS TUTTI_NS_PER_MS

/* The longest wait for the other proxies at the end, since something was last carried. */
#define LEAVE_NS (5 * TUTTI_NS_PER_S)

/* The time between two checks for ranks that have given up, and for a network that is silent. A
 * connection that is closed is noticed at once. */
#define LOOK_NS (100 * TUTTI_NS_PER_MS)

struct tutti_cuda_proxy {
    struct tutti_cuda_proxy_args args;
    struct tutti_cuda_proxy_link *links; /* [args.npairs] */
    uint64_t looked_ns;                  /* time of the last check */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    /* Under the lock. Some work was enqueued, and the thread shall end, in good order or not. */
    bool is_woken, is_ending, is_orderly;
};

/* ---- naps ------------------------------------------------------------------------------------ */

/* Sleeps until LONG_NAP_NS have passed, or another thread has woken this one. Returns true if it
 * was woken. */
static bool nap_until_woken(struct tutti_cuda_proxy *proxy)
{
    struct timespec until;
    bool is_woken;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LONG_NAP_NS;
    if (until.tv_nsec >= (long)TUTTI_NS_PER_S) {
        until.tv_nsec -= (long)TUTTI_NS_PER_S;
        until.tv_sec++;
    }
    pthread_mutex_lock(&proxy->lock);
    if (!proxy->is_woken && !proxy->is_ending)
        pthread_cond_timedwait(&proxy->wake, &proxy->lock, &until);
    is_woken = proxy->is_woken;
    proxy->is_woken = false;
    pthread_mutex_unlock(&proxy->lock);
    return is_woken;
}

/* Rests after a pass that carried nothing. `idle_ns` is the time since there was a reason to look
 * often. Returns true if there is one again. */
static bool rest(struct tutti_cuda_proxy *proxy, uint64_t idle_ns)
{
    if (idle_ns >= PATIENT_NS)
        return nap_until_woken(proxy);
    if (idle_ns < EAGER_NS)
        sched_yield();
    else
        nanosleep(&(struct timespec){.tv_nsec = SHORT_NAP_NS}, NULL);
    return false;
}

/* ---- passes ---------------------------------------------------------------------------------- */

/* Carries what can be carried now between this rank and another one. */
static int move(struct tutti_cuda_proxy *proxy, struct tutti_cuda_proxy_link *link, bool *moved)
{
    bool had_left = link->has_left;

    TUTTI_TRY(tutti_cuda_proxy_link_move(link, moved));
    /* All that the rank has sent is in the mailbox by now. */
    if (link->has_left && !had_left)
        tutti_fetch_or(proxy->args.left, UINT64_C(1) << link->pair.rank);
    return TUTTI_OK;
}

/* The same for all other ranks. */
static int pass(struct tutti_cuda_proxy *proxy, bool *moved)
{
    *moved = false;
    for (uint32_t i = 0; i < proxy->args.npairs; i++)
        TUTTI_TRY(move(proxy, &proxy->links[i], moved));
    if (!*moved)
        tutti_fabric_progress(proxy->args.fabric);
    if (tutti_now_ns() - proxy->looked_ns < LOOK_NS)
        return TUTTI_OK;
    proxy->looked_ns = tutti_now_ns();
    return tutti_fabric_check(proxy->args.fabric);
}

/* Returns true once all links have left. */
static bool have_all_left(struct tutti_cuda_proxy *proxy)
{
    bool have_left = true;

    for (uint32_t i = 0; i < proxy->args.npairs; i++)
        have_left = tutti_cuda_proxy_link_leave(&proxy->links[i]) && have_left;
    return have_left;
}

/* Takes leave of the other proxies. They answer at once, whatever their kernels do. */
static int leave(struct tutti_cuda_proxy *proxy)
{
    uint64_t until_ns = tutti_now_ns() + LEAVE_NS;
    bool moved;

    while (!have_all_left(proxy)) {
        TUTTI_TRY(pass(proxy, &moved));
        if (moved)
            until_ns = tutti_now_ns() + LEAVE_NS;
        if (tutti_now_ns() > until_ns) {
            tutti_log(TUTTI_LOG_WARN, "rank %d ends, but ranks of other hosts have not confirmed "
                      "within %d s that they have all data of its GPU", proxy->args.rank,
                      (int)(LEAVE_NS / TUTTI_NS_PER_S));
            return TUTTI_OK;
        }
        if (!moved)
            sched_yield();
    }
    return TUTTI_OK;
}

/* Returns true if the thread shall end. */
static bool is_ending(struct tutti_cuda_proxy *proxy, bool *ret_is_orderly)
{
    bool ending;

    pthread_mutex_lock(&proxy->lock);
    ending = proxy->is_ending;
    *ret_is_orderly = proxy->is_orderly;
    pthread_mutex_unlock(&proxy->lock);
    return ending;
}

static int carry(struct tutti_cuda_proxy *proxy)
{
    uint64_t moved_ns = tutti_now_ns();
    bool is_orderly, moved;

    while (!is_ending(proxy, &is_orderly)) {
        uint64_t now_ns;

        TUTTI_TRY(pass(proxy, &moved));
        now_ns = tutti_now_ns();
        if (moved || rest(proxy, now_ns - moved_ns))
            moved_ns = now_ns;
    }
    return is_orderly ? leave(proxy) : TUTTI_OK;
}

static void *serve(void *argument)
{
    struct tutti_cuda_proxy *proxy = argument;
    int rc = carry(proxy);

    if (rc != TUTTI_OK)
        proxy->args.fail(proxy->args.context, rc, tutti_message_last());
    return NULL;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void destroy(struct tutti_cuda_proxy *proxy)
{
    for (uint32_t i = 0; proxy->links != NULL && i < proxy->args.npairs; i++) {
        struct tutti_cuda_proxy_link *link = &proxy->links[i];

        tutti_log(TUTTI_LOG_DEBUG, "rank %d has sent %llu bytes from its GPU to rank %d, on "
                  "another host", proxy->args.rank, (unsigned long long)link->total_bytes,
                  link->pair.rank);
        tutti_cuda_proxy_link_fini(link);
    }
    free(proxy->links);
    pthread_cond_destroy(&proxy->wake);
    pthread_mutex_destroy(&proxy->lock);
    free(proxy);
}

static int open_links(struct tutti_cuda_proxy *proxy)
{
    const struct tutti_cuda_proxy_args *args = &proxy->args;

    proxy->links = calloc(args->npairs, sizeof *proxy->links);
    if (proxy->links == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "rank %d: no memory for the proxy of its GPU",
                          args->rank);
    for (uint32_t i = 0; i < args->npairs; i++)
        TUTTI_TRY(tutti_cuda_proxy_link_init(&proxy->links[i], args, &args->pairs[i]));
    return TUTTI_OK;
}

int tutti_cuda_proxy_begin(const struct tutti_cuda_proxy_args *args,
                           struct tutti_cuda_proxy **ret_proxy)
{
    struct tutti_cuda_proxy *proxy = calloc(1, sizeof *proxy);
    pthread_condattr_t attributes;
    int rc, error;

    if (proxy == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "rank %d: no memory for the proxy of its GPU",
                          args->rank);
    proxy->args = *args;
    pthread_mutex_init(&proxy->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&proxy->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    rc = open_links(proxy);
    if (rc == TUTTI_OK) {
        error = pthread_create(&proxy->thread, NULL, serve, proxy);
        if (error != 0)
            rc = tutti_fail(TUTTI_ERR_SYSTEM, "rank %d: no thread for the proxy of its GPU: error "
                            "%d", args->rank, error);
        else
            pthread_setname_np(proxy->thread, "tutti-proxy");
    }
    if (rc != TUTTI_OK) {
        destroy(proxy);
        return rc;
    }
    proxy->args.pairs = NULL; /* the links have copies */
    *ret_proxy = proxy;
    return TUTTI_OK;
}

void tutti_cuda_proxy_wake(struct tutti_cuda_proxy *proxy)
{
    pthread_mutex_lock(&proxy->lock);
    if (!proxy->is_woken) {
        proxy->is_woken = true;
        pthread_cond_signal(&proxy->wake);
    }
    pthread_mutex_unlock(&proxy->lock);
}

void tutti_cuda_proxy_end(struct tutti_cuda_proxy *proxy, bool is_orderly)
{
    if (proxy == NULL)
        return;
    pthread_mutex_lock(&proxy->lock);
    proxy->is_ending = true;
    proxy->is_orderly = is_orderly;
    pthread_cond_signal(&proxy->wake);
    pthread_mutex_unlock(&proxy->lock);
    pthread_join(proxy->thread, NULL);
    destroy(proxy);
}
