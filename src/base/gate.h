/* SPDX-License-Identifier: Apache-2.0
 * A gate lets one thread in at a time. It refuses a second thread instead of making it wait.
 *
 * The first thread that comes becomes the gate's owner. The owner enters by a plain store and a
 * plain load, without a locked instruction, because such an instruction would wait until the
 * stores of the previous operation have left the core. Another thread that enters takes the
 * ownership away for good, and pays for the order of the owner's two accesses with a fence that
 * runs on every core (base/fence.h). From then on every thread enters by compare-exchange.
 *
 *     owner                                 another thread
 *       owner_inside = why                    other_inside = why, by compare-exchange
 *       (the compiler keeps the order)        owner = none
 *       owner still me? enter                 tutti_fence_threads
 *                                             owner_inside empty? enter
 *
 * Either the owner sees that it has lost the gate, or the other thread sees that the owner is
 * inside. Where the kernel has no such fence, there is no owner.
 */
#ifndef TUTTI_BASE_GATE_H
#define TUTTI_BASE_GATE_H

#include "base/atomic.h"

#include <stdbool.h>
#include <stddef.h>

struct tutti_gate {
    uintptr_t owner;          /* the mark of a thread; 0: none */
    const char *owner_inside; /* why the owner is inside; NULL: it is not */
    const char *other_inside; /* the same of a thread that came by compare-exchange */
    bool was_owned;           /* written under other_inside */
};

/* Its address tells one living thread from another. */
extern _Thread_local char tutti_thread_mark __attribute__((tls_model("initial-exec")));

/* A closed and empty gate; also before memory is used for a new one. `may_own`: the kernel lets
 * this process fence for its threads (tutti_fence_join). */
void tutti_gate_init(struct tutti_gate *gate, bool may_own);

/* The way in that is no owner's. */
const char **tutti_gate_take(struct tutti_gate *gate, const char *why);

/* Why the thread is inside that keeps others out; NULL: it has left meanwhile. */
const char *tutti_gate_occupant(const struct tutti_gate *gate);

/* Enter. Returns the pass for tutti_gate_leave, or NULL: a thread is inside. `why` must live as
 * long as the gate. */
static inline const char **tutti_gate_enter(struct tutti_gate *gate, const char *why)
{
    uintptr_t me = (uintptr_t)&tutti_thread_mark;

    if (tutti_load_relaxed(&gate->owner) == me &&
        tutti_load_relaxed(&gate->owner_inside) == NULL) {
        tutti_store_relaxed(&gate->owner_inside, why);
        /* The thread that takes the ownership away orders the two accesses, by its fence. */
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        if (tutti_load_relaxed(&gate->owner) == me)
            return &gate->owner_inside;
        tutti_store_release(&gate->owner_inside, NULL);
    }
    return tutti_gate_take(gate, why);
}

/* release: pairs with the acquires in tutti_gate_take */
static inline void tutti_gate_leave(const char **pass)
{
    tutti_store_release(pass, NULL);
}

#endif
