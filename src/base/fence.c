/* SPDX-License-Identifier: Apache-2.0
 * Implements asymmetric fences by membarrier(2). */
#include "base/fence.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

bool tutti_fence_join(void)
{
    return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

/* A filter (seccomp) may forbid the system call after this process has joined. The caller may then
 * miss data and go to sleep. The result is still correct, because every sleep ends after some
 * milliseconds and the data is seen then. */
void tutti_fence_after_flag(bool have_all_joined)
{
    /* Pairs with the fence of the other side: tutti_fence_before_look. */
    tutti_fence_full();
    if (have_all_joined)
        (void)syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
}

/* A filter (seccomp) may forbid the system call after this process has joined. A store leaves its
 * core within a microsecond even without a fence, so a pause has the same effect. */
void tutti_fence_threads(void)
{
    /* Pairs with the fences that membarrier(2) runs on the other threads. */
    tutti_fence_full();
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) != 0)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    /* Pairs with the fences that membarrier(2) runs on the other threads. */
    tutti_fence_full();
}
