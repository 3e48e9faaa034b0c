/* SPDX-License-Identifier: Apache-2.0
 * The position of a send in its rank's program. A send is emitted when its message is received,
 * because that is when the message is passed on. It may be moved back to where the program has it,
 * if what it reads has been in the same place since then. Its dependencies are the same in both
 * positions. In the earlier one a receive is followed by the send that passes the same chunks on,
 * and the two can be fused.
 *
 * A send is not moved if sends to the same rank would change their order, because the order of a
 * lane is that of its messages.
 */
#ifndef TUTTI_IMPORT_ORDER_H
#define TUTTI_IMPORT_ORDER_H

#include "schedule/step.h"

struct tutti_import_stamp {
    /* `wished`: the event in whose place a step belongs; `event`: the event at which it was
     * emitted */
    uint32_t wished, event;
};

/* The stamps of one rank's steps. */
struct tutti_import_order {
    struct tutti_import_stamp *stamps;
    uint32_t count, capacity;
};

/* Record the stamps of the steps from order->count to nsteps - 1, which have been emitted since the
 * last call. TUTTI_ERR_SYSTEM: no memory. */
int tutti_import_order_note(struct tutti_import_order *order, uint32_t nsteps, uint32_t wished,
                            uint32_t event);
/* Sort the steps of a schedule that is still being built. TUTTI_ERR_SYSTEM: no memory. */
int tutti_import_order_apply(const struct tutti_import_order *order,
                             struct tutti_schedule *schedule);
void tutti_import_order_fini(struct tutti_import_order *order);

#endif
