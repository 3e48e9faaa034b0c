/* SPDX-License-Identifier: Apache-2.0
 * Fences for others. Two threads of which each stores something and then looks at what the other
 * stores need a full fence between the two, both of them; or else neither may see the other's.
 * Where one side acts at every operation and the other hardly ever, the rare side can pay for both:
 * by membarrier(2) it has a full fence run on every thread of every process that has joined.
 *
 *     often                                 rarely
 *       store data                            store flag
 *       tutti_fence_before_look               tutti_fence_after_flag
 *       flag set? act                         data there? go on
 */
#ifndef TUTTI_BASE_FENCE_H
#define TUTTI_BASE_FENCE_H

#include "base/atomic.h"

#include <stdbool.h>

/* From now on others can fence for the threads of this process. False: the kernel cannot, or may
 * not. Thread-safe. */
bool tutti_fence_join(void);

/* The frequent side. `is_theirs`: everybody concerned has joined, and the rare side fences for us;
 * then the compiler alone must keep the order. */
static inline void tutti_fence_before_look(bool is_theirs)
{
    if (is_theirs)
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
    else
        tutti_fence_full();
}

/* The rare side. `is_mine`: what the frequent side calls `is_theirs`. Takes some microseconds
 * then. */
void tutti_fence_after_flag(bool is_mine);

/* Run a full fence on every thread of this process, which has joined. When this returns, every
 * store that another thread has made before a load of its own is visible here, or that load sees
 * what was stored here before the call. Takes some microseconds. */
void tutti_fence_threads(void);

#endif
