/* SPDX-License-Identifier: Apache-2.0
 * The place of a send in its rank's program. It is emitted when its message is handed over, which
 * is when it is received; but it may stand where the program has it, as long as what it reads lies
 * where it lay then: it waits for the same steps, and the same steps wait for it. There, a receive
 * and the send that passes the same chunks on follow each other, and can be fused.
 *
 * Unless sends to the same rank would change places: the order of a lane is that of its messages.
 */
#ifndef TUTTI_SCHEDULE_IMPORT_ORDER_H
#define TUTTI_SCHEDULE_IMPORT_ORDER_H

#include "schedule/step.h"

struct tutti_import_stamp {
    uint32_t wished, event; /* where a step belongs, and where it was emitted */
};

/* Of one rank's steps. */
struct tutti_import_order {
    struct tutti_import_stamp *stamps;
    uint32_t count, capacity;
};

/* The steps from order->count to nsteps have been emitted. */
int tutti_import_order_note(struct tutti_import_order *order, uint32_t nsteps, uint32_t wished,
                            uint32_t event);
/* Sort the steps of a schedule that is still being built. */
int tutti_import_order_apply(const struct tutti_import_order *order,
                             struct tutti_schedule *schedule);
void tutti_import_order_fini(struct tutti_import_order *order);

#endif
