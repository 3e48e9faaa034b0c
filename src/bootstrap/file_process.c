/* SPDX-License-Identifier: Apache-2.0
 * Processes of the exchange over a directory. Ranks identify their process in the directory, and
 * check whether another rank of this host still lives. */
#include "bootstrap/exchange_file.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LIVENESS_PACE_NS (100 * TUTTI_NS_PER_MS)

/* Hash the kernel's boot id and the pid namespace. If /proc does not give them, the result is zero
 * bytes, and no rank checks our pid (tutti_filestore_pid). */
static void name_kernel(uint8_t ret_kernel[16])
{
    uint8_t hash[TUTTI_SECRET_BYTES];
    char boot[64] = "", text[128];
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    struct stat space;

    memset(ret_kernel, 0, 16);
    if (fd < 0)
        return;
    if (read(fd, boot, sizeof boot - 1) > 0 && stat("/proc/self/ns/pid", &space) == 0) {
        snprintf(text, sizeof text, "%s %llu", boot, (unsigned long long)space.st_ino);
        tutti_secret_from_text(text, hash);
        memcpy(ret_kernel, hash, 16);
    }
    close(fd);
}

void tutti_filestore_name_self(struct tutti_filestore_process *ret_self)
{
    name_kernel(ret_self->kernel);
    tutti_frame_put_u32(ret_self->pid, (uint32_t)getpid());
    tutti_frame_put_u64(ret_self->kin, tutti_exchange_kin());
}

bool tutti_filestore_is_liveness_due(struct tutti_filestore *boot)
{
    uint64_t now_ns = tutti_now_ns();

    if (now_ns < boot->liveness_ns)
        return false;
    boot->liveness_ns = now_ns + LIVENESS_PACE_NS;
    return true;
}

uint32_t tutti_filestore_pid(const struct tutti_filestore *boot,
                             const struct tutti_filestore_process *process)
{
    static const uint8_t unknown[16];

    if (memcmp(process->kernel, unknown, sizeof unknown) == 0 ||
        memcmp(process->kernel, boot->self.kernel, sizeof process->kernel) != 0)
        return 0;
    return tutti_frame_get_u32(process->pid);
}

bool tutti_filestore_is_alive(uint32_t pid)
{
    struct pollfd end = {.events = POLLIN};
    bool has_ended;

    /* A zombie can still be signaled, so kill(2) would not do, but its pidfd is readable. */
    end.fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
    if (end.fd < 0)
        return errno != ESRCH;
    has_ended = poll(&end, 1, 0) == 1;
    close(end.fd);
    return !has_ended;
}
