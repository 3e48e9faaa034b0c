/* SPDX-License-Identifier: Apache-2.0
 * Waits for peers. A waiting rank alternates between two things: its caller makes a pass, which
 * means that it checks whether it can go on, and after a pass without progress it calls
 * tutti_fabric_idle. A wait has these phases:
 *
 *     spin        checks again at once; after a while, also yields the core now and then
 *     yield       yields the core after each pass
 *     announced   sleeps after each pass, until a peer rings; then the rank spins again
 *
 * If ranks outnumber cores, the first phase spins only a few times and then yields, and the second
 * phase is left out.
 *
 * A rank announces a sleep by a flag in its waiter (domain.h), which is in memory that the ranks of
 * its domain share. Any of them that publishes data rings the ranks that have announced a sleep: it
 * increments the waiter's count of rings and wakes the rank. No wake-up is lost:
 *
 *     rank that sleeps                      peer that rings
 *       read the count of rings               publish data
 *       set sleep_kind, sleepers += 1        fence
 *       fence                                 if sleep_kind is set:
 *       make one more pass                      clear it, sleepers -= 1,
 *       if the count has not changed: sleep     increment the count, wake the rank
 *
 * The fences ensure that the peer sees sleep_kind, or that the last pass of the sleeper sees the
 * data. Every sleep ends after some milliseconds, so that the rank notices deadlines and ended
 * processes. */
#include "transport/fabric_private.h"

#include "base/clock.h"
#include "base/limits.h"
#include "base/param.h"
#include "transport/spread.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The phases of a wait, as struct tutti_idle stores them. PHASE_SPIN must be 0. */
enum { PHASE_SPIN, PHASE_YIELD, PHASE_ANNOUNCED };

/* The limit of a sleep, after which the rank checks for deadlines and ended processes. */
#define SLEEP_MS 10
/* The limit of a sleep on descriptors, if an event may occur that no descriptor reports. */
#define NAP_MS 1

/* A spinning rank calls `progress` of all transports every PASSES_PER_PROGRESS passes. It reads the
 * clock every PASSES_PER_CLOCK passes. Both numbers are powers of two, so that testing for them is
 * cheap. */
#define PASSES_PER_PROGRESS 64
#define PASSES_PER_CLOCK 16
/* The first passes do not pause the core, because a pause can take as long as a small message. */
#define EAGER_PASSES 64
/* A spinning rank does not know whether other threads need its core. After this time it yields the
 * core at every reading of the clock. A yield costs little if no other thread takes the core. */
#define POLITE_AFTER_NS 1000
/* If a yield takes at least this long, another thread has had the core. The kernel alone takes less
 * time. */
#define TAKEN_NS 1000
/* The number of yields between spinning and sleeping. */
#define YIELDS_BEFORE_SLEEP 20

/* If ranks outnumber cores, the peer most likely waits for this core. The first CROWDED_SPINS
 * passes suffice for an answer that is already on its way from another core. Then the rank yields
 * at every pass. It yields many times before it sleeps, because waking a sleeper costs more than
 * ten thread switches. */
#define CROWDED_SPINS 4
#define CROWDED_YIELDS 40

/* The number of yields after which the rank looks for a core with fewer ranks (spread.h). Only
 * yields that show that the core is shared count; they are called offers. The number doubles each
 * time that the rank finds no such core, up to MOST_YIELDS_PER_SEARCH. */
#define FIRST_YIELDS_PER_SEARCH 64
#define MOST_YIELDS_PER_SEARCH 65536

/* ---- how this rank waits ------------------------------------------------------------- */

static bool have_same_network(const struct tutti_identity *a, const struct tutti_identity *b)
{
    return memcmp(a->network, b->network, TUTTI_IDENTITY_BYTES) == 0;
}

/* True if the ranks of this rank's network namespace outnumber the cores on which they may run. The
 * namespace stands for the machine. Each distinct set of cores counts once, and different sets are
 * assumed to be disjoint. */
static bool is_crowded(const struct tutti_fabric *fabric)
{
    uint32_t nranks = 0, ncores = 0;

    for (int rank = 0; rank < fabric->nranks; rank++) {
        const struct tutti_identity *identity = &fabric->records[rank].identity;
        bool has_counted_cores = false;

        if (!have_same_network(identity, &fabric->mine.identity))
            continue;
        nranks++;
        for (int lower = 0; lower < rank && !has_counted_cores; lower++) {
            const struct tutti_identity *other = &fabric->records[lower].identity;

            has_counted_cores =
                other->cores_hash == identity->cores_hash && have_same_network(other, identity);
        }
        if (!has_counted_cores)
            ncores += identity->ncores;
    }
    return nranks > ncores;
}

