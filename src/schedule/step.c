/* SPDX-License-Identifier: Apache-2.0
 * Names steps, and frees schedules.
 */
#include "schedule/step.h"

#include <stdlib.h>

const char *tutti_step_name(enum tutti_step_kind kind)
{
    static const char *const names[TUTTI_STEP_KIND_COUNT] = {
        [TUTTI_STEP_SEND] = "send",
        [TUTTI_STEP_RECV] = "recv",
        [TUTTI_STEP_RECV_REDUCE] = "recv_reduce",
        [TUTTI_STEP_RECV_COPY_SEND] = "recv_copy_send",
        [TUTTI_STEP_RECV_REDUCE_SEND] = "recv_reduce_send",
        [TUTTI_STEP_RECV_REDUCE_COPY_SEND] = "recv_reduce_copy_send",
        [TUTTI_STEP_COPY] = "copy",
        [TUTTI_STEP_REDUCE] = "reduce",
        [TUTTI_STEP_PUT] = "put",
        [TUTTI_STEP_GET] = "get",
        [TUTTI_STEP_GATHER_REDUCE] = "gather_reduce",
        [TUTTI_STEP_SIGNAL] = "signal",
        [TUTTI_STEP_WAIT] = "wait",
    };

    return (unsigned)kind < TUTTI_STEP_KIND_COUNT ? names[kind] : "unknown";
}

void tutti_schedule_destroy(struct tutti_schedule *schedule)
{
    if (schedule == NULL)
        return;
    free(schedule->steps);
    free(schedule->deps);
    free(schedule->among);
    free(schedule);
}
