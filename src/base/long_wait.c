/* SPDX-License-Identifier: Apache-2.0
 * Decides when a long wait is worth a log line. */
#include "base/long_wait.h"

#include "base/clock.h"
#include "base/param.h"

bool tutti_long_wait_is_due(struct tutti_long_wait *wait, uint64_t now_ns, double *ret_seconds)
{
    uint64_t first_ns = (uint64_t)tutti_param_int(TUTTI_PARAM_WAIT_WARN_MS) * TUTTI_NS_PER_MS;

    if (wait->since_ns == 0)
        wait->since_ns = now_ns;
    /* The shift does not overflow: half of the shifted value has already passed. */
    if (first_ns == 0 || now_ns - wait->since_ns < first_ns << wait->lines)
        return false;
    wait->lines++;
    *ret_seconds = (double)(now_ns - wait->since_ns) / TUTTI_NS_PER_S;
    return true;
}
