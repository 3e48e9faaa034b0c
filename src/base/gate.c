/* SPDX-License-Identifier: Apache-2.0
 * Implements the slow path into a gate, for the first entry and for every thread that is not the
 * owner. */
#include "base/gate.h"

#include "base/fence.h"

_Thread_local char tutti_thread_mark __attribute__((tls_model("initial-exec")));

void tutti_gate_init(struct tutti_gate *gate, bool may_own)
{
    *gate = (struct tutti_gate){.was_owned = !may_own};
}

const char **tutti_gate_take(struct tutti_gate *gate, const char *why)
{
    const char *nobody = NULL;

    /* acquire: pairs with the release in tutti_gate_leave */
    if (!tutti_compare_exchange(&gate->other_inside, &nobody, why))
        return NULL;
    if (tutti_load_relaxed(&gate->owner) != 0) {
        tutti_store_relaxed(&gate->owner, 0);
        tutti_fence_threads();
    }
    /* acquire: pairs with the owner's release in tutti_gate_leave or tutti_gate_enter */
    if (tutti_load_acquire(&gate->owner_inside) != NULL) {
        tutti_gate_leave(&gate->other_inside);
        return NULL;
    }
    if (gate->was_owned)
        return &gate->other_inside;
    gate->was_owned = true;
    tutti_store_relaxed(&gate->owner_inside, why);
    tutti_store_relaxed(&gate->owner, (uintptr_t)&tutti_thread_mark);
    tutti_gate_leave(&gate->other_inside);
    return &gate->owner_inside;
}

const char *tutti_gate_occupant(const struct tutti_gate *gate)
{
    const char *owner = tutti_load_relaxed(&gate->owner_inside);

    return owner != NULL ? owner : tutti_load_relaxed(&gate->other_inside);
}
