/* SPDX-License-Identifier: Apache-2.0
 * Keeps the domain that a transport has provided for the ranks of a host, and answers questions
 * about it. */
#include "transport/fabric_private.h"

void tutti_fabric_share(struct tutti_fabric *fabric, const struct tutti_sharing *sharing)
{
    pthread_mutex_lock(&fabric->lock);
    fabric->sharing = *sharing;
    if (sharing->domain != NULL)
        fabric->waiter = &sharing->domain->waiters[sharing->domain->me];
    pthread_mutex_unlock(&fabric->lock);
}

struct tutti_domain *tutti_fabric_domain(struct tutti_fabric *fabric)
{
    return fabric->sharing.domain;
}

struct tutti_lend *tutti_fabric_lend(struct tutti_fabric *fabric)
{
    return fabric->sharing.lend;
}

bool tutti_fabric_is_one_domain(const struct tutti_fabric *fabric)
{
    return fabric->sharing.is_one_domain;
}

bool tutti_fabric_all_store(const struct tutti_fabric *fabric)
{
    return fabric->sharing.all_store;
}

bool tutti_fabric_all_read(const struct tutti_fabric *fabric)
{
    return fabric->sharing.all_read;
}

bool tutti_fabric_shares_hosts(const struct tutti_fabric *fabric)
{
    return fabric->sharing.shares_hosts;
}

/* ---- memory that members lend --------------------------------------------------------- */

bool tutti_fabric_enter(struct tutti_fabric *fabric)
{
    return !fabric->sharing.shares_memory || tutti_domain_enter(fabric->sharing.domain);
}

bool tutti_fabric_exit(struct tutti_fabric *fabric)
{
    return !fabric->sharing.shares_memory || tutti_domain_exit(fabric->sharing.domain);
}

void tutti_fabric_drain(struct tutti_fabric *fabric)
{
    if (fabric->sharing.shares_memory)
        tutti_domain_drain(fabric->sharing.domain);
}
