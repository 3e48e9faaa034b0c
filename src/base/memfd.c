/* SPDX-License-Identifier: Apache-2.0
 * Creates memory files without a name, with a sealed size. */
#include "base/memfd.h"

#include "base/result.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* The limit of file sizes holds for memory files, too, and the kernel kills a process that exceeds
 * it. So check before the file is made. */
static int check_limit(size_t size_bytes)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        size_bytes <= limit.rlim_cur)
        return TUTTI_OK;
    return tutti_note(TUTTI_ERR_SYSTEM,
                      "files may have %llu bytes (RLIMIT_FSIZE), shared memory needs %zu; raise "
                      "ulimit -f",
                      (unsigned long long)limit.rlim_cur, size_bytes);
}

int tutti_memfd_create(const char *name, size_t size_bytes, int *ret_fd)
{
    int fd, rc;

    TUTTI_TRY(check_limit(size_bytes));
    fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return tutti_note(TUTTI_ERR_SYSTEM, "memfd_create: %s", strerror(errno));
    if (ftruncate(fd, (off_t)size_bytes) != 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        rc = tutti_note(TUTTI_ERR_SYSTEM, "shared memory of %zu bytes: %s", size_bytes,
                        strerror(errno));
        close(fd);
        return rc;
    }
    *ret_fd = fd;
    return TUTTI_OK;
}