/* Returns the number of ranks that may wait on one core: ranks per core, rounded up, among the
 * members of the domain that may run on the same cores as this rank. Returns 0, which means any
 * number, if this rank has only one core. */
static uint32_t ranks_per_core(const struct tutti_fabric *fabric)
{
    const struct tutti_domain *domain = fabric->sharing.domain;
    const struct tutti_identity *mine = &fabric->mine.identity;
    uint32_t nsharing = 0;

    for (uint32_t i = 0; i < domain->nmembers; i++)
        nsharing += fabric->records[domain->ranks[i]].identity.cores_hash == mine->cores_hash;
    return mine->ncores > 1 ? (nsharing + mine->ncores - 1) / mine->ncores : 0;
}

/* True if this rank can run fences on the threads of all members of its domain (base/fence.h). */
static bool all_members_accept_fences(const struct tutti_fabric *fabric)
{
    const struct tutti_domain *domain = fabric->sharing.domain;

    for (uint32_t index = 0; index < domain->nmembers; index++)
        if (!fabric->records[domain->ranks[index]].identity.accepts_fences)
            return false;
    return true;
}

void tutti_wait_init(struct tutti_fabric *fabric)
{
    fabric->spin_ns = (uint64_t)tutti_param_int(TUTTI_PARAM_SPIN_US) * 1000;
    fabric->yields_left = fabric->yields_per_search = FIRST_YIELDS_PER_SEARCH;
    /* When the fabric opens, the records of the other ranks are not known yet. */
    fabric->is_crowded = fabric->phase != TUTTI_FORM_OPEN && is_crowded(fabric);
    if (fabric->phase == TUTTI_FORM_OPEN || fabric->sharing.domain == NULL)
        return;
    if (!fabric->is_crowded) {
        fabric->sharing.domain->patience = TUTTI_PATIENT_LOOKS;
        /* Joint fences make each announcement of a sleep expensive. Ranks that do not share cores
         * rarely sleep, so the cheaper fence at every publication pays off. */
        fabric->sharing.domain->has_joint_fences = all_members_accept_fences(fabric);
    }
    if (tutti_param_int(TUTTI_PARAM_SPREAD) != 0)
        fabric->ranks_per_core = ranks_per_core(fabric);
}

/* ---- descriptors --------------------------------------------------------------------- */

int tutti_wait_reserve(struct tutti_fabric *fabric)
{
    char cause[TUTTI_LIMITS_TEXT_BYTES];
    int epoll_fd, event_fd;

    if (tutti_wait_has_descriptors(fabric))
        return TUTTI_OK;
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    tutti_limits_describe(errno, cause);
    pthread_mutex_lock(&fabric->lock);
    fabric->epoll_fd = epoll_fd;
    fabric->event_fd = event_fd;
    pthread_mutex_unlock(&fabric->lock);
    if (epoll_fd >= 0 && event_fd >= 0)
        return TUTTI_OK;
    tutti_wait_release(fabric);
    return tutti_note(TUTTI_ERR_SYSTEM, "descriptors to wait for sockets: %s", cause);
}

void tutti_wait_release(struct tutti_fabric *fabric)
{
    pthread_mutex_lock(&fabric->lock);
    if (fabric->epoll_fd >= 0)
        close(fabric->epoll_fd);
    if (fabric->event_fd >= 0)
        close(fabric->event_fd);
    fabric->epoll_fd = fabric->event_fd = -1;
    pthread_mutex_unlock(&fabric->lock);
}

int tutti_wait_open(struct tutti_fabric *fabric)
{
    for (uint32_t i = 0; i < fabric->nparts; i++)
        if (fabric->parts[i].is_used && fabric->parts[i].ops->waits_on_descriptors)
            return tutti_wait_watch(fabric, fabric->event_fd);
    tutti_wait_release(fabric);
    return TUTTI_OK;
}

void tutti_wait_nap(struct tutti_fabric *fabric)
{
    fabric->has_short_sleeps = true;
}

int tutti_wait_watch(struct tutti_fabric *fabric, int fd)
{
    /* The events are edge-triggered: a descriptor ends a sleep when bytes arrive, and not as long
     * as bytes are there. So bytes that no call has requested yet do not keep this rank awake. In
     * return, a rank must read the socket for which it waits until it is empty, or write to it
     * until it is full, before it sleeps. */
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET};

    if (epoll_ctl(fabric->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0)
        return tutti_fail(TUTTI_ERR_SYSTEM, "watch a socket: %s", strerror(errno));
    return TUTTI_OK;
}

/* ---- sleeping ------------------------------------------------------------------------ */

