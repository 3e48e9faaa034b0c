/* SPDX-License-Identifier: Apache-2.0
 * Decides which rank leaves a core on which too many ranks wait, and moves it to another core. */
#include "transport/spread.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Returns the number of members among the first `nwaiters` that wait on `core`. */
static uint32_t count_on(const struct tutti_waiter *waiters, uint32_t nwaiters, uint32_t core)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < nwaiters; i++)
        count += tutti_load_relaxed(&waiters[i].core) == core + 1;
    return count;
}

/* True if at least `share` members with lower indices are on this member's core. */
static bool is_extra(const struct tutti_waiter *waiters, uint32_t me, uint32_t share)
{
    uint32_t mine = tutti_load_relaxed(&waiters[me].core);

    return mine != 0 && count_on(waiters, me, mine - 1) >= share;
}

uint32_t tutti_spread_choose(const struct tutti_waiter *waiters, uint32_t nwaiters, uint32_t me,
                             uint32_t share, const cpu_set_t *allowed)
{
    uint32_t best = TUTTI_SPREAD_STAY, fewest;

    if (!is_extra(waiters, me, share))
        return TUTTI_SPREAD_STAY;
    /* The other core must have two fewer than this one. Otherwise the ranks would only trade
     * places. */
    fewest = count_on(waiters, nwaiters, tutti_load_relaxed(&waiters[me].core) - 1) - 1;
    for (uint32_t core = 0; core < CPU_SETSIZE; core++) {
        uint32_t count;

        if (!CPU_ISSET(core, allowed))
            continue;
        count = count_on(waiters, nwaiters, core);
        if (count < fewest) {
            fewest = count;
            best = core;
        }
    }
    return best;
}

/* True if no more threads of the machine want to run now than there are ranks. */
static bool ranks_run_alone(uint32_t nranks)
{
    int fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
    char text[128];
    ssize_t length;
    uint32_t running;

    if (fd < 0)
        return false;
    length = read(fd, text, sizeof text - 1);
    close(fd);
    text[length > 0 ? length : 0] = '\0';
    return sscanf(text, "%*s %*s %*s %u/", &running) == 1 && running <= nranks;
}

/* Moves this thread by restricting it to `core` for a moment. After the restriction is removed, the
 * kernel lets the thread stay there. */
static bool move_to(uint32_t core, const cpu_set_t *allowed)
{
    cpu_set_t there;

    CPU_ZERO(&there);
    CPU_SET(core, &there);
    if (sched_setaffinity(0, sizeof there, &there) != 0)
        return false;
    if (sched_setaffinity(0, sizeof *allowed, allowed) == 0)
        return true;
    /* The allowed cores have changed meanwhile, so use whatever the system allows now. */
    memset(&there, 0xff, sizeof there);
    (void)sched_setaffinity(0, sizeof there, &there);
    return false;
}

bool tutti_spread(struct tutti_domain *domain, uint32_t share)
{
    struct tutti_waiter *waiter = &domain->waiters[domain->me];
    int here = sched_getcpu();
    cpu_set_t allowed;
    uint32_t core;

    if (here < 0)
        return false;
    if (tutti_load_relaxed(&waiter->core) != (uint32_t)here + 1)
        tutti_store_relaxed(&waiter->core, (uint32_t)here + 1);
    if (!is_extra(domain->waiters, domain->me, share))
        return true;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return false;
    core = tutti_spread_choose(domain->waiters, domain->nmembers, domain->me, share, &allowed);
    if (core == TUTTI_SPREAD_STAY || !ranks_run_alone(domain->nmembers) || !move_to(core, &allowed))
        return false;
    tutti_store_relaxed(&waiter->core, core + 1);
    return true;
}
