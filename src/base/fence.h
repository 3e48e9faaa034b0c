/* SPDX-License-Identifier: Apache-2.0
 * Asymmetric fences. Two threads that each store something and then load what the other stores
 * both need a full fence between the store and the load. Without the fences, it may happen that
 * neither sees the other's store. If one side acts at every operation and the other rarely, only
 * the rare side needs to pay. With membarrier(2) it runs a full fence on every thread of every
 * process that has joined.
 *
 *     the frequent side                     the rare side
 *       store data                            store flag
 *       tutti_fence_before_look               tutti_fence_after_flag
 *       load flag; if it is set, act          load data; if it is there, go on
 */
#ifndef TUTTI_BASE_FENCE_H
#define TUTTI_BASE_FENCE_H

#include "base/atomic.h"

#include <stdbool.h>

/* Register this process, so that the rare side in any process can run fences on its threads.
 * False: the kernel lacks membarrier(2), or a filter forbids it. Thread-safe. */
bool tutti_fence_join(void);

/* The frequent side calls this between its store and its load. `have_all_joined` is true if all
 * processes concerned have joined, so that the rare side runs the fence on this thread. Then this
 * call only keeps the compiler from reordering the two accesses. */
static inline void tutti_fence_before_look(bool have_all_joined)
{
    if (have_all_joined)
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
    else
        /* Pairs with the fence of the rare side, in tutti_fence_after_flag. */
        tutti_fence_full();
}

/* The rare side calls this between its store and its load. Both sides must pass the same value of
 * `have_all_joined`. If that value is true, the call takes some microseconds. */
void tutti_fence_after_flag(bool have_all_joined);

/* Run a full fence on every thread of this process, which must have joined. Consider another thread
 * that stores something and then loads. When this call returns, either its store is visible here,
 * or its load sees what this thread stored before the call. The call takes some microseconds, or
 * 1 ms if a filter has forbidden membarrier(2) since the process joined. */
void tutti_fence_threads(void);

#endif
