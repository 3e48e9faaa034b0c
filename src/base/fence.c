/* SPDX-License-Identifier: Apache-2.0
 * Fences for others, by membarrier(2). */
#include "base/fence.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

bool tutti_fence_join(void)
{
    return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

/* Who has joined and is then forbidden the call by a filter loses the order, not correctness: every
 * sleep ends by itself after some milliseconds, and what was missed is seen then. */
void tutti_fence_after_flag(bool is_mine)
{
    tutti_fence_full();
    if (is_mine)
        (void)syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
}
