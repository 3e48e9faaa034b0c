/* SPDX-License-Identifier: Apache-2.0
 * Defines the atomic loads, stores and fences of the library in one place, so that a test can find
 * their uses. A comment at each ordered use names the access that it pairs with, and the test looks
 * for these comments.
 */
#ifndef TUTTI_BASE_ATOMIC_H
#define TUTTI_BASE_ATOMIC_H

#include <stdint.h>

#define TUTTI_CACHE_LINE 64 /* bytes */

#define tutti_load_relaxed(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define tutti_load_acquire(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define tutti_store_relaxed(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define tutti_store_release(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define tutti_fetch_add(p, v) __atomic_fetch_add((p), (v), __ATOMIC_ACQ_REL)
#define tutti_fetch_or(p, v) __atomic_fetch_or((p), (v), __ATOMIC_ACQ_REL)
#define tutti_exchange(p, v) __atomic_exchange_n((p), (v), __ATOMIC_ACQ_REL)
#define tutti_compare_exchange(p, expected, v) \
    __atomic_compare_exchange_n((p), (expected), (v), false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)

/* Orders earlier stores before later loads. Both sides of a sleep/wake protocol need this fence.
 * One side publishes data and then checks whether the other side sleeps. The other side announces
 * its sleep and then checks for data. */
#define tutti_fence_full() __atomic_thread_fence(__ATOMIC_SEQ_CST)

/* Tell the core that this is a spin loop. */
static inline void tutti_spin_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