/* True if a descriptor of some transport may end a sleep now. */
static bool is_busy(const struct tutti_fabric *fabric)
{
    for (uint32_t i = 0; i < fabric->nparts; i++)
        if (fabric->parts[i].is_used && fabric->parts[i].ops->is_busy != NULL &&
            fabric->parts[i].ops->is_busy(fabric))
            return true;
    return false;
}

/* Announces that this rank will sleep, so that peers ring it from now on. The next call of
 * tutti_fabric_idle sleeps. */
static void announce(struct tutti_fabric *fabric, struct tutti_idle *idle)
{
    struct tutti_waiter *waiter = fabric->waiter;

    /* acquire: pairs with the release in tutti_domain_ring */
    idle->rings_seen = tutti_load_acquire(&waiter->rings);
    idle->phase = PHASE_ANNOUNCED;
    fabric->sleep_kind = TUTTI_SLEEPS_ON_FUTEX;
    if (tutti_wait_has_descriptors(fabric) && is_busy(fabric))
        fabric->sleep_kind = TUTTI_SLEEPS_ON_SOCKETS;
    /* acquire and release: the exchange pairs with the one in tutti_domain_ring. So `sleepers` is
     * incremented only if the flag was not set, and each set flag counts once. The addition to
     * `sleepers` orders no other data, and pairs only with other additions to it. */
    if (tutti_load_relaxed(&waiter->sleep_kind) != fabric->sleep_kind &&
        tutti_exchange(&waiter->sleep_kind, fabric->sleep_kind) == TUTTI_AWAKE &&
        fabric->sharing.domain != NULL) {
        (void)tutti_fetch_add(fabric->sharing.domain->sleepers, 1);
        /* This fence pairs with tutti_fence_before_look of a peer that publishes data. */
        tutti_fence_after_flag(fabric->sharing.domain->has_joint_fences);
        return;
    }
    /* Without a domain, or if the flag was already set: */
    /* full fence: pairs with the one of a peer that publishes data (tutti_fence_before_look) */
    tutti_fence_full();
}

/* Takes back the announcement of a sleep, unless a peer has already done so by ringing. */
static void retract(struct tutti_fabric *fabric)
{
    struct tutti_waiter *waiter = fabric->waiter;

    if (tutti_load_relaxed(&waiter->sleep_kind) == TUTTI_AWAKE)
        return;
    /* acquire and release: pairs with the exchange in tutti_domain_ring, so that only one of the
     * two decrements the count of sleepers */
    if (tutti_exchange(&waiter->sleep_kind, (uint32_t)TUTTI_AWAKE) != TUTTI_AWAKE &&
        fabric->sharing.domain != NULL)
        (void)tutti_fetch_add(fabric->sharing.domain->sleepers, -1u);
}

/* Returns true if a descriptor has ended the sleep. The function does not tell which descriptor it
 * was, because tutti_parts_progress and the caller check all of them. */
static bool sleep_on_descriptors(struct tutti_fabric *fabric)
{
    struct epoll_event events[16];
    int timeout_ms = tutti_system_timeout_ms(fabric->has_short_sleeps ? NAP_MS : SLEEP_MS);

    if (epoll_wait(fabric->epoll_fd, events, sizeof events / sizeof events[0], timeout_ms) <= 0)
        return false;
    for (uint32_t i = 0; i < fabric->nparts; i++)
        if (fabric->parts[i].is_open && fabric->parts[i].ops->woken != NULL)
            fabric->parts[i].ops->woken(fabric);
    tutti_parts_progress(fabric);
    return true;
}

static void sleep_on_futex(struct tutti_fabric *fabric, uint32_t seen)
{
    struct timespec timeout = {.tv_nsec = tutti_system_timeout_ms(SLEEP_MS) * 1000000L};

    syscall(SYS_futex, &fabric->waiter->rings, FUTEX_WAIT, seen, &timeout, NULL, 0);
}

/* ---- after a pass without progress --------------------------------------------------- */

/* Moves this thread to a core with fewer ranks, if there is one. */
static void look_for_a_better_core(struct tutti_fabric *fabric)
{
    if (tutti_spread(fabric->sharing.domain, fabric->ranks_per_core))
        fabric->yields_per_search = FIRST_YIELDS_PER_SEARCH;
    else if (fabric->yields_per_search < MOST_YIELDS_PER_SEARCH)
        fabric->yields_per_search *= 2;
    fabric->yields_left = fabric->yields_per_search;
}

/* Counts an offer, which is a yield of a shared core, and looks for a better core if it is time. */
static void count_offer(struct tutti_fabric *fabric)
{
    if (fabric->ranks_per_core > 0 && --fabric->yields_left == 0)
        look_for_a_better_core(fabric);
}

