/* SPDX-License-Identifier: Apache-2.0
 * A gate lets one thread in at a time. It refuses a second thread instead of making it wait.
 *
 * The first thread that enters becomes the gate's owner. The owner enters by a plain store and a
 * plain load, without a locked instruction. A locked instruction would wait until the stores of the
 * previous operation have left the core. Another thread that enters ends the ownership for good. It
 * orders the owner's two accesses by a fence that runs on every core (base/fence.h). From then on
 * every thread enters by compare-exchange.
 *
 *     owner                                 another thread
 *       owner_inside = why                    other_inside = why, by compare-exchange
 *       (the compiler keeps the order)        owner = none
 *       if it is still the owner, enter       tutti_fence_threads
 *                                             if owner_inside is empty, enter
 *
 * Either the owner sees that it has lost the gate, or the other thread sees that the owner is
 * inside. If the kernel has no such fence, the gate never has an owner.
 */
#ifndef TUTTI_BASE_GATE_H
#define TUTTI_BASE_GATE_H

#include "base/atomic.h"

#include <stdbool.h>
#include <stddef.h>

struct tutti_gate {
    uintptr_t owner;          /* address of the owner's tutti_thread_mark; 0: none */
    const char *owner_inside; /* why the owner is inside; NULL: it is not */
    const char *other_inside; /* why a thread that entered by compare-exchange is inside, or NULL */
    bool was_owned;           /* no new owner is allowed; written while other_inside is held */
};

/* Its address tells one living thread from another. */
extern _Thread_local char tutti_thread_mark __attribute__((tls_model("initial-exec")));

/* Initialize a gate that no thread is in or owns. Call it again before the memory is reused for
 * another gate. `may_own` is true if tutti_fence_join succeeded in this process. */
void tutti_gate_init(struct tutti_gate *gate, bool may_own);

/* The slow path of tutti_gate_enter: the first entry, and every entry that is not the owner's. */
const char **tutti_gate_take(struct tutti_gate *gate, const char *why);

/* Returns the `why` of the thread that is inside; NULL: no thread is inside any more. */
const char *tutti_gate_occupant(const struct tutti_gate *gate);

/* Enter the gate without waiting. Returns the pass for tutti_gate_leave, or NULL if a thread is
 * already inside, even the calling thread itself. `why` names the work that the thread does inside,
 * and must live as long as the gate. */
static inline const char **tutti_gate_enter(struct tutti_gate *gate, const char *why)
{
    uintptr_t me = (uintptr_t)&tutti_thread_mark;

    if (tutti_load_relaxed(&gate->owner) == me &&
        tutti_load_relaxed(&gate->owner_inside) == NULL) {
        tutti_store_relaxed(&gate->owner_inside, why);
        /* A thread that ends the ownership orders the store and the load here by its fence. */
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        if (tutti_load_relaxed(&gate->owner) == me)
            return &gate->owner_inside;
        /* release: pairs with the acquire in tutti_gate_take */
        tutti_store_release(&gate->owner_inside, NULL);
    }
    return tutti_gate_take(gate, why);
}

/* Leave the gate with the pass that tutti_gate_enter returned.
 * release: pairs with the acquires in tutti_gate_take */
static inline void tutti_gate_leave(const char **pass)
{
    tutti_store_release(pass, NULL);
}

#endif
