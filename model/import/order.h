/* SPDX-License-Identifier: Apache-2.0
 * Sorts the steps of one rank of an imported program, so that sends return to their original
 * positions. Some sends read data that are still in the sender's cells when the program receives
 * the message. emit.c emits such a direct send late, at the step of the program that receives the
 * message. The program has the send at an earlier step. The send may move back there if the data
 * that it reads has been in the same place since then. Moving it does not change its dependencies.
 * In the earlier position, the send often directly follows the receive of the same chunks. The two
 * steps can then be fused.
 *
 * Messages of a lane arrive in the order of their sends. So the sends to a rank stay where they
 * were emitted if moving them would change their order.
 */
#ifndef TUTTI_IMPORT_ORDER_H
#define TUTTI_IMPORT_ORDER_H

#include "schedule/step.h"

struct tutti_import_stamp {
    /* `wished` is the event to whose position the step should move; `event` is the event at which
     * emit.c emitted the step. */
    uint32_t wished, event;
};

/* The stamps of one rank's steps, in the order of the steps. A zeroed object is empty. The owner
 * releases it with tutti_import_order_fini. */
struct tutti_import_order {
    struct tutti_import_stamp *stamps;
    uint32_t count, capacity;
};

/* Record one stamp for each of the steps from order->count to nsteps - 1. These are the steps that
 * have been emitted since the last call. TUTTI_ERR_SYSTEM: no memory. */
int tutti_import_order_note(struct tutti_import_order *order, uint32_t nsteps, uint32_t wished,
                            uint32_t event);
/* Sort the steps of a schedule that is still being built. Its dependencies must not be derived yet,
 * and every step must have a stamp. TUTTI_ERR_SYSTEM: no memory; the schedule is unchanged. */
int tutti_import_order_apply(const struct tutti_import_order *order,
                             struct tutti_schedule *schedule);
void tutti_import_order_fini(struct tutti_import_order *order);

#endif
