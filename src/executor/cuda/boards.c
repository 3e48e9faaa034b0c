/* SPDX-License-Identifier: Apache-2.0
 * Uses boards, by which ranks in different processes show each other the descriptors of their
 * buffers. The boards are passed by share.c while the domain forms. */
#include "executor/cuda/private.h"

#include "base/limits.h"
#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

void tutti_cuda_board_read(const struct tutti_cuda_gpu *gpu, int rank,
                           struct tutti_board_notice *ret_notice)
{
    *ret_notice = (struct tutti_board_notice){.count = 0};
    if (gpu->board_fds[rank] >= 0 &&
        tutti_board_read(gpu->board_fds[rank], ret_notice) != TUTTI_OK)
        tutti_log(TUTTI_LOG_INFO, "rank %d cannot see buffers of rank %d: %s", gpu->args.rank, rank,
                  tutti_message_last());
}

int tutti_cuda_board_find(const struct tutti_cuda_gpu *gpu, int rank, uint64_t number,
                          const struct tutti_board_notice *notice, int *ret_fd)
{
    char text[TUTTI_LIMITS_TEXT_BYTES];
    int fd = tutti_board_find(notice, (uint32_t)number);

    if (gpu->board_fds[rank] < 0)
        return tutti_note(TUTTI_ERR_DEVICE, "no descriptor can arrive, because its board did not");
    if (fd < 0 && notice->is_cut)
        return tutti_note(TUTTI_ERR_DEVICE, "taking its descriptor: %s",
                          tutti_limits_describe(EMFILE, text));
    if (fd < 0)
        return TUTTI_AGAIN;
    *ret_fd = fd;
    return TUTTI_OK;
}

void tutti_cuda_close_boards(struct tutti_cuda_gpu *gpu)
{
    tutti_board_close(&gpu->board);
    for (int owner = 0; gpu->board_fds != NULL && owner < gpu->args.nranks; owner++)
        if (gpu->board_fds[owner] >= 0)
            close(gpu->board_fds[owner]);
    free(gpu->board_fds);
    gpu->board_fds = NULL;
}
