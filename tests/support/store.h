/* SPDX-License-Identifier: Apache-2.0
 * Forms a bootstrap at a store, for tests that have no job and no name of a communicator. */
#ifndef TUTTI_TESTS_STORE_H
#define TUTTI_TESTS_STORE_H

#include "bootstrap/bootstrap.h"

/* Calls tutti_bootstrap_meet without a job and a name. */
static inline int bootstrap_from_store(const char *url, const char *secret, int nranks, int rank,
                                       uint64_t deadline_ns, struct tutti_bootstrap **ret_boot)
{
    const struct tutti_meeting meeting = {.store = url, .secret = secret};

    return tutti_bootstrap_meet(&meeting, nranks, rank, deadline_ns, ret_boot);
}

#endif