/* Yields the core, and counts an offer only if another thread took the core. Otherwise this rank
 * has the core to itself, whatever the waiters say. A waiter names the core on which its rank last
 * waited, which may now be the core of another thread of that rank. `now_ns` is the time of the
 * yield. */
static void offer_core(struct tutti_fabric *fabric, uint64_t now_ns)
{
    sched_yield();
    if (tutti_now_ns() - now_ns >= TAKEN_NS)
        count_offer(fabric);
}

/* PHASE_SPIN if ranks do not outnumber cores. With TUTTI_SPIN_US=0 the first call already reads the
 * clock and ends the phase. */
static void spin(struct tutti_fabric *fabric, struct tutti_idle *idle)
{
    uint64_t now_ns, spun_ns;

    if (idle->passes > EAGER_PASSES)
        tutti_spin_relax();
    if (idle->passes % PASSES_PER_CLOCK != 0 && fabric->spin_ns > 0)
        return;
    now_ns = tutti_now_ns();
    if (idle->since_ns == 0)
        idle->since_ns = now_ns;
    spun_ns = now_ns - idle->since_ns;
    if (spun_ns < fabric->spin_ns) {
        if (spun_ns >= POLITE_AFTER_NS)
            offer_core(fabric, now_ns);
        return;
    }
    idle->phase = PHASE_YIELD;
    idle->passes = 1;
}

/* PHASE_SPIN if ranks outnumber cores: spins a few times, then yields, and then announces a sleep.
 * It counts passes and does not read the clock. Every yield counts as an offer. */
static void spin_crowded(struct tutti_fabric *fabric, struct tutti_idle *idle)
{
    if (idle->passes < CROWDED_SPINS) {
        tutti_spin_relax();
        return;
    }
    if (idle->passes >= CROWDED_SPINS + CROWDED_YIELDS) {
        announce(fabric, idle);
        return;
    }
    count_offer(fabric);
    sched_yield();
}

/* Sleeps, unless a peer has rung since the announcement. */
static void sleep_unless_rung(struct tutti_fabric *fabric, struct tutti_idle *idle)
{
    struct tutti_waiter *waiter = fabric->waiter;
    bool has_event = false;

    /* acquire: pairs with the release in tutti_domain_ring; the data that the peer published before
     * is visible */
    if (tutti_load_acquire(&waiter->rings) == idle->rings_seen) {
        if (fabric->sleep_kind == TUTTI_SLEEPS_ON_SOCKETS)
            has_event = sleep_on_descriptors(fabric);
        else
            sleep_on_futex(fabric, idle->rings_seen);
    }
    /* acquire: pairs with the release in tutti_domain_ring, like the load above */
    if (!has_event && tutti_load_acquire(&waiter->rings) == idle->rings_seen) {
        announce(fabric, idle);
        return;
    }
    /* A peer has published data, so more data are likely to follow soon. The rank spins again. The
     * wait goes on, so the number of passes is not 0. */
    retract(fabric);
    *idle = (struct tutti_idle){.passes = 1};
}

void tutti_fabric_idle(struct tutti_fabric *fabric, struct tutti_idle *idle)
{
    if (idle->passes == 0)
        retract(fabric); /* the last wait may have announced a sleep and then found its data */
    idle->passes++;
    if (idle->passes % PASSES_PER_PROGRESS == 0 || idle->phase != PHASE_SPIN)
        tutti_parts_progress(fabric);

    switch (idle->phase) {
    case PHASE_SPIN:
        if (fabric->is_crowded)
            spin_crowded(fabric, idle);
        else
            spin(fabric, idle);
        break;
    case PHASE_YIELD:
        if (idle->passes <= YIELDS_BEFORE_SLEEP)
            sched_yield();
        else
            announce(fabric, idle);
        break;
    default: /* PHASE_ANNOUNCED */
        sleep_unless_rung(fabric, idle);
        break;
    }
}

void tutti_fabric_wake(struct tutti_fabric *fabric)
{
    uint64_t one = 1;

    /* This rank may sleep on the futex or on descriptors, so end both kinds of sleep. */
    pthread_mutex_lock(&fabric->lock);
    /* release: pairs with the acquire in sleep_unless_rung */
    (void)tutti_fetch_add(&fabric->waiter->rings, 1);
    syscall(SYS_futex, &fabric->waiter->rings, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
    /* The write fails if the counter of event_fd is full. The descriptor is then readable, so the
     * sleep ends anyway. */
    if (fabric->event_fd >= 0 && write(fabric->event_fd, &one, sizeof one) < 0)
        (void)errno;
    pthread_mutex_unlock(&fabric->lock);
}
