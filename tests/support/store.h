/* SPDX-License-Identifier: Apache-2.0
 * Meeting at a store. */
#ifndef TUTTI_TESTS_STORE_H
#define TUTTI_TESTS_STORE_H

#include "bootstrap/bootstrap.h"

/* tutti_bootstrap_meet without a job and a name. */
static inline int bootstrap_from_store(const char *url, const char *secret, int nranks, int rank,
                                       uint64_t deadline_ns, struct tutti_bootstrap **ret_boot)
{
    const struct tutti_meeting meeting = {.store = url, .secret = secret};

    return tutti_bootstrap_meet(&meeting, nranks, rank, deadline_ns, ret_boot);
}

#endif
